"""A task small enough for a CPU and the same for both trainers: answer with good words, and end the answer.

Words are tokens. The reward of a response is the share of good words among its words; a quarter of all words is good, so
a new model begins near 0.25 and a trained one ends near 1.
"""

from __future__ import annotations

import json
import random
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

PAD, BOS, EOS, UNK = 0, 1, 2, 3
WORDS = 252
VOCABULARY = WORDS + 4
GOOD = range(4, 4 + WORDS // 4)
GOOD_WORDS = frozenset(f"w{number}" for number in range(WORDS // 4))
PROMPT_WORDS = 12


def reward(prompts: list[str], responses: list[str]) -> list[float]:
    """Share of good words; an empty response has earned nothing."""
    scores = []
    for response in responses:
        words = response.split()
        scores.append(sum(word in GOOD_WORDS for word in words) / max(len(words), 1))
    return scores


def measured(marks: list[tuple[float, float]], tokens: list[float], warmup: int) -> dict[str, Any]:
    """Means over the updates after the first ones, and the tokens per CPU second of each.

    Args:
        marks: wall clock and CPU seconds at the end of each update.
        tokens: that each update has generated.
    """
    spans = [(end[0] - begin[0], end[1] - begin[1]) for begin, end in pairwise(marks[warmup:])]
    made = tokens[warmup + 1 :]
    wall, cpu = (statistics.mean(span[clock] for span in spans) for clock in (0, 1))
    speeds = [count / span[1] for count, span in zip(made, spans, strict=True)]
    return {"wall": wall, "cpu": cpu, "tokens": statistics.mean(made), "speeds": speeds}


def build(folder: Path, seed: int, hidden: int = 32, layers: int = 2) -> Path:
    """Write `model` (policy and tokenizer), `prompts.jsonl` and `ppo.yaml` into the folder, the same for the same seed."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, logging

    logging.disable_progress_bar()
    vocabulary = {"[PAD]": PAD, "[BOS]": BOS, "[EOS]": EOS, "[UNK]": UNK} | {f"w{n}": n + 4 for n in range(WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", bos_token="[BOS]", eos_token="[EOS]", unk_token="[UNK]", padding_side="left"
    )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, intermediate_size=8 * hidden // 3, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256,
        bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD, tie_word_embeddings=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.save_pretrained(str(folder / "model"))
    tokenizer.save_pretrained(str(folder / "model"))
    chance = random.Random(seed)
    with (folder / "prompts.jsonl").open("w") as out:
        for _ in range(512):
            text = " ".join(f"w{chance.randrange(WORDS)}" for _ in range(chance.randint(PROMPT_WORDS // 2, PROMPT_WORDS)))
            out.write(json.dumps({"text": text, "source": "bench"}) + "\n")
    (folder / "ppo.yaml").write_text(
        f"stage: ppo\noutput: {folder / 'prepared.jsonl'}\nsources:\n  - {{name: bench, path: {folder / 'prompts.jsonl'}}}\n"
    )
    return folder
