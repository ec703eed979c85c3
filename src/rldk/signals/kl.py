"""The unit in which a run logs its KL, its target, and usual levels: the same for all rules about KL."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

from rldk.signals.reward import score_of
from rldk.signals.view import View, once_per_event

__all__ = [
    "LIMIT", "UNITS", "USUAL_SEQUENCE", "USUAL_TOKEN", "KlLevel", "adapts", "coefficient", "in_numbers", "is_assumed",
    "is_measured", "is_off", "is_unstated", "kl_level", "target_of", "unit_of",
]  # fmt: skip

UNITS = {"token": "token", "sequence": "response"}
LIMIT = {"token": 3.0, "sequence": 50.0, "": 10.0}
"""Nats above which policy and reference have nothing in common. Per token: the largest sound run of the corpus' tune split is
2.7, of public ones 1.3; a policy that collapsed or became noise is at 4 to 9. Per response, where the length is not logged:
healthy ones reach 29."""
SHORTEST = 1.9  # tokens of a response: with fewer than two, a length that was derived is not believed
RESPONSE, SHORT = 100.0, 200.0
"""Nats per response above which the reference would not have written the text, and tokens up to which that is a limit: long
texts of healthy runs go further. Sound runs of the corpus reach 72; those with more than 90 failed."""
USUAL_TOKEN = 0.3
"""Nats per token up to which healthy runs go: most stay between 0.0001 and 0.3."""
USUAL_SEQUENCE = 15.0
"""Nats per response up to which healthy runs go: adaptive controllers usually aim at 6."""


def target_of(view: View) -> float:
    """The KL target: as set by the user, else as logged together with a coefficient; NaN if unknown.

    Without a coefficient a logged `target_kl` belongs to early stopping, which compares old and new policy.
    """
    given = view.context.get("kl_target")
    if given is None:
        logged = view.series.get("target_kl")
        if logged is None or "kl_coef" not in view.series:
            return nan
        given = logged.last
    return float(given) if given > 0.0 else nan


def unit_of(view: View) -> str:
    """`token` or `sequence`; empty if the log does not say and it cannot be inferred.

    A target below 1 is per token, and a run that starts above 1 logs its KL per sequence.
    """
    unit = view.reductions.get("kl_mean", "")
    if unit == "token" or unit == "sequence":
        return unit
    target = target_of(view)
    if target > 0.0:
        return "sequence" if target >= 1.0 else "token"
    return "sequence" if view.get("kl_mean").start > 1.0 else ""


def is_unstated(view: View) -> bool:
    """Whether nobody says what the KL was reduced over: a log with keys of somebody's own, or a live run without a framework."""
    return view.reductions.get("kl_mean", "unstated") == "unstated"


def is_assumed(view: View) -> bool:
    """Whether the KL can only be one per response: per token this would be another model, which earns no rising reward."""
    large = view.get("kl_mean").level > LIMIT["token"]
    return large and is_unstated(view) and not unit_of(view) and view.reward.improves(score_of(view))


def is_off(view: View) -> bool:
    """Whether the log or the settings say that there is no penalty: many trainers then load no reference, and log a KL of 0."""
    coef = view.get("kl_coef")
    return (coef.last if coef.n else view.setting("kl_coef")) == 0.0


def is_measured(view: View) -> bool:
    """Whether a KL of exactly 0 was measured.

    If neither the coefficient nor the framework is known, a column of zeros may never have been filled in.
    """
    if is_off(view):
        return False
    kl = view.get("kl_mean")
    return view.get("kl_coef").n > 0 or not is_unstated(view) or kl.last != 0.0 or kl.same < kl.n


def adapts(view: View) -> bool:
    """Whether the coefficient has ever moved; a constant one is a choice."""
    coef = view.get("kl_coef")
    return coef.n >= 5 and coef.high > coef.low


def coefficient(view: View) -> str:
    """` (now 0.05)` after the words "KL coefficient", where the run logs it."""
    coef = view.get("kl_coef")
    return f" (now {coef.last:.3g})" if coef.n else ""


def in_numbers(unit: str) -> str:
    """The unit in words, for messages."""
    return f"nats per {UNITS[unit]}" if unit else "nats (the log does not say whether per token or per response)"


class KlLevel(NamedTuple):
    """The KL to the reference now, in the most informative unit, as a multiple of its natural limit, and per response."""

    value: float
    unit: str
    strain: float
    response: float = nan

    @property
    def words(self) -> str:
        also = f" ({self.response:.3g} per response)" if self.response > 1.0 else ""
        return f"{self.value:.3g} {in_numbers(self.unit)}{also}"


def mean_length(view: View) -> float:
    """The mean length of responses in tokens: as logged, or from the entropies per response and per token; NaN if unknown."""
    length = view.get("rollout_length_mean")
    if length.n:
        return length.level
    whole, token = view.get("entropy_sequence"), view.get("entropy_mean")
    if whole.n < 8 or whole.low <= 0.0 or not token.start > 0.1:
        return nan  # if it was ever negative, padding was counted, as it is where the length comes out as next to nothing
    derived = max(whole.start / token.start, whole.level / max(token.level, 0.1))  # prefer too long to too short
    return derived if derived > SHORTEST else nan


@once_per_event
def kl_level(view: View) -> KlLevel:
    """The level of the KL, per token where the length of responses is known; NaN before there are three values."""
    kl = view.get("kl_mean")
    if kl.n < 3:
        return KlLevel(nan, "", nan)
    unit, level = unit_of(view), kl.level
    if is_assumed(view):
        unit = "sequence"
    length = mean_length(view) if unit else nan
    if not length > 0.0:
        return KlLevel(level, unit, level / LIMIT[unit])
    if unit == "sequence":
        level /= length
    whole, strain = level * length, level / LIMIT["token"]
    return KlLevel(level, "token", max(strain, whole / RESPONSE) if length < SHORT else strain, whole)
