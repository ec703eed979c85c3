"""What a detector declares: name, documentation, settings, state, and the metrics it uses."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from rldk.core.anomaly import SEVERITIES
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.detectors.base import COMMON_SETTINGS, NOTE, SECTIONS, Detector, View
from rldk.judge.incidents.advice import LOGGED
from rldk.signals.series import Series, SeriesByName
from rldk.testing.checks.trial_runs import Make, run, wild_streams


def check_has_a_name(make: Make) -> None:
    detector = make()
    assert detector.type.isidentifier() and detector.type.islower(), f"`type` {detector.type!r} is not a lower-case name"
    assert detector.family.strip(), "`family` is empty: name the family"
    assert detector.advice.strip(), "`advice` is empty: say what to do, naming the knob and the direction"


def check_documentation_is_complete(make: Make) -> None:
    page = make().documentation()
    assert page.get("title"), "the docstring has no first line"
    missing = [section for section in SECTIONS if not page.get(section)]
    assert not missing, f"the docstring lacks {', '.join(missing)}"
    assert list(page) == ["title", *SECTIONS], f"the docstring's sections are not in the order {', '.join(SECTIONS)}"


def check_clauses_have_a_basis(make: Make) -> None:
    for name, clause in make().clauses.items():
        assert name.isidentifier() and name.islower(), f"clause {name!r} is not a lower-case name"
        assert clause.says.strip() and not clause.says.endswith("."), f"clause {name!r} has no text, or ends with a full stop"
        assert clause.severity in (NOTE, *SEVERITIES), f"clause {name!r} has the severity {clause.severity!r}"
        assert clause.basis.strip(), f"clause {name!r} has no basis: say where its numbers come from"
        assert clause.persist >= 1 and clause.min_rows >= 1, f"clause {name!r} holds for no row"


def check_settings_are_validated(make: Make) -> None:
    kind = type(make())
    if kind.__init__ is not Detector.__init__:
        return  # it takes something else than settings
    for name, setting in {**kind.settings, **COMMON_SETTINGS}.items():
        assert setting.meaning, f"setting {name!r} has no description"
        default = setting.default
        kind(**{name: default})
        wrong: list[Any] = ["much", None, True, nan, [1.0]]
        wrong += [] if setting.min is None else [setting.min - 1.0, -inf]
        wrong += [] if setting.max is None else [setting.max + 1.0, inf]
        wrong += [2.5, inf] if setting.whole else []
        for value in wrong:
            assert _refuses(kind, **{name: value}), f"{name}={value!r} is taken"
    assert _refuses(kind, no_such_setting=1.0), "an unknown setting is taken"
    assert _refuses(kind, severity="fatal"), "severity='fatal' is taken"
    for severity in SEVERITIES:
        kind(severity=severity)


def _refuses(kind: type[Detector], **given: Any) -> bool:
    try:
        kind(**given)
    except UsageError as error:
        return bool(str(error))
    return False


def check_keeps_everything_in_slots(make: Make) -> None:
    assert not hasattr(make(), "__dict__"), "it has a `__dict__`: put all state in `__slots__`, so that it is saved with the run"


class _Recording(SeriesByName):
    """The series of a run; records which of them are used."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Series:
        self.asked.add(name)
        return super().__getitem__(name)


def check_declares_what_it_reads(make: Make) -> None:
    for stream in wild_streams(make()):
        detector, series = make(), _Recording()
        for index, event in enumerate(stream):
            for name, value in event.metrics.items():
                series.setdefault(name, Series()).update(value, index)
            detector.update(View(event, index, event.step, series))
        hidden = series.asked - {*detector.all_metrics(), *LOGGED}
        assert not hidden, f"it looks at {sorted(hidden)}, which are in none of `needs`, `watches` and `reads`"


def check_is_inactive_without_its_metrics(make: Make) -> None:
    detector = make()
    lacking = ["|".join(group) for group in detector.needs]
    assert detector.lacks(set()) == lacking, f"without any metric it says to lack {detector.lacks(set())}, not {lacking}"
    assert not detector.lacks(set(detector.all_metrics())), "with all of its metrics it reports missing ones"
    if detector.needs:
        engine = run(detector, [Event(step, {"some/other": float(step % 7)}) for step in range(100)])
        assert not engine.anomalies, f"without its metrics it raises: {engine.anomalies[0].message}"
        assert engine.inactive() == [(detector.type, lacking + ["config"] * detector.of_settings)]
