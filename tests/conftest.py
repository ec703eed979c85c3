"""The order of the tests; a healthy stream, and what strict JSON is, for the tests of the judge and of its front."""

from __future__ import annotations

import gc
import json
import math
import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # for small arrays, starting the threads is most of the work
    os.environ.setdefault(name, "1")

SLOW = ("integrations", "trainer", "dashboard", "testing", "meta", "report")
"""Folders that begin, the slowest first, so that no long file is left when the others are done."""

GROUPS = {
    "trl": re.compile(
        r"test_trl_(?!processes|versions)|test_(2_trl|3_files|6_promises|attach|copies|ppo_benchmark|public_names)\b|test_\w+_same_as_trl"
    ),
    "warm": re.compile(
        r"test_(5_pipeline|frameworks|lora_stages|memory_plan|ppo_(memory|outcomes|resume)|sharded_runs|stage_runs|trl_processes)\b"
        r"|test_warm_processes"
    ),
}
"""Files that one worker gets, which come first. Those of `trl` train with TRL in the process of the tests, or import what it
imports, which takes 10 s; those of `warm` fork their trainings from a process that takes 7 s to start
(tests/trainer/warm_processes.py)."""


def group_of(path: str) -> str | None:
    """The group of a file, by its name."""
    return next((group for group, names in GROUPS.items() if names.match(path.rpartition("/")[2])), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):  # one process: the order of the command line
        return
    places = {name: number for number, name in enumerate((*GROUPS, *SLOW))}
    items.sort(key=lambda item: places.get(group_of(item.path.name) or item.path.parent.name, len(places)))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`, with the files of a group as if they were one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduler(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = super()._split_scope(nodeid)
            return group_of(path) or path

    return Scheduler(config, log)


def pytest_collection_finish() -> None:
    """What is there before the first test, the tests themselves included, need not be looked at for garbage again, and the rest
    less often: a twentieth of the tests' time is saved."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


def _healthy(steps: int, seed: int = 0) -> list[dict[str, float]]:
    """PPO that learns: reward up, KL up to its target, entropy slowly down."""
    rng = random.Random(seed)
    found = []
    for step in range(steps):
        learnt = 1 - math.exp(-step / 150)
        found.append(
            {
                "kl": 0.1 * learnt + abs(rng.gauss(0, 0.01)),
                "kl_coef": 0.2,
                "entropy": 2.0 - 0.5 * learnt + rng.gauss(0, 0.05),
                "reward_mean": learnt + rng.gauss(0, 0.08),
                "reward_std": 0.5 + rng.gauss(0, 0.03),
                "policy_grad_norm": math.exp(rng.gauss(-0.5, 0.3)),
                "value_grad_norm": math.exp(rng.gauss(0.0, 0.3)),
                "advantage_mean": rng.gauss(0, 0.1),
                "advantage_std": math.exp(rng.gauss(0.3, 0.1)),
                "clip_frac": 0.1 + rng.gauss(0, 0.01),
            }
        )
    return found


def _assert_strict(value: Any) -> None:
    """Strict JSON, and nothing but what JSON has."""
    text = json.dumps(value, allow_nan=False)
    assert json.loads(text) == value


@pytest.fixture(scope="session")
def healthy() -> Callable[..., list[dict[str, float]]]:
    """Metrics of a healthy run by the names that `update` takes."""
    return _healthy


@pytest.fixture(scope="session")
def assert_strict() -> Callable[[Any], None]:
    """Fail on what is not strict JSON."""
    return _assert_strict


@pytest.fixture
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paint PNG files with a hundredth of the pixels, for tests of where they lie; tests/present/plots looks at the others."""
    from rldk.present.plots import svg

    monkeypatch.setitem(svg.png.__kwdefaults__, "zoom", 0.2)
