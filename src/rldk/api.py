"""What `import rldk` offers: a few functions over the parts that the command line uses too."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rldk.comparison import Comparison, compare_results
from rldk.core.errors import UsageError
from rldk.ingest.paths import PathsLike
from rldk.ingest.read import read_runs
from rldk.judge.config import ScanConfig
from rldk.judge.project_settings import project_settings
from rldk.judge.result import Result
from rldk.judge.results import Results, judge_paths
from rldk.judge.scan import judge_run
from rldk.monitor.live_run import LiveRun
from rldk.monitor.monitor import Monitor
from rldk.monitor.outputs import Output, Terminal
from rldk.present.explain_pages import CausePage, DetectorPage, page_of
from rldk.runs.run import Run, Runs

__all__ = ["attach", "compare", "explain", "load", "scan", "start"]

Settings = ScanConfig | Mapping[str, Any] | str | os.PathLike[str] | None
"""Thresholds, severities and limits: an object, a mapping, or the path of a YAML file."""


def scan(
    source: PathsLike, *, config: Settings = None, adapter_hint: str | None = None, field_map: Mapping[str, str] | None = None
) -> Results:
    """Judge the runs of a file, a folder, a glob or a list of them: the judgement of `rldk scan`.

    Args:
        config: thresholds, severities and limits, as `rldk scan --config` takes them: a YAML file, or the same as a mapping.
        adapter_hint: the adapter to read with; by default chosen by the content.
        field_map: keys of your own and the metrics they stand for, such as `{"my_kl": "kl_mean"}`.

    Examples:
        >>> results = rldk.scan("out/demo")
        >>> results.verdict, results.incidents
        >>> results.plot()
    """
    return judge_paths(source, _settings(config), adapter_hint=adapter_hint, field_map=field_map, lenient=False)


def load(source: PathsLike, *, adapter_hint: str | None = None, field_map: Mapping[str, str] | None = None) -> Runs:
    """Read the runs of a file, a folder, a glob or a list of them, in canonical metrics.

    Examples:
        >>> runs = rldk.load("out/demo")
        >>> runs[0].frame()                 # a pandas DataFrame
        >>> runs.plot("kl", "reward")
    """
    return Runs(read_runs(source, adapter_hint=adapter_hint, field_map=field_map).runs)


def start(
    run_id: str | None = None,
    output_dir: str | os.PathLike[str] | None = "./rldk_logs",
    *,
    run_config: Mapping[str, Any] | None = None,
    config: Settings = None,
    limits: Mapping[str, Any] | None = None,
    stop_on: str | None = None,
    resume_step: int | None = None,
    quiet: bool = False,
    **options: Any,
) -> LiveRun:
    """Watch a training loop of your own: alerts appear on stderr as they are raised, and the files of the run in `output_dir`.

    Args:
        run_id: the name of the run; by default made from the time.
        output_dir: where the event log, the metrics, the alerts and the final report go; `None` writes no files.
        run_config: what the training was started with, such as `vars(args)`; advice and comparison use it.
        config: thresholds, severities and limits of the detectors, as `scan` takes them.
        limits: hard limits by metric, such as `{"kl_mean": 0.2}`.
        stop_on: `critical` or `warning`: `log` then returns the decision to stop once it is taken.
        resume_step: the step of the checkpoint that the run resumes from.
        quiet: print nothing.
        options: further options of `rldk.monitor.Monitor`.

    Examples:
        >>> with rldk.start("my_run") as run:
        ...     for step in range(steps):
        ...         run.log(step, kl=0.02, reward=0.7, entropy=1.3)
    """
    actions: list[Output] = [*options.pop("actions", ()), *(() if quiet else (Terminal(),))]
    monitor = Monitor(
        output_dir, run_id, config=_settings(config), limits=limits, run_config=run_config, stop_on=stop_on,
        resume_step=resume_step, actions=actions, **options,
    )  # fmt: skip
    return LiveRun(monitor)


def attach(trainer: Any, **options: Any) -> Any:
    """Watch a trainer: one of TRL or transformers gets a callback, which takes these options and is returned.

    The name of a tracker or a framework (`"wandb"`, `"mlflow"`, `"tensorboard"`, `"trackio"`, `"verl"` …) watches everything that
    is logged through it in this process, and returns the attachment, whose `detach()` restores everything.

    Examples:
        >>> rldk.attach(trainer, output_dir="./rldk_logs", run_id="my_run")
        >>> trainer.train()
        >>> rldk.attach("wandb", output_dir="./rldk_logs")
        >>> wandb.log({"reward": 0.5, "kl": 0.01}, step=1)
    """
    if isinstance(trainer, str):
        from rldk.integrations.attach import attach as attach_by_name

        return attach_by_name(trainer, **options)
    if not hasattr(trainer, "add_callback"):
        raise UsageError(
            f"Expected a trainer of TRL or transformers, got {type(trainer).__name__}. "
            "In a loop of your own, use rldk.start(...) and run.log(step, ...)."
        )
    from rldk.integrations.trl.callbacks import RLDKCallback

    callback = RLDKCallback(**options)
    trainer.add_callback(callback)
    return callback


def compare(*sources: Any, by: str | None = None, config: Settings = None) -> Comparison:
    """Compare runs with the first of them: settings, where they part ways, and where each ended.

    Args:
        sources: paths, or runs and results that were read before; a folder may hold several runs.
        by: compare groups of runs that share this setting, such as `config.lr`.

    Examples:
        >>> rldk.compare("out/seed_1.jsonl", "out/seed_2.jsonl")
        >>> rldk.compare("sweep/", by="config.lr").plot("reward")
    """
    return compare_results(_results(sources, config), by)


def _results(source: Any, config: Settings) -> Sequence[Result]:
    """The results of a path, of runs, of what was judged before, or of several of these."""
    if isinstance(source, Result):
        return [source]
    if isinstance(source, Run):
        return [judge_run(source, _settings(config))]
    if isinstance(source, Sequence) and not isinstance(source, str):
        return [result for one in source for result in _results(one, config)]
    return scan(source, config=config)


def explain(kind: str) -> DetectorPage | CausePage:
    """The page of a type of anomaly (what it catches, why it matters, when it misfires, what to do), or of a cause.

    Examples:
        >>> rldk.explain("reward_hacking")
        >>> rldk.explain("kl_penalty_too_weak")
    """
    return page_of(kind)


def _settings(config: Settings) -> ScanConfig | None:
    """The settings of a scan from whatever they were given as."""
    if config is None or isinstance(config, ScanConfig):
        return config
    if isinstance(config, Mapping):
        return ScanConfig.from_dict(config)
    path = Path(config)
    return project_settings(path.parent, {}).scan if path.name == "rldk.toml" else ScanConfig.from_yaml(path)
