"""The short form of the detection benchmark: no change may make the judge worse on the tune split than the recorded baseline."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def baseline() -> dict[str, Any]:
    from score_corpus import BASELINE

    found: dict[str, Any] = json.loads(BASELINE.read_text())["tune"]
    return found


@pytest.mark.parametrize("log", ["events", "plain", "few"])
def test_the_judge_is_not_worse_than_the_baseline(log: str, baseline: dict[str, Any]) -> None:
    """Better is fine: then write the new baseline with `score_corpus.py --write-baseline`, and say why in the commit."""
    from score_corpus import judge_all, read_labels, regressions

    from rldk.testing.scoring import total_scores

    now = total_scores(judge_all(read_labels("tune"), [log], ())[log]["rldk"])
    assert regressions(baseline[log]["rldk"], now) == []


def totals_of(figures: dict[str, Any], delays: list[int]) -> Any:
    """Totals that have the counts of a baseline."""
    from rldk.testing.scoring import Share, Totals

    shares = {name: Share(one["count"], one["of"]) for name, one in figures.items() if isinstance(one, dict)}
    return Totals(**shares, saved=figures["saved"], delays=delays)


def test_only_what_is_worse_is_a_regression(baseline: dict[str, Any]) -> None:
    from score_corpus import LESS_IS_BETTER, MORE_IS_BETTER, regressions

    was = baseline["events"]["rldk"]
    in_time = [0] * was["told"]["count"]
    assert regressions(was, totals_of(was, in_time)) == []
    for name in (*MORE_IS_BETTER, *LESS_IS_BETTER):
        sign, tolerated = (1, 0) if name in MORE_IS_BETTER else (-1, LESS_IS_BETTER[name])
        for change, worse in ((sign * 3, False), (-sign * tolerated, False), (-sign * (tolerated + 1), True)):
            now = copy.deepcopy(was)
            now[name]["count"] = max(0, now[name]["count"] + change)
            assert bool(regressions(was, totals_of(now, in_time))) is worse, (name, change)


def test_more_runs_that_are_told_late_are_no_regression_and_the_same_runs_told_later_are(baseline: dict[str, Any]) -> None:
    from score_corpus import regressions

    was = baseline["events"]["rldk"]
    told = was["told"]["count"]
    assert regressions(was, totals_of(was, [0] * told + [90] * 3 * told)) == []
    assert "told within" in regressions(was, totals_of(was, [90] * told))[0]
