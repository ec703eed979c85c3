"""The moments that panels mark: where incidents were raised, and the last good step before them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rldk.core.anomaly import Anomaly
from rldk.judge.incidents.incident import Incident
from rldk.present.plots.panel import Mark

__all__ = ["marks_of", "metrics_of"]

FAMILIES: dict[str, tuple[str, ...]] = {
    "kl": ("kl", "kl_coef", "kl_update"),
    "controller": ("kl", "kl_coef"),
    "coef": ("kl_coef", "kl"),
    "target": ("kl", "kl_coef"),
    "negative_kl": ("kl",),
    "clip": ("clip", "kl_update"),
    "ratio_explosion": ("ratio", "kl_update"),
    "ratio_trend": ("gradient_ratio", "gradients"),
    "entropy": ("entropy", "reward"),
    "response": ("quality", "entropy", "reward"),
    "policy_collapse": ("reward", "entropy"),
    "reward_hacking": ("reward", "reward_spread", "kl", "length"),
    "reward": ("reward", "reward_spread"),
    "dead_reward": ("reward", "reward_spread", "reward_signal"),
    "plateau": ("reward", "losses"),
    "length_bias": ("length_bias", "length"),
    "length": ("length", "truncated"),
    "eos": ("truncated", "length"),
    "value": ("value_loss", "explained_variance", "value"),
    "loss": ("losses", "gradients"),
    "learning_rate": ("lr", "kl", "gradients"),
    "exploding": ("gradients",),
    "vanishing": ("gradients",),
    "gradient_imbalance": ("gradient_ratio", "gradients"),
    "gradient_balance": ("gradient_ratio", "gradients"),
    "gradient": ("gradients",),
    "advantage": ("advantages", "advantage_std", "advantage_shape"),
    "throughput": ("throughput", "step_time"),
    "memory": ("memory", "memory_share"),
    "train_inference": ("mismatch",),
    "preference": ("margin", "logps", "accuracy"),
    "nonfinite": ("losses", "gradients"),
    "step_regression": ("reward",),
    "missing_reward": ("reward", "losses"),
    "sparse_reward": ("reward", "losses"),
    "held_out_collapse": ("reward",),
    "reference": ("kl", "reward"),
    "policy_frozen": ("kl", "gradients", "reward"),
    "weights": ("kl", "reward"),
    "temperature": ("entropy", "reward"),
    "too_few": ("reward",),
    "batch": ("reward", "reward_spread"),
}
"""Which panels speak of an anomaly, by the longest of these that its type begins with."""


def marks_of(incidents: Sequence[Incident], *, last_good: bool = True) -> list[Mark]:
    """A mark for each incident, numbered from 1, and one for the last good step before the first critical."""
    marks = [
        Mark(incident.step, str(number), incident.severity, f"{incident.severity} at step {incident.step}: {incident.title}")
        for number, incident in enumerate(incidents, 1)
    ]
    critical = next((incident for incident in incidents if incident.severity == "critical"), None)
    if last_good and critical is not None and critical.last_good_step is not None:
        good = critical.last_good_step
        marks.append(Mark(good, "✓", "good", f"last good step: {good}"))
    return marks


def metrics_of(anomalies: Iterable[Anomaly]) -> list[str]:
    """The keys of the panels that show what these anomalies speak of: of each the one that shows it best, then the others."""
    found: list[tuple[str, ...]] = []
    for anomaly in anomalies:
        known = [prefix for prefix in FAMILIES if anomaly.type.startswith(prefix)]
        if known:
            found.append(FAMILIES[max(known, key=len)])
    first = [keys[0] for keys in found]
    return list(dict.fromkeys((*first, *(key for keys in found for key in keys))))
