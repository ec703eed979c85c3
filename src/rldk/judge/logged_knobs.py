"""The settings that a run logs beside its metrics, as they were when a defect was raised."""

from __future__ import annotations

from rldk.signals.series import SeriesByName

__all__ = ["KNOBS", "knobs_of"]

KNOBS = ("lr", "policy_lr", "value_lr", "kl_coef", "kl_mean", "rollout_length_mean", "batch_size", "clip_range", "temperature")
"""What advice may name: the values it would have the user change, as they were when the defect was raised."""
_RATES = ("lr", "policy_lr", "value_lr")


def knobs_of(series: SeriesByName) -> dict[str, float]:
    """The settings as they were logged last; of a learning rate that was higher, also the highest so far (`lr_highest`)."""
    found = {name: series[name].last for name in KNOBS if name in series and series[name].n}
    for name in _RATES:
        if name in found and (highest := max(series[name].first, series[name].high)) > found[name]:
            found[f"{name}_highest"] = highest
    return found
