"""The base of detectors: a rule about one defect that raises an anomaly once, says why, and clears it when it is over."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rldk.core.anomaly import SEVERITIES, Anomaly, Note
from rldk.core.errors import UsageError
from rldk.core.stats.base import Statistic
from rldk.detectors.clause import NOTE, Clause, Finding
from rldk.detectors.setting import COMMON_SETTINGS, SENSITIVITIES, Setting
from rldk.signals.view import View

__all__ = ["COMMON_SETTINGS", "NOTE", "SECTIONS", "SENSITIVITIES", "Clause", "Detector", "Finding", "Setting", "View"]

_RANK = {NOTE: 0, "warning": 1, "critical": 2}
MOST_CRITICALS = 10  # how often a recurring defect is raised as critical in one run
SECTIONS = ("What it catches", "Why it matters", "When it misfires", "What to do", "References")
"""The sections that the documentation of every detector has."""


class Detector(Statistic):
    """A rule about one defect.

    A subclass states its `type` (the name of the defect), its `family`, the metrics it `needs` (one metric of
    each group must be logged), its `settings` and its `clauses`; `find` returns the clauses that hold after this event. It
    is called only for events that contain a metric of `watches` (by default all of `needs`); other metrics that it uses if
    they are logged are named in `reads`. `panels` are the keys of the plots that show the defect (see
    `present/plots/standard.py`), the most telling first.

    The base raises an anomaly when a clause has held for as long as it asks for, raises again only if the severity grows from
    warning to critical, and clears it when no clause has held for `clear` checks. A defect
    that returns within `rearm` checks after clearing counts as the same one and is not raised again, and none is raised
    more than ten times. A cleared anomaly is kept as recovered; a `passing` defect, such as a plateau that ends, is withdrawn
    completely. `machine` marks findings about the machine, which do not affect the verdict.

    Settings and state live in `__slots__`, so that a detector can be saved and restored with the run.
    """

    __slots__ = (
        "_again", "_good", "_good_step", "_holding", "_noted", "_since", "_stands", "_taken", "_worst", "calm", "cap", "idle",
        "raised", "sensitivity", "since_clear", "times", "wait",
    )  # fmt: skip

    type: ClassVar[str]
    family: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], ...]]
    panels: ClassVar[tuple[str, ...]] = ()
    watches: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    advice: ClassVar[str]
    clear: ClassVar[int] = 5
    rearm: ClassVar[int] = 50
    most_raises: ClassVar[int] = 3
    machine: ClassVar[bool] = False
    special: ClassVar[bool] = False  # about a kind of training that few runs are: not counted as missing where it is inactive
    of_settings: ClassVar[bool] = False  # about what the run was started with: inactive where that is not known
    passing: ClassVar[bool] = False
    clauses: ClassVar[Mapping[str, Clause]] = {}
    settings: ClassVar[Mapping[str, Setting]] = {}

    wait: int  # for how many checks all clauses must hold, where the user has set `persist`; else 0
    calm: int
    cap: str
    sensitivity: str  # `low`, `normal` or `high`: scales how long a clause must hold
    _good_step: int | None
    _taken: int  # the event that was taken last
    _again: bool  # whether it is taken again, with more of its metrics: it counts once
    _good: int
    _stands: bool  # whether a clause had held long enough at the last check
    _since: int  # the event since which it has
    _worst: str
    raised: str
    idle: bool  # neither raised nor about to be, no clause holds, and not recently cleared
    since_clear: int
    times: int
    _holding: dict[str, list[int]]  # by clause: for how many checks it has held, since which event, and the last good step
    _noted: list[str]

    def __init__(self, **given: Any) -> None:
        unknown = sorted(set(given) - set(self.settings) - set(COMMON_SETTINGS) - {"severity", "sensitivity"})
        if unknown:
            known = [*self.settings, *COMMON_SETTINGS, "severity", "sensitivity"]
            raise UsageError(f"{self.type} has no setting {unknown[0]!r}; it has {', '.join(known)}.")
        for name, setting in self.settings.items():
            setattr(self, name, setting.check(f"{self.type}.{name}", given.get(name, setting.default)))
        self.wait = int(COMMON_SETTINGS["persist"].check(f"{self.type}.persist", given["persist"])) if "persist" in given else 0
        self.calm = int(COMMON_SETTINGS["clear"].check(f"{self.type}.clear", given.get("clear", self.clear)))
        self.cap = given.get("severity", "")
        if self.cap not in ("", *SEVERITIES):
            raise UsageError(f"Expected `{self.type}.severity` to be one of {list(SEVERITIES)}, got {self.cap!r}.")
        self.sensitivity = given.get("sensitivity", "normal")
        if self.sensitivity not in SENSITIVITIES:
            known = list(SENSITIVITIES)
            raise UsageError(f"Expected `{self.type}.sensitivity` to be one of {known}, got {self.sensitivity!r}.")
        self.reset()

    @property
    def key(self) -> str:
        """What identifies it among the detectors of a run."""
        return self.type

    def reset(self) -> None:
        super().reset()
        self._taken, self._again = -1, False
        self._good = self.times = 0
        self._stands = False
        self._holding, self._noted = {}, []
        self._since = -1
        self._good_step = None
        self._worst = self.raised = ""
        self.since_clear = 1 << 30
        self.idle = True

    def find(self, view: View) -> Sequence[Finding]:
        """The findings of all clauses that hold after this event; empty if none does."""
        raise NotImplementedError

    def _lasting(self, view: View, found: Sequence[Finding]) -> Finding | None:
        """The worst of these findings whose clause has held long enough."""
        before, self._holding = self._holding, {}
        worst: Finding | None = None
        for finding in found:
            finding.clause = finding.clause or next(iter(self.clauses))
            clause = self.clauses[finding.clause]
            finding.severity = finding.severity or clause.severity
            earlier = -1 if view.earlier_step is None else view.earlier_step
            held, since, good = before.get(finding.clause, (0, view.index, earlier))
            held += not (self._again and held)
            self._holding[finding.clause] = [held, since, good]
            wait = self.wait or finding.persist or clause.persist
            lasted = held
            if lasted > clause.min_rows:  # a metric that is not in every row: its rows also stand for those in between
                lasted = max(lasted, view.index - since + 1)
            if lasted < self._rows_needed(view, wait, clause.min_rows, finding.severity) and not finding.confirmed:
                continue
            if worst is None or _RANK[finding.severity] > _RANK[worst.severity]:
                worst = finding
        if worst is None or worst.severity == NOTE:
            return worst
        _, since, good = self._holding[worst.clause]
        if not self._stands:
            self._since, self._good_step = since, None if good < 0 else good
        return worst

    def _rows_needed(self, view: View, steps: float, min_rows: int, severity: str) -> float:
        """How many rows correspond to so many steps, with this sensitivity."""
        factor = 1.0 if self.wait or steps <= 1 else SENSITIVITIES[self.sensitivity].get(severity, 1.0)
        return view.rows(steps, min_rows) if factor == 1.0 else max(factor * view.rows(steps, min_rows), 1.0)

    @classmethod
    def wait_in_words(cls, clause: str) -> str:
        """`after 8 steps (at least 3 rows)`, or `at once`."""
        steps, rows = cls.clauses[clause].persist, cls.clauses[clause].min_rows
        if steps <= 1:
            return "at once"
        return f"after {steps} steps" + (f" (at least {min(rows, steps)} row{'s' * (min(rows, steps) > 1)})")

    @classmethod
    def metrics(cls) -> tuple[str, ...]:
        """The metrics whose arrival triggers a check."""
        return cls.watches or tuple(dict.fromkeys(name for group in cls.needs for name in group))

    @classmethod
    def all_metrics(cls) -> tuple[str, ...]:
        """All metrics that it uses: those it needs, those it watches, and those it reads if they are logged."""
        needed = (name for group in cls.needs for name in group)
        return tuple(dict.fromkeys((*cls.metrics(), *needed, *cls.reads)))

    @classmethod
    def lacks(cls, present: Mapping[str, Any] | set[str]) -> list[str]:
        """What it lacks to be active: the names of each group of which no metric is logged."""
        return ["|".join(group) for group in cls.needs if not any(name in present for name in group)]

    def update(self, view: View) -> Anomaly | Note | None:
        """Check the run after an event: an anomaly if the defect is raised now or becomes critical, or a note."""
        return self.take(view, self.find(view))

    def take(self, view: View, found: Sequence[Finding]) -> Anomaly | Note | None:
        """Process what `find` returned. If that is nothing and the detector is `idle`, this need not be called."""
        self._again, self._taken = view.index == self._taken, view.index
        finding = self._lasting(view, found)
        if finding is None or finding.severity == NOTE:
            self._stands = False
            if finding is not None and self.clauses[finding.clause].severity != NOTE:
                self._good = 0  # milder than when it was raised, and not over
            else:
                self._recover()
            self.idle = not self.raised and not self._holding and self.since_clear >= self.rearm
            return None if finding is None else self._note(view, finding)
        self._stands, self.idle = True, False
        return self._raise(view, finding)

    def _recover(self) -> None:
        """Count a check at which no clause held, and clear what was raised after enough of them."""
        if self.raised:
            self._good += not self._again
            if self._good >= self.calm:
                self._worst, self.raised = self.raised, ""
                self.since_clear = 0
                if self.passing:  # withdrawn: if it returns, it counts as new
                    self.since_clear, self.times = self.rearm, self.times - 1
        elif self.since_clear < self.rearm:
            self.since_clear += not self._again

    def _raise(self, view: View, finding: Finding) -> Anomaly | None:
        """The anomaly, unless it stands already or counts as one that was raised before."""
        self._good = 0
        if self.cap:
            finding.severity = self.cap
        if self.raised == "critical" or self.raised == finding.severity:
            return None
        returned = self.since_clear < self.rearm and finding.severity in ("warning", self._worst)
        self.raised = finding.severity
        if returned or self.times >= (self.most_raises if finding.severity == "warning" else MOST_CRITICALS):
            return None  # the engine reopens what was raised before
        self.times += 1
        return self._anomaly(view, finding)

    def _note(self, view: View, finding: Finding) -> Note | None:
        """A note is given once per clause."""
        if finding.clause in self._noted:
            return None
        self._noted.append(finding.clause)
        return Note(self.type, finding.clause, view.step, view.index, finding.message)

    def _anomaly(self, view: View, finding: Finding) -> Anomaly:
        return Anomaly(
            self.type, finding.severity, self.family, view.step, view.index, finding.message,
            finding.value, finding.threshold, self.advice_for(view, finding), self._since, finding.evidence,
            last_good_step=self._good_step, clause=finding.clause,
        )  # fmt: skip

    def advice_for(self, view: View, finding: Finding) -> str:
        """What to do, naming the setting and the direction; a subclass may name the run's current value."""
        return self.advice

    def closing(self) -> str | None:
        """A sentence about the run as it stands, which results show among their notes; `None` for most detectors."""
        return None

    @classmethod
    def documentation(cls) -> dict[str, str]:
        """The sections of the class's docstring, with its first line under `title`."""
        text = inspect.cleandoc(cls.__doc__ or "")
        title, _, rest = text.partition("\n")
        parts = re.split(rf"^({'|'.join(SECTIONS)}):\s*", rest, flags=re.MULTILINE)
        found = {name: " ".join(body.split()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
        return {"title": title.strip(), **found}
