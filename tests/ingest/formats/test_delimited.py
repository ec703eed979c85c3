"""CSV and TSV: CleanRL, Stable-Baselines3, exports of W&B, and what goes wrong in such files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.console import is_console
from rldk.ingest.formats.delimited import DelimitedAdapter
from rldk.ingest.source import Source


def table(names: list[str], rows: list[list[Any]], separator: str = ",") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in [names, *rows])


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_cleanrl_with_any_separator(text_log: Any, separator: str) -> None:
    names = ["global_step", "charts/episodic_return", "losses/approx_kl", "losses/entropy", "losses/clipfrac"]
    run = text_log.run(table(names, [[1024 * n, 10.5 * n, 0.01, 1.5, 0.1] for n in (1, 2)], separator), "csv")
    assert run.framework == "cleanrl"
    assert run.steps.tolist() == [1024, 2048]
    assert text_log.values(run, "reward_mean") == [10.5, 21.0]
    assert text_log.values(run, "kl_update") == [0.01, 0.01]


def test_sb3_progress_counts_timesteps_and_negates_the_entropy(text_log: Any) -> None:
    names = [
        "time/total_timesteps",
        "rollout/ep_rew_mean",
        "train/entropy_loss",
        "train/approx_kl",
        "time/fps",
        "train/n_updates",
    ]
    run = text_log.run(table(names, [[2048, 1.5, -0.75, 0.01, 100, 10], [4096, 2.5, -0.5, 0.02, 100, 20]]), "csv")
    assert run.framework == "sb3"
    assert run.steps.tolist() == [2048, 4096]
    assert text_log.values(run, "entropy_mean") == [0.75, 0.5]


def test_sb3_monitor_has_a_row_an_episode(text_log: Any) -> None:
    text = '#{"t_start": 1750000000.5, "env_id": "CartPole-v1"}\n' + table(["r", "l", "t"], [[21.0, 21, 1.5], [33.0, 33, 2.5]])
    run = text_log.run(text, "csv")
    assert run.steps.tolist() == [1, 2]
    assert text_log.values(run, "reward_mean") == [21.0, 33.0]
    assert text_log.values(run, "rollout_length_mean") == [21.0, 33.0]
    assert run.wall_time.tolist() == [1.5, 2.5]
    assert any("episode" in note for note in run.notes)


def test_wandb_history_is_sparse_and_unordered(text_log: Any) -> None:
    names = ["train/reward", "_timestamp", "train/kl", "_step", "_runtime", "note"]
    run = text_log.run(
        table(names, [[0.5, 1e9, "", 0, 1, "a_b"], ["", 1e9 + 1, "nan", 1, 2, ""], [1.5, 1e9 + 2, 0.25, 2, 3, ""]]), "csv"
    )
    assert run.steps.tolist() == [0, 1, 2]
    assert text_log.values(run, "reward_mean") == [0.5, None, 1.5]
    kl = text_log.values(run, "kl_mean")
    assert kl[0] is None and kl[1] is not None and math.isnan(kl[1]) and kl[2] == 0.25
    assert run.wall_time.tolist() == [1e9, 1e9 + 1, 1e9 + 2]


def test_a_chart_of_wandb_has_a_column_a_run(text_log: Any) -> None:
    names = ['"Step"'] + [
        f'"{run} - train/reward{suffix}"' for run in ("brave-sun-1", "calm-sea-2") for suffix in ("", "__MIN", "__MAX")
    ]
    text = table(
        names,
        [['"0"', '"0.5"', '"0.5"', '"0.5"', '""', '""', '""'], ['"1"', '"0.75"', '"0.75"', '"0.75"', '"2.5"', '"2.5"', '"2.5"']],
    )
    _, runs = text_log.read(text, "csv")
    assert [(run.run_id, run.steps.tolist(), text_log.values(run, "reward_mean")) for run in runs] == [
        ("brave-sun-1", [0, 1], [0.5, 0.75]),
        ("calm-sea-2", [1], [2.5]),
    ]
    assert any("__MIN" in note for note in runs[0].notes)


def test_quoted_cells_may_hold_separators_and_lines(text_log: Any) -> None:
    text = 'step,comment,reward\n1,"a, b",0.5\n2,"two\nlines",0.75\n3,plain,1.0\n'
    run = text_log.run(text, "csv")
    assert run.steps.tolist() == [1, 2, 3]
    assert text_log.values(run, "reward_mean") == [0.5, 0.75, 1.0]


@pytest.mark.parametrize("quote", ["", '"'])
def test_rows_of_another_length_are_located(text_log: Any, quote: str) -> None:
    text = (
        table(["step", "reward", "kl"], [[n, f"{quote}0.5{quote}", 0.1] for n in range(1, 31)])
        + "31,0.5\n32,0.5,0.1,9\n33,0.5,0.1\n"
    )
    adapter, (run,) = text_log.read(text, "csv")
    assert len(run) == 31
    assert adapter.problems.skipped == [(32, "2 cells where the header has 3"), (33, "4 cells where the header has 3")]


def test_a_header_that_comes_again_begins_another_run(text_log: Any) -> None:
    part = table(["step", "reward", "loss"], [[1, 0.5, 0.1], [2, 0.75, 0.1]])
    _, runs = text_log.read(part * 2, "csv")
    assert [run.steps.tolist() for run in runs] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("adapter", ["csv", "flexible"])
def test_columns_of_one_name_are_numbered(text_log: Any, adapter: str) -> None:
    names = ["step", "reward", "reward", "reward.1", "kl", "reward"]
    run = text_log.run(table(names, [[n, 0.5, 0.25, 7.0, 0.125, 0.75] for n in range(3)]), adapter, hint=adapter)
    assert text_log.values(run, "reward_mean") == [0.5] * 3 and text_log.values(run, "kl_mean") == [0.125] * 3
    for name, value in (("reward.1", 7.0), ("reward.2", 0.25), ("reward.3", 0.75)):
        assert text_log.values(run, name) == [value] * 3
    assert [note for note in run.notes if "several columns have the same name (reward)" in note]


def test_words_and_odd_numbers_are_no_numbers(text_log: Any) -> None:
    run = text_log.run(
        table(["step", "reward", "loss"], [[1, "1_000", 0.5], [2, "N/A", 0.5], [3, "oops", 0.5], [4, 2.5, "inf"]]), "csv"
    )
    assert text_log.values(run, "reward_mean") == [None, None, None, 2.5]
    assert text_log.values(run, "loss") == [0.5, 0.5, 0.5, math.inf]


def test_the_last_cell_of_a_line_without_newline_is_not_trusted(text_log: Any) -> None:
    run = text_log.run("step,reward,kl\n1,0.5,0.125\n2,0.75,0.12", "csv")
    assert text_log.values(run, "kl_mean") == [0.125, None]
    assert text_log.values(run, "reward_mean") == [0.5, 0.75]
    assert any("no newline" in note for note in run.notes)


@pytest.mark.parametrize("quote", ["", '"'])
def test_cut_off_at_every_byte(text_log: Any, quote: str) -> None:
    rows = [[n, *(f"{quote}{value}{quote}" for value in (0.125 * n, 1.25, 33.5 * n))] for n in range(10, 24)]
    text_log.cut_everywhere(table(["step", "reward", "kl", "loss"], rows), DelimitedAdapter)


@pytest.mark.parametrize(
    "other",
    [
        "Step: 10, Loss: 0.5\nStep: 20, Loss: 0.4\n",
        "step 10 | loss 0.5\nstep 20 | loss 0.4\n",
        "hello, world\nfoo, bar\n",
        "1,2\n3,4\n",
        '{"a": 1, "b": 2}\n',
    ],
)
def test_other_text_is_declined(text_log: Any, other: str) -> None:
    assert not DelimitedAdapter(text_log.write(other)).can_handle()


def test_many_rows_of_many_kinds_of_cells(text_log: Any) -> None:
    count = 5000
    rows = [[n, n / 7, "" if n % 3 else n, "x" if n % 5 else 1.5] for n in range(count)]
    run = text_log.run(table(["step", "reward", "kl", "loss"], rows), "csv")
    assert len(run) == count
    assert text_log.values(run, "reward_mean") == [n / 7 for n in range(count)]
    assert text_log.values(run, "kl_mean") == [None if n % 3 else n for n in range(count)]
    assert text_log.values(run, "loss") == [None if n % 5 else 1.5 for n in range(count)]


def test_a_field_map_places_what_is_not_known(text_log: Any) -> None:
    text = table(["step", "quux"], [[1, 0.5], [2, 0.75]])
    with pytest.raises(ReadError, match="field-map"):
        choose(text_log.write(text))
    run = text_log.run(text, "csv", field_map={"quux": "reward_mean"})
    assert text_log.values(run, "reward_mean") == [0.5, 0.75]


def metrics_of(run: Any) -> list[dict[str, float]]:
    return [event.metrics for event in run.events()]


def test_a_nan_among_numbers_was_measured(text_log: Any) -> None:
    losses = [0.5, 0.4, "nan", 0.3, 0.3, 0.2, "NaN", "nan", "nan"]
    run = text_log.run(table(["step", "reward_mean", "loss"], [[step, 0.1, loss] for step, loss in enumerate(losses)]), "csv")
    assert [math.isnan(metrics["loss"]) for metrics in metrics_of(run)] == [str(loss).lower() == "nan" for loss in losses]


def test_a_nan_in_every_row_that_lacks_the_metric_was_not(text_log: Any) -> None:
    rows = [[step, 0.1 * step, 0.5 if step % 4 == 0 else "nan", "nan"] for step in range(14)]
    run = text_log.run(table(["step", "reward_mean", "loss", "value_loss"], rows), "csv")
    assert [metrics.get("loss") for metrics in metrics_of(run)] == [0.5 if step % 4 == 0 else None for step in range(14)]
    assert not any("value_loss" in metrics for metrics in metrics_of(run))


def test_a_metric_that_becomes_nan_for_good_is_so_in_every_later_block_of_rows(text_log: Any) -> None:
    rows = [[step, 0.1, 0.5 if step < 100 else "nan"] for step in range(6000)]
    run = text_log.run(table(["step", "reward_mean", "loss"], rows), "csv")
    assert [math.isnan(metrics["loss"]) for metrics in metrics_of(run)] == [step >= 100 for step in range(6000)]


def test_metrics_written_one_after_the_other_are_one_run(text_log: Any) -> None:
    rows = [[step, 0.1 * step, ""] for step in range(8)] + [[step, "", 0.5] for step in range(8)]
    run = text_log.run(table(["step", "reward_mean", "loss"], rows), "csv")
    assert run.steps.tolist() == list(range(8))
    assert metrics_of(run)[3] == {"reward_mean": pytest.approx(0.3), "loss": 0.5}


def test_a_decimal_comma_is_no_separator(text_log: Any) -> None:
    run = text_log.run("step;reward_mean;loss\n" + "".join(f"{step};{step},25;0.5\n" for step in range(6)), "csv")
    assert metrics_of(run)[2] == {"reward_mean": 2.25, "loss": 0.5}


def test_one_decimal_comma_tells_what_the_others_are(text_log: Any) -> None:
    run = text_log.run("step;reward_mean;loss\n1;1,234;0,5\n2;2,345;-1,5e-3\n", "csv")
    assert text_log.values(run, "reward_mean") == [1.234, 2.345]
    assert text_log.values(run, "loss") == [0.5, -0.0015]


def test_a_comma_that_may_be_either_is_left_out_and_said(text_log: Any) -> None:
    run = text_log.run("step;reward_mean;loss\n1;1,234;0.5\n2;2,345;0.5\n", "csv")
    assert text_log.values(run, "loss") == [0.5, 0.5] and "reward_mean" not in run.columns
    assert "column 'reward_mean' has no numbers but words such as '1,234', and was left out" in run.notes


def test_thousands_and_percentages(text_log: Any) -> None:
    text = 'step,reward,tokens_per_second,clip_frac\n"1,000",0.5,"12,345",5%\n"2,000",0.5,"1,234,567.5",12.5 %\n'
    run = text_log.run(text, "csv")
    assert run.steps.tolist() == [1000, 2000]
    assert text_log.values(run, "tokens_per_second") == [12345.0, 1234567.5]
    assert text_log.values(run, "clip_frac") == pytest.approx([0.05, 0.125])


def test_numbers_that_a_page_wrote_short(text_log: Any) -> None:
    run = text_log.run("step,reward,tokens_per_second,comment\n1,0.5,3.4k,k\n2,0.5,980,ok\n3,0.5,1.2 M,M\n", "csv")
    assert text_log.values(run, "tokens_per_second") == pytest.approx([3400.0, 980.0, 1.2e6])
    assert "comment" not in run.columns


def test_a_known_column_of_words_is_said_to_be_left_out(text_log: Any) -> None:
    names = ["step", "reward", "entropy", "comment", "kl"]
    run = text_log.run(table(names, [[n, 0.5, "1.2 nats", "fine", ""] for n in (1, 2)]), "csv")
    assert [note for note in run.notes if "no numbers" in note] == [
        "column 'entropy' has no numbers but words such as '1.2 nats', and was left out"
    ]


def test_few_of_very_many_columns_decide_whether_a_console_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("rldk.ingest.formats.console.is_measured", lambda key: bool(asked.append(key)))
    names = ["step", *(f"c{n}" for n in range(20_000))]
    path = tmp_path / "m.csv"
    path.write_text(table(names, [[1] * len(names)] * 2))
    assert is_console(Source(path)) and len(asked) == 4096
