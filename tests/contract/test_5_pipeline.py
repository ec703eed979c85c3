"""Section 5: the training pipeline, on a real PPO run of the trainer: its console, the keys of trackers, and its formulas."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "trainer"), str(ROOT / "tests/trainer")]
pytestmark = pytest.mark.full

STEPS, PER_EPOCH = 9, 6
KEYS = (
    "actor_loss critic_loss reward kl kl_ref avg_response_len actor_lr critic_lr actor_grad_norm critic_grad_norm epoch "
    "global_step tokens_per_second samples_per_second steps_per_second num_tokens_generated mfu_percent eta_minutes"
)
LINE = re.compile(
    r"Epoch:\[(?P<epoch>\d+)/100\]\((?P<step>\d+)/6\) actor_loss:-?\d+\.\d{6} critic_loss:\d+\.\d{6} reward:-?\d+\.\d{4} "
    r"kl:-?\d+\.\d{4} grad_norm_actor:\d+\.\d{4} tokens/s:\d+ MFU:\d+\.\d\d% epoch_Time:(?P<left>\d+)min"
)
STAGES = ("pretrain", "midtrain", "full_sft", "dpo", "ppo")
FLAGS = ("--data_config", "--from_weight", "--use_prepared", "--epochs", "--batch_size", "--learning_rate", "--device",
         "--use_wandb", "--wandb_project")  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run with a clock of our own, on a device whose peak is known, and with all that a tracker is told."""
    pytest.importorskip("torch")
    from ppo_world import build, command

    import logger
    import train_ppo
    from rldk.functional import throughput

    told: list[dict[str, float]] = []
    ticks = iter(range(10**9))

    class Heard(logger.Tracker):
        def log(self, metrics: dict[str, float], step: int) -> None:
            told.append(dict(metrics))

    out, said = tmp_path_factory.mktemp("pipeline"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(logger, "make_trackers", lambda *given: Heard())
        patch.setattr(logger.Throughput, "now", lambda self: 7.0 * next(ticks))
        patch.setitem(throughput.PEAK_FLOPS, "cpu", 1e12)
        words = command(build(out / "world"), out, f"--max_steps={STEPS}", "--log_interval=1", "--device=cpu")
        assert train_ppo.main(words) == 0
    return {"told": told, "lines": [line for line in said.getvalue().splitlines() if line.startswith("Epoch:")]}


def test_the_console_line_of_the_contract(run) -> None:
    shown = [LINE.fullmatch(line) for line in run["lines"]]
    assert len(shown) == STEPS and all(shown), run["lines"]
    places = [(1 + n // PER_EPOCH, 1 + n % PER_EPOCH) for n in range(STEPS)]
    assert [(int(one["epoch"]), int(one["step"])) for one in shown] == places


def test_tracker_keys(run) -> None:
    for row in run["told"]:
        assert {f"train/{key}" for key in KEYS.split()} | {"system/epoch_time"} <= set(row)


def test_epoch_time_of_the_console_is_the_minutes_left_in_the_epoch(run) -> None:
    import math

    for line, row in zip(run["lines"], run["told"], strict=True):
        assert int(LINE.fullmatch(line)["left"]) == math.ceil(row["train/eta_minutes"])
    for n, row in enumerate(run["told"]):
        done, last = n % PER_EPOCH + 1, n // PER_EPOCH == (STEPS - 1) // PER_EPOCH
        left = (STEPS - 1) % PER_EPOCH + 1 - done if last else PER_EPOCH - done
        assert row["train/eta_minutes"] == pytest.approx(left * row["system/epoch_time"] / done)


def test_the_time_of_the_epoch_and_the_rates_count_from_its_start(run) -> None:
    spent = [row["system/epoch_time"] for row in run["told"]]
    assert spent[:PER_EPOCH] == sorted(spent[:PER_EPOCH]) and spent[PER_EPOCH] < spent[PER_EPOCH - 1]
    totals = [0.0, *(row["train/num_tokens_generated"] for row in run["told"])]
    for n, row in enumerate(run["told"]):
        begin, seconds = n - n % PER_EPOCH, 60.0 * row["system/epoch_time"]
        assert row["train/steps_per_second"] == pytest.approx((n + 1 - begin) / seconds)
        assert row["train/samples_per_second"] == pytest.approx(8 * (n + 1 - begin) / seconds)  # --batch_size=8
        assert row["train/tokens_per_second"] == pytest.approx((totals[n + 1] - totals[begin]) / seconds)


def test_mfu_is_importable_from_the_projects_root_and_unknown_where_the_peak_is() -> None:
    words = (
        "from trainer.trainer_utils import calculate_mfu; from inspect import signature; "
        "print(list(signature(calculate_mfu).parameters)[:3], calculate_mfu(6.0e9, 100.0, 'cpu'))"
    )
    pytest.importorskip("torch")
    from warm_processes import warm

    done = warm().run(["-c", words], cwd=ROOT, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['model_flops_per_token', 'tokens_per_sec', 'device'] None"


def test_flops_are_six_for_each_trainable_parameter() -> None:
    from rldk.functional.throughput import flops_per_token

    assert flops_per_token(100) == 600.0


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_has_a_script_with_the_one_interface(stage: str) -> None:
    from arguments import common_parser

    text = (ROOT / f"trainer/train_{stage}.py").read_text()
    assert "__main__" in text
    flags = {flag for action in common_parser(stage, stage)._actions for flag in action.option_strings}
    assert set(FLAGS) <= flags


def test_a_prepared_file_of_another_shape_is_refused_with_its_keys_and_those_needed(tmp_path) -> None:
    from ppo_world import build, command

    import train_ppo

    world = build(tmp_path)
    (world / "prepared.jsonl").write_text('{"question": "why", "answer": "so"}\n' * 20)
    with pytest.raises(ValueError, match=r"prepared.jsonl:1 .* it has \['answer', 'question'\], it needs \['text', 'source'\]"):
        train_ppo.main(command(world, tmp_path / "out", "--use_prepared", "--max_steps=1"))
