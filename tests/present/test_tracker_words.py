"""Every number that a tracker shows has a meaning, and those with a bad end a tone."""

from __future__ import annotations

from dataclasses import fields

import pytest

from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsMetrics
from rldk.judge.trackers.gradient_norms import GradientNormsMetrics
from rldk.judge.trackers.kl_schedule import KLScheduleMetrics
from rldk.judge.trackers.length_bias import LengthBiasMetrics
from rldk.present.tracker_words import MEASURES, tone_of_measure


@pytest.mark.parametrize("record", [AdvantageStatisticsMetrics, GradientNormsMetrics, KLScheduleMetrics, LengthBiasMetrics])
def test_every_field_is_explained(record: type) -> None:
    names = {one.name for one in fields(record)} - {"step"}  # type: ignore[arg-type]
    assert {name for name in names if not name.startswith("_") and "score" not in name} <= MEASURES.keys()


@pytest.mark.parametrize(("name", "value", "tone"), [
    ("gradient_balance", 1.0, "healthy"), ("gradient_balance", 0.1, "critical"), ("exploding_gradient_risk", 0.9, "critical"),
    ("exploding_gradient_risk", 0.0, "healthy"), ("coef_stuck", True, "warning"), ("coef_stuck", False, ""),
    ("current_kl", 5.0, ""), ("unknown", 0.0, ""),
])  # fmt: skip
def test_a_tone_follows_the_bad_end(name: str, value: float, tone: str) -> None:
    assert tone_of_measure(name, value) == tone
