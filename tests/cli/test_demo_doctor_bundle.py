"""`rldk demo`, `rldk doctor` and `rldk bundle`."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import rldk
from rldk.cli.commands import doctor
from rldk.cli.main import main
from rldk.report.case import checkpoint_rows

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    assert main(["demo", "-o", str(folder)]) == 0
    return folder


def test_the_demo_has_everything_to_show(demo: Path) -> None:
    results = rldk.scan(demo)
    assert (results["healthy"].verdict, results["broken"].verdict) == ("healthy", "critical")
    assert len(checkpoint_rows(results["broken"].run)) == 6
    rows = [json.loads(line) for line in (demo / "broken_events.jsonl").read_text().splitlines()]
    assert sum("samples" in row for row in rows) == 12 and results["healthy"].run.config["learning_rate"] == 1e-5
    found = rldk.compare(results["healthy"], results["broken"]).first("broken")
    assert found is not None and found.certain_step > 140


def test_the_demo_for_programs(tmp_path: Path, capsys: Capture) -> None:
    assert main(["demo", "-o", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"healthy": "healthy", "broken": "critical"}


def test_doctor(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["doctor", "--folder", str(tmp_path), "--json"]) == 0
    found = {one["name"]: one["state"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert found["reading and judging"] == found["writing"] == found["disk"] == "ok"
    monkeypatch.setitem(doctor.PARTS, "reading and judging", ("core", ("no_such_module",)))
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "no_such_module not installed" in said and "1 problem" in said
    assert main(["doctor", "--folder", str(tmp_path / "nothing")]) == 2


def test_doctor_checks_every_extra_that_a_user_may_install() -> None:
    listed = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = {line.split(" = ")[0] for line in listed.splitlines() if " = [" in line}
    own = {"all", "dev", "test", "lint", "docs", "plots", "memory"}  # of development, and what rldk does not import
    assert {extra for extra, _ in doctor.PARTS.values()} == (extras - own) | {"core"}


def test_doctor_knows_old_versions() -> None:
    assert doctor._too_old("numpy>=0.1") == "" and doctor._too_old("no-such-package>=1") == ""
    assert "or newer is needed" in doctor._too_old("numpy>=999")
    assert "or newer is needed" in doctor._too_old('numpy>=999; extra == "train"')
    assert doctor._too_old('numpy>=999; extra == "dev"') == "", "what rldk is developed with is not asked of users"
    assert doctor._numbers("2.4.1+cpu") == (2, 4, 1) < doctor._numbers("2.10")


def test_a_bundle_has_the_numbers_and_no_text(tmp_path: Path, capsys: Capture) -> None:
    log, archive = tmp_path / "secret_project.jsonl", tmp_path / "bundle.tar.gz"
    rows = []
    config = {"learning_rate": 1e-5, "model_name": "secret/model", "api_key": "sk-123"}
    for step in range(60):
        row = {
            "step": step, "wall_time": 1.7e9 + step,
            "metrics": {"reward_mean": 0.1 * (step % 3), "kl_mean": 0.01, "hidden_metric": 1.0},
            "model_info": {"run_id": "secret_run", "config": config},
            "notes": ["secret note"], "samples": [{"prompt": "secret prompt", "completion": "secret answer"}],
        }  # fmt: skip
        rows.append(json.dumps(row))
    log.write_text("\n".join(rows))
    limits = tmp_path / "limits.yaml"
    limits.write_text("limits: {reward_mean: {max: 0.05}}")
    assert main(["bundle", str(log), "-o", str(archive), "--config", str(limits)]) == 0
    assert "nothing was sent" in capsys.readouterr().out
    with tarfile.open(archive) as opened:
        texts = {name: opened.extractfile(name).read().decode() for name in opened.getnames()}  # type: ignore[union-attr]
    del texts["README.txt"]
    words = ("secret", "hidden_metric", "sk-123", str(tmp_path))
    assert not [(name, word) for name, text in texts.items() for word in words if word in text]
    assert json.loads(texts["run1/settings.json"]) == {"learning_rate": 1e-5}
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "events.jsonl").write_text(texts["run1/events.jsonl"])
    again = rldk.scan(tmp_path / "again", config=limits)
    assert [(one.type, one.step) for one in again.anomalies] == [
        (one["type"], one["step"]) for one in json.loads(texts["run1/result.json"])["anomalies"]
    ]


def test_a_bundle_renames_own_keys_and_nothing_that_only_looks_like_them(tmp_path: Path) -> None:
    log, archive = tmp_path / "own.jsonl", tmp_path / "bundle.tar.gz"
    own = {"r": 1.0, "verdict": 2.0, "reward_function_mean/mine": 0.5}
    rows = [{"step": step, "metrics": {"reward_mean": 0.1 * (step % 3), "kl_mean": 0.01, **own}} for step in range(60)]
    log.write_text("\n".join(map(json.dumps, rows)))
    limits = tmp_path / "limits.yaml"
    limits.write_text("limits: {reward_function_mean/mine: {max: 0.4}}")
    assert main(["bundle", str(log), "-o", str(archive), "--config", str(limits)]) == 0
    with tarfile.open(archive) as opened:
        text = opened.extractfile("run1/result.json").read().decode()  # type: ignore[union-attr]
    result, (plain,) = json.loads(text), rldk.scan(log, config=limits)
    (anomaly,) = result["anomalies"]
    assert result["verdict"] == plain.verdict == "warning"
    assert result["incidents"][0].keys() == plain.incidents[0].to_dict().keys()
    assert anomaly["message"] == "key1 is 0.5, above your limit of 0.4." and anomaly["evidence"] == {"key1": 0.5}
    assert "mine" not in text and "reward_mean" in text
