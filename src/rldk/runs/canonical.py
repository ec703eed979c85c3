"""Canonical terms: rows, events and tables with the keys of any framework get the names of the catalogue.

What becomes of a set of keys is worked out once, in `core.catalog.plan_for`. Here it is applied: to one row or event at a time
(`Canonicaliser`), and to the columns of a whole table (`canonical_columns`). What was measured on held-out data gets `eval_`
before its name: in an event by `prefix_held_out`, in the rows of a table by `prefix_held_out_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.catalog import CATALOG, Plan, Route, identify, is_known, locate, plan_for
from rldk.core.catalog.axes import HELD_OUT, STEP_KEYS, TIME_KEYS, step_of
from rldk.core.catalog.metric import BY_SIGN, TRANSFORMS
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.jsonio import to_number
from rldk.core.text import did_you_mean
from rldk.runs.percentages import Percentages
from rldk.runs.row_axes import find_step_keys
from rldk.runs.run import Coverage
from rldk.runs.table import ABSENT, NULL, NUMBER, TEXT, Column, Table

__all__ = [
    "POSITIONS", "RESPONSES", "Canonicaliser", "canonical_columns", "fullest", "held_out_rows", "prefix_held_out",
    "prefix_held_out_rows", "read_events",
]  # fmt: skip

PEEK = 50
RESPONSES = "response_data"
POSITIONS = frozenset({"epoch", "episodes", "global_step"})
"""Metrics that say how far a run is, and measure nothing."""
_KEPT_PLANS = 1024
_MOST_TELLING = 4096  # keys by which a framework is recognised
_MAX_UNKNOWN_CELLS = 10_000_000  # of keys that the catalogue does not know
_MIN_UNKNOWN = 40
_SHORT = ("kl", "entropy", "learning_rate", "total_grad_norm", "reward", "accuracy", "length", "clipfrac")
"""Short names of metrics that people mistype."""
_STATED = ("token", "sequence")


class Canonicaliser:
    """Puts the rows and events of one run into canonical terms, one at a time.

    Args:
        framework: whose keys they have.
        step_keys: the keys that may hold a row's step, best first; without any, rows are numbered.
        written: whether the events were written by rldk, which has divided percentages before.
        recognises: whether the framework is recognised by the keys of flat rows as they come.
    """

    def __init__(
        self,
        framework: str | None = "rldk",
        step_keys: Sequence[str] = STEP_KEYS,
        written: bool = False,
        recognises: bool = False,
    ) -> None:
        self.framework = framework
        self._recognises, self._telling = recognises, dict[str, None]()
        self._step_keys = step_keys
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._signs: dict[str, float] = {}
        self._percentages = None if written else Percentages()
        self._step = 0
        self._numbered = True

    def _recognise(self, keys: tuple[str, ...]) -> None:
        """Read the keys from here on as those of the framework that logs all keys so far."""
        new = [key for key in keys if key not in self._telling and key not in CATALOG]
        if new and len(self._telling) < _MOST_TELLING:
            self._telling.update(dict.fromkeys(new))
            framework = identify(self._telling) or self.framework
            if framework != self.framework:
                self.framework = framework
                self._plans.clear()

    def state_dict(self) -> dict[str, Any]:
        """What the values of keys have decided so far, as JSON can hold it."""
        percentages = {} if self._percentages is None else self._percentages.state_dict()
        return {"signs": dict(self._signs), "percentages": percentages}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Go on with what was decided before; `None` where an older state does not say."""
        if state is None:
            return
        self._signs = dict(state["signs"])
        if self._percentages is not None and state["percentages"]:
            self._percentages.load_state_dict(state["percentages"])

    def _plan(self, keys: tuple[str, ...]) -> Plan:
        found = self._plans.get(keys)
        if found is None:
            found = plan_for(keys, self.framework)
            if len(self._plans) < _KEPT_PLANS:
                self._plans[keys] = found
        return found

    def keywords(self, metrics: Mapping[str, Any]) -> dict[str, float]:
        """Keyword metrics by canonical name. `None` was not logged; what is not a number, and a misspelt name, is refused."""
        plan = self._plan(tuple(metrics))
        for name in plan.unmapped:
            if not is_known(name) and (hint := did_you_mean(name, {*CATALOG, *_SHORT}, cutoff=0.8)):
                raise UsageError(f"`{name}` is not a metric of the catalogue.{hint}")
        for key, value in metrics.items():
            if type(value) is not float and value is not None and to_number(value) is None:
                raise UsageError(f"Expected `{key}` to be a number, got {value!r:.80}.")
        return self._fractions(plan.values(metrics, self._signs)[0])

    def event(self, raw: Event | Mapping[str, Any]) -> Event | None:
        """One event in canonical terms; `None` for a row that describes the whole run and not a step."""
        if isinstance(raw, Event):
            return self._of_event(raw)
        if not isinstance(raw, Mapping):
            raise UsageError(f"Expected events to be Event objects or mappings, got {raw!r:.80}.")
        step = self._step_of(raw)
        if isinstance(raw.get("metrics"), Mapping):
            return self._of_event(Event.from_dict({**raw, "step": step}))
        return self._of_row(raw, step)

    def _of_row(self, raw: Mapping[str, Any], step: int) -> Event | None:
        keys = tuple(key for key in raw if key != RESPONSES and isinstance(key, str))
        if self._recognises and keys not in self._plans:
            self._recognise(keys)
        plan = self._plan(keys)
        if plan.kind == "summary":
            return None
        metrics, nulls = plan.values(raw, self._signs)
        time = next((time for key in TIME_KEYS if (time := to_number(raw.get(key))) is not None), None)
        event = Event(step, self._fractions(metrics), time, nulls=tuple(nulls))
        if (per := _reduction_of_kl(plan)) in _STATED:
            event.model_info["reductions"] = {"kl_mean": per}
        if RESPONSES in raw:
            event.extra[RESPONSES] = raw[RESPONSES]
        return event

    def _step_of(self, raw: Mapping[str, Any]) -> int:
        """The row's step; that of the row before where it has none; its number where no row has had one."""
        step = step_of(raw, self._step_keys)
        if step is not None:
            self._step, self._numbered = step, False
        elif self._numbered:
            self._step += 1
        return self._step

    def _of_event(self, event: Event) -> Event:
        plan = self._plan(tuple(event.metrics))
        nulls = tuple(map(self._name, event.nulls)) if event.nulls else ()
        if plan.changes_nothing and nulls == event.nulls:
            return self.to_fractions(event)
        metrics, _ = plan.values(event.metrics, self._signs)
        info = event.model_info
        if (per := _reduction_of_kl(plan)) in _STATED and "reductions" not in info:
            info = {**info, "reductions": {"kl_mean": per}}
        nulls = tuple(name for name in nulls if name not in metrics)
        return self.to_fractions(replace(event, metrics=metrics, nulls=nulls, model_info=info))

    def to_fractions(self, event: Event) -> Event:
        """An event in canonical terms, with the shares that this run logs in percent as fractions."""
        metrics = self._fractions(event.metrics)
        return event if metrics is event.metrics else replace(event, metrics=metrics)

    def _fractions(self, metrics: dict[str, float]) -> dict[str, float]:
        return metrics if self._percentages is None else self._percentages.to_fractions(metrics)

    def _name(self, key: str) -> str:
        place = locate(key, self.framework)
        return key if place is None else place.metric


def _reduction_of_kl(plan: Plan) -> str:
    return next((way.per for way in plan.routes.get("kl_mean", ())), "")


def read_events(events: Iterable[Event | Mapping[str, Any]]) -> Iterator[Event]:
    """Any iterable of events in canonical terms, one at a time; flat rows by the framework that their keys identify.

    The first rows are looked at together, since a row may hold few keys. Canonical names identify no framework: a row of ours
    with `kl`, `kl_coef` and `clip_frac` is not one of a trainer that calls something else `kl`.
    """
    source = iter(events)
    first = list(islice(source, PEEK))
    flat = [row for row in first if isinstance(row, Mapping) and not isinstance(row.get("metrics"), Mapping)]
    telling = dict.fromkeys(key for row in flat for key in row if isinstance(key, str) and key not in CATALOG)
    step_keys = find_step_keys([row for row in first if isinstance(row, Mapping)], whole=len(first) < PEEK)
    canonicaliser = Canonicaliser(identify(telling) if flat else "rldk", step_keys)
    for raw in chain(first, source):
        event = canonicaliser.event(raw)
        if event is not None:
            yield event


def canonical_columns(table: Table, plan: Plan) -> tuple[dict[str, Column], Coverage]:
    """The columns of a table by canonical name, and an account of which key each came from."""
    coverage = Coverage(guessed=list(plan.guessed))
    columns: dict[str, Column] = {}
    for name, routes in plan.routes.items():
        column: Column | None = None
        for route in routes:
            made = _follow(table, route)
            if not (made.state != ABSENT).any():
                continue
            if (made.state == NUMBER).any():
                if name in coverage.metrics:
                    coverage.duplicates[route.source] = name
                else:
                    coverage.metrics[name] = route.source
                    coverage.reductions[name] = route.per
            column = made if column is None else column.fill(made)
        if column is not None:
            columns[name] = column
    for kept, found in ((plan.unmapped, coverage.unmapped), (plan.not_judged, coverage.not_judged)):
        for name in fullest(table, kept):
            column = table.column(name)
            if (column.state == NUMBER).any():
                found.append(name)
                columns[name] = column
    return columns, coverage


def fullest(table: Table, names: Sequence[str]) -> Sequence[str]:
    """The keys with the most cells: one that is new in each row would fill the memory with gaps, and tells nothing."""
    room = max(_MIN_UNKNOWN, _MAX_UNKNOWN_CELLS // max(table.rows, 1))
    if len(names) <= room:
        return names
    kept = set(sorted(names, key=lambda name: -table.cells_of(name))[:room])
    return [name for name in names if name in kept]


def _follow(table: Table, route: Route) -> Column:
    """A metric's column by one route; a sum needs all of its parts."""
    made = table.column(route.parts[0])
    made.state[made.state == TEXT] = ABSENT
    made.codes, made.words = None, ()
    for part, sign in zip(route.parts[1:], route.signs[1:], strict=True):
        other = table.column(part)
        both = (made.state == NUMBER) & (other.state == NUMBER)
        null = ~both & (made.state != ABSENT) & (other.state != ABSENT)
        made.values = np.where(both, made.values + sign * other.values, np.nan)
        made.state = np.where(both, NUMBER, np.where(null, NULL, ABSENT)).astype(np.uint8)
    if route.transform in BY_SIGN:
        made = _follow_sign(made, route.transform)
    elif route.transform == "root":
        made.values = np.sqrt(np.where(made.values >= 0, made.values, np.nan))
    elif route.transform != "same":
        made.values = np.asarray(TRANSFORMS[route.transform](made.values))  # type: ignore[arg-type]
    return made


def _follow_sign(column: Column, transform: str) -> Column:
    """A column by the sign of its first value that is not 0."""
    there = column.values[np.isfinite(column.values) & (column.values != 0.0)]
    factor = BY_SIGN[transform][int(bool(len(there)) and there[0] < 0.0)]
    if factor is None:
        return Column(np.full_like(column.values, np.nan), np.full_like(column.state, ABSENT))
    return replace(column, values=factor * column.values)


def _held_out_name(name: str) -> str:
    """What a metric is called where it was measured on held-out data; what says how far the run is keeps its name."""
    return name if name.startswith("eval_") or name in POSITIONS else f"eval_{name}"


def prefix_held_out(event: Event) -> Event:
    """An event of a held-out phase with `eval_` before its metrics, so that they are not taken for those of training."""
    if str(event.phase).lower() not in HELD_OUT:
        return event
    metrics = {_held_out_name(name): value for name, value in event.metrics.items()}
    return replace(event, metrics=metrics, nulls=tuple(map(_held_out_name, event.nulls)))


def held_out_rows(phase: Column) -> npt.NDArray[np.bool_]:
    """Which rows say that they were measured on held-out data."""
    is_held_out = np.array([*(word.lower() in HELD_OUT for word in phase.words), False])
    return is_held_out[phase.codes] if phase.codes is not None else np.zeros(len(phase.state), dtype=bool)


def prefix_held_out_rows(columns: dict[str, Column], coverage: Coverage, held_out: npt.NDArray[np.bool_]) -> None:
    """The same for the rows of a table: their cells move to columns with `eval_` before their names."""
    for name in list(columns):
        column, own_name = columns[name], _held_out_name(name)
        there = (column.state != ABSENT) & held_out
        if own_name == name or not there.any():
            continue
        own = Column(np.where(there, column.values, np.nan), np.where(there, column.state, ABSENT))
        columns[own_name] = columns[own_name].fill(own) if own_name in columns else own
        columns[name] = Column(np.where(there, np.nan, column.values), np.where(there, ABSENT, column.state))
        if name in coverage.metrics:
            coverage.metrics.setdefault(own_name, coverage.metrics[name])
            coverage.reductions.setdefault(own_name, coverage.reductions[name])
        else:
            (coverage.not_judged if name in coverage.not_judged else coverage.unmapped).append(own_name)
