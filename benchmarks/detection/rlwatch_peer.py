"""rlwatch from the registry, in an environment of its own, spoken to over a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rldk.core.event import Event

__all__ = ["RlwatchPeer", "environment"]

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venvs" / "rlwatch"
CHILD = Path(__file__).with_name("rlwatch_child.py")

NAMES = {
    "entropy_mean": "entropy", "kl_mean": "kl_divergence", "reward_mean": "reward_mean", "reward_std": "reward_std",
    "advantage_std": "advantage_std", "loss": "loss", "grad_norm": "grad_norm",
}  # fmt: skip
"""Canonical name -> argument of rlwatch's `log_step`."""


def environment() -> tuple[Path | None, str]:
    """The Python of rlwatch's environment, made now if it is missing; or none, and why."""
    python = VENV / "bin" / "python"
    done = VENV / ".installed"
    if not done.exists():
        print(f"setting up {VENV.relative_to(ROOT)} (once)", file=sys.stderr)
        try:
            subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True, capture_output=True, timeout=300)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "rlwatch"]
            subprocess.run(pip, check=True, capture_output=True, timeout=600)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error).encode()
            return None, f"rlwatch cannot be installed here: {said.decode(errors='replace').strip().splitlines()[-1][:120]}"
        done.touch()
    asked = subprocess.run(
        [str(python), "-c", "import rlwatch; print(rlwatch.__version__)"], capture_output=True, text=True, timeout=120
    )
    if asked.returncode:
        return None, f"rlwatch cannot be imported: {asked.stderr.strip().splitlines()[-1][:120]}"
    return python, f"rlwatch {asked.stdout.strip()}"


def rows_of(events: Sequence[Event]) -> list[Any]:
    """Events as rlwatch's child takes them."""
    return [[event.step, {NAMES[name]: value for name, value in event.metrics.items() if name in NAMES}] for event in events]


class RlwatchPeer:
    """A child process that judges run after run."""

    def __init__(self, python: Path, *arguments: str) -> None:
        self._child = subprocess.Popen(
            [str(python), str(CHILD), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def ask(self, events: Sequence[Event]) -> list[Any]:
        """Its answer to one run."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(rows_of(events)) + "\n")
        self._child.stdin.flush()
        answer: list[Any] = json.loads(self._child.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(timeout=30)
