"""`rldk ack`: a finding that is accepted stays visible, and no longer fails; until it grows or its time is over."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

import rldk
from rldk.cli.main import main
from rldk.core.anomaly import Anomaly
from rldk.core.errors import ReadError
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


def test_the_cause_of_an_incident_stands_for_all_of_it(make_log: Make) -> None:
    log = make_log("critical")
    (result,) = rldk.scan(log)
    for incident in result.incidents:
        assert main(["ack", log, incident.cause, "--reason", "broken on purpose"]) == 0
    (again,) = rldk.scan(log)
    assert (again.verdict, again.open_verdict) == ("critical", "healthy")
    assert main(["scan", log]) == 0


def test_one_finding_of_several_does_not_hide_the_others(make_log: Make) -> None:
    log = make_log("critical")
    main(["ack", log, "entropy_explosion", "--reason", "known"])
    assert main(["scan", log]) == 1


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
    ack = Acknowledgement("log.jsonl", "r", "kl_spike", "warning", "fine", "2030-01-02")
    warning, critical = (Anomaly("kl_spike", severity, "kl", 1, 0, "", 1.0, 0.5, "", 0) for severity in ("warning", "critical"))
    assert ack.holds(warning, date(2030, 1, 2)) and not ack.holds(warning, date(2030, 1, 3))
    assert not ack.holds(critical, date(2030, 1, 1))
    assert until_date("2w", date(2030, 1, 1)) == "2030-01-15" and until_date("2030-02-01", date(2030, 1, 1)) == "2030-02-01"


def test_a_damaged_file_is_an_error(make_log: Make, tmp_path: Path) -> None:
    log = make_log("warning")
    (tmp_path / "rldk_acks.json").write_text("{")
    with pytest.raises(ReadError, match=r"rldk_acks\.json cannot be read as acknowledgements"):
        rldk.scan(log)
