"""The tests of trainers share a tiny world that lies beside them; the scripts of other environments import it too."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """TRL's PPO collects garbage several times per update: with all modules loaded, that takes longer than the training."""
    if importlib.util.find_spec("trl") is not None:
        import trl_tiny

        from rldk.integrations.trl.ppo_trainer import find_ppo

        find_ppo()
        trl_tiny.settle()
