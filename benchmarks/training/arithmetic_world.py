"""Sums for a verifiable reward: `17+5=` is answered with `22`. Characters are tokens; the reward is the trainer's own check.

A new model is taught by supervision until some of its answers are right, as models are before RL with verifiable rewards.
Problems that are held out are neither in that nor in RL.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "trainer"))

PAD, BOS, EOS, UNK = 0, 1, 2, 3
CHARACTERS = "0123456789+="
LARGEST, HELD_OUT, RESPONSE = 40, 300, 4


def reward(prompts: list[str], completions: list[str], answer: list[Any], **_: Any) -> list[float]:
    """1 for the right number: `verifiable_rewards:number`, under the argument names that TRL uses."""
    from verifiable_rewards import number

    return number(prompts, completions, answer)


def problems(seed: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Questions with answers: those to train on, and those held out."""
    found = [(f"{one}+{other}=", str(one + other)) for one in range(LARGEST) for other in range(LARGEST)]
    random.Random(seed).shuffle(found)
    return found[HELD_OUT:], found[:HELD_OUT]


def build(folder: Path, seed: int, epochs: int = 12) -> Path:
    """Write `model` (policy and tokenizer), `prompts.jsonl` and `ppo.yaml`, the same for the same seed."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, logging

    logging.disable_progress_bar()
    torch.set_num_threads(1)
    vocabulary = {"[PAD]": PAD, "[BOS]": BOS, "[EOS]": EOS, "[UNK]": UNK} | {sign: 4 + n for n, sign in enumerate(CHARACTERS)}
    signs = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    signs.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    signs.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=signs, pad_token="[PAD]", bos_token="[BOS]", eos_token="[EOS]", unk_token="[UNK]", padding_side="left"
    )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=96, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=64, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD,
        tie_word_embeddings=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    asked, _ = problems(seed)
    teach(model, tokenizer, asked, epochs, seed)
    model.save_pretrained(str(folder / "model"))
    tokenizer.save_pretrained(str(folder / "model"))
    rows = [{"text": question, "answer": answer, "source": "sums"} for question, answer in asked]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "ppo.yaml").write_text(
        f"stage: ppo\noutput: {folder / 'prepared.jsonl'}\nsources:\n"
        f"  - {{name: sums, path: {folder / 'prompts.jsonl'}, columns: [answer]}}\n"
    )
    return folder


def teach(model: Any, tokenizer: Any, asked: list[tuple[str, str]], epochs: int, seed: int) -> None:
    """Supervision on the answers."""
    import torch

    rows = [tokenizer(question + answer)["input_ids"] + [EOS] for question, answer in asked]
    labels = [[-100] * len(question) + row[len(question) :] for row, (question, _) in zip(rows, asked, strict=True)]
    width = max(map(len, rows))
    tokens = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    targets = torch.tensor([row + [-100] * (width - len(row)) for row in labels])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for part in torch.randperm(len(rows), generator=order).split(64):
            loss = model(input_ids=tokens[part], attention_mask=(tokens[part] != PAD).long(), labels=targets[part]).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def accuracy(folder: Path, seed: int, samples: int = 16) -> dict[str, float]:
    """The share of right answers to held-out problems: sampled at temperature 1, and greedy."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(str(folder), padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    questions, answers = zip(*problems(seed)[1], strict=True)
    given = tokenizer(list(questions), padding=True, return_tensors="pt")
    given.pop("token_type_ids", None)
    fixed = {"max_new_tokens": RESPONSE, "eos_token_id": EOS, "pad_token_id": PAD}
    torch.manual_seed(seed)
    found = {}
    ways = {"sampled": {"do_sample": True, "top_k": 0, "num_return_sequences": samples}, "greedy": {"do_sample": False}}
    for name, how in ways.items():
        made = model.generate(**given, **how, **fixed)[:, given["input_ids"].shape[1] :]
        said = tokenizer.batch_decode(made, skip_special_tokens=True)
        each = how.get("num_return_sequences", 1)
        right = [answer for answer in answers for _ in range(each)]
        found[name] = sum(reward([""] * len(said), said, right)) / len(said)
    return found
