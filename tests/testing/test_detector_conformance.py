"""Every detector of the table keeps what detectors promise; and a detector that does not is found out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

import pytest

from rldk.core.catalog import entry_of
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.judge.engine import Engine
from rldk.testing.detectors import yield_detector_checks
from rldk.testing.sick import sick
from rldk.testing.streams import PROFILES, healthy

LIMIT = partial(UserLimit, "kl_mean", highest=1e6)


TOGETHER = "is_silent_on_healthy_runs"
"""The check that is made of all detectors in one engine, below, and not of one after another."""


def run_all(checks: Iterable[tuple[str, Callable[[], None]]]) -> None:
    for name, check in checks:
        if name == TOGETHER:
            continue
        try:
            check()
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.type)
def test_detector(kind: type[Detector]) -> None:
    run_all(yield_detector_checks(kind, sick(kind)))


@pytest.mark.parametrize("profile", PROFILES)
def test_all_detectors_are_silent_on_healthy_runs(profile: str) -> None:
    for seed in range(3):
        engine = Engine([*(kind() for kind in DETECTORS), LIMIT()])
        for event in healthy(profile, 600, seed):
            engine.observe(event)
        assert [(one.type, one.index, one.message) for one in engine.anomalies] == [], seed


def test_user_limit() -> None:
    run_all(yield_detector_checks(LIMIT))


def test_what_detectors_look_at_is_in_the_catalogue() -> None:
    unknown = {kind.type: [name for name in kind.all_metrics() if entry_of(name) is None] for kind in DETECTORS}
    assert {kind: names for kind, names in unknown.items() if names} == {}


def test_every_detector_stands_in_the_table_once() -> None:
    assert len(BY_TYPE) == len(DETECTORS)
    assert UserLimit not in DETECTORS, "it needs a limit, which the settings give"


class Good(Detector):
    """A reward above a limit: the least that a detector is.

    What it catches: a reward above the limit.
    Why it matters: it does not.
    When it misfires: where the limit is low.
    What to do: raise the limit.
    References: none.
    """

    __slots__ = ("limit",)
    type: ClassVar[str] = "reward_above"
    family: ClassVar[str] = "mine"
    needs: ClassVar = (("reward_mean",),)
    advice: ClassVar[str] = "Raise the limit."
    clauses: ClassVar = {"above": Clause("the reward is above the limit", "warning", "definition", persist=3)}
    settings: ClassVar = {"limit": Setting(1e5, "reward above which it raises", min=0.0)}
    limit: float

    def find(self, view: View) -> Sequence[Finding]:
        value = view.get("reward_mean").last
        return [Finding("warning", value, self.limit, f"Reward is {value:.3g}.")] if value > self.limit else []


def with_find(find: Callable[[Any, View], Sequence[Finding]], **more: Any) -> type[Detector]:
    """A detector like `Good` but for what it finds."""
    return type("Bad", (Good,), {"__slots__": (), "__doc__": Good.__doc__, "find": find, **more})


def always(self: Any, view: View, **how: Any) -> Sequence[Finding]:
    return [Finding(**{"severity": "warning", "value": 1.0, "threshold": 0.0, "message": "It is so.", **how})]


def changes_the_event(self: Any, view: View) -> Sequence[Finding]:
    view.event.metrics.pop("reward_mean", None)
    return []


def divides(self: Any, view: View) -> Sequence[Finding]:
    _ = 1.0 / view.get("reward_mean").last
    return []


def looks_elsewhere(self: Any, view: View) -> Sequence[Finding]:
    view.get("entropy_mean")
    return []


def warns(self: Any, view: View) -> Sequence[Finding]:
    import numpy as np

    np.float64(view.get("reward_mean").last) * np.float64(10.0)
    return []


def by_chance(self: Any, view: View) -> Sequence[Finding]:
    return always(self, view) if random.random() < 0.5 else []


def speaks_of_nan(self: Any, view: View) -> Sequence[Finding]:
    return always(self, view, message="The reward is nan times as high.")


def grows(self: Any, view: View) -> Sequence[Finding]:
    self.seen.append(view.index)
    return []


def shares(self: Any, view: View) -> Sequence[Finding]:
    SHARED[id(self)] = SHARED.get(id(self), 0) + 1
    return always(self, view) if SHARED[id(self)] % 40 == 0 else []


SHARED: dict[int, int] = {}


class Grows(Good):
    __doc__ = Good.__doc__
    __slots__ = ("seen",)
    seen: list[int]
    find = grows  # type: ignore[assignment]

    def reset(self) -> None:
        super().reset()
        self.seen = []


class Forgets(Good):
    """Its deque is not written to the state as it is.

    What it catches: nothing. Why it matters: it does not.
    """

    __slots__ = ("rows",)
    rows: dict[int, int]

    def reset(self) -> None:
        super().reset()
        self.rows = {0: 0}

    def find(self, view: View) -> Sequence[Finding]:
        self.rows[0] += 1
        return always(self, view) if self.rows[0] > 150 else []


class Open(Good):
    __doc__ = Good.__doc__  # no __slots__: what it keeps in its __dict__ is not saved


class TakesAnything(Good):
    __doc__ = Good.__doc__
    __slots__ = ()
    settings: ClassVar = {"limit": Setting(1e5, "", min=0.0)}


class KeepsItsPast(Good):
    __doc__ = Good.__doc__
    __slots__ = ("rows",)
    rows: int

    def __init__(self, **given: Any) -> None:
        self.rows = 0
        super().__init__(**given)

    def find(self, view: View) -> Sequence[Finding]:
        self.rows += 1
        return always(self, view) if self.rows == 350 else []


class Repeats(Good):
    __doc__ = Good.__doc__
    __slots__ = ()

    def take(self, view: View, found: Sequence[Finding]) -> Any:
        return self._anomaly(view, found[0]) if found else None


BAD = {
    "has_a_name": with_find(Good.find, type="Reward Above"),
    "documentation_is_complete": with_find(Good.find, __doc__="A title.\n\nWhat it catches: little."),
    "settings_are_validated": TakesAnything,
    "keeps_everything_in_slots": Open,
    "declares_what_it_reads": with_find(looks_elsewhere),
    "is_inactive_without_its_metrics": with_find(always, metrics=classmethod(lambda cls: ())),
    "survives_odd_values": with_find(divides),
    "survives_odd_values without a warning": with_find(warns),
    "reports_are_complete": with_find(speaks_of_nan),
    "reports_are_complete, with an advice": with_find(always, advice_for=lambda *_: ""),
    "reports_are_complete, once": with_find(always, take=Repeats.take),
    "is_silent_on_healthy_runs": with_find(always),
    "is_deterministic": with_find(by_chance),
    "is_deterministic after reset": KeepsItsPast,
    "does_not_change_events": with_find(changes_the_event),
    "goes_on_from_a_saved_state": Forgets,
    "can_be_pickled_and_copied": with_find(shares),
    "memory_is_bounded": Grows,
}


def test_the_least_detector_passes() -> None:
    for name, check in yield_detector_checks(Good, [Event(step, {"reward_mean": 1e6}) for step in range(20)]):
        check()
        assert name


@pytest.mark.parametrize("name", BAD)
def test_a_bad_detector_is_found_out(name: str) -> None:
    check = dict(yield_detector_checks(BAD[name]))[name.replace(",", " ").split()[0]]
    with pytest.raises(AssertionError):
        check()


def test_a_detector_that_never_raises_is_found_out() -> None:
    check = dict(yield_detector_checks(Good, [Event(0, {"reward_mean": 1.0})]))["raises_on_its_sick_stream"]
    with pytest.raises(AssertionError, match="raises nothing"):
        check()


def test_a_setting_that_is_not_whole() -> None:
    with pytest.raises(UsageError, match=r"Expected `reward_above.persist` to be a whole number of at least 1, got 2.5."):
        Good(persist=2.5)
