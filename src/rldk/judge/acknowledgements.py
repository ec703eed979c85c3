"""Findings that someone has looked at and accepted: `rldk_acks.json` beside the log, written by `rldk ack`."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import ReadError, UsageError
from rldk.core.files import write_json
from rldk.core.jsonio import loads

__all__ = ["FILE", "Acknowledgement", "acknowledge", "acknowledgements_of", "is_acknowledged", "until_date", "withdraw"]

FILE = "rldk_acks.json"
_log = logging.getLogger("rldk")


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One finding of one run, accepted until a day (for good where that is empty).

    It holds for findings of that type up to the severity that was found then: a warning that has become critical is new.
    """

    log: str
    run_id: str
    type: str
    severity: str
    reason: str
    until: str = ""
    made: str = ""

    def holds(self, anomaly: Anomaly, today: date | None = None) -> bool:
        """Whether it covers an anomaly today."""
        if self.until and (today or datetime.now(timezone.utc).date()) > date.fromisoformat(self.until):
            return False
        return anomaly.type == self.type and SEVERITIES.index(anomaly.severity) <= SEVERITIES.index(self.severity)

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


def acknowledgements_of(log: Path, run_id: str, strict: bool = False) -> tuple[Acknowledgement, ...]:
    """What was acknowledged of a run; of an unreadable file nothing, which is reported, since findings count again.

    With `strict` such a file is an error.
    """
    path = log.parent / FILE
    if not path.is_file():
        return ()
    try:
        known = _read(path)
    except ReadError as error:
        if strict:
            raise
        _report(str(error))
        return ()
    return tuple(one for one in known if one.log == log.name and _same(one.run_id, run_id))


@cache
def _report(problem: str) -> None:
    """Report a damaged file once, however many runs lie beside it."""
    _log.warning("%s Until then no finding beside it counts as acknowledged.", problem)


def _same(known: str, run_id: str) -> bool:
    """Whether two ids are those of one run: among others of the same name, a run is called by its folder too."""
    return known == run_id or known.endswith(f"/{run_id}") or run_id.endswith(f"/{known}")


def is_acknowledged(anomaly: Anomaly, acks: Sequence[Acknowledgement]) -> bool:
    return any(ack.holds(anomaly) for ack in acks)


def acknowledge(log: Path, ack: Acknowledgement) -> Path:
    """Write an acknowledgement beside the log, in place of an earlier one of the same finding."""
    path = log.parent / FILE
    kept = [one for one in (_read(path) if path.is_file() else []) if not _about(one, log, ack.run_id, ack.type)]
    return write_json(path, {"acknowledged": [one.to_dict() for one in (*kept, ack)]})


def withdraw(log: Path, run_id: str, kind: str) -> bool:
    """Remove an acknowledgement. Returns whether there was one."""
    path = log.parent / FILE
    known = _read(path) if path.is_file() else []
    kept = [one for one in known if not _about(one, log, run_id, kind)]
    if len(kept) < len(known):
        write_json(path, {"acknowledged": [one.to_dict() for one in kept]})
    return len(kept) < len(known)


def _about(one: Acknowledgement, log: Path, run_id: str, kind: str) -> bool:
    return one.log == log.name and one.type == kind and _same(one.run_id, run_id)


def until_date(given: str, today: date | None = None) -> str:
    """`2026-12-31`, or a time from now such as `14d` or `2w`, as a day."""
    now = today or datetime.now(timezone.utc).date()
    if span := re.fullmatch(r"(\d{1,4})([dw])", given):
        return (now + timedelta(days=int(span[1]) * (7 if span[2] == "w" else 1))).isoformat()
    try:
        day = date.fromisoformat(given)
    except ValueError:
        raise UsageError(f"Expected --until to be a day (2026-12-31) or a time from now (14d, 2w), got {given!r}.") from None
    if day < now:
        raise UsageError(f"Expected --until to be in the future, got {given}.")
    return day.isoformat()


def _read(path: Path) -> list[Acknowledgement]:
    try:
        given = loads(path.read_bytes())
        return [_one(entry) for entry in given["acknowledged"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReadError(f"{path} cannot be read as acknowledgements ({error}). Correct it, or remove it.") from None


def _one(entry: dict[str, Any]) -> Acknowledgement:
    made = Acknowledgement(**{name: str(value) for name, value in entry.items()})
    if made.severity not in SEVERITIES:
        raise ValueError(f"severity {made.severity!r}")
    if made.until:
        date.fromisoformat(made.until)
    return made
