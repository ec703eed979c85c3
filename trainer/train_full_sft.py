"""Supervised fine-tuning of all weights: the model learns to answer, from conversations.

python trainer/train_full_sft.py --from_weight midtrain --max_steps 100
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import sys

from data_sets import Conversations
from memory_plan import show_plan
from stage_loop import LanguageModelling, add_stage_flags, stage_records, train
from trainer_utils import common_parser, load_model, load_tokenizer, main_guard, make_accelerator, parse_args


def main(argv: list[str] | None = None) -> int:
    # 1. Arguments.
    parser = common_parser("full_sft", __doc__.splitlines()[0])
    add_stage_flags(
        parser, data_config="config/data/posttrain/sft/chats.yaml", from_weight="midtrain",
        max_seq_len=128, batch_size=32, learning_rate=1e-3, lr_schedule="cosine", warmup_steps=10,
    )  # fmt: skip
    args = parse_args(parser, argv)
    if args.plan:
        return show_plan(args)
    accelerator = make_accelerator(args)

    # 2. Data: one conversation per row, padded on the right. Only the assistant's words and their end token have labels.
    tokenizer = load_tokenizer(args)
    data = Conversations(stage_records(args, ("sft",)), tokenizer, args.max_seq_len)

    # 3. Model and loss: the mean over learnt tokens of the whole step, so that the tokens of a short answer do not weigh more.
    model = load_model(args, tokenizer=tokenizer)
    return train(args, accelerator, model, tokenizer, data, LanguageModelling())


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
