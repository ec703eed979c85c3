"""Events in canonical terms, whatever they come as: events, their dictionaries, or flat rows with any framework's keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from rldk.core.catalog import CATALOG, Route, identify, locate, plan_for
from rldk.core.catalog.axes import STEP_KEYS, TIME_KEYS
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.jsonio import to_number, to_step

__all__ = ["Reader", "read_events"]

PEEK = 50
RESPONSES = "response_data"
_KEPT_PLANS = 1024
_STATED = ("token", "sequence")

Simple = tuple[tuple[str, str], ...]
Routes = tuple[tuple[str, tuple[Route, ...]], ...]


class Reader:
    """Puts rows into canonical terms. What becomes of a row is worked out once for each set of keys."""

    def __init__(self, framework: str | None = "rldk") -> None:
        self.framework = framework
        self._plans: dict[tuple[str, ...], tuple[Simple, Routes, str, str]] = {}
        self._step = 0
        self._numbered = True

    def _plan(self, keys: tuple[str, ...]) -> tuple[Simple, Routes, str, str]:
        """The keys that are taken as they are, the metrics that are made of theirs, the kind of row, the KL's reduction."""
        found = self._plans.get(keys)
        if found is None:
            plan = plan_for(keys, self.framework)
            simple = [(key, key) for key in plan.unmapped]
            routes = []
            for name, ways in plan.routes.items():
                if len(ways) == 1 and ways[0].transform == "same" and len(ways[0].parts) == 1:
                    simple.append((ways[0].parts[0], name))
                else:
                    routes.append((name, ways))
            per = next((way.per for way in plan.routes.get("kl_mean", ())), "")
            found = tuple(simple), tuple(routes), plan.kind, per
            if len(self._plans) < _KEPT_PLANS:
                self._plans[keys] = found
        return found

    def given(self, metrics: Mapping[str, Any]) -> dict[str, float]:
        """Keyword metrics by canonical name. `None` was not logged; anything else that is no number is refused."""
        simple, routes, _, _ = self._plan(tuple(metrics))
        found = {}
        for key, name in simple:
            value = metrics[key]
            if type(value) is not float:
                if value is None:
                    continue
                number = to_number(value)
                if number is None:
                    raise UsageError(f"Expected `{key}` to be a number, got {value!r:.80}.")
                value = number
            found[name] = value
        for name, ways in routes:
            number = next((made for way in ways if (made := way.value(metrics)) is not None), None)
            if number is not None:
                found[name] = number
            elif (bad := next((part for way in ways for part in way.parts if metrics.get(part) is not None), None)) is not None:
                raise UsageError(f"Expected `{bad}` to be a number, got {metrics[bad]!r:.80}.")
        return found

    def event(self, raw: Event | Mapping[str, Any]) -> Event | None:
        """One event in canonical terms; `None` for a row that tells of the whole run and not of a step."""
        if isinstance(raw, Event):
            return self._canonical(raw)
        if not isinstance(raw, Mapping):
            raise UsageError(f"Expected events to be Event objects or mappings, got {raw!r:.80}.")
        step = self._step_of(raw)
        if isinstance(raw.get("metrics"), Mapping):
            return self._canonical(Event.from_dict({**raw, "step": step}))
        return self._flat(raw, step)

    def _flat(self, raw: Mapping[str, Any], step: int) -> Event | None:
        keys = tuple(key for key in raw if key != RESPONSES and isinstance(key, str))
        simple, routes, kind, per = self._plan(keys)
        if kind == "summary":
            return None
        event = Event(step)
        nulls = [name for key, name in simple if raw[key] is None]
        for key, name in simple:
            number = value if type(value := raw[key]) is float else to_number(value)
            if number is not None:
                event.metrics[name] = number
        for name, ways in routes:
            number = next((made for way in ways if (made := way.value(raw)) is not None), None)
            if number is not None:
                event.metrics[name] = number
            elif any(part in raw and raw[part] is None for way in ways for part in way.parts):
                nulls.append(name)
        event.nulls = tuple(nulls)
        event.wall_time = next((time for key in TIME_KEYS if (time := to_number(raw.get(key))) is not None), None)
        if per in _STATED:
            event.model_info["reductions"] = {"kl_mean": per}
        if RESPONSES in raw:
            event.extra[RESPONSES] = raw[RESPONSES]
        return event

    def _step_of(self, raw: Mapping[str, Any]) -> int:
        """The row's step; that of the row before where it has none; its number where no row has had one."""
        step = next((found for key in STEP_KEYS if (found := to_step(raw.get(key))) is not None), None)
        if step is not None:
            self._step, self._numbered = step, False
        elif self._numbered:
            self._step += 1
        return self._step

    def _canonical(self, event: Event) -> Event:
        simple, routes, _, per = self._plan(tuple(event.metrics))
        nulls = tuple(self._name(name) for name in event.nulls)
        if not routes and nulls == event.nulls and len(simple) == len(event.metrics) and all(key == name for key, name in simple):
            return event
        metrics = {name: event.metrics[key] for key, name in simple}
        for name, ways in routes:
            value = next((made for way in ways if (made := way.value(event.metrics)) is not None), None)
            if value is not None:
                metrics[name] = value
        info = event.model_info
        if per in _STATED and "reductions" not in info:
            info = {**info, "reductions": {"kl_mean": per}}
        return replace(event, metrics=metrics, nulls=tuple(name for name in nulls if name not in metrics), model_info=info)

    def _name(self, key: str) -> str:
        place = locate(key, self.framework)
        return key if place is None else place.metric


def read_events(events: Iterable[Event | Mapping[str, Any]]) -> Iterator[Event]:
    """Any iterable of events in canonical terms, one at a time; flat rows by the framework that their keys give away.

    The first rows are looked at together, since a row may hold few keys. Canonical names give nobody away: a row of ours
    with `kl`, `kl_coef` and `clip_frac` is not one of a trainer that calls something else `kl`.
    """
    source = iter(events)
    first = list(islice(source, PEEK))
    flat = [row for row in first if isinstance(row, Mapping) and not isinstance(row.get("metrics"), Mapping)]
    telling = dict.fromkeys(key for row in flat for key in row if isinstance(key, str) and key not in CATALOG)
    reader = Reader(identify(telling) if flat else "rldk")
    for raw in chain(first, source):
        event = reader.event(raw)
        if event is not None:
            yield event
