"""Runs of a tracker's server, fetched by its own client and written as a log: `wandb://entity/project/run`, `mlflow://run`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rldk.core.errors import ReadError, UsageError, require
from rldk.core.files import replacing, strict, write_json
from rldk.core.jsonio import dumps
from rldk.core.text import first_line
from rldk.storage.places import local_path

__all__ = ["fetch_mlflow", "fetch_wandb"]

_PAGE = 1000  # runs that an MLflow server is asked for at a time


def fetch_wandb(url: str) -> Path:
    """All rows and the configuration of a W&B run, or of all runs of a project; credentials as `wandb login` left them."""
    parts = url.split("://", 1)[1].strip("/").split("/")
    if len(parts) not in (2, 3):
        raise UsageError(f"Expected wandb://entity/project or wandb://entity/project/run, got {url}.")
    wandb = require("wandb", extra="trackers", purpose="wandb://")
    try:
        api = wandb.Api()
        runs = [api.run("/".join(parts))] if len(parts) == 3 else list(api.runs("/".join(parts)))
        for run in runs:
            folder = local_path(f"wandb://{parts[0]}/{parts[1]}/{run.id}")
            _write(folder, ({"run_id": run.name or run.id, **row} for row in run.scan_history()), dict(run.config))
    except (OSError, ValueError, wandb.errors.Error) as error:
        raise ReadError(f"{url} cannot be read: {first_line(error)}.") from error
    if not runs:
        raise ReadError(f"{url} holds no run.")
    return local_path(url)


def fetch_mlflow(url: str) -> Path:
    """All metrics and parameters of an MLflow run, or of all runs of an experiment; the server is `MLFLOW_TRACKING_URI`."""
    name = url.split("://", 1)[1].strip("/")
    tracking = require("mlflow.tracking", extra="trackers", purpose="mlflow://")
    errors = require("mlflow.exceptions", extra="trackers", purpose="mlflow://")
    try:
        client = tracking.MlflowClient(os.environ.get("MLFLOW_TRACKING_URI"))  # not what the process has set for itself
        experiment = client.get_experiment_by_name(name)
        runs = [client.get_run(name)] if experiment is None else list(_mlflow_runs(client, experiment.experiment_id))
        base = local_path(f"mlflow://{name}")
        for run in runs:
            _write(base / run.info.run_id, _mlflow_rows(client, run), dict(run.data.params))
    except errors.MlflowException as error:
        raise ReadError(f"{url} cannot be read: {first_line(error)}.") from error
    if not runs:
        raise ReadError(f"{url} holds no run.")
    return base


def _mlflow_runs(client: Any, experiment: str) -> Iterable[Any]:
    """All runs of an experiment: the server gives them page by page."""
    token = None
    while True:
        page = client.search_runs([experiment], max_results=_PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _mlflow_rows(client: Any, run: Any) -> Iterable[Mapping[str, Any]]:
    """The metrics of a run by step."""
    rows: dict[int, dict[str, Any]] = {}
    for key in run.data.metrics:
        for point in client.get_metric_history(run.info.run_id, key):
            row = rows.setdefault(point.step, {"step": point.step, "run_id": run.info.run_name or run.info.run_id})
            row[key] = point.value
            row["_timestamp"] = point.timestamp / 1000
    return (rows[step] for step in sorted(rows))


def _write(folder: Path, rows: Iterable[Mapping[str, Any]], config: Mapping[str, Any]) -> None:
    with replacing(folder / "history.jsonl") as part, part.open("wb") as file:
        for row in rows:
            file.write(dumps(strict(row)) + b"\n")
    write_json(folder / "config.json", config)
