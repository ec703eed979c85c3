"""Compares two or three checkpoints: what changed, and remarks on what the latest one does not contain."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from math import nan
from pathlib import Path
from time import perf_counter
from typing import Any

from rldk.checkpoints.checkpoint import Checkpoint
from rldk.checkpoints.measure import Meter
from rldk.checkpoints.report import CheckpointReport, ParameterChange, Problem, layer_of, layers_of, some_tensors, together
from rldk.checkpoints.safetensors_file import size_of
from rldk.core.text import counted

__all__ = ["OnBytes", "describe", "notes_on"]

OnBytes = Callable[[int], None]
"""Called with the bytes of each tensor when it has been measured."""


def describe(
    current: Checkpoint, previous: Checkpoint | None, start: Checkpoint | None, meter: Meter, on_bytes: OnBytes | None = None
) -> CheckpointReport:
    """Compare every tensor of a checkpoint with the previous one and the first."""
    began = perf_counter()
    report = CheckpointReport(current.path, current.step, "adapter" if current.adapter else "full")
    report.notes = notes_on(current)
    report.size_bytes = current.size_bytes
    reshaped, retyped = [], 0
    for name in current:
        entry = current.entry(name)
        if not current.measured(name):
            continue
        sources = {id(source): source for source in (previous, start) if source is not None and _has(source, name)}
        reshaped += [name for source in sources.values() if source.entry(name).shape != entry.shape][:1]
        retyped += any(source.entry(name).dtype != entry.dtype for source in sources.values())
        alike = [source for source in sources.values() if source.entry(name).shape == entry.shape]
        report.tensors.append(_parameter(name, current, alike, previous, start, meter))
        if on_bytes is not None:
            on_bytes(size_of(entry) * (1 + len(alike)))
    _sum_up(report)
    _come_and_gone(report, current, previous, reshaped)
    if retyped:
        report.notes.append(f"Another type than before: {counted(retyped, 'tensor')}. The rounding counts as a difference.")
    report.seconds = perf_counter() - began
    return report


def _has(source: Checkpoint, name: str) -> bool:
    return name in source and source.measured(name)


def _parameter(
    name: str, current: Checkpoint, alike: list[Checkpoint], previous: Checkpoint | None, start: Checkpoint | None, meter: Meter
) -> ParameterChange:
    found = meter.measure(name, current, alike)
    beside = {id(source): own for source, own in zip(alike, found.beside, strict=True)}
    last, first = beside.get(id(previous)), beside.get(id(start))
    entry = current.entry(name)
    return ParameterChange(
        name,
        layer_of(name),
        entry.dtype,
        entry.shape,
        found.count,
        found.norm,
        found.largest,
        found.nonfinite,
        *((last.distance, last.norm, last.changed) if last else (nan, nan, nan)),
        *((first.distance, first.norm) if first else (nan, nan)),
    )


def _sum_up(report: CheckpointReport) -> None:
    tensors = report.tensors
    report.layers = layers_of(tensors)
    whole = together("", tensors)
    report.parameters, report.nonfinite = whole.parameters, whole.nonfinite
    report.norm = whole.norm if tensors else nan
    report.largest = max((tensor.largest for tensor in tensors), default=nan)
    report.update_ratio, report.drift_from_start = whole.update_ratio, whole.drift_from_start
    report.norm_change, report.norm_change_from_start = whole.norm_change, whole.norm_change_from_start
    before = [tensor for tensor in tensors if tensor.update == tensor.update]
    compared = sum(tensor.count for tensor in before)
    if compared:
        report.changed_share = sum(tensor.changed * tensor.count for tensor in before) / compared
    report.dead = tuple(tensor.name for tensor in tensors if tensor.dead)
    report.unchanged = tuple(tensor.name for tensor in before if tensor.count and tensor.changed == 0.0)


def _come_and_gone(report: CheckpointReport, current: Checkpoint, previous: Checkpoint | None, reshaped: list[str]) -> None:
    """Tensors that are new or have disappeared since the previous checkpoint; those of a lost shard count as neither."""
    for damage in current.damage:
        advice = "Do not load it. Copy the file again from where it was saved, or go back to the previous checkpoint."
        report.problems.append(Problem("damaged_checkpoint", "critical", damage, advice, tuple(sorted(current.lost))))
    if previous is None:
        return
    report.added = tuple(name for name in current if name not in previous and name not in previous.lost)
    report.removed = tuple(name for name in previous if name not in current and name not in current.lost)
    advice = "Compare checkpoints of one run only; within one, look at what rewrites the model while it is saved."
    for kind, names, what in (
        ("tensors_added", report.added, "Not in the previous checkpoint"),
        ("tensors_removed", report.removed, "Gone since the previous checkpoint"),
        ("shape_changed", tuple(reshaped), "Another shape than before, so not compared"),
    ):
        if names:
            report.problems.append(Problem(kind, "warning", f"{what}: {some_tensors(names)}.", advice, names))


def unreadable(path: Path, step: int | None, reason: str) -> CheckpointReport:
    """The report of a checkpoint that cannot be read."""
    report = CheckpointReport(path, step, "unreadable")
    advice = "Go back to the previous checkpoint; check the free disk space and whether another process writes to the folder."
    report.problems.append(Problem("unreadable_checkpoint", "critical", reason, advice))
    return report


_OPTIMIZER = ("optimizer*", "global_step*/*optim_states.pt")  # of the Hugging Face trainer, of DeepSpeed
_VALUE = ("value_model.", "v_head.", "value_head.", "critic.", "score.")
_MAX_BYTES = 64 << 20  # of a trainer_state.json; a larger one is not worth the memory


def notes_on(checkpoint: Checkpoint) -> list[str]:
    """Notes on what is missing from a checkpoint and what is not measured."""
    notes = []
    if checkpoint.adapter:
        rank = _settings(checkpoint.path, "adapter_config.json").get("r")
        size = f" of rank {rank}" if isinstance(rank, int) else ""
        notes.append(f"Only an adapter{size} is in the checkpoint; the weights it is added to are not.")
    if checkpoint.path.is_dir():
        if _was_ppo(checkpoint.path) and not any(part in name for name in checkpoint for part in _VALUE):
            notes.append(
                "The value model is not in the checkpoint: TRL's PPO saves the policy only, so the value function can neither "
                "be compared here nor be resumed."
            )
        saved = any(path for pattern in _OPTIMIZER for path in checkpoint.path.glob(pattern))
        if not saved and (checkpoint.path / "trainer_state.json").is_file():
            notes.append("The state of the optimizer is not in the checkpoint: training cannot resume exactly from here.")
    passed = sorted({checkpoint.entry(name).dtype for name in checkpoint if not checkpoint.measured(name)})
    if passed:
        count = sum(not checkpoint.measured(name) for name in checkpoint)
        notes.append(f"Not measured, since they hold no floating-point numbers: {count} of the tensors ({', '.join(passed)}).")
    return notes


def _was_ppo(folder: Path) -> bool:
    rows = _settings(folder, "trainer_state.json").get("log_history")
    latest = [row for row in rows[-5:] if isinstance(row, dict)] if isinstance(rows, list) else []
    return any(key in row for row in latest for key in ("objective/kl", "loss/value_avg", "val/ratio"))


def _settings(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object beside the weights; empty if it is missing or cannot be read."""
    path = (folder if folder.is_dir() else folder.parent) / name
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= _MAX_BYTES:
            found = json.loads(path.read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else {}
    return {}
