"""Groups that are too hard or too easy, and what rollouts without a signal cost."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.reward.uninformative_groups import UninformativeGroups
from rldk.judge.engine import Engine

ROWS = 150
AT = np.arange(ROWS)


def test_groups_that_fail_entirely(told):
    assert told(UninformativeGroups(), {"groups_all_bad_frac": np.full(ROWS, 0.95)}) == [(53, "warning", "too_hard")]


@pytest.mark.parametrize("share", [np.full(ROWS, 0.7), 0.98 - 0.5 * AT / ROWS, np.where(AT % 3 == 0, 0.95, 0.6)])
def test_groups_that_become_easier_or_fail_often_are_silent(told, share):
    assert told(UninformativeGroups(), {"groups_all_bad_frac": share}) == []


def test_solved_groups_are_a_note(told):
    assert told(UninformativeGroups(), {"groups_all_good_frac": np.full(ROWS, 0.95)}) == [(23, "note", "too_easy")]


def closing(rows: list[dict[str, float]], step: int = 1) -> str | None:
    detector = UninformativeGroups()
    engine = Engine([detector])
    for number, row in enumerate(rows):
        engine.observe(Event(number * step, row))
    return detector.closing()


def test_what_rollouts_without_a_signal_cost() -> None:
    early, late = {"reward_zero_std_frac": 0.1}, {"reward_zero_std_frac": 0.62}
    said = "62% of the rollouts of the last 100 steps carried no signal: their groups scored the same"
    assert closing([early] * 50 + [late] * 100) == said
    assert closing([late] * 30, step=10) == said.replace("100", "91")
    assert closing([late] * 5) is None
    assert closing([early] * 150) is None


def test_too_easy_is_told_from_too_hard() -> None:
    row = {"groups_all_good_frac": 0.48, "groups_all_bad_frac": 0.14}
    assert (closing([row] * 120) or "").endswith("(48% of the groups were too easy, 14% too hard)")


def test_the_cost_goes_on_where_a_saved_run_is_restored() -> None:
    first, again = UninformativeGroups(), UninformativeGroups()
    engine = Engine([first])
    for step in range(60):
        engine.observe(Event(step, {"reward_zero_std_frac": 0.5}))
    again.load_state_dict(first.state_dict())
    assert again.closing() == first.closing() is not None
