"""Train a byte-level BPE tokenizer with a chat template: `python trainer/train_tokenizer.py`.

The result is a Hugging Face tokenizer folder. Any other such folder works in its place (`--tokenizer PATH` of the stages).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, START, END = "<|pad|>", "<|im_start|>", "<|im_end|>"  # a document, a message and an answer all end with END
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, nargs="+", default=[Path("dataset/raw")], help="files, or folders with files")
    parser.add_argument("--output", type=Path, default=Path("dataset/tokenizer"), help="folder for the tokenizer")
    parser.add_argument("--vocab_size", type=int, default=640, help="number of entries, including bytes and special tokens")
    args = parser.parse_args()
    tokenizer = train_tokenizer(texts_of(args.input), args.vocab_size)
    tokenizer.save_pretrained(args.output)
    print(f"{len(tokenizer)} entries, written to {args.output}")


def train_tokenizer(texts: Iterator[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Learn merges from the texts; every byte is in the alphabet, so no text is ever unknown."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if vocab_size < len(alphabet) + 3:
        raise ValueError(f"Expected `vocab_size` to be at least {len(alphabet) + 3}, got {vocab_size}.")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[PAD, START, END], initial_alphabet=sorted(alphabet), show_progress=False
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token=PAD, eos_token=END, additional_special_tokens=[START], chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False, model_max_length=1024,
    )  # fmt: skip


def texts_of(inputs: list[Path]) -> Iterator[str]:
    """Every string in the files, under any key; files in the order of their names."""
    files = [file for path in inputs for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    found = False
    for file in files:
        if file.suffix not in (".jsonl", ".json", ".txt"):
            continue
        found = True
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            yield from _strings(json.loads(text))
        else:
            for line in filter(str.strip, text.splitlines()):
                yield from _strings(json.loads(line)) if file.suffix == ".jsonl" else [line]
    if not found:
        where = ", ".join(map(str, inputs))
        raise FileNotFoundError(f"No .jsonl, .json or .txt in {where}; `python trainer/generate_corpus.py` writes them.")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


if __name__ == "__main__":
    main()
