"""The view in the address: which runs, which tab, which part of the axis. An address that is shared opens the same view.

The session has the values, under the keys of the widgets; the address has those that are not the default. An address is only
ever compared with what there is: it names no file, and a value that means nothing is ignored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import isfinite
from typing import Any

import streamlit as st

__all__ = ["RUN_PAGE", "TABLE_PAGE", "keep_known", "load", "write"]

_WRITTEN = "rldk_address"
_REPLACED = "rldk_replaced_addresses"
_LATE_SECONDS = 3.0
_MAX_RUNS = 2_000
_MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Field:
    """A value of the view: its key in the session, its default, and how it is read from and written to the address."""

    key: str
    default: Any
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str


def _text(given: str) -> str:
    return given[:_MAX_TEXT]


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(given: str) -> str:
        if given not in choices:
            raise ValueError(given)
        return given

    return read


def _share(given: str) -> float:
    value = float(given)
    if not 0.0 <= value <= 0.99:
        raise ValueError(given)
    return round(value, 2)


def _range(given: str) -> tuple[float, float]:
    low, high = (float(end) for end in given.split("~"))
    if not (isfinite(low) and isfinite(high) and low < high):
        raise ValueError(given)
    return low, high


def _several(separator: str) -> tuple[Callable[[str], list[str]], Callable[[Any], str]]:
    def read(given: str) -> list[str]:
        return [one[:_MAX_TEXT] for one in given.split(separator) if one][:_MAX_RUNS]

    return read, lambda values: separator.join(values)


def _yes(given: str) -> bool:
    return given == "1"


def _number(value: float) -> str:
    return f"{value:.12g}"


FIELDS: dict[str, Field] = {
    "run": Field("rldk_run", None, _text),
    "part": Field("rldk_part", None, _text),
    "with": Field("rldk_compared", [], *_several("|")),
    "view": Field("rldk_view", "Overview", _text),
    "page": Field("rldk_table_page", "", _one_of("runs")),
    "q": Field("rldk_search", "", _text),
    "show": Field("rldk_shown", [], *_several(".")),
    "order": Field("rldk_order", "newest", _text),
    "runs": Field("rldk_selected", [], *_several(".")),
    "tab": Field("rldk_tab", "Curves", _one_of("Curves", "Compare")),
    "base": Field("rldk_base", None, _text),
    "group": Field("rldk_group_by", "", _text),
    "metric": Field("rldk_metric_search", "", _text),
    "all": Field("rldk_all_metrics", False, _yes, lambda value: "1"),
    "pin": Field("rldk_pinned", [], *_several(",")),
    "y": Field("rldk_y_scale", "auto", _one_of("auto", "linear", "log")),
    "logx": Field("rldk_x_log", False, _yes, lambda value: "1"),
    "smooth": Field("rldk_smoothing", 0.0, _share, _number),
    "x": Field("rldk_axis", "step", _one_of("step", "hours", "time")),
    "zoom": Field("rldk_span", None, _range, lambda span: "~".join(map(_number, span))),
}
"""What is in the address, by its name there."""

_BOTH = ("smooth", "x", "zoom")
RUN_PAGE = ("run", "part", "with", "view", *_BOTH)
TABLE_PAGE = (
    "page", "q", "show", "order", "runs", "tab", "base", "group", "metric", "all", "pin", "y", "logx", *_BOTH
)  # fmt: skip


def load() -> None:
    """Take the view from the address if it is not the one that was written last: at the first visit, or after "back"."""
    given = _given()
    first = _WRITTEN not in st.session_state
    if first or (given != st.session_state[_WRITTEN] and not _is_late(given)):
        shown = RUN_PAGE if "run" in given else TABLE_PAGE
        for name, field in FIELDS.items():
            value = _read(field, given[name]) if name in given else field.default
            if name in given or (not first and (name in shown or name == "run")):
                st.session_state[field.key] = value
        st.session_state[_WRITTEN] = given
    for field in FIELDS.values():  # set again, since Streamlit forgets the value of a widget that a page does not show
        st.session_state[field.key] = st.session_state.get(field.key, field.default)


def keep_known(key: str, options: Collection[str]) -> None:
    """Of a list in the session, keep what is among the options of its widget."""
    kept = [one for one in st.session_state[key] if one in options]
    if kept != st.session_state[key]:
        st.session_state[key] = kept


def write(shown: Collection[str]) -> None:
    """Put the view into the address: the values of these names that are not the default."""
    made: dict[str, str] = {}
    for name in shown:
        field = FIELDS[name]
        value = st.session_state.get(field.key, field.default)
        if value != field.default and value is not None:
            made[name] = field.write(value)
    if made != _given():
        st.query_params.from_dict(made)
    before = st.session_state.get(_WRITTEN)
    if before is not None and before != made:
        st.session_state[_REPLACED] = [*_replaced(), (time.monotonic() + _LATE_SECONDS, before)]
    st.session_state[_WRITTEN] = made


def _replaced() -> list[tuple[float, dict[str, str]]]:
    """The addresses that were replaced a moment ago."""
    now = time.monotonic()
    return [one for one in st.session_state.get(_REPLACED, ()) if now < one[0]]


def _is_late(given: dict[str, str]) -> bool:
    """Whether a browser gives an address that was replaced a moment ago: it was clicked in before it had the new one."""
    return any(given == address for _, address in _replaced())


def _given() -> dict[str, str]:
    return {name: st.query_params[name] for name in st.query_params if name in FIELDS}


def _read(field: Field, given: str) -> Any:
    try:
        return field.read(given)
    except (ValueError, OverflowError):
        return field.default
