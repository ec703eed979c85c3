"""What is known about a checkpoint: each parameter, each layer, the whole, its problems, and one row of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import hypot, nan
from pathlib import Path
from typing import Any

from rldk.core.text import counted, few
from rldk.core.verdicts import worst_of
from rldk.storage.places import shown

__all__ = [
    "COLUMNS", "CheckpointReport", "LayerChange", "ParameterChange", "Problem", "layer_of", "layers_of", "ratio", "some_tensors",
    "together",
]  # fmt: skip

_LIVE = (
    "gradient_norm", "weakest_gradient_layer", "weakest_gradient_norm", "strongest_gradient_layer", "strongest_gradient_norm",
    "training_memory_gb", "memory_advice",
)  # fmt: skip
"""The columns that are empty unless a live run has measured them."""

_BLOCK = re.compile(r"^(.*?\b(?:layers|layer|blocks|block|h)\.\d+)\.")
_ADAPTER = re.compile(r"\.(?:lora_(?:[AB]|embedding_[AB]|magnitude_vector))\b.*$")


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """One tensor. Distances and norms are Euclidean; what has nothing to be compared with is NaN."""

    name: str
    layer: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    norm: float
    largest: float
    nonfinite: int
    update: float = nan
    previous_norm: float = nan
    changed: float = nan
    drift: float = nan
    start_norm: float = nan

    @property
    def adapter(self) -> bool:
        """Part of an adapter, or something else that starts at zero: it may grow to any multiple of what it was."""
        return bool(_ADAPTER.search(self.name)) or self.start_norm == 0.0

    @property
    def dead(self) -> bool:
        """Nothing but zeros."""
        return self.count > 0 and self.norm == 0.0 and self.nonfinite == 0


@dataclass(frozen=True, slots=True)
class LayerChange:
    """The tensors of one layer together: ratios are distances in units of the norm before."""

    name: str
    parameters: int
    norm: float
    update_ratio: float
    drift_from_start: float
    norm_change: float
    norm_change_from_start: float
    nonfinite: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a checkpoint; a `critical` one makes it useless."""

    type: str
    severity: str
    message: str
    advice: str
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class CheckpointReport:
    """One checkpoint beside the previous one and the first.

    `update_ratio` is the norm of what changed since the previous one in units of its norm, `drift_from_start` the same
    since the first; `norm_change` is the norm as a multiple of the previous one's, `norm_change_from_start` as a multiple of
    the first one's, and `norm_trend` its relative change in 1000 steps. `live` holds what only a live run knows: gradients
    and memory. `notes` say what is not in the checkpoint, and what else a reader should know.
    """

    path: Path
    step: int | None
    kind: str = "full"
    parameters: int = 0
    norm: float = nan
    norm_change: float = nan
    norm_change_from_start: float = nan
    norm_trend: float = nan
    update_ratio: float = nan
    update_ratio_per_step: float = nan
    drift_from_start: float = nan
    changed_share: float = nan
    largest: float = nan
    nonfinite: int = 0
    dead: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    tensors: list[ParameterChange] = field(default_factory=list)
    layers: list[LayerChange] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    health_score: float = nan
    health_parts: dict[str, float] = field(default_factory=dict)
    size_bytes: int = 0
    seconds: float = nan
    live: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """`healthy`, or the worst severity among the problems."""
        return worst_of(problem.severity for problem in self.problems)

    def most_moved(self, most: int = 5) -> list[LayerChange]:
        """The layers with the largest update, the largest first; empty where there is nothing to compare with."""
        moved = [layer for layer in self.layers if layer.update_ratio > 0]
        return sorted(moved, key=lambda layer: -layer.update_ratio)[:most]

    def row(self) -> dict[str, Any]:
        """The checkpoint as one row of `R_checkpoint_summary.csv`; what is not known is empty there."""
        top = self.most_moved(1)
        return {
            "checkpoint": self.path.name, "step": self.step, "kind": self.kind, "verdict": self.verdict,
            "health_score": self.health_score, "parameters": self.parameters, "tensors": len(self.tensors), "norm": self.norm,
            "norm_change": self.norm_change, "norm_change_from_start": self.norm_change_from_start,
            "norm_trend": self.norm_trend, "update_ratio": self.update_ratio,
            "update_ratio_per_step": self.update_ratio_per_step, "drift_from_start": self.drift_from_start,
            "changed_share": self.changed_share, "largest_weight": self.largest, "nonfinite_parameters": self.nonfinite,
            "dead_tensors": len(self.dead), "unchanged_tensors": len(self.unchanged), "added_tensors": len(self.added),
            "removed_tensors": len(self.removed), "most_moved_layer": top[0].name if top else "",
            "most_moved_ratio": top[0].update_ratio if top else nan, "size_bytes": self.size_bytes, "seconds": self.seconds,
            **{name: self.live.get(name, nan) for name in _LIVE},
            "problems": "; ".join(problem.type for problem in self.problems),
        }  # fmt: skip

    def to_dict(self, tensors: bool = False) -> dict[str, Any]:
        """The whole report, for JSON; with each tensor if asked."""
        return {
            **self.row(),
            "path": shown(self.path),
            "health_parts": dict(self.health_parts),
            "layers": [asdict(layer) for layer in self.layers],
            "problems": [asdict(problem) for problem in self.problems],
            "dead": list(self.dead), "unchanged": list(self.unchanged), "added": list(self.added), "removed": list(self.removed),
            "notes": list(self.notes),
            **({"parameters_by_name": [asdict(tensor) for tensor in self.tensors]} if tensors else {}),
        }  # fmt: skip


COLUMNS = tuple(CheckpointReport(Path(), None).row())
"""The columns of `R_checkpoint_summary.csv`."""


def some_tensors(names: tuple[str, ...]) -> str:
    """How many there are, and the first of them: `5 tensors (a, b, c …)`."""
    return f"{counted(len(names), 'tensor')} ({few(names, 3)})"


def layer_of(name: str) -> str:
    """The layer that a tensor belongs to: its block (`model.layers.3`), or the module that holds it."""
    block = _BLOCK.match(name)
    if block:
        return block.group(1).removeprefix("base_model.model.")
    module = _ADAPTER.sub("", name).removeprefix("base_model.model.")
    return module.rpartition(".")[0] if module.rpartition(".")[2] in ("weight", "bias") else module


def layers_of(tensors: Iterable[ParameterChange]) -> list[LayerChange]:
    """Tensors by layer, in the order in which the layers come."""
    grouped: dict[str, list[ParameterChange]] = {}
    for tensor in tensors:
        grouped.setdefault(tensor.layer, []).append(tensor)
    return [together(name, own) for name, own in grouped.items()]


def together(name: str, own: list[ParameterChange]) -> LayerChange:
    """What is known of several tensors as one."""
    before = [tensor for tensor in own if tensor.update == tensor.update]
    first = [tensor for tensor in own if tensor.drift == tensor.drift]
    return LayerChange(
        name,
        sum(tensor.count for tensor in own),
        hypot(*(tensor.norm for tensor in own)),
        ratio([tensor.update for tensor in before], [tensor.previous_norm for tensor in before]),
        ratio([tensor.drift for tensor in first], [tensor.start_norm for tensor in first]),
        ratio([tensor.norm for tensor in before], [tensor.previous_norm for tensor in before]),
        ratio([tensor.norm for tensor in first], [tensor.start_norm for tensor in first]),
        sum(tensor.nonfinite for tensor in own),
    )


def ratio(distances: list[float], norms: list[float]) -> float:
    """A distance over several tensors in units of their norm; NaN where there are none, or nothing but zeros."""
    norm = hypot(*norms) if norms else 0.0
    return hypot(*distances) / norm if norm > 0 else nan
