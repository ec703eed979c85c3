"""How many updates a row of a log stands for."""

from __future__ import annotations

import pytest

from rldk.signals.view import steps_per_row


@pytest.mark.parametrize("apart", [1, 2, 10, 50])
def test_rows_up_to_fifty_steps_apart_are_means_of_as_many_updates(apart):
    steps = [apart * row for row in range(1, 5)]
    assert steps_per_row(float(apart), 5 * apart, steps) == (apart if apart > 1 else 1.0)


@pytest.mark.parametrize("apart", [100, 250, 500, 1000])
def test_a_trainer_that_logs_seldom_does_so_at_round_intervals(apart):
    assert steps_per_row(float(apart), 1 + 4 * apart, [1 + apart * row for row in range(4)]) == 50.0


@pytest.mark.parametrize("apart", [64, 128, 256, 512, 2048, 8000, 100_000])
def test_a_step_that_counts_samples_or_tokens_is_one_update_per_row(apart):
    assert steps_per_row(float(apart), 5 * apart, [apart * row for row in range(1, 5)]) == 1.0
