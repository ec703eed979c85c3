"""The short form of the detection benchmark: no change may make the judge worse on the tune split than the recorded baseline."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.full

MORE_IS_BETTER = ("told", "critical", "degraded_told", "family", "cause", "cause_of_two")
LESS_IS_BETTER = ("false_critical", "false_any", "early_false", "misleading")


@pytest.mark.parametrize("log", ["events", "plain"])
def test_the_judge_is_not_worse_than_the_baseline(log: str) -> None:
    """Better is fine: then write the new baseline with `score_corpus.py --write-baseline`, and say why in the commit."""
    from score_corpus import BASELINE, judge_all, read_labels

    from rldk.testing.scoring import total_scores

    was = json.loads(BASELINE.read_text())["tune"][log]["rldk"]
    now = total_scores(judge_all(read_labels("tune"), [log], ())[log]["rldk"]).to_dict()
    worse = [name for name in MORE_IS_BETTER if now[name]["count"] < was[name]["count"]]
    worse += [name for name in LESS_IS_BETTER if now[name]["count"] > was[name]["count"]]
    assert worse == [], {name: (was[name], now[name]) for name in worse}
    if was["delay_median"] is not None:
        assert now["delay_median"] <= was["delay_median"] + 1
