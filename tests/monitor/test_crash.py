"""A training that ends with an exception leaves files that say so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rldk
from rldk.monitor import Monitor
from rldk.monitor.crash import crash_in_words
from rldk.monitor.stopping import Stop, TrainingStopped

LOOP = """
import sys
from rldk.monitor import Monitor
monitor = Monitor(sys.argv[1], run_id="r")
for step in range(20):
    monitor.observe({"step": step, "reward": 0.1 * step, "kl": 0.01})
"""


LOGGER = """
import sys
from rldk.integrations.rows import RowLog
log = RowLog(output_dir=sys.argv[1], run_id="r")
for step in range(20):
    log.log({"reward": 0.1 * step, "kl": 0.01}, step)
"""


def trained(folder: Path, *, then: str, loop: str = LOOP) -> str:
    """What a program prints to stderr that trains and then does this."""
    done = subprocess.run([sys.executable, "-c", f"{loop}\n{then}", str(folder)], capture_output=True, text=True, check=False)
    return done.stderr


def crashes(folder: Path) -> list[tuple[str, str, int, str]]:
    """The crashes that a scan of the log finds; the report of the run must agree."""
    (result,) = rldk.scan(folder / "r_events.jsonl").results
    report = json.loads((folder / "r_final_report.json").read_text())
    assert report["verdict"] == result.verdict
    found = [one for one in result.anomalies if one.type == "training_crashed"]
    assert [one["type"] for one in report["anomalies"]] == [one.type for one in result.anomalies]
    return [(one.severity, one.message, one.step, one.advice) for one in found]


@pytest.mark.parametrize("loop", [LOOP, LOGGER], ids=["monitor", "attached logger"])
def test_an_exception_that_ends_the_program_is_critical_in_log_and_report(tmp_path: Path, loop: str) -> None:
    end = "raise RuntimeError('probability tensor contains either `inf`, `nan` or element < 0')"
    said = trained(tmp_path, then=end, loop=loop)
    assert "RuntimeError: probability tensor" in said
    ((severity, message, step, advice),) = crashes(tmp_path)
    assert (severity, step) == ("critical", 19)
    assert message == "The training ended with RuntimeError: probability tensor contains either `inf`, `nan` or element < 0."
    assert "learning rate" in advice


@pytest.mark.parametrize("then", ["", "sys.exit(3)", "raise KeyboardInterrupt", "monitor.close(); raise ValueError('later')"])
def test_an_end_that_somebody_asked_for_is_no_crash(tmp_path: Path, then: str) -> None:
    trained(tmp_path, then=then)
    assert crashes(tmp_path) == []


def test_an_exception_that_leaves_a_with_block_is_a_crash(tmp_path: Path) -> None:
    with pytest.raises(MemoryError), rldk.start("r", output_dir=tmp_path) as run:
        run.log(1, reward=0.5)
        raise MemoryError("out of memory")
    ((severity, message, step, advice),) = crashes(tmp_path)
    assert (severity, step, message) == ("critical", 1, "The training ended with MemoryError: out of memory.")
    assert "batch size" in advice


def test_a_run_that_has_not_begun_cannot_crash(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="before"), Monitor(tmp_path, run_id="r"):
        raise ValueError("before the first event")
    assert list(tmp_path.iterdir()) == []


def test_what_is_said_fits_the_error() -> None:
    assert crash_in_words(TrainingStopped(Stop(1, 1, "kl_explosion", "critical", "m"))) is None
    assert crash_in_words(KeyboardInterrupt()) is None
    assert crash_in_words(ValueError()) == (
        "The training ended with ValueError.", "Read the traceback, fix its cause, and resume from the last checkpoint."
    )  # fmt: skip
    message, advice = crash_in_words(RuntimeError("NCCL timed out\n\x1b[31m" + "x" * 1000)) or ("", "")
    assert len(message) < 400 and "\x1b" not in message and "\n" not in message
    assert advice.startswith("A process or a connection was lost.")
    assert "space" in (crash_in_words(OSError(28, "No space left on device")) or ("", ""))[1]
    assert crash_in_words(ValueError("the finance data set"))[1].startswith("Read the traceback")  # type: ignore[index]
