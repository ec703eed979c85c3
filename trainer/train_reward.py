"""A reward model from preferences: a classifier that scores the chosen answer higher than the rejected one.

python trainer/train_reward.py --from_weight full_sft --max_steps 60
python trainer/train_ppo.py … --reward out/reward
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import sys
from typing import Any

import torch
import torch.nn.functional as F

from data_sets import Pairs
from memory_plan import show_plan
from stage_loop import add_stage_flags, stage_records, train
from trainer_utils import common_parser, disable_dropout, load_model, load_tokenizer, main_guard, make_accelerator, parse_args


class Comparison:
    """Minus log sigmoid of the chosen answer's score minus the rejected one's (Bradley and Terry's model).

    Only the difference is learnt; a small penalty on both scores keeps their level near zero.
    """

    shown = (("margin", "rewards/margins", "{:.4f}"), ("accuracy", "rewards/accuracies", "{:.3f}"))

    def __init__(self, centre: float) -> None:
        self.centre = centre

    def units(self, batch: dict[str, torch.Tensor]) -> int:
        """Pairs: the chosen answers are the first half of the rows, the rejected ones the second."""
        return len(batch["input_ids"]) // 2

    def __call__(self, model: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        scores = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits[:, 0].float()
        chosen, rejected = scores.chunk(2)
        margin = chosen - rejected
        loss = -F.logsigmoid(margin) + self.centre * (chosen + rejected) ** 2
        return {
            "loss": loss.sum(),
            "rewards/chosen": chosen.sum(),
            "rewards/rejected": rejected.sum(),
            "rewards/margins": margin.sum(),
            "rewards/accuracies": (margin > 0).sum(),
        }

    def metrics(self, means: dict[str, float]) -> dict[str, float]:
        return means


def main(argv: list[str] | None = None) -> int:
    # 1. Arguments. The data are those of DPO.
    parser = common_parser("reward", __doc__.splitlines()[0])
    parser.add_argument("--centre", type=float, default=0.01, help="strength of the penalty that keeps the scores near zero")
    add_stage_flags(
        parser, writes=False, data_config="config/data/posttrain/dpo/preferences.yaml", from_weight="full_sft",
        max_seq_len=128, batch_size=32, learning_rate=5e-4, lr_schedule="linear", warmup_steps=5,
    )  # fmt: skip
    args = parse_args(parser, argv)
    if not args.centre >= 0:
        parser.error(f"expected --centre of at least 0, got {args.centre}")
    if args.plan:
        return show_plan(args)
    accelerator = make_accelerator(args)

    # 2. Data: pairs that share their prompt.
    tokenizer = load_tokenizer(args)
    data = Pairs(stage_records(args, ("dpo",)), tokenizer, args.max_seq_len)

    # 3. The language model's body with a new head: one number at the last token.
    model = disable_dropout(load_model(args, "score", tokenizer=tokenizer))
    return train(args, accelerator, model, tokenizer, data, Comparison(args.centre))


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
