"""`rldk ack`: a finding that is accepted stays visible, and no longer fails; until it grows or its time is over."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rldk
from rldk.cli.commands import ack
from rldk.cli.main import main
from rldk.core.anomaly import Anomaly
from rldk.judge.acknowledgements import Acknowledgement, until_date

Make = Callable[..., str]


def test_an_acknowledged_warning(make_log: Make, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log("warning")
    assert main(["scan", log, "--fail-on", "warning"]) == 1
    assert main(["ack", log, "clip_saturation", "--reason", "a test of large steps", "--until", "2w"]) == 0
    capsys.readouterr()
    assert main(["scan", log, "--fail-on", "warning"]) == 0
    said = capsys.readouterr().out
    assert "Acknowledged until " in said and "a test of large steps" in said and "1 warning · 1 acknowledged" in said
    assert main(["scan", log, "--fail-on", "warning", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["verdict"] == "warning" and [ack["type"] for ack in run["acknowledged"]] == ["clip_saturation"]
    assert main(["gate", log, "--fail-on", "warning"]) == 0
    assert "acknowledged" in capsys.readouterr().out


def test_it_can_be_withdrawn(make_log: Make, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log("warning")
    main(["ack", log, "clip_saturation", "--reason", "fine"])
    assert main(["ack", log, "clip_saturation", "--withdraw"]) == 0 and main(["scan", log, "--fail-on", "warning"]) == 1
    assert main(["ack", log, "clip_saturation", "--withdraw"]) == 2 and "is not acknowledged" in capsys.readouterr().err


def parts(log: str) -> tuple[str, set[str]]:
    """The cause and the types of the worst incident of a run."""
    (result,) = rldk.scan(log)
    assert result.worst is not None
    return result.worst.cause, {result.anomalies[number].type for number in result.worst.anomalies}


def test_the_cause_of_an_incident_stands_for_all_of_it_and_keeps_earlier_entries(
    make_log: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    log = make_log("critical")
    cause, types = parts(log)
    assert cause not in types and "entropy_explosion" in types and len(types) > 1
    main(["ack", log, "entropy_explosion", "--reason", "known", "--until", "2w"])
    capsys.readouterr()
    assert main(["scan", log, "-v"]) == 1  # one finding of several does not hide the others
    said = capsys.readouterr().out
    assert "entropy_explosion is acknowledged until " in said and "entropy_explosion (acknowledged)" in said
    assert main(["ack", log, cause, "--reason", "broken on purpose"]) == 0
    (again,) = rldk.scan(log)
    assert {one.type: one.reason for one in again.acknowledged}["entropy_explosion"] == "known"
    assert again.worst is not None and again.acknowledgement_of(again.worst) is not None
    assert main(["ack", log, cause, "--reason", "again"]) == 2
    capsys.readouterr()
    assert main(["ack", log, cause, "--withdraw"]) == 0 and " are reported again." in capsys.readouterr().out


def test_a_cause_that_is_also_a_type_stands_for_that_type_only() -> None:
    anomalies = [SimpleNamespace(type=kind, severity="critical") for kind in ("learning_rate_too_high", "kl_explosion")]
    incidents = [SimpleNamespace(cause="learning_rate_too_high", anomalies=[0, 1])]
    result: Any = SimpleNamespace(anomalies=anomalies, machine=[], incidents=incidents)
    assert ack._found(result, "learning_rate_too_high") == {"learning_rate_too_high": "critical"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["clip_saturation"], "Expected --reason"),
        (["clip_saturatoin", "--reason", "x"], "Did you mean clip_saturation"),
        (["clip_saturation", "--reason", "x", "--until", "soon"], "Expected --until to be a day"),
        (["clip_saturation", "--reason", "x", "--until", "2001-01-01"], "in the future"),
    ],
)
def test_wrong_usage(make_log: Make, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(["ack", make_log("warning"), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_what_has_grown_or_is_over_counts_again() -> None:
    known = Acknowledgement("log.jsonl", "r", "kl_spike", "warning", "fine", "2030-01-02")
    warning, critical = (Anomaly("kl_spike", severity, "kl", 1, 0, "", 1.0, 0.5, "", 0) for severity in ("warning", "critical"))
    assert known.holds(warning, date(2030, 1, 2)) and not known.holds(warning, date(2030, 1, 3))
    assert not known.holds(critical, date(2030, 1, 1))
    assert until_date("2w", date(2030, 1, 1)) == "2030-01-15" and until_date("2030-02-01", date(2030, 1, 1)) == "2030-02-01"


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[]", '{"acknowledged": [[]]}', '{"acknowledged": [{"type": "x"}]}'])
def test_a_damaged_file_is_reported_once_and_acknowledges_nothing(
    make_log: Make, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log("warning")
    make_log("healthy")
    acks = tmp_path / "rldk_acks.json"
    acks.write_text(text)
    assert main(["scan", str(tmp_path), "--fail-on", "warning"]) == 1
    (record,) = caplog.records
    assert "rldk_acks.json cannot be read as acknowledgements" in record.message and "no finding" in record.message
    capsys.readouterr()
    assert main(["ack", log, "clip_saturation", "--reason", "fine"]) == 2 and acks.read_text() == text
    assert "Correct it, or remove it." in capsys.readouterr().err


def test_an_unknown_run_is_refused_with_the_names_that_exist(make_log: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ack", make_log("warning"), "clip_saturation", "--reason", "fine", "--run-id", "zz"]) == 2
    assert capsys.readouterr().err == "rldk: error: No run 'zz'. Known are warning.\n"
