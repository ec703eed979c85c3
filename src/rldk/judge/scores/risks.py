"""Risks in [0, 1] for each step: how far a run has gone towards a collapse, and towards an exploited reward.

A risk is made of the very signals that the detectors read, so that the two cannot contradict each other: a standing warning of
the kind is a risk of at least 0.6, a critical of at least 0.9, and without either the risk stays below 0.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from rldk.core.anomaly import Anomaly
from rldk.judge.scores.formulas import clip
from rldk.signals.channels import damage
from rldk.signals.reward import score_of
from rldk.signals.series import RECENT
from rldk.signals.view import View

__all__ = ["COLLAPSES", "HACKS", "RISKS", "collapse_risk", "hacking_risk"]

RISKS = {"warning": 0.6, "critical": 0.9}
"""The least risk while an anomaly of that severity stands."""
UNRAISED = 0.55  # the most that signals alone make of a risk, while no detector is sure
COLLAPSES = frozenset({"policy_collapse", "entropy_collapse", "response_collapse", "length_collapse", "held_out_collapse"})
HACKS = frozenset({"reward_hacking", "length_bias", "reward_saturation"})


def collapse_risk(view: View, standing: Iterable[Anomaly]) -> float:
    """How much of the reward's gain, of the entropy and of the variety of responses is lost; NaN while none is known."""
    reward, score, parts = view.reward, score_of(view), []
    if score.n >= 2 * RECENT:
        noise = reward.row_noise(score)
        parts.append(clip((reward.lost(score) - 2.0 * noise) / max(reward.gain, 4.0 * noise)))
    for name in ("entropy_mean", "distinct_responses_frac"):
        series = view.get(name)
        if series.ready and series.start > 0.0 and series.low >= 0.0:
            parts.append(clip((0.5 - series.level / series.start) / 0.5))  # half of the start is nothing to worry about
    return _raised(max(parts) if parts else nan, COLLAPSES, standing)


def hacking_risk(view: View, standing: Iterable[Anomaly]) -> float:
    """How many independent channels have left their range while the reward rose; NaN while there is no reward to judge."""
    score = score_of(view)
    if score.n < 2 * RECENT:
        return _raised(nan, HACKS, standing)
    signs = damage(view) if view.reward.improves(score) else ()
    return _raised(clip(sum(0.5 if sign.strong else 0.25 for sign in signs)), HACKS, standing)


def _raised(signal: float, kinds: frozenset[str], standing: Iterable[Anomaly]) -> float:
    floor = max((RISKS[anomaly.severity] for anomaly in standing if anomaly.type in kinds), default=0.0)
    if floor == 0.0 or signal != signal:
        return signal * UNRAISED if floor == 0.0 else floor
    return floor + (1.0 - floor) * 0.9 * signal
