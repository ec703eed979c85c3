"""What users and other programs see is what it was: terminal, JSON, report, and the files of a live run.

An output that you changed on purpose: `python tests/golden/update.py`, read `git diff tests/golden`, and commit it.
"""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
EXPECTED = sorted(path.name for path in (HERE / "expected").iterdir())
HINT = "If this is what you intended: `python tests/golden/update.py`, read `git diff tests/golden`, and commit it."


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("golden_recording", HERE / "recording.py")
    assert spec is not None and spec.loader is not None
    recording: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recording)
    return recording.record(tmp_path_factory.mktemp("golden"))  # type: ignore[no-any-return]


def test_the_same_outputs(recorded: dict[str, str]) -> None:
    assert sorted(recorded) == EXPECTED, HINT


@pytest.mark.parametrize("name", EXPECTED)
def test_output(name: str, recorded: dict[str, str]) -> None:
    expected = (HERE / "expected" / name).read_text(encoding="utf-8")
    if recorded.get(name, "") != expected:
        old, new = expected.splitlines(), recorded.get(name, "").splitlines()
        difference = "\n".join(list(difflib.unified_diff(old, new, "expected", "now", n=1, lineterm=""))[:60])
        pytest.fail(f"{name} has changed.\n{difference}\n{HINT}", pytrace=False)
