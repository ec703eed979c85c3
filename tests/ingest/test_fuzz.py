"""Whatever the bytes: nothing but our own errors escapes, and no number comes out that did not go in."""

from __future__ import annotations

import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rldk.core.errors import RLDKError
from rldk.ingest import Ingested, read_runs

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

EVENT = '{"step": %d, "wall_time": %d.5, "metrics": {"reward_mean": 0.%d, "kl": 0.0%d, "loss": -1e-3}, "run_id": "r"}'
GRPO = '{"loss": 0.5, "grad_norm": 2.25, "learning_rate": 1e-06, "reward": 0.%d, "kl": 0.0%d, "epoch": 0.5, "step": %d}'
VERL = "step:%d - actor/pg_loss:0.%d - critic/score/mean:0.5 - actor/entropy:0.75"
DICTS = "{'loss': 0.%d, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'reward': 0.25, 'epoch': 0.%d}"
CONSOLE = "Epoch:[1/1](%d/500) actor_loss:0.23 critic_loss:0.12 reward:1.5 kl:0.00%d tokens/s:12345"
WORDS = "[INFO] iteration %d: loss = 0.%d, reward = 1.25, kl = 0.5"


def repeated(form: str, rows: int = 9) -> bytes:
    """A form with the number of the row in each of its places."""
    return "".join(form % ((number,) * form.count("%d")) + "\n" for number in range(1, rows)).encode()


SEEDS: dict[str, bytes] = {
    "events": repeated(EVENT),
    "rows": repeated(GRPO),
    "state": json.dumps({"log_history": [json.loads(GRPO % (n, n, n)) for n in range(1, 9)],
    "global_step": 8}, indent=1).encode(),
    "lists": json.dumps({"step": [1, 2, 3], "loss": [0.5, 0.25, 0.125], "reward": [1, 2, 4]}).encode(),
    "csv": b"step,loss,reward,run_id\n" + repeated("%d,0.%d,%d.5,a"),
    "verl": repeated(VERL),
    "dicts": repeated(DICTS),
    "console": repeated(CONSOLE),
    "words": repeated(WORDS),
}


def read(content: bytes, name: str = "log.jsonl", **how: Any) -> Ingested | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        try:
            result = read_runs(path, **how)
        except RLDKError as error:
            assert str(error) and len(str(error)) < 4000
            return None
        result.frame()
        for run in result.runs:
            assert len(run) > 0 and run.kind and list(run.events())
        return result


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seeds_are_read(seed: str) -> None:
    result = read(SEEDS[seed])
    assert result is not None and len(result.runs) == 1 and len(result.runs[0]) >= 3


@FUZZ
@given(st.binary(max_size=400) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(content: bytes) -> None:
    read(content)


SNIPPETS = st.sampled_from([
    b"", b"\n", b"\r\n", b"\0", b"\xff", b"{", b"}", b"[", b"]", b",", b":", b'"', b"'", b"nan", b"NaN", b"-Infinity", b"1e999",
    b"9" * 400, b"null", b"true", b"\\ud800", b"\x1b[31m", b" - ", b"step", b"/", b"*", b"%", b"\t", b"\xef\xbb\xbf", b"\x1f\x8b",
    b"-",
    b".", b"0x", b"_", b"{" * 40, b"metrics",
])  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    content = bytearray(draw(st.sampled_from(sorted(SEEDS.values()))))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, max(len(content) - 1, 0)))
        length = draw(st.sampled_from([0, 1, 1, 3, 20, 200]))
        match draw(st.integers(0, 3)):
            case 0:
                content[start : start + length] = draw(SNIPPETS)
            case 1:
                del content[start : start + length]
            case 2:
                content[start:start] = content[start : start + length]
            case _:
                content[start : start + 1] = draw(st.binary(max_size=2))
    return bytes(content)


TARGETS = st.sampled_from(["kl_mean", "step", "run_id", "phase", "wall_time"])


@FUZZ
@given(mutated())
def test_mutated_logs(content: bytes) -> None:
    read(content)


@settings(max_examples=60, deadline=None)
@given(mutated(), st.dictionaries(st.sampled_from(["loss", "reward", "kl", "step", "epoch", "x"]), TARGETS))
def test_mutated_logs_with_a_field_map(content: bytes, field_map: dict[str, str]) -> None:
    read(content, field_map=field_map)


NUMBER = re.compile(rb"(?i)[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?")
UNITS = (0.01, 1e-3, 1 / 60.0, 60.0, 1e3, 3600.0, 1e6, 2.0**-10, 2.0**10)
LIST = re.compile(rb"\[[^][{}]*\]")
THOUSANDS = re.compile(rb"\d{1,3}(?:,\d{3})+(?:\.\d*)?")


def numbers_in(content: bytes) -> set[float]:
    """Every number that stands in the text, and what the catalogue may make of it: minus it, its hundredth, its root."""
    found = {1.0, 0.0}
    for word in [*NUMBER.findall(content), *(word.replace(b",", b"") for word in THOUSANDS.findall(content))]:
        number = float(word)
        found |= {number, -number, number / 100.0, number / 1000.0, 1.0 - number, math.sqrt(abs(number)),
        *(number * unit for unit in UNITS)}
    for numbers in ([float(word) for word in NUMBER.findall(inner)] for inner in LIST.findall(content)):
        if numbers:
            with np.errstate(all="ignore"):  # of infinite numbers
                found |= {float(np.mean(numbers)), float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0}
    return found


@FUZZ
@given(mutated())
def test_every_number_in_the_frame_is_in_the_file(content: bytes) -> None:
    result = read(content)
    if result is None:
        return
    there = numbers_in(content)
    frame = result.frame().drop(columns=["step", "wall_time", "seed", "tokens_in", "tokens_out"], errors="ignore")
    for name in frame.select_dtypes("number"):
        for value in frame[name]:
            assert pd.isna(value) or math.isinf(value) or value in there, f"{name} = {value!r}"
