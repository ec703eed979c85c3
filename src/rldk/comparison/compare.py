"""The comparison of runs or of groups of runs: settings, verdicts, where they part, and where each ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.comparison.aligned import COMPARED, final_level, logged_rows, other_units, why_unlike
from rldk.comparison.divergence import Divergence, divergences
from rldk.comparison.grouping import PLACES, run_groups, shown_value
from rldk.comparison.mean_curve import finite_points, mean_and_band
from rldk.core.errors import UsageError
from rldk.core.knobs import flat_settings
from rldk.core.text import counted, in_words, short_number
from rldk.core.verdicts import worst_of
from rldk.ingest.duplicates import distinct_names
from rldk.judge.result import Result
from rldk.runs.run import Run

__all__ = ["Comparison", "Group", "Setting", "compare_results", "group_by"]


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that are compared as one: a single run, or several seeds of one setting."""

    name: str
    results: tuple[Result, ...]

    @property
    def runs(self) -> list[Run]:
        return [result.run for result in self.results]

    @property
    def verdict(self) -> str:
        """The worst verdict of its runs."""
        return worst_of(result.verdict for result in self.results)

    @property
    def last_step(self) -> int:
        return max((int(run.steps[-1]) for run in self.runs if len(run)), default=0)

    def level(self, metric: str) -> tuple[float, float] | None:
        """Where a metric ended: the mean over the runs and their spread (NaN for a single run); `None` where none has it."""
        levels = [level for run in self.runs if (level := final_level(run, metric)) is not None]
        if not levels:
            return None
        return float(np.mean(levels)), float(np.std(levels, ddof=1)) if len(levels) > 1 else float("nan")

    def curve(self, metric: str) -> dict[str, list[float]] | None:
        """A metric over the steps: `mean` over the runs, and the band from `low` to `high`, one standard deviation around it.

        `None` where none has it. The band is NaN where a run is alone.
        """
        made = mean_and_band([finite_points(*logged_rows(run, metric)) for run in self.runs if metric in run.columns])
        return None if made is None else dict(zip(("step", "mean", "low", "high"), map(_rounded, made), strict=True))


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs: its name, and the value in each group (`None` where it is not known)."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The first group is what the others are compared with.

    `divergences` has, for each of the others, the metrics in which it leaves the first, in order; `settings` has what differs,
    and `unknown_settings` the groups whose configuration is not in their logs.
    """

    groups: tuple[Group, ...]
    settings: tuple[Setting, ...]
    divergences: dict[str, list[Divergence]] = field(default_factory=dict)
    unknown_settings: tuple[str, ...] = ()

    def first(self, name: str) -> Divergence | None:
        """Where a group first leaves the first group; `None` where noise explains all differences."""
        found = self.divergences[name]
        return found[0] if found else None

    def ends(self) -> list[tuple[str, list[tuple[float, float] | None]]]:
        """Where each metric ended in each group: mean and spread over its runs."""
        runs = [run for group in self.groups for run in group.runs]
        metrics = [metric for metric in COMPARED if not other_units(metric, runs)]
        found = [(metric, [group.level(metric) for group in self.groups]) for metric in metrics]
        return [(metric, levels) for metric, levels in found if any(level is not None for level in levels)]

    def notes(self) -> list[str]:
        """Why some metrics are left out, and that the runs are of different kinds; empty where all can be compared."""
        return why_unlike({group.name: group.runs for group in self.groups})

    def sentences(self) -> list[str]:
        """For each group after the first, where it parts from it."""
        return [self._sentence(group) for group in self.groups[1:]]

    def _sentence(self, group: Group) -> str:
        one = self.first(group.name)
        base = self.groups[0].name
        if one is None:
            return f"{group.name} and {base} do not diverge: their differences are within the noise of the runs."
        level = f"{one.metric} is {short_number(one.right)} against {short_number(one.left)}"
        if one.finding:
            level = f"{in_words(one.finding)} only in {base if one.found_in == 'left' else group.name}; {level}"
        sure = _sure(one.confidence) + (f" by step {one.certain_step}" if one.step != one.certain_step else "")
        later = [other.metric for other in self.divergences[group.name][1:]]
        after = f" Then {', '.join(later[:4])}{' and others' if len(later) > 4 else ''}." if later else ""
        return f"{group.name} diverges from {base} at step {one.step} ({sure}): {level}.{after}"

    def to_dict(self) -> dict[str, Any]:
        """As `rldk compare --json` prints it."""
        return {
            "groups": [
                {
                    "name": group.name,
                    "verdict": group.verdict,
                    "last_step": group.last_step,
                    "runs": [
                        {
                            "run_id": result.run.run_id, "path": str(result.run.path), "verdict": result.verdict,
                            "cause": result.worst.cause if result.worst else None, "reason": result.reason,
                        }
                        for result in group.results
                    ],
                    **({"curves": self._curves(group)} if len(group.results) > 1 else {}),
                }
                for group in self.groups
            ],
            "notes": self.notes(),
            "settings": {one.name: list(one.values) for one in self.settings},
            "unknown_settings": list(self.unknown_settings),
            "divergences": {name: [one.to_dict() for one in found] for name, found in self.divergences.items()},
            "ends": {
                metric: [None if level is None else {"mean": level[0], "spread": level[1]} for level in levels]
                for metric, levels in self.ends()
            },
        }  # fmt: skip

    def _curves(self, group: Group) -> dict[str, dict[str, list[float]]]:
        found = {metric: group.curve(metric) for metric, _ in self.ends()}
        return {metric: curve for metric, curve in found.items() if curve is not None}

    def plot(self, *names: str, **options: Any) -> Any:
        """The runs over each other, of a group of several their mean and a band between them.

        By default the metrics in which they part, or reward, KL and entropy.
        """
        runs = [run for group in self.groups for run in group.runs]
        groups = [group.name for group in self.groups for _ in group.runs] if len(runs) > len(self.groups) else None
        parted = dict.fromkeys(one.metric for found in self.divergences.values() for one in found[:3])
        chosen = names or parted or ("reward", "kl", "entropy")
        return import_module("rldk.plots").plot(runs, *chosen, group_by=groups, **options)

    def __repr__(self) -> str:
        return "\n".join([f"<Comparison of {counted(len(self.groups), 'group')}>", *self.sentences()])

    def _repr_html_(self) -> str:
        return str(import_module("rldk.present.comparison").comparison_html(self))


def compare_results(results: Sequence[Result], by: str | None = None) -> Comparison:
    """Compare runs with the first of them; with `by` (`config.lr`), groups of runs that share that setting.

    Runs of one name are named apart, as they are where they are read together.
    """
    names = distinct_names([result.run for result in results])
    groups = group_by(results, by) if by else [Group(name, (result,)) for name, result in zip(names, results, strict=True)]
    if len(groups) < 2:
        what, got = (f"two values of {by}", "value") if by else ("two runs", "run")
        raise UsageError(f"Expected at least {what} to compare, got {counted(len(groups), got)}.")
    base = groups[0]
    found = {group.name: divergences(base.results, group.results) for group in groups[1:]}
    unknown = tuple(group.name for group in groups if not any(run.config for run in group.runs))
    return Comparison(tuple(groups), tuple(_differences(groups)), found, unknown)


def group_by(results: Sequence[Result], by: str) -> list[Group]:
    """Runs that share a setting, such as `config.lr`, in the order in which its values appear."""
    found: dict[str, list[Result]] = {}
    for result, name in zip(results, run_groups([result.run for result in results], by), strict=True):
        found.setdefault(name, []).append(result)
    return [Group(key, tuple(members)) for key, members in found.items()]


def _differences(groups: Sequence[Group]) -> list[Setting]:
    """The settings that are not the same in all groups: knobs by their canonical names, others by their own."""
    known = [_settings(group) for group in groups]
    names = dict.fromkeys(name for settings in known for name in settings)
    found = []
    for name in names:
        values = tuple(settings.get(name) for settings in known)
        if any(value != values[0] for value, settings in zip(values, known, strict=True) if settings):
            found.append(Setting(name, values))
    return found


def _settings(group: Group) -> dict[str, Any]:
    """What is known of a group's settings; one that differs between its own runs, such as the seed, shows all values."""
    merged: dict[str, list[Any]] = {}
    for run in group.runs:
        config = run.config
        taken = {config.key_of(knob) for knob in config}
        others = {name: value for name, value in flat_settings(config.raw).items() if name not in taken}
        for name, value in {**{knob: config[knob] for knob in config}, **others}.items():
            if name.rsplit(".", 1)[-1] not in PLACES and not isinstance(value, (list, dict)):
                values = merged.setdefault(name, [])
                if value not in values:
                    values.append(value)
    return {name: values[0] if len(values) == 1 else ", ".join(map(shown_value, values)) for name, values in merged.items()}


def _rounded(values: npt.NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _sure(confidence: float) -> str:
    return "beyond doubt" if confidence > 0.9995 else f"{confidence:.1%} sure"
