"""A peer from PyPI in an environment of its own under `.venvs`, spoken to over a pipe: one JSON line per run each way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

__all__ = ["PeerUnavailableError", "PipedPeer"]

HERE = Path(__file__).parent
VENVS = HERE.resolve().parents[2] / ".venvs"


class PeerUnavailableError(RuntimeError):
    """A peer cannot be installed or started here."""


def install(name: str, requirement: str) -> Path:
    """The Python of a peer's environment, which is made if it is missing."""
    folder = VENVS / name
    python, done = folder / "bin" / "python", folder / ".installed"
    if done.exists():
        return python
    print(f"setting up {folder.relative_to(VENVS.parent)} (once)", file=sys.stderr)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, text=True, timeout=300)
        subprocess.run(pip, check=True, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        raise PeerUnavailableError(f"{name} cannot be installed: {_last_line(getattr(error, 'stderr', None) or error)}") from None
    done.touch()
    return python


def _last_line(text: object) -> str:
    return (str(text).strip().splitlines() or ["no reason given"])[-1][:160]


class PipedPeer:
    """A child process that judges run after run.

    The child's first line is its package's version. After that it answers each request with one line, `{"answer": …}` or
    `{"error": …}`.
    """

    name: ClassVar[str]
    requirement: ClassVar[str]
    child: ClassVar[str]

    def __init__(self) -> None:
        python = install(self.name, self.requirement)
        command, pipe = [str(python), str(HERE / self.child)], subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self._child.stdout is not None
        hello = self._child.stdout.readline()
        if not hello:
            raise PeerUnavailableError(f"{self.name} cannot be started: {_last_line(self._child.communicate()[1])}")
        self.version = str(json.loads(hello))

    def request(self, **request: Any) -> Any:
        """The child's answer to one request; an error of the peer is raised here."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        reply = self._child.stdout.readline()
        if not reply:
            raise RuntimeError(f"{self.name} has ended without an answer")
        found = json.loads(reply)
        if "error" in found:
            raise RuntimeError(f"{self.name} {self.version}: {found['error']}")
        return found["answer"]

    def close(self) -> None:
        """End the child process."""
        self._child.communicate(timeout=30)
