"""`import rldk`: judging, reading, watching and explaining in a few lines."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import rldk
from rldk.core.errors import ReadError, UsageError
from rldk.core.event import Event
from rldk.judge.results import Results
from rldk.testing.streams import faulty, healthy


def write(path: Path, events: list[Event]) -> Path:
    for event in events:
        event.model_info["run_id"] = event.model_info.get("name") or path.stem
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    write(made / "good.jsonl", healthy("ppo", 120, seed=0))
    write(made / "bad.jsonl", faulty("entropy_explosion", seed=1, steps=250, onset=80))
    return made


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return rldk.scan(folder)


def test_the_names_are_few_and_documented() -> None:
    assert {"attach", "explain", "load", "scan", "start"} <= set(dir(rldk))
    assert not [name for name in dir(rldk) if name != "__version__" and not getattr(rldk, name).__doc__]
    assert rldk.__doc__ is not None and all(f"rldk.{name}(" in rldk.__doc__ for name in dir(rldk) if name != "__version__")
    with pytest.raises(AttributeError, match="no attribute 'scann'"):
        _ = rldk.scann  # type: ignore[attr-defined]


def test_results_of_a_folder(results: Results) -> None:
    assert results.verdict == "critical" and sorted(results.verdicts) == ["critical", "healthy"]
    bad, good = results["bad"], results["good"]
    assert results.incidents == bad.incidents and results.anomalies == bad.anomalies
    assert results.scores == bad.scores and results.coverage is bad.coverage and results.worst_run is bad
    assert good.verdict == "healthy" and [one.run.run_id for one in results] == ["bad", "good"]
    assert [one["run_id"] for one in results.to_dict()["runs"]] == ["bad", "good"]
    with pytest.raises(KeyError, match="Did you mean good"):
        results["god"]


def test_python_and_the_command_line_judge_alike(folder: Path, results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    from rldk.cli.main import main
    from rldk.core.files import strict

    assert main(["scan", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(strict(results.to_dict())))


def test_results_are_short_in_a_terminal_and_rich_in_a_notebook(results: Results) -> None:
    assert repr(results) == "<Results of 2 runs: 1 critical, 1 healthy>"
    assert repr(results["good"]).startswith("<Result of good: healthy, ") and len(repr(results["bad"])) < 200
    assert 'class="badge critical"' in results._repr_html_() and "bad" in results._repr_html_()
    assert "What to do" in results["bad"]._repr_html_()
    assert repr(results["bad"].run).startswith("<Run bad: 250 events, steps 1–250, ")


def test_text_from_a_log_does_nothing_in_a_notebook(tmp_path: Path) -> None:
    events = healthy("ppo", 30, seed=0)
    for event in events:
        event.model_info["name"] = "<script>alert(1)</script>"
    assert "<script>" not in rldk.scan(write(tmp_path / "log.jsonl", events))._repr_html_()


def test_plots(results: Results) -> None:
    marked = results["bad"].plot("kl")
    assert [panel.key for panel in marked] == ["kl"] and {mark.severity for mark in marked["kl"].marks} >= {"critical"}
    both = results.plot("reward")
    assert {curve.run for curve in both["reward"].curves} == {"bad", "good"}
    assert repr(both).startswith("<Picture of 1 panel: reward")


def test_settings_of_a_scan(folder: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("limits: {reward_mean: {max: -100, severity: critical}}")
    for given in (settings, str(settings), {"limits": {"reward_mean": {"max": -100, "severity": "critical"}}}):
        assert rldk.scan(folder / "good.jsonl", config=given).verdict == "critical"
    with pytest.raises(ReadError, match="does not exist"):
        rldk.scan(folder / "nothing.jsonl")


def test_load(folder: Path) -> None:
    runs = rldk.load(folder)
    assert [run.run_id for run in runs] == ["bad", "good"] and len(runs) == 2
    assert set(runs.frame()["run_id"]) == {"bad", "good"} and len(runs["good"]) == 120
    with pytest.raises(UsageError, match="Did you mean kl_mean"):
        runs["good"].plot("kll")
    with pytest.raises(KeyError, match="Did you mean good"):
        runs["god"]


def test_a_loop_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with rldk.start("mine", output_dir=tmp_path, run_config={"learning_rate": 1e-5}, limits={"kl": 0.5}) as run:
        for step in range(40):
            kl, reward = np.float32(0.01 if step < 30 else 0.9), np.array([0.5 + step % 3])
            run.log(step, {"my/key": 1.0}, kl=kl, reward=reward, entropy=1.2)
    assert run.run_id == "mine" and run.verdict == run.result().verdict == "warning" and "mine: warning" in repr(run)
    assert "kl_mean" in capsys.readouterr().err
    (found,) = rldk.scan(tmp_path / "mine_events.jsonl")
    assert [a.to_dict() for a in found.anomalies] == [a.to_dict() for a in run.result().anomalies]
    assert found.run.columns["reward_mean"].values.tolist() == [0.5 + step % 3 for step in range(40)]
    assert "my/key" in found.run.columns
    assert found.run.config["learning_rate"] == 1e-5


def test_a_plain_loop_can_be_stopped(tmp_path: Path) -> None:
    run = rldk.start("mine", output_dir=tmp_path, stop_on="critical", quiet=True)
    for event in faulty("entropy_explosion", seed=1, steps=250, onset=80):
        if run.log(event.step, event.metrics):
            break
    run.close()
    assert run.stop is not None and 80 < run.stop.step < 200
    assert (tmp_path / "mine_final_report.json").is_file()


def test_nothing_that_goes_wrong_reaches_the_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = rldk.start("mine", output_dir=tmp_path, quiet=True)
    with caplog.at_level(logging.ERROR, "rldk"):
        run.log(0)
        run.log("not a step", kl=1.0)  # type: ignore[arg-type]
        run.log(1, kl=object(), reward=np.zeros(3))
        run.log(2, kl=0.1)
    run.close()
    assert "Expected metrics for step 0" in caplog.text
    assert rldk.load(tmp_path / "mine_events.jsonl")[0].steps.tolist()[-1] == 2


def test_no_files_where_none_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = rldk.start(output_dir=None, quiet=True)
    run.log(1, kl=0.1)
    run.close()
    assert list(tmp_path.iterdir()) == []


def test_explain() -> None:
    page = rldk.explain("reward_hacking")
    assert "What it catches" in repr(page) and "<h4>What to do</h4>" in page._repr_html_()
    with pytest.raises(UsageError, match="Did you mean reward_hacking"):
        rldk.explain("reward_haking")
    assert "Raise the KL coefficient" in repr(rldk.explain("kl_penalty_too_weak"))


def test_attach_says_what_it_takes() -> None:
    with pytest.raises(UsageError, match=r"rldk\.start"):
        rldk.attach(object())


def test_runs_of_one_name_from_several_sources_are_compared_with_each_other(folder: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("first", "second", "third")):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "run.jsonl", healthy("ppo", 120, seed=number))
    sources = [tmp_path / name for name in ("first", "second", "third")]
    loaded = [rldk.scan(source) for source in sources]
    rldk.compare(*loaded)
    assert [result.run.run_id for results in loaded for result in results] == ["run"] * 3, "the caller's runs keep their names"
    found = rldk.compare(*sources)
    assert [group.name for group in found.groups] == ["first/run", "second/run", "third/run"]
    assert list(found.divergences) == ["second/run", "third/run"]
    assert [group.name for group in rldk.compare(*map(rldk.load, sources)).groups] == [group.name for group in found.groups]
