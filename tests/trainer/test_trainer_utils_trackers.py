"""What the trackers wrote is read back; speed is measured honestly."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
pytest.importorskip("torch")


WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from trackers import make_trackers
names = ["tensorboard", "mlflow", "trackio", "wandb"]
trackers = make_trackers(names, Path(sys.argv[1]), "project", "my_run", {"batch_size": 8}, None)
for step in (1, 2, 3):
    trackers.log({"train/reward": 0.5 * step, "train/kl_ref": 0.01 * step}, step)
trackers.close()
"""


def test_every_tracker_has_what_was_logged(tmp_path: Path) -> None:
    """In a process of its own: some of these libraries look at the environment once, when they are imported."""
    from rldk.ingest import ingest_runs

    trainer = Path(__file__).resolve().parents[2] / "trainer"
    left_out = ("MLFLOW_TRACKING_URI", "WANDB_API_KEY", "TRACKIO_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(tmp_path), str(trainer)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    places = {
        "tensorboard": tmp_path / "tensorboard/my_run", "mlflow": tmp_path / "mlflow.db",
        "trackio": tmp_path / "trackio", "wandb": next((tmp_path / "wandb").glob("offline-run-*")),
    }  # fmt: skip
    for name, place in places.items():
        frame = ingest_runs(str(place))
        assert frame["step"].tolist() == [1, 2, 3], name
        assert frame["reward_mean"].tolist() == pytest.approx([0.5, 1.0, 1.5]), name
        assert frame["kl_mean"].tolist() == pytest.approx([0.01, 0.02, 0.03]), name


def test_a_tracker_that_fails_is_left_out_and_said_once(capsys) -> None:
    from trackers import Guarded, Several, Tracker

    class Broken(Tracker):
        name = "broken"

        def log(self, metrics, step):
            raise OSError("disk full")

    class Kept(Tracker):
        rows: list = []  # noqa: RUF012

        def log(self, metrics, step):
            self.rows.append(step)

    trackers = Several([Guarded(Broken()), Guarded(Kept())])
    for step in (1, 2):
        trackers.log({"a": 1.0}, step)
    trackers.close()
    assert Kept.rows == [1, 2]
    assert capsys.readouterr().err.count("The tracker broken failed") == 1


def test_an_unknown_tracker_is_refused(tmp_path: Path) -> None:
    from trackers import make_trackers

    with pytest.raises(ValueError, match="tensorboard"):
        make_trackers(["abacus"], tmp_path, "p", "r", {}, None)


def test_rates_are_counted_since_the_start_of_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    from logger import Throughput

    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    clock = Throughput("cpu", steps_per_epoch=4, total_steps=7, done=1)
    found = []
    for seconds in (60.0, 30.0, 30.0, 12.0, 12.0):  # steps 2 to 6; the second epoch begins with step 5
        with clock.step(), clock.span("generation"):
            now[0] += seconds / 2
        now[0] += seconds / 2  # a checkpoint and logs are part of the epoch, and not of the step
        found.append(clock.metrics(tokens=120, samples=6))
    assert [row["step_time"] for row in found] == [30.0, 15.0, 15.0, 6.0, 6.0]
    assert [row["tokens_per_second"] for row in found] == pytest.approx([2.0, 240 / 90, 3.0, 10.0, 10.0])
    assert [row["samples_per_second"] for row in found] == pytest.approx([0.1, 12 / 90, 0.15, 0.5, 0.5])
    assert [row["steps_per_second"] for row in found] == pytest.approx([1 / 60, 2 / 90, 3 / 120, 1 / 12, 1 / 12])
    assert [row["epoch_time"] for row in found] == pytest.approx([1.0, 1.5, 2.0, 0.2, 0.4])  # minutes spent
    assert [row["eta_minutes"] for row in found] == pytest.approx([2.0, 0.75, 0.0, 0.4, 0.2])  # minutes left; step 8 is not made
    assert found[-1]["num_tokens_generated"] == 600 and found[0]["generation_time"] == 30.0


def test_the_console_shows_the_minutes_left_in_the_epoch() -> None:
    from types import SimpleNamespace

    from logger import Logger

    logger = Logger.__new__(Logger)
    logger.args, logger.per_epoch, logger.console = SimpleNamespace(epochs=2), 10, [("loss", "loss", "{:.2f}")]
    line = logger._line(13, {"loss": 1.0, "eta_minutes": 4.2, "epoch_time": 77.0})
    assert line == "Epoch:[2/2](3/10) loss:1.00 epoch_Time:5min"


def test_the_trainers_mfu_is_the_share_of_the_peak() -> None:
    from trainer_utils import calculate_mfu

    assert calculate_mfu(6e9, 1000.0, "NVIDIA A100-SXM4-80GB") == pytest.approx(100 * 6e12 / 312e12)
