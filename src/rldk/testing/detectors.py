"""What every detector promises, as checks: for each of rldk's detectors, and for yours.

    for name, check in yield_detector_checks(MyDetector):
        check()

A check raises `AssertionError` with what it found. They take a second or two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rldk.core.event import Event
from rldk.testing.checks import detector_behaviour as behaviour
from rldk.testing.checks import detector_declaration as declaration
from rldk.testing.checks.trial_runs import Make, name_of, quietly

__all__ = ["yield_detector_checks"]

_CHECKS: tuple[Callable[[Make], None], ...] = (
    declaration.check_has_a_name,
    declaration.check_documentation_is_complete,
    declaration.check_clauses_have_a_basis,
    declaration.check_settings_are_validated,
    declaration.check_keeps_everything_in_slots,
    declaration.check_declares_what_it_reads,
    declaration.check_is_inactive_without_its_metrics,
    behaviour.check_survives_odd_values,
    behaviour.check_reports_are_complete,
    behaviour.check_is_silent_on_healthy_runs,
    behaviour.check_is_deterministic,
    behaviour.check_does_not_change_events,
    behaviour.check_goes_on_from_a_saved_state,
    behaviour.check_can_be_pickled_and_copied,
    behaviour.check_memory_is_bounded,
)

_SICK_CHECKS: tuple[Callable[[Make, Sequence[Event]], None], ...] = (
    behaviour.check_raises_on_its_sick_stream,
    behaviour.check_goes_on_from_a_saved_state_when_sick,
)


def yield_detector_checks(make: Make, sick: Sequence[Event] | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """All checks for a detector, by name.

    Args:
        make: the detector's class, or anything that builds one when it is called.
        sick: a stream on which it must raise; without one, this is not checked.
    """
    for check in _CHECKS:
        yield name_of(check), partial(quietly, check, make)
    if sick is not None:
        for sick_check in _SICK_CHECKS:
            yield name_of(sick_check), partial(quietly, sick_check, make, list(sick))
