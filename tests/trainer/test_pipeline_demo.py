"""The demo asks the stages for what they have, and breaks the second of its two runs only."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[tuple[str, list[str]]]]:
    """The demo's module in an empty folder, and what it would start."""
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("first_look", ROOT / "examples/first_look.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    started: list[tuple[str, list[str]]] = []

    def note(script: str, flags: str) -> None:
        started.append((script, flags.split()))
        if "--run_id" in flags:
            (module.WORLD / f"{started[-1][1][started[-1][1].index('--run_id') + 1]}_events.jsonl").write_text("{}\n")

    monkeypatch.setattr(module, "train", note)
    module.OUT.mkdir(parents=True)
    return module, started


def test_the_demo_prepares_once_and_trains_two_runs_of_which_one_is_broken(demo: Any) -> None:
    module, started = demo
    assert [path.name for path in module.record(steps=5)] == ["healthy_events.jsonl", "broken_events.jsonl"]
    assert [script for script, _ in started] == [
        "generate_corpus.py", "train_tokenizer.py", "train_full_sft.py", "train_ppo.py", "train_ppo.py"
    ]  # fmt: skip
    good, bad = started[3][1], started[4][1]
    assert "--inject" not in good and bad[bad.index("--inject") + 1] == module.FAULT
    assert [word for word in good if word not in ("healthy",)] == [word for word in bad[:-2] if word not in ("broken",)]


def test_the_flags_of_the_demo_are_those_of_the_stages(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parsed(Exception):
        pass

    def stop(args: object, *_: object, **__: object) -> None:
        raise Parsed

    module, started = demo
    module.record(steps=5)
    for script, flags in started[2:]:
        stage = importlib.import_module(script.removesuffix(".py"))
        monkeypatch.setattr(stage, "make_accelerator", stop)
        with pytest.raises(Parsed):
            stage.main(flags)
        for flag in ("--data_config", "--model_config"):
            assert flag not in flags or Path(flags[flags.index(flag) + 1]).is_file()
