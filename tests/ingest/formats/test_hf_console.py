"""The console of TRL: dict rows between bars and talk, their steps, and launches in one file."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.hf_trainer import HFConsoleAdapter
from rldk.ingest.formats.python_dicts import parse_dict

WIPE = "\r" + " " * 50 + "\r"


def row(step: int, *, total: int = 10, **more: Any) -> str:
    values = {
        "loss": 1 / step,
        "grad_norm": 0.5 * step,
        "learning_rate": 1e-06,
        "rewards/format": 0.0,
        "reward": step / 10,
        "reward_std": 0.25,
        "completion_length": 100.5,
        "kl": 0.001 * step,
        "epoch": round(step / total, 2),
        **more,
    }
    return str(values)


def bar(step: int, total: int = 10) -> str:
    return f"\r {100 * step // total:2d}%|{'█' * step}{' ' * (10 - step)}| {step}/{total} [00:{step:02d}<00:30,  5.17s/it]"


def unbuffered(steps: list[int], total: int = 10) -> str:
    """The bar and the rows as they come when both streams are written at once."""
    return "".join(
        bar(step, total) + (WIPE + row(step) + "\n" + bar(step, total) if step in steps else "") for step in range(total + 1)
    )


def buffered(steps: list[int], total: int = 10) -> str:
    """The rows all at the end, as a buffer holds them back, while the bar goes on."""
    bars = "".join(bar(step, total) + (WIPE + bar(step, total) if step in steps else "") for step in range(total + 1))
    return bars + "\n" + "".join(row(step) + "\n" for step in steps)


def test_rows_have_the_trainers_keys_and_units(text_log: Any) -> None:
    run = text_log.run("Loading model\n" + row(1) + "\n" + row(2) + "\nsaved\n", "hf_console")
    assert run.framework == "trl_grpo"
    assert text_log.values(run, "reward_mean") == [0.1, 0.2]
    assert text_log.values(run, "loss") == [1.0, 0.5]
    assert text_log.values(run, "rollout_length_mean") == [100.5, 100.5]
    assert run.coverage.reductions["kl_mean"] == "token"


def test_without_a_bar_rows_are_numbered_and_it_is_said(text_log: Any) -> None:
    run = text_log.run(row(5) + "\n" + row(10) + "\n", "hf_console")
    assert run.steps.tolist() == [1, 2]
    assert "no step is logged; rows are numbered from 1" in run.notes


@pytest.mark.parametrize("layout", [unbuffered, buffered])
def test_the_bar_tells_the_step_of_each_row(text_log: Any, layout: Any) -> None:
    run = text_log.run(layout([2, 4, 6, 8, 10]), "hf_console")
    assert run.steps.tolist() == [2, 4, 6, 8, 10]
    assert text_log.values(run, "kl_mean") == pytest.approx([0.002, 0.004, 0.006, 0.008, 0.01])
    assert any("progress bar" in note for note in run.notes)


def test_rows_lost_in_the_buffer_of_a_killed_launch_shift_no_step(text_log: Any) -> None:
    lines = buffered([2, 4, 6, 8, 10]).splitlines(keepends=True)
    run = text_log.run("".join(lines[:-2]), "hf_console")
    assert run.steps.tolist() == [2, 4, 6]


def test_a_bar_that_does_not_fit_the_rows_is_not_trusted(text_log: Any) -> None:
    run = text_log.run(bar(3) + WIPE + bar(3) + "\n" + row(2) + "\n" + row(4) + "\n", "hf_console")
    assert run.steps.tolist() == [1, 2]


def counted(step: int, total: int = 100, counter: int | None = None, **more: Any) -> str:
    """A bar and its row in one line, as logs have them that were copied from a screen."""
    drawn = step if counter is None else counter
    shown = f" {100 * drawn // total:2d}%|█    | {drawn}/{total} [00:{drawn % 60:02d}<04:30,  3.02s/it]"
    return f"{shown}{row(step, total=total, **more)}\n"


def test_the_counter_before_each_row_is_its_step(text_log: Any) -> None:
    run = text_log.run("talk 7/9\n" + "talk\n\n".join(map(counted, (5, 10, 15, 80, 85))), "hf_console")
    assert run.steps.tolist() == [5, 10, 15, 80, 85]
    assert "no step is logged; steps are taken from the progress bar before each row" in run.notes


def test_the_counter_may_stand_on_a_line_before_and_without_its_bar(text_log: Any) -> None:
    lines = "".join(f"{step}/100 [00:34<11:02,  6.97s/it]\n{row(step, total=100)}\n" for step in (5, 10, 15))
    assert text_log.run(lines, "hf_console").steps.tolist() == [5, 10, 15]


def test_of_several_counters_in_a_line_the_last_counts(text_log: Any) -> None:
    lines = "".join(f"  1%|  | {step - 1}/100 [00:30<04:32]" + counted(step) for step in (4, 8, 12))
    assert text_log.run(lines, "hf_console").steps.tolist() == [4, 8, 12]


@pytest.mark.parametrize("steps", [(5, 10, 15, 20), (1, 2, 3), (1, 10, 20)])
def test_counters_that_are_one_behind_are_set_right(text_log: Any, steps: tuple[int, ...]) -> None:
    run = text_log.run("".join(counted(step, counter=step - 1) for step in steps), "hf_console")
    assert run.steps.tolist() == list(steps)


def test_the_bar_of_an_evaluation_is_not_the_trainers(text_log: Any) -> None:
    held_out = "{'eval_loss': 0.9, 'eval_reward': 0.7, 'epoch': 0.12}\n"
    bars = "\r 12%|█    | 12/100 [00:36<04:32,  3.02s/it]\r  2%|    | 1/50 [00:00<00:20]\r100%|█████| 50/50 [00:20<00:00]\n"
    run = text_log.run(counted(5) + counted(10) + bars + held_out + counted(15) + counted(20), "hf_console")
    assert run.steps.tolist() == [5, 10, 12, 15, 20]
    assert text_log.values(run, "eval_reward_mean") == [None, None, 0.7, None, None]


@pytest.mark.parametrize(
    "text",
    [
        counted(5) + "".join(row(step, total=100) + "\n" for step in (10, 15)),  # several rows to a counter
        counted(5) + counted(10, counter=60) + counted(15, counter=80),  # not at the pace of the epochs
        counted(5) + counted(10, total=200) + counted(15),  # bars of different ends
        row(5, total=100) + "\n" + counted(10) + counted(15),  # a row before any counter
    ],
)
def test_counters_that_cannot_be_the_rows_are_not_trusted(text_log: Any, text: str) -> None:
    assert text_log.run(text, "hf_console").steps.tolist() == [1, 2, 3]


HF_LENGTH = "[INFO|trainer.py:2520] >>   Num Epochs = 2\n[INFO|trainer.py:2527] >>   Total optimization steps = 170\n"
UNSLOTH_LENGTH = "   \\\\   /|    Num examples = 1,352 | Num Epochs = 2 | Total steps = 170\n"


@pytest.mark.parametrize("begin", [HF_LENGTH, UNSLOTH_LENGTH])
@pytest.mark.parametrize("steps", [list(range(10, 171, 10)), [1, *range(25, 171, 25)], list(range(1, 171))])
def test_epochs_and_the_number_of_steps_tell_the_interval(text_log: Any, begin: str, steps: list[int]) -> None:
    """An epoch of 84.5 steps, of which the last is a short one."""
    rows = [row(step, epoch=round(step // 85 + step % 85 / 84.5, 2)) for step in steps]
    end = "{'train_runtime': 915.5, 'train_loss': 0.004, 'epoch': 2.0}\n"
    run = text_log.run(begin + "\n".join(rows) + "\n" + end, "hf_console")
    assert run.steps.tolist() == steps
    assert any("number of steps" in note for note in run.notes)


def test_of_a_launch_that_broke_off_the_interval_is_not_known(text_log: Any) -> None:
    rows = "".join(row(step, epoch=round(step / 85, 2)) + "\n" for step in range(10, 101, 10))
    assert text_log.run(HF_LENGTH + rows, "hf_console").steps.tolist() == list(range(1, 11))


def test_rows_that_do_not_come_at_an_interval_are_numbered(text_log: Any) -> None:
    rows = "".join(row(step, epoch=round(step / 85, 2)) + "\n" for step in (10, 20, 90, 110, 170))
    assert text_log.run(HF_LENGTH + rows, "hf_console").steps.tolist() == [1, 2, 3, 4, 5]


def test_bars_with_a_description_are_not_the_trainers(text_log: Any) -> None:
    noise = "\rLoading checkpoint shards: 100%|██████████| 2/2 [00:02<00:00,  1.30s/it]" + WIPE
    run = text_log.run(noise + noise + "\n" + unbuffered([5, 10]), "hf_console")
    assert run.steps.tolist() == [5, 10]


def test_an_evaluation_is_of_the_step_it_was_made_at(text_log: Any) -> None:
    held_out = "{'eval_loss': 0.9, 'eval_reward': 0.7, 'eval_runtime': 12.0, 'epoch': 0.2}\n"
    run = text_log.run(row(1) + "\n" + row(2) + "\n" + held_out + row(3) + "\n", "hf_console")
    assert run.steps.tolist() == [1, 2, 3]
    assert text_log.values(run, "eval_reward_mean") == [None, 0.7, None]
    assert text_log.values(run, "reward_mean") == [0.1, 0.2, 0.3]


def test_the_summary_is_no_step(text_log: Any) -> None:
    summary = "{'train_runtime': 915.5, 'train_samples_per_second': 1.7, 'train_loss': 0.004, 'epoch': 1.0}\n"
    run = text_log.run(row(1) + "\n" + row(2) + "\n" + summary, "hf_console")
    assert len(run) == 2
    assert any("summary" in note for note in run.notes)


def test_launches_in_one_file_are_runs(text_log: Any) -> None:
    text = "".join(row(step) + "\n" for step in (1, 2, 3, 1, 2))
    _, runs = text_log.read(text, "hf_console")
    assert [run.steps.tolist() for run in runs] == [[1, 2, 3], [1, 2]]


def test_launches_with_bars_are_runs(text_log: Any) -> None:
    _, runs = text_log.read(unbuffered([5, 10]) + "\n" + unbuffered([5, 10]), "hf_console")
    assert [run.steps.tolist() for run in runs] == [[5, 10], [5, 10]]


def test_a_launch_that_goes_on_replaces_what_it_repeats(text_log: Any) -> None:
    text = "".join(row(step) + "\n" for step in (1, 2, 3, 4)) + row(3, reward=9.0) + "\n" + row(4, reward=9.0) + "\n"
    run = text_log.run(text, "hf_console")
    assert run.steps.tolist() == [1, 2, 3, 4]
    assert text_log.values(run, "reward_mean") == [0.1, 0.2, 9.0, 9.0]


def test_non_finite_and_absent_values_are_kept_apart(text_log: Any) -> None:
    text = row(1).replace("'grad_norm': 0.5", "'grad_norm': nan").replace("'reward': 0.1", "'reward': None")
    run = text_log.run(text + "\n" + row(2, kl=math.inf, loss=-math.inf) + "\n", "hf_console")
    grad_norm = text_log.values(run, "grad_norm")
    assert grad_norm[0] is not None and math.isnan(grad_norm[0]) and grad_norm[1] == 1.0
    assert text_log.values(run, "reward_mean") == [None, 0.2]
    assert next(iter(run.events())).nulls == ("reward_mean",)
    assert text_log.values(run, "kl_mean")[1] == math.inf
    assert text_log.values(run, "loss")[1] == -math.inf


def test_quoted_numbers_are_numbers(text_log: Any) -> None:
    text = "{'loss': '0.123', 'grad_norm': 'nan', 'learning_rate': '1e-06', 'reward': '0.5', 'epoch': '0.01'}\n"
    run = text_log.run(text * 2, "hf_console")
    assert text_log.values(run, "loss") == [0.123, 0.123]
    assert text_log.values(run, "lr") == [1e-06, 1e-06]
    assert all(value is not None and math.isnan(value) for value in text_log.values(run, "grad_norm"))


def test_prefixes_colours_and_several_dicts_in_a_line(text_log: Any) -> None:
    text = f"[rank0]: {row(1)}{row(2)}\n\x1b[32m2026-04-04 18:13:37,905\x1b[0m [INFO] {row(3)} trailing words\n"
    run = text_log.run(text, "hf_console")
    assert text_log.values(run, "reward_mean") == [0.1, 0.2, 0.3]
    assert run.wall_time[2] == pytest.approx(1775326417.905)


def test_what_is_no_row_is_passed_over(text_log: Any) -> None:
    text = (
        "Updated tokens: {'bos_token_id': None, 'pad_token_id': 151643}.\n"
        "{'learning_rate': 1e-06, 'beta': 0.04, 'temperature': 0.9, 'batch_size': 8}\n"
        f"{row(1)}\nTraceback (most recent call last):\n  File 'x.py', line 3\nKeyError: {{'a': 1}}\n"
    )
    run = text_log.run(text, "hf_console")
    assert len(run) == 1


def test_a_dict_that_is_cut_within_the_file_is_located(text_log: Any) -> None:
    adapter, (run,) = text_log.read(row(1) + "\n" + row(2)[:120] + "\n" + row(3) + "\n", "hf_console")
    assert len(run) == 2
    assert [line for line, _ in adapter.problems.skipped] == [2]


def test_cut_off_at_every_byte(text_log: Any) -> None:
    text_log.cut_everywhere("talk\n" + row(1, kl=math.nan) + "\n" + row(2) + "\n" + row(3) + "\n", HFConsoleAdapter)


def test_garbage_raises_nothing(text_log: Any) -> None:
    for text in (b"{'" * 5000, b"{'a': " * 2000, b"\xff\xfe{'loss': 1, 'epoch': 2}\n", b"{'loss': {'x': [(" + b"1," * 9999):
        with contextlib.suppress(ReadError):
            choose(text_log.write(text)).runs()


@pytest.mark.parametrize("other", ['{"step": 1, "loss": 0.1}\n' * 3, "step,loss\n1,0.1\n2,0.2\n", "step:1 - actor/pg_loss:0.1\n"])
def test_other_logs_are_declined(text_log: Any, other: str) -> None:
    assert not HFConsoleAdapter(text_log.write(other)).can_handle()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"{'a': 1, 'b': (1, 2), 'c': [nan]}", {"a": 1, "b": [1, 2]}),
        (b"{'a': np.float64(0.5), 'b': tensor(2., device='cuda:0'), 'c': torch.tensor(3)}", {"a": 0.5, "b": 2.0, "c": 3}),
        (b"{'a': \"it's\", 'b': 'x\\'y', 'c': -1e-05, 'd': True}", {"a": "it's", "b": "x'y", "c": -1e-05, "d": True}),
        (b"{'a': {'b': 1}, 'c': '}'}", {"a": {"b": 1}, "c": "}"}),
        (b"{'a': 1, }", {"a": 1}),
    ],
)
def test_literals(text: bytes, expected: dict[str, Any]) -> None:
    parsed = parse_dict(text + b" and more", 0)
    assert parsed is not None
    found, end = parsed
    assert {key: found[key] for key in expected} == expected
    assert end == len(text)


@pytest.mark.parametrize(
    "text", [b"{'a': open('x')}", b"{'a': __import__('os').system('ls')}", b"{'a': 1 + 1}", b"{'a'}", b"{'a': "]
)
def test_what_is_no_literal_is_not_read(text: bytes) -> None:
    parsed = parse_dict(text, 0)
    assert parsed is None or "a" not in parsed[0] or isinstance(parsed[0]["a"], str)


def test_a_long_line_of_beginnings_is_given_up(text_log: Any) -> None:
    text = b"{'loss': " * 200_000 + b"}\n" + (row(1) + "\n" + row(2) + "\n").encode()
    assert len(text_log.run(text, "hf_console")) == 2
