"""The view of checkpoints: those with problems first, and what each column means."""

from __future__ import annotations

import streamlit as st

from rldk.core.jsonio import to_number
from rldk.core.text import counted, in_words
from rldk.dashboard.page.html import note, table
from rldk.dashboard.page.panels import RunView, panels_for
from rldk.dashboard.page.plots import draw_plots
from rldk.present.checkpoints import NAMES, SHOWN, checkpoint_panel, shown_cell
from rldk.present.plots.build import finish
from rldk.present.verdicts import VERDICTS

__all__ = ["PROBLEMS", "draw_checkpoints", "ordered"]

_UNITS = {"size_bytes": "size, bytes", "seconds": "measured in, s", "training_memory_gb": "training memory, GB"}
_MEANINGS = {
    "health_score": "1 is healthy, 0 is useless",
    "update_ratio": "norm of the change since the previous checkpoint, as a share of the norm before",
    "update_ratio_per_step": "the same per step",
    "drift_from_start": "norm of the change since the first checkpoint, as a share of its norm",
    "norm": "Euclidean norm of all weights",
    "norm_change": "the norm as a multiple of that of the previous checkpoint",
    "norm_change_from_start": "the norm as a multiple of that of the first checkpoint",
    "norm_trend": "relative change of the norm in 1000 steps",
    "changed_share": "share of the numbers whose bits changed; a low share in BF16 means that updates were lost to rounding",
    "largest_weight": "largest absolute value",
    "nonfinite_parameters": "numbers that are NaN or infinite; one is enough to make the model useless",
    "dead_tensors": "tensors of zeros only, such as the second half of a new LoRA",
    "unchanged_tensors": "tensors without a single change since the previous checkpoint",
    "most_moved_layer": "the layer with the largest update",
    "most_moved_ratio": "its update, as a share of its norm",
    "gradient_norm": "before the last optimizer step",
    "training_memory_gb": "weights, gradients and optimizer state",
}

PROBLEMS = {
    "nonfinite_weights": "A weight is NaN or infinite. Go back to an earlier one, lower the learning rate, clip gradients.",
    "layers_died": "A tensor that was not zero is now all zeros. Go back to an earlier checkpoint.",
    "unreadable_checkpoint": "It is truncated, not a safetensors file, or deleted. Do not resume from it.",
    "damaged_checkpoint": "A shard is missing or truncated. Do not resume from it.",
    "weights_unchanged": "No weight has changed. Check whether the optimizer steps, and whether a model was saved twice.",
    "layers_stopped": "Tensors that used to move have not. Check whether they get a gradient.",
    "update_jump": "The weights moved more than ten times as fast as before. Check the learning rate and the gradients.",
    "weights_torn": "The weights moved by more than 30 % of their norm. Go back, and lower the learning rate or add a warm-up.",
    "norm_explosion": "The norm of a matrix is more than five times its first. Lower the learning rate, or decay the weights.",
    "tensors_added": "The checkpoints are of different models.",
    "tensors_removed": "The checkpoints are of different models.",
    "shape_changed": "The checkpoints are of different models.",
}
"""What each problem of a checkpoint means."""


def draw_checkpoints(view: RunView) -> None:
    """The table of checkpoints beside the log, and how far the weights moved."""
    found = view.client.ask("checkpoints", key=view.key)
    rows: list[dict[str, str]] = found.get("rows") or []
    if not rows:
        note(
            found.get("problem")
            or "No checkpoint has been checked. CheckpointMonitor, ComprehensivePPOMonitor and `rldk checkpoints` write a table "
            "of them beside the log."
        )
        return
    bad = [row for row in rows if row.get("verdict", "healthy") != "healthy"]
    told = f"{counted(len(bad), 'checkpoint')} with problems, first" if bad else "no problem was found in them"
    st.caption(f"{counted(len(rows), 'checkpoint')}; {told}; the latest before the earlier ones")
    if seen := [[in_words(kind), PROBLEMS[kind]] for kind in PROBLEMS if any(kind in row.get("problems", "") for row in bad)]:
        table("Problems", ["problem", "what it means, and what to do"], seen)
    _draw_table(ordered(rows))
    source = view.runs()[0]
    moved = checkpoint_panel(rows, source)
    if moved is not None:
        finish([moved], source, view.marks())
    draw_plots(view, [*([moved] if moved else []), *panels_for(view, only=("reward", "losses"))], "checkpoints")


def ordered(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Those with problems first, by severity; of one severity the latest first."""

    def severity(row: dict[str, str]) -> int:
        verdict = row.get("verdict", "")
        return VERDICTS.index(verdict) if verdict in VERDICTS else 1  # a word of somebody's own is no reason to be calm

    latest_first = rows[::-1]
    return sorted(latest_first, key=severity)


def _draw_table(rows: list[dict[str, str]]) -> None:
    columns = list(rows[0])
    names = [name for name in SHOWN if name in columns] + [name for name in columns if name not in SHOWN]
    if "problems" in names:  # what is wrong is not to be searched for at the far end
        names.remove("problems")
        names.insert(3, "problems")
    names = [name for name in names if any(row[name] for row in rows)]
    numeric = [place for place, name in enumerate(names) if name not in NAMES and all(_is_number(row[name]) for row in rows)]
    headings = {name: SHOWN.get(name) or _UNITS.get(name) or in_words(name) for name in names}
    cells = [[shown_cell(name, row[name]) for name in names] for row in rows]
    table("Checkpoints", list(headings.values()), cells, numbers=numeric)
    if explained := [[heading, _MEANINGS[name]] for name, heading in headings.items() if name in _MEANINGS]:
        with st.expander("What the columns mean"):
            table("What the columns mean", ["column", "meaning"], explained)


def _is_number(cell: str) -> bool:
    return not cell or to_number(cell) is not None
