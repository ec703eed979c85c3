"""Judges a sequence of checkpoints: what went wrong, at which one, and a health score.

docs/checkpoints.md has the formulas of the score. A run is compared with its own past: a layer that never moved was frozen on
purpose, one that has stopped moving was not.
"""

from __future__ import annotations

from collections import deque
from math import log, nan
from statistics import median

from rldk.checkpoints.report import CheckpointReport, Problem, ratio, some_tensors
from rldk.core.stats.pairs import RollingPairs
from rldk.core.text import counted, short_number
from rldk.judge.scores.alarms import ALARMS
from rldk.judge.scores.formulas import combine, within

__all__ = ["Judge"]

JUMP = 10.0
"""An update is a jump if it is this many times the median of the earlier updates per step, without jumps."""
GROWTH = 5.0
"""A matrix has exploded if its norm is this many times its first norm."""
EARLIER = 2
"""The minimum number of earlier updates that a jump is compared with."""
TORN = 0.1
"""Weights are torn by an update per step of this share of their norm, if they have moved by `FAR` in total."""
FAR = 0.3
SMALL = 1000
"""Smaller tensors are gains and biases, whose norm may take any value."""


class Judge:
    """Judges reports in the order of their steps; keeps what it needs of the earlier ones, in bounded memory."""

    def __init__(self) -> None:
        self._updates: deque[float] = deque(maxlen=64)
        self._norms = RollingPairs(64)
        self._moved: set[str] = set()
        self._alive: set[str] = set()
        self._last_good: str | None = None
        self._jumped_after: str | None = None
        self._last_step: int | None = None

    def start_from(self, step: int | None, name: str) -> None:
        """Set the checkpoint that the next one is compared with, without judging it."""
        self._last_step, self._last_good = step, name

    def judge(self, report: CheckpointReport, lost: int = 0) -> None:
        """Complete a report: problems, trend of the norm, and score. `lost` tensors went with a damaged shard."""
        steps = None if report.step is None or self._last_step is None else report.step - self._last_step
        if steps is not None and steps > 0:
            report.update_ratio_per_step = report.update_ratio / steps
        self._trend(report)
        usual = median(self._updates) if len(self._updates) >= 2 else nan
        report.problems += [
            *self._finite(report), *self._course(report), *self._torn(report, steps), *self._size(report),
        ]  # fmt: skip
        report.health_parts = self._parts(report, usual, lost)
        score = combine(report.health_parts.values())
        report.health_score = min([score, *(ALARMS[problem.severity] for problem in report.problems)])
        self._remember(report)

    def _trend(self, report: CheckpointReport) -> None:
        if report.step is not None and report.norm > 0:
            self._norms.update(float(report.step), log(report.norm))
            report.norm_trend = 1000.0 * self._norms.slope

    def _finite(self, report: CheckpointReport) -> list[Problem]:
        if not report.nonfinite:
            return []
        names = tuple(tensor.name for tensor in report.tensors if tensor.nonfinite)
        good = f"Go back to {self._last_good}" if self._last_good else "There is no good checkpoint before it, so start again"
        where = f"in {some_tensors(names)}"
        message = f"Not finite: {report.nonfinite} of {report.parameters} weights, {where}."
        advice = f"{good}; lower the learning rate, clip gradients, and stop on a loss that is not finite."
        return [Problem("nonfinite_weights", "critical", message, advice, names)]

    def _course(self, report: CheckpointReport) -> list[Problem]:
        """Layers that have stopped moving, and layers that have died."""
        found = []
        compared = [tensor.name for tensor in report.tensors if tensor.count and tensor.update == tensor.update]
        if compared and len(report.unchanged) == len(compared):
            message = "No weight has changed since the previous checkpoint."
            advice = "Check the optimizer: learning rate 0, no gradient, all steps skipped, or a model saved twice."
            found.append(Problem("weights_unchanged", "warning", message, advice))
        elif stopped := tuple(name for name in report.unchanged if name in self._moved):
            message = f"Moved earlier, but not since the previous checkpoint: {some_tensors(stopped)}."
            advice = "Check that they get a gradient: a detached graph, an unused branch, or updates lost to rounding."
            found.append(Problem("layers_stopped", "warning", message, advice, stopped))
        if died := tuple(name for name in report.dead if name in self._alive):
            message = f"Only zeros since the previous checkpoint: {some_tensors(died)}."
            found.append(Problem("layers_died", "critical", message, f"Go back to {self._last_good or 'an earlier one'}.", died))
        return found

    def _torn(self, report: CheckpointReport, steps: int | None) -> list[Problem]:
        """Weights that moved far in a few steps. Adapters are left out: they start at zero, where any change is large."""
        own = [tensor for tensor in report.tensors if tensor.update == tensor.update and not tensor.adapter]
        moved = ratio([tensor.update for tensor in own], [tensor.previous_norm for tensor in own])
        if not steps or steps < 0 or not (moved > FAR and moved / steps > TORN):
            return []
        message = f"The weights moved by {100 * moved:.0f} % of their norm in {counted(steps, 'step')}."
        good = self._last_good or "the previous checkpoint"
        advice = f"This destroys what was learnt: go back to {good}, and lower the learning rate or add a warm-up."
        return [Problem("weights_torn", "warning", message, advice)]

    def _jump(self, report: CheckpointReport) -> list[Problem]:
        """An update far above the earlier ones. It is reported for as long as updates stay that large."""
        now = report.update_ratio_per_step
        if len(self._updates) < EARLIER or not 0 < JUMP * median(self._updates) < now:
            self._jumped_after = None
            return []
        first, self._jumped_after = self._jumped_after is None, self._jumped_after or self._last_good or "the previous checkpoint"
        times = f"{short_number(now / median(self._updates), 3)} times as fast as before"
        if first:
            how = f"Between {self._jumped_after} and {report.path.name}, the weights moved {times}"
        else:
            how = f"The weights still move {times} {self._jumped_after}"
        moved = ", ".join(layer.name for layer in report.most_moved(3))
        advice = f"Look at the learning rate and the gradients since {self._jumped_after}."
        return [Problem("update_jump", "warning", f"{how}; {moved} moved most.", advice)]

    def _size(self, report: CheckpointReport) -> list[Problem]:
        found = self._jump(report)
        grown = {name: factor for name, factor in _growth(report).items() if factor > GROWTH}
        if grown:
            worst = max(grown, key=lambda name: grown[name])
            growth = short_number(grown[worst], 3)
            message = f"The norm of {worst} has grown to {growth} times its first value. Grown: {some_tensors(tuple(grown))}."
            advice = "Lower the learning rate, or use weight decay."
            found.append(Problem("norm_explosion", "warning", message, advice, tuple(grown)))
        return found

    def _parts(self, report: CheckpointReport, usual: float, lost: int) -> dict[str, float]:
        movers = [tensor for tensor in report.tensors if tensor.name in self._moved and tensor.update == tensor.update]
        compared = any(tensor.update == tensor.update for tensor in report.tensors)
        if movers:
            moving = sum(tensor.count for tensor in movers if tensor.changed > 0) / sum(tensor.count for tensor in movers)
        else:
            moving = float(report.changed_share > 0) if compared else nan
        factors = [max(factor, 1.0 / factor) for factor in _growth(report).values() if factor > 0]
        died = sum(name in self._alive for name in report.dead)
        return {
            "whole": len(report.tensors) / (len(report.tensors) + lost) if report.tensors else 0.0,
            "finite": 0.0 if report.nonfinite else 1.0,
            "alive": 1.0 - died / len(self._alive) if self._alive else nan,
            "moving": moving,
            "pace": within(report.update_ratio_per_step / usual, 3.0) if usual > 0 else nan,
            "drift": within(report.drift_from_start, 1.0),
            "norms": within(max(factors), 2.0) if factors else nan,
        }

    def _remember(self, report: CheckpointReport) -> None:
        jumped = self._jumped_after is not None
        if report.update_ratio_per_step == report.update_ratio_per_step and not report.nonfinite and not jumped:
            self._updates.append(report.update_ratio_per_step)
        self._moved |= {tensor.name for tensor in report.tensors if tensor.changed > 0}
        self._alive |= {tensor.name for tensor in report.tensors if tensor.norm > 0}
        self._last_step = report.step
        if report.verdict != "critical":
            self._last_good = report.path.name


def _growth(report: CheckpointReport) -> dict[str, float]:
    """The norm of each matrix as a multiple of its first."""
    return {
        tensor.name: tensor.norm / tensor.start_norm
        for tensor in report.tensors
        if tensor.count >= SMALL and tensor.start_norm > 0
    }
