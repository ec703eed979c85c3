"""The tables that Stable-Baselines3 prints: a row each, and none of one that was cut or mixed with other output."""

from __future__ import annotations

from typing import Any

import pytest


def table(n: int) -> str:
    """The table after rollout `n`, as the library's human output format writes it."""
    rows = [
        ("rollout/", ""), ("   ep_len_mean", f"{20 + n}"), ("   ep_rew_mean", f"{20.5 + n}"), ("time/", ""), ("   fps", "900"),
        ("   iterations", f"{n}"), ("   total_timesteps", f"{2048 * n}"), ("train/", ""), ("   approx_kl", f"{0.001 * n:.4f}"),
        ("   entropy_loss", f"{-0.68 + 0.01 * n:.2f}"), ("   explained_variance", "-0.0058"), ("   value_loss", f"{50.5 + n}"),
    ]  # fmt: skip
    keys, values = max(len(key) for key, _ in rows), max(len(value) for _, value in rows)
    lines = [f"| {key:{keys}} | {value:{values}} |" for key, value in rows]
    edge = "-" * len(lines[0])
    return "\n".join([edge, *lines, edge]) + "\n"


def test_a_table_is_a_row(text_log: Any) -> None:
    run = text_log.run("Using cpu device\nWrapping the env\n" + "".join(map(table, range(1, 9))), "sb3_console")
    assert run.framework == "sb3" and run.steps.tolist() == [2048 * n for n in range(1, 9)]
    assert text_log.values(run, "reward_mean")[:2] == [21.5, 22.5]
    assert text_log.values(run, "kl_update")[0] == 0.001
    assert text_log.values(run, "entropy_mean")[0] == pytest.approx(0.67), "the library logs minus entropy"
    assert text_log.values(run, "value_loss")[-1] == 58.5


def test_other_lines_between_tables_are_passed_over(text_log: Any) -> None:
    text = "".join(table(n) + "Eval num_timesteps=10, episode_reward=9.00 +/- 1.0\nNew best mean reward!\n" for n in range(1, 7))
    assert text_log.run(text, "sb3_console").steps.tolist() == [2048 * n for n in range(1, 7)]


@pytest.mark.parametrize("spoil", ["warning: something\n", "| a | 1 |\n", "", "SHORT"])
def test_a_table_that_is_not_whole_is_left_out_and_said(text_log: Any, spoil: str) -> None:
    lines = table(2).splitlines(keepends=True)
    broken = [*lines[:4], spoil, *lines[5:]] if spoil else [*lines[:1], *lines[8:]]
    if spoil == "SHORT":
        broken = [*lines[:4], lines[4][:-3] + "\n", *lines[5:]]
    run = text_log.run(table(1) + "".join(broken) + table(3), "sb3_console")
    assert run.steps.tolist() == [2048, 6144]
