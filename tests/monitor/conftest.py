from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.main import main


@pytest.fixture
def scan(capsys: pytest.CaptureFixture[str]) -> Any:
    """`rldk scan PATH --json`, as a user runs it: the judgement of the one run in the file."""

    def run(path: Path, *options: str) -> dict[str, Any]:
        capsys.readouterr()
        main(["scan", str(path), "--json", *options])
        found = json.loads(capsys.readouterr().out)["runs"]
        assert len(found) == 1
        return found[0]  # type: ignore[no-any-return]

    return run
