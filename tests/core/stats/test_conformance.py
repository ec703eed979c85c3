"""What every streaming statistic promises, checked for each of them."""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core import jsonio, stats
from rldk.core.errors import UsageError

CASES: dict[str, Callable[[], Any]] = {
    "RunningMoments": stats.RunningMoments,
    "RollingSlope": lambda: stats.RollingSlope(7),
    "RollingPairs": lambda: stats.RollingPairs(7),
    "RunLength": stats.RunLength,
    "RollingShare": lambda: stats.RollingShare(7),
}
NUMBERS = ["RunningMoments", "RollingSlope", "RollingPairs"]  # the others are of conditions, which are always known
ROLLING = ["RollingSlope", "RollingPairs"]
EXTREMES = [
    sys.float_info.max,
    -sys.float_info.max,
    1e308,
    -1e308,
    1e200,
    -1e160,
    5e-324,
    -5e-324,
    1e-200,
    0.0,
    -0.0,
    1.0,
]
every = pytest.mark.parametrize("name", CASES)
finite = st.floats(-1e6, 1e6)
anything = finite | st.sampled_from([math.nan, math.inf, -math.inf, *EXTREMES])


def feed(statistic: Any, values: list[Any], start: int = 0) -> Any:
    """Update with `values`, of which the first is number `start` of its stream."""
    for position, value in enumerate(values, start):
        if isinstance(statistic, (stats.RunLength, stats.RollingShare)):
            statistic.update(bool(value > 0))
        elif isinstance(statistic, stats.RollingPairs):
            statistic.update(math.sin(position), value)
        else:
            statistic.update(value)
    return statistic


def readings(statistic: Any) -> dict[str, Any]:
    """All that can be read from a statistic."""
    found = {}
    for kind in type(statistic).__mro__:
        slots = [name for name in kind.__dict__.get("__slots__", ()) if not name.startswith("_")]
        properties = [name for name, member in kind.__dict__.items() if isinstance(member, property)]
        found.update({name: getattr(statistic, name) for name in slots + properties})
    if isinstance(statistic, stats.RollingSlope):
        found["line"] = statistic.line()
    return found


def noise(count: int, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0.3, 1.0) for _ in range(count)]


def test_every_statistic_is_checked() -> None:
    public = {name for name in stats.__all__ if inspect.isclass(getattr(stats, name))}
    assert public - {"Statistic", "ScalarStatistic"} == {type(make()).__name__ for make in CASES.values()}


@every
@settings(max_examples=25, deadline=None)
@given(before=st.lists(anything, max_size=40), after=st.lists(anything, max_size=40))
def test_going_on_from_a_copy_changes_no_bit(name: str, before: list[float], after: list[float]) -> None:
    original = feed(CASES[name](), before)
    state = original.state_dict()
    copies = [pickle.loads(pickle.dumps(original)), copy.deepcopy(original)]
    for saved in (state, json.loads(json.dumps(state)), jsonio.loads(jsonio.dumps(state))):
        restored = CASES[name]()
        restored.load_state_dict(saved)
        copies.append(restored)
    frozen = json.dumps(state)
    expected = repr(readings(feed(original, after, len(before))))
    for twin in copies:
        assert repr(readings(feed(twin, after, len(before)))) == expected
    assert json.dumps(state) == frozen, "the state shares something with a statistic that went on"


@every
def test_memory_does_not_grow(name: str) -> None:
    values = noise(10_000)
    statistic = feed(CASES[name](), values)
    early = len(pickle.dumps(statistic))
    for _ in range(9):
        feed(statistic, values)
    assert len(pickle.dumps(statistic)) <= early + 64  # larger counters


@pytest.mark.parametrize("name", NUMBERS)
@settings(max_examples=25, deadline=None)
@given(st.lists(finite | st.sampled_from([math.nan, math.inf, -math.inf]), max_size=60))
def test_missing_and_infinite_values_are_counted_and_change_nothing_else(name: str, values: list[float]) -> None:
    statistic, clean = CASES[name](), CASES[name]()
    for position, value in enumerate(values):
        feed(statistic, [value], position)
        if math.isfinite(value):
            feed(clean, [value], position)
    infinite = sum(map(math.isinf, values))
    unknown = sum(map(math.isnan, values))
    assert (statistic.missing, statistic.nonfinite) == (unknown, infinite)
    ignored = {"missing", "nonfinite"}
    got, expected = readings(statistic), readings(clean)
    assert [repr(got[key]) for key in got if key not in ignored] == [
        repr(expected[key]) for key in expected if key not in ignored
    ]


@every
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(EXTREMES), max_size=50))
def test_extreme_values_neither_raise_nor_warn(name: str, values: list[float]) -> None:
    statistic = CASES[name]()
    for position, value in enumerate(values):
        feed(statistic, [value], position)
        readings(statistic)


@pytest.mark.parametrize("name", ROLLING)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(EXTREMES), min_size=1, max_size=50))
def test_windows_forget_extreme_values_entirely(name: str, values: list[float]) -> None:
    ordinary = noise(8)
    statistic = feed(feed(CASES[name](), values), ordinary, len(values))
    fresh = feed(CASES[name](), ordinary, len(values))
    for key, expected in readings(fresh).items():
        assert readings(statistic)[key] == pytest.approx(expected, rel=1e-9, abs=1e-12), key


@every
@pytest.mark.parametrize("value", [0.0, 0.1, -3.7e8, 1e308, 5e-324])
def test_a_constant_series_is_constant(name: str, value: float) -> None:
    read = readings(feed(CASES[name](), [value] * 60))
    for key in ("mean", "min", "max"):
        assert read.get(key, value) == value, key
    for key in ("variance", "std", "slope"):
        assert read.get(key, 0.0) == 0.0, key


@every
def test_results_are_plain_numbers_whatever_comes_in(name: str) -> None:
    values = noise(30)
    mixed = [kind(value) for value, kind in zip(values, [float, np.float64, np.float32, int, np.int64, bool] * 5, strict=True)]
    read = readings(feed(CASES[name](), [*mixed, np.float64("nan"), np.float32("inf"), np.float64(1e308)]))
    flat = [item for value in read.values() for item in (value if isinstance(value, tuple | list) else (value,))]
    assert {type(item) for item in flat} <= {float, int, bool, type(None)}


@every
def test_reset_makes_it_as_new(name: str) -> None:
    statistic = feed(CASES[name](), [*noise(50), math.nan, math.inf])
    statistic.reset()
    assert repr(statistic.state_dict()) == repr(CASES[name]().state_dict())
    assert repr(readings(statistic)) == repr(readings(CASES[name]()))


@every
def test_instances_have_no_dict(name: str) -> None:
    assert not hasattr(CASES[name](), "__dict__")


@every
def test_a_foreign_state_is_refused(name: str) -> None:
    statistic = feed(CASES[name](), noise(20))
    before = repr(statistic.state_dict())
    with pytest.raises(UsageError, match=r"differs in .*'surplus'"):
        statistic.load_state_dict({**statistic.state_dict(), "surplus": 1})
    for parameter in statistic.parameters:
        with pytest.raises(UsageError, match=f"saved with `{parameter}` = .*got one with 123.5"):
            statistic.load_state_dict({**statistic.state_dict(), parameter: 123.5})
    assert repr(statistic.state_dict()) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stats.RollingSlope(1), "`window` to be a whole number of at least 2, got 1"),
        (lambda: stats.RollingPairs(2.5), "`window` to be a whole number of at least 3, got 2.5"),
    ],
)
def test_parameters_out_of_range_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_repr_names_the_parameters() -> None:
    assert repr(stats.RollingSlope(7)) == "RollingSlope(window=7)"
    assert repr(stats.RunLength()) == "RunLength()"
