"""Of several files, one at which an error is raised that nobody expected is listed; the others are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rldk
from rldk.core.errors import ReadError
from rldk.testing.streams import healthy


def logs(folder: Path) -> list[Path]:
    paths = [folder / f"{name}_events.jsonl" for name in "abc"]
    for number, path in enumerate(paths):
        path.write_bytes(b"".join(event.to_json() + b"\n" for event in healthy("ppo", steps=30 + number, seed=number)))
    return paths


def fail_at(where: str, function: Any) -> Any:
    """The function, which fails for one file as a defect of ours would."""

    def failing(given: Any, *rest: Any, **more: Any) -> Any:
        if given.path.name.startswith(where):
            raise TypeError("nobody expected this")
        return function(given, *rest, **more)

    return failing


@pytest.mark.parametrize("done", ["read", "judged"])
def test_one_file_stops_no_other(done: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rldk.ingest import read
    from rldk.judge import results

    paths = logs(tmp_path)
    if done == "read":
        monkeypatch.setattr(read, "read_log", fail_at("b", read.read_log))
    else:
        monkeypatch.setattr(results, "judge_run", fail_at("b", results.judge_run))
    found = rldk.scan(tmp_path)
    assert [result.run.path.name[0] for result in found] == ["a", "c"]
    assert [(path.name[0], reason) for path, reason in found.passed_over] == [
        ("b", f"could not be {done}: unexpected TypeError: nobody expected this.")
    ]
    named = rldk.scan(paths)
    assert [result.run.path for result in named] == [paths[0], paths[2]] and named.unread == [paths[1]]
    with pytest.raises(TypeError):
        rldk.scan(paths[1])


def test_a_named_file_that_is_no_log_is_an_error_still(tmp_path: Path) -> None:
    paths = logs(tmp_path)
    paths[1].write_text("no log\n")
    with pytest.raises(ReadError, match="b_events"):
        rldk.scan(paths)
