"""docs/checkpoints.md is true: its snippet runs, and it names every column, problem and part of the score."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rldk.checkpoints import find_checkpoints, scan_checkpoints
from rldk.checkpoints.report import COLUMNS
from rldk.testing.checkpoints import write_course

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/checkpoints.md").read_text()
NAMED = set(re.findall(r"`(\w+)`", PAGE))


def test_the_snippet_runs(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-W", "error", "-c", snippet], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "10 healthy nan []" and (tmp_path / "out/my_run_checkpoint_summary.csv").is_file()


def test_every_measure_problem_and_part_of_the_score_is_named(tmp_path: Path) -> None:
    said_elsewhere = {"checkpoint", "step", "kind", "verdict", "health_score", "parameters", "tensors", "size_bytes", "seconds"}
    assert set(COLUMNS) - said_elsewhere - {"problems"} <= NAMED
    source = "".join((ROOT / f"src/rldk/checkpoints/{name}.py").read_text() for name in ("judge", "compare"))
    kinds = set(re.findall(r'Problem\("(\w+)"', source)) | set(re.findall(r'^        \("(\w+)", ', source, re.MULTILINE))
    assert len(kinds) == 12 and kinds <= NAMED
    write_course(tmp_path, 2)
    assert set(list(scan_checkpoints(find_checkpoints(tmp_path)))[1].health_parts) <= NAMED


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    from rldk.checkpoints import judge

    assert f"more than {judge.JUMP:.0f} times the median of the earlier ones (at least {judge.EARLIER})" in PAGE
    assert f"more than {judge.GROWTH:.0f} times its first" in PAGE and f"matrices of {judge.SMALL} numbers or more" in PAGE
