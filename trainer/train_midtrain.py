"""Midtraining: the pretrained model continues with better text that is closer to its later task.

python trainer/train_midtrain.py --from_weight pretrain --max_steps 100
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import sys

from data_sets import PackedBlocks
from memory_plan import show_plan
from stage_loop import LanguageModelling, add_stage_flags, stage_records, train
from trainer_utils import common_parser, load_model, load_tokenizer, main_guard, make_accelerator, parse_args


def main(argv: list[str] | None = None) -> int:
    # 1. Arguments: a lower learning rate than in pretraining, and no new model.
    parser = common_parser("midtrain", __doc__.splitlines()[0])
    add_stage_flags(
        parser, data_config="config/data/midtrain/quiz.yaml", from_weight="pretrain",
        max_seq_len=128, batch_size=16, learning_rate=1.5e-3, lr_schedule="cosine", warmup_steps=10, weight_decay=0.01,
    )  # fmt: skip
    args = parse_args(parser, argv)
    if args.plan:
        return show_plan(args)
    accelerator = make_accelerator(args)

    # 2. Data: blocks as in pretraining; the mixture keeps a share of the old text, so that it is not forgotten.
    tokenizer = load_tokenizer(args)
    data = PackedBlocks(stage_records(args, ("midtrain", "pretrain")), tokenizer, args.max_seq_len)

    # 3. Model and loss; the loop is in stage_loop.py.
    model = load_model(args, tokenizer=tokenizer)
    return train(args, accelerator, model, tokenizer, data, LanguageModelling())


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
