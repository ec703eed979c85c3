"""Runs of a condition against itertools.groupby, and its share of a window against counting."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RollingShare, RunLength


@settings(max_examples=200, deadline=None)
@given(st.lists(st.booleans(), max_size=40))
def test_matches_groupby(conditions: list[bool]) -> None:
    run = RunLength()
    for condition in conditions:
        run.update(condition)
    groups = [list(group) for held, group in itertools.groupby(conditions) if held]
    assert run.length == (len(groups[-1]) if conditions and conditions[-1] else 0)
    assert run.longest == max(map(len, groups), default=0)
    assert run.runs == len(groups)
    if conditions:
        assert run.share == sum(conditions) / len(conditions)
    else:
        assert math.isnan(run.share)


@given(conditions=st.lists(st.sampled_from([True, False, 0.5]), max_size=40), window=st.integers(1, 9))
def test_share_is_that_of_the_window(conditions: list[float], window: int) -> None:
    share = RollingShare(window)
    for condition in conditions:
        share.update(condition)
    seen = conditions[-window:]
    assert share.count == len(seen)
    assert math.isnan(share.share) if not seen else share.share == sum(seen) / len(seen)
