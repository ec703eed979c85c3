"""scripts/cpu_pipeline.sh: every stage is started with flags it has and the weights of the one before, and the end is honest.

The stages themselves are run by their own tests; here a recorder stands in for the interpreter that would train for minutes.
"""

from __future__ import annotations

import importlib
import json
import os
import re
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
  trainer/evaluate.py) printf '%s\\n' "$*" >> "$RECORD"; cat "$EVALUATION" ;;
  trainer/pipeline_report.py) exec "{python}" "$@" ;;
  trainer/*) printf '%s\\n' "$*" >> "$RECORD"; [ "$1" != "$FAILING" ] ;;
  *) exec "{python}" "$@" ;;
esac
"""
RISING = {"pretrain": 0.01, "midtrain": 0.02, "full_sft": 0.5, "dpo": 0.3, "ppo": 0.4}
Pipeline = Callable[..., "tuple[subprocess.CompletedProcess[str], list[list[str]]]"]


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Run the script over an evaluation with these gains; what it printed, and the commands of its stages."""

    def run(gains: dict[str, float], failing: str = "") -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
        out = tmp_path / "made"
        out.mkdir()
        reward, models = -0.5, []
        for stage in STAGES:
            first = {"step": 0, "metrics": {"eval_reward_mean": reward, "eval_reward_sem": 0.05}}
            reward += gains[stage]
            rows = [first, *({"step": step, "metrics": {"loss": 1.0 / step}} for step in range(1, 5))]
            log = "".join(json.dumps(row | {"model_info": {"run_id": stage}}) + "\n" for row in rows)
            (out / f"{stage}_events.jsonl").write_text(log)
            models.append({"weights": str(out / stage), "eval_reward": reward, "eval_reward_sem": 0.05, "eval_pass_at_1": 0.5})
            models[-1] |= {"eval_distinct_responses_frac": 0.9, "eval_distinct_endings_frac": 0.6}
            models[-1] |= {} if stage == "pretrain" else {"gain": gains[stage], "gain_sem": 0.1}
        (tmp_path / "evaluation.json").write_text(json.dumps({"models": models}))
        recorder = tmp_path / "python"
        recorder.write_text(RECORDER.format(python=sys.executable))
        recorder.chmod(0o755)
        environment = {**os.environ, "PYTHON": str(recorder), "RECORD": str(tmp_path / "record"), "FAILING": failing}
        environment["EVALUATION"] = str(tmp_path / "evaluation.json")
        environment["STAGE_FLAGS"] = environment["PPO_FLAGS"] = "--report_to tensorboard"
        script = ["bash", str(ROOT / "scripts/cpu_pipeline.sh"), str(out)]
        done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=300)
        return done, [line.split() for line in (tmp_path / "record").read_text().splitlines()]

    return run


def test_every_stage_starts_from_the_weights_of_the_one_before(pipeline: Pipeline) -> None:
    done, commands = pipeline(RISING)
    assert done.returncode == 0, done.stderr
    for stage, gain in RISING.items():
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{stage} ")]
        assert f"{gain:+.3f} ± " in line and line.endswith(("healthy", "no_data"))
    assert re.search(r"processor time: \d+ s \(user and system\), the budget is 250 s", done.stdout)
    assert "the held-out reward rose at every stage, by more than its standard error at SFT, DPO and PPO" in done.stdout
    trained = {words[0].removeprefix("trainer/train_").removesuffix(".py"): words[1:] for words in commands}
    assert [name for name in trained if name in STAGES] == STAGES
    for before, stage in pairwise(STAGES):
        assert trained[stage][trained[stage].index("--from_weight") + 1] == before
    assert [words[0] for words in commands][-1] == "trainer/evaluate.py"


@pytest.mark.parametrize(("stage", "gain"), [("midtrain", -0.03), ("dpo", 0.09), ("ppo", 0.0)])
def test_a_reward_that_did_not_rise_enough_is_a_failure(pipeline: Pipeline, stage: str, gain: float) -> None:
    done, _ = pipeline(RISING | {stage: gain})
    assert done.returncode == 1 and f"the held-out reward did not rise enough in {stage}" in done.stderr
    assert "reward rose at every stage" not in done.stdout


def test_a_stage_that_fails_ends_the_pipeline(pipeline: Pipeline) -> None:
    done, commands = pipeline(RISING, failing="trainer/train_dpo.py")
    assert done.returncode != 0 and commands[-1][0] == "trainer/train_dpo.py"


@pytest.mark.full
def test_the_flags_are_those_of_the_stages(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parsed(Exception):
        pass

    def stop(args: object, *_: object, **__: object) -> None:
        raise Parsed

    _, commands = pipeline(RISING)
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
