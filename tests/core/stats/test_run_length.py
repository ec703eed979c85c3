"""Runs of a condition against itertools.groupby."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RunLength


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([True, False, None]), max_size=40))
def test_matches_groupby_over_the_known(conditions: list[bool | None]) -> None:
    run = RunLength()
    for condition in conditions:
        run.update(condition)
    known = [(index, condition) for index, condition in enumerate(conditions) if condition is not None]
    groups = [list(group) for held, group in itertools.groupby(known, key=lambda item: item[1]) if held]
    inside = bool(known) and bool(known[-1][1])
    assert run.length == (len(groups[-1]) if inside else 0)
    assert run.since == (groups[-1][0][0] if inside else None)
    assert run.longest == max(map(len, groups), default=0)
    assert run.runs == len(groups)
    assert run.missing == conditions.count(None)
    if known:
        assert run.share == sum(map(len, groups)) / len(known)
    else:
        assert math.isnan(run.share)


def test_unknown_neither_extends_nor_breaks() -> None:
    run = RunLength()
    for condition in (False, True, None, True):
        run.update(condition)
    assert (run.length, run.since, run.runs, run.share) == (2, 1, 1, 2 / 3)
