"""Lists of numbers under a metric's name: of `"rewards": [1.0, 0.0]` the mean, and spread and ends where these are metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.catalog import CATALOG, locate

__all__ = ["mean_of", "statistics_of"]

_NUMBERS = frozenset({float, int, bool})
_MAX_ITEMS = 1 << 20

Statistic = tuple[str, npt.NDArray[np.intp], npt.NDArray[np.float64]]
"""A column's name, the cells it has a value for, and the values."""


def statistics_of(name: str, cells: Sequence[Any]) -> Iterator[Statistic]:
    """The columns that lists of numbers make; none where the catalogue does not know what they are numbers of.

    An item that is `null` was not measured; one that is not finite was. A list of one has no spread.
    """
    if not (names := _names(name)):
        return
    lists = [(position, numbers) for position, cell in enumerate(cells) if (numbers := _numbers(cell)) is not None]
    if not lists:
        return
    where = np.array([position for position, _ in lists], dtype=np.intp)
    with np.errstate(all="ignore"):
        for statistic, column in names.items():
            values = np.array([_STATISTICS[statistic](numbers) for _, numbers in lists])
            there = np.array([statistic != "std" or len(numbers) > 1 for _, numbers in lists])
            if there.any():
                yield column, where[there], values[there]


def mean_of(name: str, cell: Any) -> float | None:
    """The mean of a list, where that is a metric; `None` where it is not."""
    numbers = _numbers(cell) if _names(name) else None
    return None if numbers is None else float(numbers.mean())


_STATISTICS: dict[str, Any] = {
    "mean": np.mean,
    "std": lambda numbers: numbers.std(ddof=1) if len(numbers) > 1 else np.nan,
    "min": np.min,
    "max": np.max,
}


@lru_cache(maxsize=4096)
def _names(name: str) -> dict[str, str]:
    """Each statistic of a list under this name, and the column it goes to: `rewards_std` beside `rewards`."""
    place = locate(name)
    if place is None or not place.metric.endswith(("_mean", "accuracy")):
        return {}
    names = {"mean": name}
    for statistic in ("std", "min", "max"):
        metric = f"{place.metric.removesuffix('mean')}{statistic}"
        if metric in CATALOG and (found := locate(f"{name}_{statistic}")) is not None and found.metric == metric:
            names[statistic] = f"{name}_{statistic}"
    return names


def _numbers(cell: Any) -> npt.NDArray[np.float64] | None:
    if type(cell) is not list or not 0 < len(cell) <= _MAX_ITEMS:
        return None
    items = [item for item in cell if item is not None]
    if not items or not _NUMBERS.issuperset(map(type, items)):
        return None
    try:
        return np.array(items, dtype=np.float64)
    except OverflowError:
        return None
