"""The judgement of a finished run, by the very judge that a live monitor has."""

from __future__ import annotations

from dataclasses import replace

from rldk.core.errors import UsageError
from rldk.judge.config import ScanConfig
from rldk.judge.result import Result, result_of
from rldk.runs.run import Run

__all__ = ["judge_run"]


def judge_run(run: Run, config: ScanConfig | None = None) -> Result:
    """Judge a run from its first event to its last.

    Limits and targets that a live monitor was told, and wrote into the log, hold here too, unless `config` sets its own.
    """
    judge = _with_told(config or ScanConfig(), run).judge(run.coverage.reductions)
    for event in run.events():
        judge.take(event)
    return result_of(judge, run)


def _with_told(config: ScanConfig, run: Run) -> ScanConfig:
    """The settings of a scan, filled with what the live run was told."""
    settings = run.config.scan_settings()
    if not settings:
        return config
    try:
        told = ScanConfig.from_dict(settings)
    except UsageError as error:
        run.notes.append(f"The limits in the log cannot be used: {error}")
        return config
    return replace(
        config,
        detectors={**told.detectors, **config.detectors},
        limits={**told.limits, **config.limits},
        kl_target=told.kl_target if config.kl_target is None else config.kl_target,
        kl_target_tolerance=told.kl_target_tolerance if config.kl_target_tolerance is None else config.kl_target_tolerance,
        sensitivity=config.sensitivity or told.sensitivity,
    )
