"""The tests of trainers share a tiny world that lies beside them; the scripts of other environments import it too."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


ELSEWHERE = ("test_attach", "test_framework_pages", "test_frameworks", "test_trl_processes", "test_trl_versions")
"""Files that do not train in this process."""


@pytest.fixture(scope="module", autouse=True)
def settled(request: pytest.FixtureRequest) -> None:
    """TRL's PPO collects garbage several times per update: with all modules loaded, that takes longer than the training."""
    if request.path.stem not in ELSEWHERE and importlib.util.find_spec("trl") is not None:
        import trl_tiny

        from rldk.integrations.trl.ppo_trainer import find_ppo

        find_ppo()
        trl_tiny.settle()
