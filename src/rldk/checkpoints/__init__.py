"""What changed between checkpoints, layer by layer, and what is wrong with them.

    with CheckpointHistory() as history:                      # live: after each save
        report = history.add("out/checkpoint-100", step=100)
        add_to_summary("out/my_run_checkpoint_summary.csv", report)

    for report in scan_checkpoints(find_checkpoints("out")):  # offline
        print(report.step, report.verdict, report.update_ratio, report.most_moved(3))

Weights are read with numpy alone, a piece at a time; torch is needed only for `.bin` files.
"""

from __future__ import annotations

from rldk.checkpoints.checkpoint import Found, find_checkpoints
from rldk.checkpoints.history import CheckpointHistory, compare_checkpoints, scan_checkpoints
from rldk.checkpoints.report import CheckpointReport, LayerChange, ParameterChange, Problem
from rldk.checkpoints.summary import add_to_summary, write_summary

__all__ = [
    "CheckpointHistory",
    "CheckpointReport",
    "Found",
    "LayerChange",
    "ParameterChange",
    "Problem",
    "add_to_summary",
    "compare_checkpoints",
    "find_checkpoints",
    "scan_checkpoints",
    "write_summary",
]
