"""Runs of a condition against itertools.groupby, and its share of a window against counting."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RollingShare, RunLength


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
    assert (run.length, run.runs, run.share) == (2, 1, 2 / 3)


@given(conditions=st.lists(st.sampled_from([True, False, 0.5]), max_size=40), window=st.integers(1, 9))
def test_share_is_that_of_the_window(conditions: list[float], window: int) -> None:
    share = RollingShare(window)
    for condition in conditions:
        share.update(condition)
    seen = conditions[-window:]
    assert share.count == len(seen)
    assert math.isnan(share.share) if not seen else share.share == sum(seen) / len(seen)
