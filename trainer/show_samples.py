"""Ask a model and show what it answers, and how well by a reward.

python trainer/show_samples.py --weights out/full_sft out/ppo
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from chat_tokens import end_tokens
from data_config import DataError, Source
from data_sets import Prompts
from data_sources import iter_records, shape_record
from trainer_utils import load_reward, main_guard, seed_everything


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", nargs="+", required=True, metavar="FOLDER", help="folders of weights, one after the other")
    parser.add_argument("--prompts", default="dataset/raw/held_out.jsonl", help="questions to ask, as PPO's sources have them")
    parser.add_argument("--reward", default="rewards:helpful", help="`module:function` that judges the answers")
    parser.add_argument("--show", type=int, default=3, help="answers to print of each; all of them are judged")
    parser.add_argument("--max_new_tokens", type=int, default=32, help="longest answer in tokens")
    parser.add_argument("--temperature", type=float, default=1.0, help="0 always takes the most likely token")
    parser.add_argument("--seed", type=int, default=42, help="seed of the sampling")
    args = parser.parse_args(argv)
    path = Path(args.prompts)
    kind = {".json": "json", ".txt": "text", ".parquet": "parquet"}.get(path.suffix, "jsonl")
    records = [shape_record(raw, "ppo", {}) | {"source": path.stem} for _, raw in iter_records(Source(path.stem, path, kind))]
    if not records:
        raise DataError(f"--prompts {path} is empty.")
    reward = load_reward(args.reward, folder_allowed=False)
    for folder in args.weights:
        answers = ask(folder, records, args.max_new_tokens, args.temperature, args.seed)
        scores = reward([record["text"] for record in records], answers)
        print(f"{folder}: reward {sum(scores) / len(scores):+.3f} over {len(scores)} questions")
        for record, answer, score in list(zip(records, answers, scores, strict=True))[: args.show]:
            print(f"  {score:+.1f}  {record['text']}\n        {answer!r}")
    return 0


@torch.no_grad()
def ask(folder: str, records: list[dict[str, Any]], length: int, temperature: float, seed: int) -> list[str]:
    """One answer to each record."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging

    if not (Path(folder) / "config.json").is_file():
        raise FileNotFoundError(f"No weights in {folder}: it has no config.json.")
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
    seed_everything(seed)
    data = Prompts(records, tokenizer, model.config.max_position_embeddings - length)
    batch = data.collate([data[place] for place in range(len(data))])
    how = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature > 0 else {"do_sample": False}
    made = model.generate(
        input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=length,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=end_tokens(tokenizer, model), **how,
    )  # fmt: skip
    return tokenizer.batch_decode(made[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
