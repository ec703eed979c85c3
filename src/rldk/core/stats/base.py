"""What every streaming statistic shares: missing values, saving and restoring, starting over."""

from __future__ import annotations

from collections import deque
from collections.abc import KeysView, Mapping
from functools import cache
from math import isfinite
from operator import index
from typing import Any, ClassVar

from rldk.core.errors import UsageError

__all__ = ["NOISE_PER_STEP", "ScalarStatistic", "Statistic", "bounds_in_words", "check_number", "check_window"]

NOISE_PER_STEP = 0.886
"""Standard deviation over the mean distance of two values of it (half the root of pi, for normal ones)."""


class Statistic:
    """A statistic that is kept up to date one observation at a time, in bounded memory.

    Everything an instance knows is in its `__slots__`: the parameters, named in `parameters`, and the state, which
    `reset` sets. By these it is pickled, copied, and saved with `state_dict`.

    A value that is NaN is missing: it changes nothing but the count in `missing`. An infinite one changes nothing but
    the count in `nonfinite`.
    """

    __slots__ = ("missing", "nonfinite")
    parameters: ClassVar[tuple[str, ...]] = ()
    missing: int
    nonfinite: int

    def reset(self) -> None:
        """Forget everything seen; the parameters stay."""
        self.missing = 0
        self.nonfinite = 0

    def _names(self) -> KeysView[str]:
        kind: Any = type(self)
        return _slots(kind)

    def state_dict(self) -> dict[str, Any]:
        """Everything the statistic knows, as JSON. Shares nothing with the statistic."""
        return {name: _plain(getattr(self, name)) for name in self._names()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the statistic that gave `state` was: the results are the same to the last bit."""
        names = self._names()
        if names != state.keys():
            differing = sorted(names ^ state.keys())
            raise UsageError(f"Expected the state of a {type(self).__name__}, got one that differs in {differing}.")
        for name in self.parameters:
            if state[name] != getattr(self, name):
                raise UsageError(
                    f"Expected a state saved with `{name}` = {getattr(self, name)!r}, got one with {state[name]!r}: "
                    f"build the {type(self).__name__} with the same parameters, or start a new one."
                )
        for name in names:
            setattr(self, name, _restored(getattr(self, name), state[name]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.parameters)})"


class ScalarStatistic(Statistic):
    """A statistic of one series of numbers."""

    __slots__ = ()

    def update(self, value: float) -> None:
        """Take the next value of the series."""
        value = float(value)  # a numpy scalar would spread through the state: ten times slower, and it warns
        if isfinite(value):
            self._add(value)
        else:
            self._skip(value)

    def _add(self, value: float) -> None:
        """Take a finite value."""
        raise NotImplementedError

    def _skip(self, value: float) -> None:
        if value != value:
            self.missing += 1
        else:
            self.nonfinite += 1


def check_window(name: str, value: int, *, minimum: int) -> int:
    """The length of a window, or an error that says what is wrong with it."""
    if not hasattr(value, "__index__") or index(value) < minimum:
        raise UsageError(f"Expected `{name}` to be a whole number of at least {minimum}, got {value!r}.")
    return index(value)


def check_number(name: str, value: float, *, minimum: float | None = None, maximum: float | None = None) -> float:
    """A finite parameter within its bounds, or an error that says what is wrong with it."""
    number = float(value)
    if not isfinite(number) or (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        bounds = bounds_in_words(minimum=minimum, maximum=maximum)
        raise UsageError(f"Expected `{name}` to be a finite number{bounds}, got {value!r}.")
    return number


def bounds_in_words(*, minimum: float | None, maximum: float | None) -> str:
    """` of at least 1 and of at most 5`; empty without bounds."""
    bounds = (("of at least", minimum), ("of at most", maximum))
    return " and".join(f" {word} {bound:g}" for word, bound in bounds if bound is not None)


@cache
def _slots(kind: type[Statistic]) -> KeysView[str]:
    """All slots of a class, those of its bases first."""
    return dict.fromkeys(name for base in reversed(kind.__mro__) for name in base.__dict__.get("__slots__", ())).keys()


_SCALARS = frozenset({bool, float, int, str, type(None)})
"""What most of a state is: it is looked for first, since a state may be saved at every step."""


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Statistic):
        return value.state_dict()
    if isinstance(value, dict):
        return dict(value)
    return list(value) if isinstance(value, list | deque) else value


def _restored(current: Any, saved: Any) -> Any:
    """What was saved, as the kind of thing that is there now."""
    if type(current) in _SCALARS:
        return saved
    if isinstance(current, Statistic):
        current.load_state_dict(saved)
        return current
    if isinstance(current, deque):
        return deque(saved, current.maxlen)
    if isinstance(current, list):
        return list(saved)
    return dict(saved) if isinstance(current, dict) else saved
