"""Pretraining: a model learns to continue plain text. The first stage: it builds the model.

python trainer/generate_corpus.py && python trainer/train_tokenizer.py
python trainer/train_pretrain.py --max_steps 200
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import sys

from data_sets import PackedBlocks
from memory_plan import show_plan
from stage_loop import LanguageModelling, add_stage_flags, stage_records, train
from trainer_utils import common_parser, load_model, load_tokenizer, main_guard, make_accelerator, parse_args


def main(argv: list[str] | None = None) -> int:
    # 1. Arguments. A model is built from --model_config unless --from_weight or --model_path names one.
    parser = common_parser("pretrain", __doc__.splitlines()[0])
    add_stage_flags(
        parser, data_config="config/data/pretrain/stories.yaml",
        tokenizer="dataset/tokenizer", model_config="config/model/tiny.yaml",
        max_seq_len=128, batch_size=16, learning_rate=3e-3, lr_schedule="cosine", warmup_steps=20, weight_decay=0.01,
    )  # fmt: skip
    args = parse_args(parser, argv)
    if args.plan:
        return show_plan(args)
    accelerator = make_accelerator(args)

    # 2. Data: documents one after the other, cut into blocks. Nothing is padded and every token is learnt.
    tokenizer = load_tokenizer(args)
    data = PackedBlocks(stage_records(args, ("pretrain",)), tokenizer, args.max_seq_len)

    # 3. Model and loss; the loop is in stage_loop.py.
    model = load_model(args, tokenizer=tokenizer)
    return train(args, accelerator, model, tokenizer, data, LanguageModelling())


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
