"""scripts/cpu_pipeline.sh: every stage is started with flags it has and the weights of the one before, and the end is honest.

The stages themselves are run by their own tests; here a recorder stands in for the interpreter that would train for minutes.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAGES = ["pretrain", "midtrain", "full_sft", "dpo", "ppo"]
RECORDER = """#!/bin/sh
case "$1" in
  trainer/*) printf '%s\\n' "$*" >> "$RECORD"; [ "$1" != "$FAILING" ] ;;
  *) exec "{python}" "$@" ;;
esac
"""
Pipeline = Callable[..., "tuple[subprocess.CompletedProcess[str], list[list[str]]]"]


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Run the script over a log of PPO with these rewards; what it printed, and the commands of its stages."""

    def run(rewards: list[float], failing: str = "") -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
        out = tmp_path / "made"
        out.mkdir()
        rows = [{"step": step, "metrics": {"reward_mean": value, "kl_mean": 0.01}} for step, value in enumerate(rewards)]
        (out / "ppo_events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        recorder = tmp_path / "python"
        recorder.write_text(RECORDER.format(python=sys.executable))
        recorder.chmod(0o755)
        environment = {**os.environ, "PYTHON": str(recorder), "RECORD": str(tmp_path / "record"), "FAILING": failing}
        environment["STAGE_FLAGS"] = environment["PPO_FLAGS"] = "--report_to tensorboard"
        script = ["bash", str(ROOT / "scripts/cpu_pipeline.sh"), str(out)]
        done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=300)
        return done, [line.split() for line in (tmp_path / "record").read_text().splitlines()]

    return run


def test_every_stage_starts_from_the_weights_of_the_one_before(pipeline: Pipeline) -> None:
    done, commands = pipeline([0.1] * 10 + [0.9] * 10)
    assert done.returncode == 0, done.stderr
    assert "reward in PPO: 0.100 over the first five steps, 0.900 over the last five" in done.stdout
    trained = {words[0].removeprefix("trainer/train_").removesuffix(".py"): words[1:] for words in commands}
    assert [name for name in trained if name in STAGES] == STAGES
    for before, stage in pairwise(STAGES):
        assert trained[stage][trained[stage].index("--from_weight") + 1] == before
    assert [words[0] for words in commands][-1] == "trainer/show_samples.py"


def test_a_reward_that_did_not_rise_is_a_failure(pipeline: Pipeline) -> None:
    done, _ = pipeline([0.5] * 20)
    assert done.returncode == 1 and "the reward did not rise" in done.stderr


def test_a_stage_that_fails_ends_the_pipeline(pipeline: Pipeline) -> None:
    done, commands = pipeline([0.1, 0.9], failing="trainer/train_dpo.py")
    assert done.returncode != 0 and commands[-1][0] == "trainer/train_dpo.py"


@pytest.mark.full
def test_the_flags_are_those_of_the_stages(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parsed(Exception):
        pass

    def stop(args: object, *_: object, **__: object) -> None:
        raise Parsed

    _, commands = pipeline([0.1, 0.9])
    parsed = []
    for script, *flags in commands:
        name = script.removeprefix("trainer/").removesuffix(".py")
        if name.removeprefix("train_") in STAGES:
            module = importlib.import_module(name)
            monkeypatch.setattr(module, "make_accelerator", stop)
            with pytest.raises(Parsed):
                module.main(flags)
            parsed.append(name)
    assert parsed == [f"train_{stage}" for stage in STAGES]
