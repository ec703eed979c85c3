"""Free text with `key=value` or `key: value`."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.free_text import KeyValueAdapter


def stamped(seconds: int, text: str) -> str:
    return f"[2026-06-23 12:{seconds // 60:02d}:{seconds % 60:02d}] [INFO] {text}\n"


def epoch_line(seconds: int, epoch: int, loss: float) -> str:
    return stamped(
        seconds, f"Epoch {epoch}: mean total loss={loss} | mean actor loss=-0.25 | mean critic loss=5.5 | mean entropy loss=-3.5"
    )


BANNER = (
    stamped(0, "Config loaded:")
    + stamped(0, "  actor_lr=1e-06")
    + stamped(0, "  kl_coef=0.1")
    + stamped(0, "Starting PPO training...")
)

STYLES = {
    "logfmt": 'time="2026-06-23T12:07:25Z" level=info msg="train step 3 done" step={s} loss={l} reward={r}\n',
    "bars": "step {s} | loss {l} | reward {r} | tokens/s 12.5k\n",
    "words": "Step: {s}/100, Loss: {l}, Mean Reward: {r}\n",
    "logger": "2026-06-23 12:07:25,123 - trainer - INFO - step={s} loss={l} reward={r}\n",
    "nano": "iter {s}: loss {l}, reward {r}, time 120.30ms\n",
    "brackets": "[Step {s}] loss: {l}  reward: {r}\n",
    "tabs": "step={s}\tloss={l}\treward={r}\n",
    "colon": "INFO:root:step: {s} loss: {l} reward: {r}\n",
    "hash": "Iteration #{s} - loss: {l} - reward: {r}\n",
}


def test_a_share_that_is_written_as_a_part_of_a_whole(text_log: Any) -> None:
    text = "".join(f"step={n}/9 loss=0.5 reward=0.25 correct={n}/8\n" for n in range(1, 5))
    run = text_log.run(text, "keyvalue")
    assert run.steps.tolist() == [1, 2, 3, 4]
    assert text_log.values(run, "accuracy") == [0.125, 0.25, 0.375, 0.5]


@pytest.mark.parametrize("style", STYLES)
def test_many_ways_to_write_a_row(text_log: Any, style: str) -> None:
    text = "".join(STYLES[style].format(s=10 * n, l=0.5 / n, r=-0.25 * n) for n in range(1, 5))
    run = text_log.run("Loading 7B model v1.2.3 from step 5\n" + text, "keyvalue")
    assert run.steps.tolist() == [10, 20, 30, 40]
    assert text_log.values(run, "loss") == [0.5, 0.25, 0.5 / 3, 0.125]
    assert text_log.values(run, "reward_mean") == [-0.25, -0.5, -0.75, -1.0]


def test_launches_are_told_apart_by_the_lines_they_begin_with(text_log: Any) -> None:
    text = BANNER + BANNER + "".join(epoch_line(n, n, math.nan) for n in (1, 2, 3, 4))
    text += BANNER + "".join(epoch_line(60 + n, n % 4 + 1, 0.5) for n in range(8))
    _, runs = text_log.read(text, "keyvalue")
    assert [run.steps.tolist() for run in runs] == [[1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8]]
    assert all(value is not None and math.isnan(value) for value in text_log.values(runs[0], "loss"))
    assert text_log.values(runs[1], "entropy_mean") == [3.5] * 8
    assert text_log.values(runs[1], "epoch") == [1, 2, 3, 4, 1, 2, 3, 4]
    assert any("launches" in note for note in runs[1].notes)


def test_settings_are_no_rows(text_log: Any) -> None:
    text = "actor_lr=1e-06, kl_coef=0.1, clip_range=0.2\nmax_length: 512, min_length: 10\n" + "".join(
        f"step {n}: loss=0.5 reward=0.25\n" for n in (1, 2)
    )
    run = text_log.run(text, "keyvalue")
    assert run.steps.tolist() == [1, 2]
    assert "rollout_length_max" not in run.columns and "kl_coef" not in run.columns


def test_steps_that_start_over_with_each_epoch_count_on(text_log: Any) -> None:
    text = "".join(f"Epoch [{epoch}/2], Step [{step}/3], Loss: 0.5\n" for epoch in (1, 2) for step in (1, 2, 3))
    assert text_log.run(text, "keyvalue").steps.tolist() == [1, 2, 3, 4, 5, 6]


def test_steps_that_start_over_at_0_keep_every_row(text_log: Any) -> None:
    text = "".join(f"epoch {epoch} batch {step}: loss: 0.5 reward: 1.0\n" for epoch in (0, 1, 2) for step in range(20))
    assert text_log.run(text, "keyvalue").steps.tolist() == list(range(60))


@pytest.mark.parametrize("odd", ["nan", "inf"])
def test_an_epoch_that_is_not_finite_is_passed_over(text_log: Any, odd: str) -> None:
    text = "".join(f"epoch: {odd if n == 2 else n} loss: 0.5 reward: 1.0\n" for n in (1, 2, 3))
    assert text_log.run(text, "keyvalue").steps.tolist() == [1, 2, 3]


def test_a_minus_sign_of_its_own_is_a_minus(text_log: Any) -> None:
    run = text_log.run("".join(f"step {n}: loss: 0.5 reward: \u22120.{n}\n" for n in range(1, 20)), "keyvalue")
    assert text_log.values(run, "reward_mean")[:3] == [-0.1, -0.2, -0.3]


def test_epochs_are_steps_where_there_is_nothing_else(text_log: Any) -> None:
    run = text_log.run("".join(f"epoch={10 * n} loss=0.5 reward=1.0\n" for n in (1, 2, 3)), "keyvalue")
    assert run.steps.tolist() == [10, 20, 30]
    assert "no step is logged; the epoch is used as the step" in run.notes


def test_several_rows_of_one_epoch_are_numbered(text_log: Any) -> None:
    run = text_log.run("".join(f"Epoch 1: loss=0.{n} reward=1.0\n" for n in (1, 2, 3)), "keyvalue")
    assert run.steps.tolist() == [1, 2, 3]


def test_rows_without_any_count_are_numbered(text_log: Any) -> None:
    run = text_log.run("loss: 0.5 reward: 1.0\n" * 3, "keyvalue")
    assert run.steps.tolist() == [1, 2, 3]
    assert "no step is logged; rows are numbered from 1" in run.notes


def test_units_are_understood_or_the_number_is_left_out(text_log: Any) -> None:
    rest = "loss=0.5 acc=85% step_time=120ms gpu_memory_gb=2048MB kl=3furlongs tokens/s=1.5k"
    run = text_log.run(f"step=1 {rest}\nstep=2 {rest}\n", "keyvalue")
    assert text_log.values(run, "accuracy") == [0.85, 0.85]
    assert text_log.values(run, "step_time") == [0.12, 0.12]
    assert text_log.values(run, "gpu_memory_gb") == [2.0, 2.0]
    assert text_log.values(run, "tokens_per_second") == [1500.0, 1500.0]
    assert "kl_mean" not in run.columns


def test_thousands_versions_and_non_finite_numbers(text_log: Any) -> None:
    run = text_log.run("".join(f"step={n} loss=nan reward=-inf num_tokens=1,234,567 kl=0.10.2\n" for n in (1, 2)), "keyvalue")
    assert text_log.values(run, "num_tokens") == [1234567.0] * 2
    assert text_log.values(run, "reward_mean") == [-math.inf] * 2
    assert "kl_mean" not in run.columns


def test_progress_bars_with_values_behind_them(text_log: Any) -> None:
    pieces = [
        f"\rEpisode [1/2]:  {n}0%|##   | {n}/8 [00:20<00:10,  2.50s/it, act_loss={n / 8}, reward={n / 4}, gen_len=12]"
        for n in (1, 2, 2, 3)
    ]
    for end in ("\n", ""):  # a bar that is closed is complete
        run = text_log.run("".join(pieces) + end, "keyvalue")
        assert text_log.values(run, "policy_loss") == [0.125, 0.25, 0.375]
        assert text_log.values(run, "rollout_length_mean") == [12, 12, 12]
        assert not any("no newline" in note for note in run.notes)
    text_log.cut_everywhere("".join(pieces), KeyValueAdapter)


def test_of_rows_that_overwrite_each_other_only_the_last_may_be_cut_off(text_log: Any) -> None:
    run = text_log.run("".join(f"\rstep={n} loss={n / 8} reward={n / 4}" for n in (1, 2, 3)), "keyvalue")
    assert text_log.values(run, "loss") == [0.125, 0.25, 0.375]
    assert text_log.values(run, "reward_mean") == [0.25, 0.5, None]
    assert sum("no newline" in note for note in run.notes) == 1


def test_times_come_from_the_stamps(text_log: Any) -> None:
    run = text_log.run("".join(stamped(10 * n, f"step={n} loss=0.5 reward=1.0") for n in (1, 2, 3)), "keyvalue")
    assert (run.wall_time - run.wall_time[0]).tolist() == [0.0, 10.0, 20.0]


@pytest.mark.parametrize("style", STYLES)
def test_cut_off_at_every_byte(text_log: Any, style: str) -> None:
    text_log.cut_everywhere("".join(STYLES[style].format(s=n + 11, l=0.5 / n, r=-0.25 * n) for n in (1, 2, 3)), KeyValueAdapter)


@pytest.mark.parametrize(
    "other",
    [
        "just some prose with 2 numbers and 3 words\nloss is lower\n",
        "actor_lr=1e-06\nkl_coef=0.1\nbatch_size: 8\n",
        "step,loss\n1,0.5\n",
        '{"step": 1, "loss": 0.5}\n',
        '[{"step": 1, "loss": 0.5}]\n',
    ],
)
def test_other_text_is_declined(text_log: Any, other: str) -> None:
    assert not KeyValueAdapter(text_log.write(other)).can_handle()


def test_odd_text_raises_nothing(text_log: Any) -> None:
    for text in (
        b"=" * 9999,
        b"loss=" * 3000,
        b"step 1 loss " + b"9" * 5000 + b" reward 1\n" * 2,
        b"\xff loss=1 reward=2 step=3\n" * 3,
    ):
        with contextlib.suppress(ReadError):
            choose(text_log.write(text)).runs()


def in_turn(rounds: int, style: str = "loss: {l}\nmean reward: {r}\nkl = 0.01\n") -> str:
    return "".join(style.format(l=1 / (n + 1), r=0.5 * n) for n in range(rounds))


def test_values_in_turn_are_rows_although_no_line_has_a_step(text_log: Any) -> None:
    run = text_log.run("Loading the model\n" + in_turn(9), "keyvalue")
    assert run.steps.tolist() == list(range(1, 10))
    assert text_log.values(run, "reward_mean") == [0.5 * n for n in range(9)]
    assert text_log.values(run, "loss") == [1 / (n + 1) for n in range(9)]
    assert "no step is logged; rows are numbered from 1" in run.notes


def test_a_value_that_is_missing_in_a_turn_moves_no_other(text_log: Any) -> None:
    text = in_turn(4) + "loss: 7\nkl = 0.02\n" + in_turn(6)
    run = text_log.run(text, "keyvalue")
    assert text_log.values(run, "loss")[4] == 7.0 and text_log.values(run, "kl_mean")[4] == 0.02
    assert text_log.values(run, "reward_mean")[3:6] == [1.5, None, 0.0]


def test_quoted_numbers_as_grep_leaves_them(text_log: Any) -> None:
    run = text_log.run(in_turn(8, "completions/mean_length': '{l}'\n'reward': '{r}'\n"), "keyvalue")
    assert text_log.values(run, "reward_mean") == [0.5 * n for n in range(8)]
    assert text_log.values(run, "rollout_length_mean") == [1 / (n + 1) for n in range(8)]


@pytest.mark.parametrize("text", [in_turn(7), "mean reward: 0.5\n" * 40], ids=["a few summaries", "one key"])
def test_too_few_turns_or_one_key_are_no_log(text_log: Any, text: str) -> None:
    with pytest.raises(ReadError):
        choose(text_log.write(text))
