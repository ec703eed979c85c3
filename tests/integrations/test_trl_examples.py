"""The examples run offline, and print what they promise."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")

FOLDER = Path(__file__).parents[2] / "examples" / "trl_integration"
PROMISED = {
    "basic_ppo_integration": "metrics, of which TRL logs 19",
    "advanced_monitoring": "rldk stopped the run at step",
    "custom_callbacks": '"budget_used":1.0',
    "grpo_monitoring": "groups without spread",
}


@pytest.mark.parametrize("name", PROMISED)
def test_an_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path / "out")])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert PROMISED[name] in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # nothing is left elsewhere


def test_every_example_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*PROMISED, "tiny_world"}
