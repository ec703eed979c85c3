"""Whether a run may pass: its verdict, limits on where its metrics ended, and a comparison with a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rldk.comparison.aligned import COMPARED, final_level, why_unlike
from rldk.comparison.divergence import divergences
from rldk.core.catalog import CATALOG, entry_of, locate, metric_named
from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean, short_number
from rldk.core.verdicts import VERDICTS, worst_of
from rldk.judge.result import Result
from rldk.runs.run import Run

__all__ = ["Check", "check_run", "metric_name"]

_JUDGED = frozenset(COMPARED) - {"chosen_reward_mean", "rejected_reward_mean"}
"""What a baseline is compared by: of a pair, its margin and accuracy; either reward alone may move both ways."""


@dataclass(frozen=True, slots=True)
class Check:
    """One condition on one run, and whether it holds."""

    run_id: str
    path: str
    name: str
    passed: bool
    message: str
    value: float | None = None
    limit: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_run(
    result: Result,
    fails_on: frozenset[str],
    highest: Mapping[str, float],
    lowest: Mapping[str, float],
    baseline: Sequence[Result] = (),
) -> list[Check]:
    """All checks of a run: its verdict without acknowledged findings, the limits, and the baseline."""
    checks = [_verdict(result, fails_on)]
    checks += [_limit(result, metric, limit, "max") for metric, limit in highest.items()]
    checks += [_limit(result, metric, limit, "min") for metric, limit in lowest.items()]
    return checks + (_against(result, baseline) if baseline else [])


def metric_name(name: str, results: Iterable[Result] = ()) -> str:
    """The canonical name that a name or an alias stands for, or a key of these runs' logs; an unknown one is an error with the
    nearest known.
    """
    metric = name if "/" in name else metric_named(name)
    if metric is not None:
        return metric
    if any(_column_of(result.run, name) in result.run.columns for result in results):
        return name
    names = {*CATALOG, *(alias for entry in CATALOG.values() for alias in entry.aliases)}
    raise UsageError(f"No metric {name!r}.{did_you_mean(name, names) or ' `rldk catalog` lists them.'}")


def _column_of(run: Run, name: str) -> str:
    """The metric that a run logs under a key of its own, such as `kl_mean` for `objective/kl`; else the name itself."""
    if name in run.columns:
        return name
    return next((metric for metric, key in run.coverage.metrics.items() if key == name), name)


def _check(
    result: Result, name: str, passed: bool, message: str, value: float | None = None, limit: float | None = None
) -> Check:
    return Check(result.run.run_id, str(result.run.path), name, passed, message, value, limit)


def _verdict(result: Result, fails_on: frozenset[str]) -> Check:
    """Whether the verdict is acceptable. A run that cannot be judged does not pass, unless no verdict fails."""
    left = result.open_verdict
    if left == "no_data" and fails_on:
        said = f"no_data: {result.reason}. A run that cannot be judged does not pass; --fail-on never leaves the verdict out"
        return _check(result, "verdict", False, said)
    said = f"{result.verdict}: {result.reason}"
    if result.worst is not None:
        said += f"; {result.worst.title} at step {result.worst.step}"
    if left != result.verdict:
        said += f" (acknowledged; {left} without that)"
    return _check(result, "verdict", left not in fails_on, said)


def _limit(result: Result, metric: str, limit: float, kind: str) -> Check:
    """A limit on where a metric ended. A metric that is not logged or not finite does not pass."""
    column = _column_of(result.run, metric)
    value = final_level(result.run, column)
    name = f"{kind} {metric}={short_number(limit)}"
    if value is None:
        return _check(result, name, False, f"{metric} is not logged", None, limit)
    if column != metric:
        place = locate(metric)
        if place is not None and place.key.transform != "same":
            said = f"{metric} is read as {column}, which is another number ({place.key.transform}); set the limit on {column}"
            return _check(result, name, False, said, None, limit)
        metric = f"{metric} ({column})"
    passed = value <= limit if kind == "max" else value >= limit
    relation = "at most" if kind == "max" else "at least"
    said = f"{metric} ended at {short_number(value)}; {relation} {short_number(limit)} is required"
    return _check(result, name, passed, said, value, limit)


def _against(result: Result, baseline: Sequence[Result]) -> list[Check]:
    """No worse a verdict than the baseline, and no metric that leaves it in the direction of trouble."""
    worst = worst_of(one.open_verdict for one in baseline)
    own = result.open_verdict
    as_good = VERDICTS.index(own) >= VERDICTS.index(worst)
    checks = [_check(result, "baseline verdict", as_good, f"{own}; the baseline is {worst}")]
    parted = [one for one in divergences(baseline, [result]) if one.metric in _JUDGED]
    bad = [one for one in parted if _is_worse(one.metric, one.left, one.right)]
    if not bad:
        runs = {"this run": [result.run], "the baseline": [one.run for one in baseline]}
        said = ". ".join(["no metric is worse than the baseline beyond noise", *why_unlike(runs)])
        return [*checks, _check(result, "baseline metrics", True, said)]
    return checks + [
        _check(
            result, f"baseline {one.metric}", False,
            f"{one.metric} is {short_number(one.right)} from step {one.step} on; the baseline has {short_number(one.left)} "
            f"({one.confidence:.1%} sure)", one.right, one.left,
        )
        for one in bad
    ]  # fmt: skip


def _is_worse(metric: str, left: float, right: float) -> bool:
    """Whether a metric has moved in the direction of trouble; both directions count where both are, and NaN always does."""
    if right != right:
        return True
    entry = entry_of(metric)
    trouble = entry.trouble if entry is not None else "none"
    return trouble == "both" or (trouble == "high" and right > left) or (trouble == "low" and right < left)
