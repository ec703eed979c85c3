"""What to expect of a run: where its reward is going, and what each change of the learning rate did."""

from __future__ import annotations

from math import isfinite, isinf
from typing import Any

import numpy as np

from rldk.core.text import short_number
from rldk.functional.convergence import Convergence, forecast, predict_convergence
from rldk.functional.learning_rate import learning_rate_impact
from rldk.judge.result import Result
from rldk.runs.run import Run
from rldk.runs.table import NUMBER
from rldk.signals.optimizer import RATES

__all__ = ["outlook"]

FOLLOWED = ("reward_mean", "eval_reward_mean", "accuracy", "preference_accuracy")
MAX_CHANGES = 3  # changes of the learning rate that are listed


def outlook(result: Result) -> list[str]:
    """Sentences about the future of a run, and about its learning rate; empty where nothing can be predicted.

    The future of a run in which something critical stands cannot be predicted from its past.
    """
    run = None if result.source is None else result.source.whole()
    name = None if run is None else next((name for name in FOLLOWED if name in run.columns), None)
    if run is None or name is None:
        return []
    steps, values = run.steps.astype(float), _numbers(run, name)
    future = [] if result.state == "critical" else _future(run, name, steps, values)
    return [*future, *_rates(run, steps, values)]


def _numbers(run: Run, name: str) -> Any:
    column = run.columns[name]
    return np.where(column.state == NUMBER, column.values, np.nan)


def _future(run: Run, name: str, steps: Any, values: Any) -> list[str]:
    found = predict_convergence(steps, values)
    said = _course(name, found)
    if not said:
        return []
    last, planned = float(steps[-1]), run.config.get("max_steps")
    ends = float(planned) if isinstance(planned, (int, float)) and planned > last else last + (last - float(steps[0]))
    expected = forecast(steps, values, ends)
    if expected is None:
        return [said]
    when = f"At its end, step {ends:,.0f}," if ends == planned else f"If the run went on to step {ends:,.0f},"
    low, high = short_number(expected.low), short_number(expected.high)
    where = str(low) if low == high else f"between {low} and {high}"
    return [f"{said} {when} it is expected to be {where} (true of 80 % of healthy runs)."]


def _course(name: str, found: Convergence) -> str:
    """What the curve does, in a sentence."""
    if found.course in ("unknown", "flat"):
        return "" if found.course == "unknown" else f"{name} has no trend: its final level cannot be predicted."
    if found.course == "settled":
        return f"{name} has settled at {short_number(found.level)}."
    if isinf(found.plateau_step) or not isfinite(found.level):
        return f"{name} is {found.course} steadily: its final level cannot be predicted yet."
    return (
        f"{name} is {found.course} and would settle at {short_number(found.level)} by step {found.plateau_step:,.0f}; "
        f"{found.remaining:.0%} of the way is left."
    )


def _rates(run: Run, steps: Any, values: Any) -> list[str]:
    name = next((name for name in RATES if name in run.columns), None)
    if name is None:
        return []
    rates = _numbers(run, name).tolist()
    changes = learning_rate_impact(steps.astype(int).tolist(), rates, values.tolist(), jumps_only=True)
    if len(changes) > MAX_CHANGES:
        return []  # the effect of a single change cannot be separated
    return [
        f"The learning rate went from {short_number(one['from'])} to {short_number(one['to'])} at step {one['step']:,}; the mean "
        f"reward of the rows around it went from {short_number(one['reward_before'])} to {short_number(one['reward_after'])}."
        for one in changes
    ]
