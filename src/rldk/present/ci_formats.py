"""Checks as the tools of continuous integration read them: JUnit XML and SARIF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rldk._version import __version__
from rldk.comparison.gate import Check
from rldk.core.text import clean
from rldk.judge.result import Result

__all__ = ["junit", "sarif"]

_LEVELS = {"critical": "error", "warning": "warning"}


def junit(checks: Sequence[Check]) -> str:
    """One suite per run, one case per check."""
    suites = Element("testsuites", name="rldk gate", tests=str(len(checks)), failures=_failures(checks))
    for run_id, group in groupby(checks, key=lambda check: check.run_id):
        own = list(group)
        name = clean(run_id)
        suite = SubElement(suites, "testsuite", name=name, tests=str(len(own)), failures=_failures(own), errors="0")
        for check in own:
            case = SubElement(suite, "testcase", classname=name, name=clean(check.name), file=clean(check.path, 1000))
            if not check.passed:
                SubElement(case, "failure", message=clean(check.message, 400), type="rldk").text = clean(check.message, 1000)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _failures(checks: Iterable[Check]) -> str:
    return str(sum(not check.passed for check in checks))


def sarif(checks: Sequence[Check], results: Sequence[Result]) -> dict[str, Any]:
    """Every anomaly, those that are acknowledged as suppressed, and every check that failed, at the log it was found in."""
    found = [_anomaly(result, one) for result in results for one in result.anomalies]
    failed = [check for check in checks if not check.passed]
    found += [_result(f"gate/{check.name.split()[0]}", "error", check.message, check.path) for check in failed]
    rules = sorted({one["ruleId"] for one in found})
    driver = {"name": "rldk", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": found}],
    }


def _anomaly(result: Result, anomaly: Any) -> dict[str, Any]:
    said = f"step {anomaly.step}: {anomaly.message} {anomaly.advice}"
    made = _result(anomaly.type, _LEVELS[anomaly.severity], said, str(result.run.path), anomaly.index + 1)
    ack = next((ack for ack in result.acknowledged if ack.holds(anomaly)), None)
    if ack is not None:
        made["suppressions"] = [{"kind": "external", "justification": clean(ack.reason, 300)}]
    return made


def _result(rule: str, level: str, message: str, path: str, line: int = 1) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": clean(path, 1000).replace("\\", "/")}, "region": {"startLine": line}}
    text = {"text": clean(message, 1000)}
    return {"ruleId": rule, "level": level, "message": text, "locations": [{"physicalLocation": place}]}
