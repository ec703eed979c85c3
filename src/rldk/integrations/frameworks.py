"""The loggers of RL frameworks, to which `rldk.attach` attaches: the methods that take rows, and what a call of each logs.

NeMo-RL and prime-rl are not on PyPI: they are tested against their documented interface (0.6 and 0.8), not against the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from rldk.integrations.hooks import Hook, Row, Target, logged

__all__ = ["FRAMEWORKS"]


def _areal(call: Mapping[str, Any]) -> Iterator[Row]:
    """`commit` is given one row or several; AReaL counts them up to the step that was committed last."""
    data = [call["data"]] if isinstance(call["data"], Mapping) else list(call["data"])
    last = getattr(call["self"], "_last_commit_step", call["global_step"] + len(data) - 1)
    for number, row in enumerate(data):
        yield {key: value for key, value in row.items() if not key.endswith("__count")}, last - len(data) + 1 + number


def _art(call: Mapping[str, Any]) -> Iterator[Row]:
    """Keys as ART writes them: those that name neither a section nor a split get the split as a prefix."""
    model = import_module("art.model")
    named = {*model.METRIC_SECTIONS, *model.METRIC_SPLITS}
    own = f"{call['split']}/"
    row = {key if "/" in key and key.split("/")[0] in named else own + key: value for key, value in call["metrics"].items()}
    yield row, call["step"]


def _nemo_rl(call: Mapping[str, Any]) -> Iterator[Row]:
    """`log_metrics` is called several times per step, each with a prefix."""
    prefix = f"{call['prefix']}/" if call.get("prefix") else ""
    metrics, axis = call["metrics"], call.get("step_metric")
    step = metrics[axis] if axis and axis in metrics else call["step"]
    yield {f"{prefix}{key}": value for key, value in metrics.items() if key != axis}, step


def _openrlhf_eval(call: Mapping[str, Any]) -> Iterator[Row]:
    yield {f"eval/{key}": value for key, value in call["logs_dict"].items()}, call["global_step"]


def _openrlhf(logger: str) -> list[Hook]:
    place = "openrlhf.utils.logging_utils"
    return [
        Hook(place, f"{logger}.log_train", logged("logs_dict", "global_step")),
        Hook(place, f"{logger}.log_eval", _openrlhf_eval),
        Hook(place, f"{logger}.close", ends=True),
    ]


def _prime_rl(call: Mapping[str, Any]) -> Iterator[Row]:
    """Metrics but not episodes. Rows without a step are sampled by time and belong to no step of the training."""
    if isinstance(call["data"], Mapping) and call["step"] is not None:
        yield call["data"], call["step"]


def _tracking(place: str) -> list[Hook]:
    """The `Tracking` of verl, and of SkyRL, which has taken it over."""
    return [Hook(place, "Tracking.log", logged("data", "step")), Hook(place, "Tracking.finish", ends=True)]


FRAMEWORKS: dict[str, Target] = {
    "verl": Target("verl", "verl", _tracking("verl.utils.tracking"), framework="verl", whole_rows=True),
    "skyrl": Target("skyrl", "skyrl", _tracking("skyrl.train.utils.tracking"), framework="skyrl"),
    "openrlhf": Target(  # it logs through one of the two, or both, each of which is then a run of its own
        "openrlhf", "openrlhf", [*_openrlhf("WandbLogger"), *_openrlhf("TensorboardLogger")], framework="openrlhf",
    ),
    "areal": Target(
        "areal", "areal",
        [
            Hook("areal.utils.stats_logger", "StatsLogger.commit", _areal),
            Hook("areal.utils.stats_logger", "StatsLogger.close", ends=True),
        ],
        framework="areal",
    ),
    "tinker": Target(
        "tinker_cookbook", "tinker-cookbook",
        [
            Hook("tinker_cookbook.utils.ml_log", "MultiplexLogger.log_metrics", logged("metrics", "step")),
            Hook("tinker_cookbook.utils.ml_log", "MultiplexLogger.close", ends=True),
        ],
        framework="tinker",
    ),
    "art": Target(
        "art", "openpipe-art", [Hook("art.model", "Model._log_metrics", _art, lambda model: model.name)], framework="art",
    ),
    "nemo_rl": Target(
        "nemo_rl", "git+https://github.com/NVIDIA-NeMo/RL", [Hook("nemo_rl.utils.logger", "Logger.log_metrics", _nemo_rl)],
        framework="nemo_rl",
    ),
    "prime_rl": Target(
        "prime_rl", "git+https://github.com/PrimeIntellect-ai/prime-rl",
        [Hook("prime_rl.monitors.base", "Monitor.log", _prime_rl), Hook("prime_rl.monitors.base", "Monitor.finalize", ends=True)],
        framework="prime_rl",
    ),
}  # fmt: skip
