"""Metrics of a run under the names of a peer, and the unit of its KL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rldk.core.event import Event

__all__ = ["Row", "kl_is_by_sequence", "per_token_kl", "rows_of"]

Row = tuple[int, dict[str, float]]
"""A step and its metrics."""


def rows_of(events: Sequence[Event], names: Mapping[str, Sequence[str]]) -> list[Row]:
    """Each event's step and metrics under a peer's names; a metric that an event lacks is missing from its row.

    `names` gives for each name of the peer the canonical metrics that fit, the best first. Which one is taken is decided once
    per run, so that a series never changes its meaning from row to row.
    """
    logged = {name for event in events for name in event.metrics}
    fitting = {theirs: [name for name in ours if name in logged] for theirs, ours in names.items()}
    chosen = {theirs: found[0] for theirs, found in fitting.items() if found}
    rows: list[Row] = []
    for event in events:
        rows.append((event.step, {theirs: event.metrics[ours] for theirs, ours in chosen.items() if ours in event.metrics}))
    return rows


def kl_is_by_sequence(events: Sequence[Event], framework: str, reductions: Mapping[str, str] | None) -> bool:
    """Whether `kl_mean` is summed over the sequence, by the run's reductions, else its events', else its framework."""
    stated = (reductions or {}).get("kl_mean") or next(
        (found for event in events if (found := event.model_info.get("reductions", {}).get("kl_mean"))), None
    )
    return stated == "sequence" if stated else framework == "trl-ppo"


def per_token_kl(event: Event) -> float | None:
    """The KL per token of an event whose `kl_mean` is summed over the sequence; `None` if it cannot be told."""
    metrics = event.metrics
    if "kl_mean_per_token" in metrics:
        return metrics["kl_mean_per_token"]
    if "kl_mean" in metrics and metrics.get("rollout_length_mean", 0.0) > 0:
        return metrics["kl_mean"] / metrics["rollout_length_mean"]
    return None
