"""Small logs in several formats, from which hostile ones are made."""

from __future__ import annotations

import json
import random
from pathlib import Path

__all__ = ["NAMES", "in_some_format", "put", "rows"]

NAMES = [
    "log.jsonl", "trainer_state.json", "m.csv", "run.log", "x.txt", "b.parquet", "events.out.tfevents.1", "n.ipynb",
    "r_events.jsonl",
]  # fmt: skip


def put(path: Path, content: bytes) -> Path:
    """Write a file; returns its path."""
    path.write_bytes(content)
    return path


def rows(chance: random.Random, count: int) -> list[dict[str, float]]:
    return [{"step": n, "loss": chance.random(), "reward": chance.random(), "kl": 0.1} for n in range(1, count)]


def in_some_format(chance: random.Random) -> bytes:
    """A small log that can be read."""
    made = rows(chance, 40)
    output = {"output_type": "stream", "text": [f"{row}\n" for row in made]}
    return chance.choice([
        "\n".join(map(json.dumps, made)),
        "\n".join(json.dumps({"step": row["step"], "metrics": {"reward_mean": row["reward"], "kl_mean": 0.1}}) for row in made),
        json.dumps({"log_history": made}),
        "step,loss,reward\n" + "\n".join(f"{n},0.{n},{n}.5" for n in range(40)),
        "\n".join(f"step:{n} - actor/pg_loss:0.{n} - critic/score/mean:0.5" for n in range(40)),
        "\n".join(map(str, made)),
        "\n".join(f" {n}%|###| {n}/40 [00:01<00:02] loss=0.{n}, reward=0.5" for n in range(40)),
        "| step | loss |\n|---|---|\n" + "\n".join(f"| {n} | 0.{n} |" for n in range(40)),
        json.dumps({"cells": [{"cell_type": "code", "outputs": [output]}]}),
    ]).encode()  # fmt: skip
