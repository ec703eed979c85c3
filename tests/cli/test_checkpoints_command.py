"""`rldk checkpoints`: what it prints, what it returns, and what it refuses."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldk.cli.main import main
from rldk.testing.checkpoints import moved, write_course

Capture = pytest.CaptureFixture[str]
Q0 = "model.layers.0.self_attn.q_proj.weight"


def spoil(number: int, weights: dict[str, Any]) -> None:
    if number == 6:
        weights.update(moved(weights, 0.05, 99))
    if number >= 8:
        weights[Q0].flat[3] = np.nan


def printed(capsys: Capture, *arguments: str, status: int = 0) -> str:
    assert main(["checkpoints", *arguments]) == status
    out, error = capsys.readouterr()
    assert error == ""
    return out


def test_a_course_that_goes_wrong(tmp_path: Path, capsys: Capture) -> None:
    write_course(tmp_path, 9, spoil)
    said = printed(capsys, str(tmp_path), status=1)
    lines = [line.split() for line in said.splitlines()]
    assert [line[0] for line in lines[1:10]] == ["healthy"] * 5 + ["warning", "healthy", "critical", "critical"]
    assert [line[1] for line in lines[1:10]] == [f"checkpoint-{10 * n}" for n in range(1, 10)]
    assert "warning at checkpoint-60: update jump" in said
    assert said.count("nonfinite weights") == 1 and "critical from checkpoint-80 to checkpoint-90: nonfinite weights" in said
    assert "Go back to checkpoint-70" in said
    assert all(len(line) <= 80 for line in said.splitlines()[:10])
    (layer,) = [line for line in said.splitlines() if line.startswith("model.layers.2 ")]
    assert "█" in layer


def test_json_holds_all_and_is_strict(tmp_path: Path, capsys: Capture) -> None:
    write_course(tmp_path, 9, spoil)
    answer = json.loads(printed(capsys, str(tmp_path), "--json", status=1), parse_constant=lambda text: pytest.fail(text))
    reports = answer["checkpoints"]
    assert [report["step"] for report in reports] == list(range(10, 100, 10))
    assert reports[0]["update_ratio"] is None and reports[1]["update_ratio"] > 0
    assert reports[7]["problems"][0]["names"] == [Q0] and len(reports[7]["layers"]) == 4
    assert "parameters_by_name" not in reports[0]
    full = json.loads(printed(capsys, str(tmp_path), "--json", "--tensors", status=1))["checkpoints"]
    assert len(full[1]["parameters_by_name"]) == 10


def test_two_checkpoints_in_the_order_given(tmp_path: Path, capsys: Capture) -> None:
    first, second, third = map(str, write_course(tmp_path, 3))
    answer = json.loads(printed(capsys, third, first, "--json"))["checkpoints"]
    assert [report["step"] for report in answer] == [30, 10] and answer[1]["update_ratio_per_step"] is None
    assert "healthy" in printed(capsys, second)


def test_the_table_in_a_file(tmp_path: Path, capsys: Capture) -> None:
    write_course(tmp_path / "run", 3)
    printed(capsys, str(tmp_path / "run"), "-o", str(tmp_path / "out.csv"))
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["checkpoint"] for row in csv.DictReader(file)] == ["checkpoint-10", "checkpoint-20", "checkpoint-30"]


def test_how_many_layers_are_shown(tmp_path: Path, capsys: Capture) -> None:
    write_course(tmp_path, 2)
    said = printed(capsys, str(tmp_path), "--layers", "1")
    assert "and 3 layers that moved less" in said and "model.layers.0" not in said.split("and 3 layers")[1]
    assert "moved less" not in printed(capsys, str(tmp_path), "--layers", "0")


def test_a_cut_off_checkpoint_is_one_line_among_others(tmp_path: Path, capsys: Capture) -> None:
    folders = write_course(tmp_path, 3)
    file = folders[2] / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    said = printed(capsys, str(tmp_path), status=1)
    assert "critical at checkpoint-30: unreadable checkpoint" in said and "is cut off: " in said
    printed(capsys, str(tmp_path), "--fail-on", "never")


@pytest.mark.parametrize(("fail_on", "status"), [("warning", 1), ("critical", 0), ("never", 0)])
def test_what_fails(tmp_path: Path, capsys: Capture, fail_on: str, status: int) -> None:
    write_course(tmp_path, 7, lambda n, weights: spoil(n, weights))
    printed(capsys, str(tmp_path), "--fail-on", fail_on, status=status)


def test_notes_are_said_once(tmp_path: Path, capsys: Capture) -> None:
    for folder in write_course(tmp_path, 3):
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": [{"objective/kl": 0.1}]}))
    assert printed(capsys, str(tmp_path)).count("The value model is not in the checkpoint") == 1


def test_names_that_would_take_over_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    (folder,) = write_course(tmp_path, 1)
    folder.rename(tmp_path / "\x1b[31mred-5")
    assert "\x1b" not in printed(capsys, str(tmp_path))


def test_progress_ends_where_it_was_said_to_end(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar counts each checkpoint and what it is compared with; headers of files are all that is left at the end."""
    totals, done = [], []

    @contextmanager
    def bar(total: int) -> Iterator[Any]:
        totals.append(total)
        yield lambda path, read, whole: done.append(read)

    monkeypatch.setattr("rldk.cli.commands.checkpoints.progress_bar", bar)
    write_course(tmp_path, 5)
    printed(capsys, str(tmp_path))
    assert done == sorted(done) and len(done) == 5 * 10
    assert done[-1] == 12 * 18520 * 4 and done[-1] < totals[0] < 1.05 * done[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}/nowhere"], "nowhere does not exist"),
        (["{}"], "holds no checkpoints"),
        (["{}", "-o", "x.xlsx"], "Expected the output to end in .csv"),
        (["{}", "--layers", "-1"], "Expected --layers to be 0 or more"),
        ([], "the following arguments are required: PATH"),
    ],
)
def test_wrong_usage(tmp_path: Path, capsys: Capture, arguments: list[str], said: str) -> None:
    assert main(["checkpoints", *(argument.format(tmp_path) for argument in arguments)]) == 2
    out, error = capsys.readouterr()
    assert out == "" and said in error and error.count("\n") == 1


def test_colours_only_where_they_are_wanted(tmp_path: Path) -> None:
    write_course(tmp_path, 2)
    command = [sys.executable, "-m", "rldk", "checkpoints", str(tmp_path)]
    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    for environment, coloured in (({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)):
        done = subprocess.run(command, capture_output=True, text=True, env={**plain, **environment}, timeout=60, check=True)
        assert ("\x1b[3" in done.stdout) == coloured
    done = subprocess.run(command, capture_output=True, env={**plain, "PYTHONIOENCODING": "ascii"}, timeout=60, check=True)
    done.stdout.decode("ascii")


def test_neither_torch_nor_pandas_is_needed(tmp_path: Path) -> None:
    write_course(tmp_path, 2)
    code = (
        "import sys; from rldk.cli.main import main; status = main(['checkpoints', sys.argv[1], '--json'])\n"
        "assert status == 0 and not {'torch', 'pandas', 'safetensors', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, timeout=60)
