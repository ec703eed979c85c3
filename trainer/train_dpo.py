"""Direct preference optimisation: the model learns to prefer the chosen answer to the rejected one, and stays near the reference.

python trainer/train_dpo.py --from_weight full_sft --max_steps 60
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import sys
from typing import Any

import torch
import torch.nn.functional as F

from chat_tokens import IGNORED
from data_sets import Pairs
from lora import AdaptersOff
from memory_plan import show_plan
from sharding import shard
from stage_loop import add_stage_flags, stage_records, train
from trainer_utils import common_parser, disable_dropout, load_model, load_tokenizer, main_guard, make_accelerator, parse_args


def answer_logps(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Log-probability of each row's answer, summed over its tokens."""
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits[:, :-1]
    labels = batch["labels"][:, 1:]
    learnt = labels != IGNORED
    logp = torch.zeros(labels.shape, device=labels.device)
    logp[learnt] = -F.cross_entropy(logits[learnt].float(), labels[learnt], reduction="none")
    return logp.sum(1)


class Preference:
    """Minus log sigmoid of beta times (log-ratio of the chosen answer minus that of the rejected), against a frozen reference."""

    shown = (("margin", "rewards/margins", "{:.4f}"), ("accuracy", "rewards/accuracies", "{:.3f}"))

    def __init__(self, reference: Any, beta: float, label_smoothing: float) -> None:
        self.reference, self.beta, self.smoothing = reference, beta, label_smoothing

    def units(self, batch: dict[str, torch.Tensor]) -> int:
        """Pairs: the chosen answers are the first half of the rows, the rejected ones the second."""
        return len(batch["input_ids"]) // 2

    def __call__(self, model: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        chosen, rejected = answer_logps(model, batch).chunk(2)
        with torch.no_grad():
            chosen_before, rejected_before = answer_logps(self.reference, batch).chunk(2)
        reward_chosen = self.beta * (chosen - chosen_before)  # the implicit reward of DPO
        reward_rejected = self.beta * (rejected - rejected_before)
        margin = reward_chosen - reward_rejected
        loss = -(1.0 - self.smoothing) * F.logsigmoid(margin) - self.smoothing * F.logsigmoid(-margin)
        return {
            "loss": loss.sum(),
            "rewards/chosen": reward_chosen.sum(),
            "rewards/rejected": reward_rejected.sum(),
            "rewards/margins": margin.sum(),
            "rewards/accuracies": (margin > 0).sum(),
            "logps/chosen": chosen.sum(),
            "logps/rejected": rejected.sum(),
        }

    def metrics(self, means: dict[str, float]) -> dict[str, float]:
        return means


def main(argv: list[str] | None = None) -> int:
    # 1. Arguments. The smaller --beta, the further the model may move from the reference.
    parser = common_parser("dpo", __doc__.splitlines()[0])
    parser.add_argument("--beta", type=float, default=0.1, help="strength of the penalty for leaving the reference model")
    parser.add_argument("--label_smoothing", type=float, default=0.0, help="assumed share of pairs with swapped labels")
    add_stage_flags(
        parser, data_config="config/data/posttrain/dpo/preferences.yaml", from_weight="full_sft",
        max_seq_len=128, batch_size=32, learning_rate=1e-4, lr_schedule="linear", warmup_steps=5,
    )  # fmt: skip
    args = parse_args(parser, argv)
    if not args.beta > 0 or not 0 <= args.label_smoothing < 0.5:
        parser.error("expected --beta above 0, and --label_smoothing of at least 0 and below 0.5")
    if args.plan:
        return show_plan(args)
    accelerator = make_accelerator(args)

    # 2. Data: pairs that share their prompt; both answers of a pair are in one batch.
    tokenizer = load_tokenizer(args)
    data = Pairs(stage_records(args, ("dpo",)), tokenizer, args.max_seq_len)

    # 3. The model, and a frozen copy of its weights. A resumed run also uses the weights that the stage began with.
    model = disable_dropout(load_model(args, tokenizer=tokenizer))
    if args.lora_rank:
        reference = AdaptersOff(model, model)
    else:
        reference = disable_dropout(load_model(args, tokenizer=tokenizer)).to(accelerator.device).eval().requires_grad_(False)
    if args.fsdp and not args.lora_rank:
        shard(reference, accelerator)
    return train(args, accelerator, model, tokenizer, data, Preference(reference, args.beta, args.label_smoothing))


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
