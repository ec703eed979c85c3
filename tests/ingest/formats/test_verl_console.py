"""verl's console lines and its file logger."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rldk.ingest.formats.verl_console import VerlAdapter

PREFIX = "\x1b[36m(TaskRunner pid=64115)\x1b[0m "


def line(step: int, **more: Any) -> str:
    values = {
        "actor/entropy": 0.5,
        "actor/pg_loss": f"np.float64({-0.001 * step})",
        "actor/ppo_kl": "np.float64(0.0)",
        "training/global_step": step,
        "critic/score/mean": 0.1 * step,
        "critic/rewards/mean": 0.05 * step,
        "response_length/mean": 17.0,
        "timing_s/step": 69.44,
        **more,
    }
    return f"step:{step} - " + " - ".join(f"{key}:{value}" for key, value in values.items())


def test_rows_between_talk_with_colours_and_pids(text_log: Any) -> None:
    talk = f"ray init kwargs: {{'num_cpus': 8}}\n{PREFIX}step 2 is next - or so\n"
    text = f"{talk}{PREFIX}{line(1)}\n{talk}(main_task pid=3) {line(2)}\n{line(3)}\n"
    run = text_log.run(text, "verl")
    assert run.framework == "verl"
    assert run.steps.tolist() == [1, 2, 3]
    assert text_log.values(run, "policy_loss") == [-0.001, -0.002, -0.003]
    assert text_log.values(run, "reward_mean") == pytest.approx([0.1, 0.2, 0.3])
    assert text_log.values(run, "reward_after_kl") == pytest.approx([0.05, 0.1, 0.15])
    assert run.coverage.metrics["kl_update"] == "actor/ppo_kl"


def test_keys_with_at_and_colon_and_validation_rows(text_log: Any) -> None:
    text = f"step:0 - val-core/openai/gsm8k/acc/mean@1:0.5 - val-aux/a:b/reward/mean@8:0.25\n{PREFIX}{line(1)}\n"
    run = text_log.run(text, "verl")
    assert run.steps.tolist() == [0, 1]
    assert text_log.values(run, "eval_accuracy") == [0.5, None]
    assert run.coverage.metrics["eval_reward_mean"] == "val-aux/a:b/reward/mean@8"


def test_non_finite_values_and_tensors(text_log: Any) -> None:
    more = {"actor/kl_loss": "nan", "actor/grad_norm": "np.float64(inf)", "critic/vf_loss": "tensor(0.5, device='cuda:0')"}
    run = text_log.run("".join(f"{line(step, **more)}\n" for step in range(20)), "verl")
    kl = text_log.values(run, "kl_mean")
    assert len(kl) == 20 and all(value is not None and math.isnan(value) for value in kl)
    assert text_log.values(run, "policy_grad_norm") == [math.inf] * 20
    assert text_log.values(run, "value_loss") == [0.5] * 20


def test_the_last_value_of_a_line_without_newline_is_not_trusted(text_log: Any) -> None:
    _adapter, (run,) = text_log.read(f"{line(1)}\n{line(2)}"[:-3], "verl")
    assert text_log.values(run, "step_time") == [69.44, None]
    assert text_log.values(run, "policy_loss") == [-0.001, -0.002]
    assert any("no newline" in note for note in run.notes)


def test_a_row_cut_off_by_the_next_is_left_out(text_log: Any) -> None:
    adapter, (run,) = text_log.read(f"{line(1)}\n{line(2)[:90]}{PREFIX}{line(3)}\n{line(4)}\n", "verl")
    assert run.steps.tolist() == [1, 3, 4]
    assert adapter.problems.skipped == [(2, "two rows in one line: the first was left out")]


def test_a_restart_is_another_run(text_log: Any) -> None:
    _, runs = text_log.read("".join(f"{PREFIX}{line(step)}\n" for step in (1, 2, 3, 1, 2)), "verl")
    assert [run.steps.tolist() for run in runs] == [[1, 2, 3], [1, 2]]


def test_the_file_logger(text_log: Any) -> None:
    rows = [{"step": step, "data": {"actor/pg_loss": 0.1 * step, "critic/score/mean": 1.0}} for step in (1, 2)]
    run = text_log.run("".join(json.dumps(row) + "\n" for row in rows), "verl")
    assert run.steps.tolist() == [1, 2]
    assert text_log.values(run, "policy_loss") == [0.1, 0.2]


def test_cut_off_at_every_byte(text_log: Any) -> None:
    text_log.cut_everywhere(f"talk\n{PREFIX}{line(1)}\n{PREFIX}{line(2)}\n", VerlAdapter)


@pytest.mark.parametrize(
    "other", ["step: 5 - nothing\n", "{'loss': 1.0, 'epoch': 0.1}\n", "step,loss\n1,0.1\n", '{"step": 1, "loss": 2}\n']
)
def test_other_logs_are_declined(text_log: Any, other: str) -> None:
    assert not VerlAdapter(text_log.write(other)).can_handle()


def test_rows_that_differ_in_keys_stay_in_order(text_log: Any) -> None:
    text = "".join(f"{line(step, **({'critic/lr': 1e-5} if step % 3 == 0 else {}))}\n" for step in range(1, 40))
    run = text_log.run(text, "verl")
    assert run.steps.tolist() == list(range(1, 40))
    assert text_log.values(run, "reward_mean") == pytest.approx([0.1 * step for step in range(1, 40)])
    assert text_log.values(run, "value_lr")[:3] == [None, None, 1e-5]
