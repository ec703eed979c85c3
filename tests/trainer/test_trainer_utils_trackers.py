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


def test_speed_leaves_out_the_warm_up_and_what_is_between_steps() -> None:
    from logger import Throughput

    clock = Throughput("cpu", total_steps=10, warmup=2)
    found = []
    for step in range(4):
        with clock.step(), clock.span("generation"):
            time.sleep(0.3 if step < 2 else 0.02)
        time.sleep(0.05)  # a checkpoint
        found.append(clock.metrics(tokens=100, samples=4))
    assert "tokens_per_second" not in found[0] and "tokens_per_second" not in found[1]
    spent = found[2]["step_time"] + found[3]["step_time"]
    assert found[3]["tokens_per_second"] == pytest.approx(200 / spent)
    assert found[3]["samples_per_second"] == pytest.approx(8 / spent) and found[3]["steps_per_second"] == pytest.approx(2 / spent)
    assert found[3]["eta_minutes"] == pytest.approx(6 * spent / 2 / 60)
    assert found[3]["num_tokens_generated"] == 400 and found[0]["generation_time"] >= 0.3
    assert found[0]["generation_time"] <= found[0]["step_time"]
