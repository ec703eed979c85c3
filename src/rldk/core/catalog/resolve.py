"""From a row as a framework logged it to canonical metrics, with the units kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from rldk.core.catalog.axes import SUMMARY_KEYS, is_axis, strip_eval
from rldk.core.catalog.frameworks import FRAMEWORKS
from rldk.core.catalog.frameworks.trl import reward_model_keys
from rldk.core.catalog.guess import guess
from rldk.core.catalog.lookup import CATALOG, Place, entry_of, identify, is_not_judged, locate, sums
from rldk.core.catalog.metric import TRANSFORMS, Key, normalise
from rldk.core.errors import UsageError
from rldk.core.jsonio import to_number
from rldk.core.text import did_you_mean

__all__ = ["AXIS_TARGETS", "Plan", "Resolution", "Route", "check_field_map", "plan_for", "resolve"]

AXIS_TARGETS = ("step", "wall_time", "run_id", "phase")
"""What a field map may name beside the metrics: where a row belongs."""
_RIVALS = {"token": "kl_mean_per_token", "sequence": "kl_mean_per_sequence"}
_OF_PAIRS = frozenset({"reward_acc", "reward_accuracy", "reward_accuracies", "acc", "accuracy"})


class Route(Struct, frozen=True, gc=False):
    """How one canonical metric is made of a row: which raw keys are added or subtracted, and what is done to the sum."""

    metric: str
    parts: tuple[str, ...]
    transform: str
    per: str
    signs: tuple[float, ...] = (1.0,)

    @property
    def source(self) -> str:
        first, *others = self.parts
        if not others:
            return first
        return first + "".join(f" {'+' if sign > 0 else '-'} {part}" for part, sign in zip(others, self.signs[1:], strict=True))

    def value(self, row: Mapping[str, Any]) -> float | None:
        """The metric's value in a row; `None` where a part of it is not a number."""
        total = to_number(row.get(self.parts[0]))
        for part, sign in zip(self.parts[1:], self.signs[1:], strict=True):
            number = to_number(row.get(part))
            total = None if total is None or number is None else total + sign * number
        return None if total is None else TRANSFORMS[self.transform](total)


@dataclass(frozen=True)
class Plan:
    """What becomes of the rows that have a given set of keys. Each metric has its routes in order of priority.

    Rows are read by `values`; the columns of a table by `rldk.runs.canonical.canonical_columns`.
    """

    routes: Mapping[str, tuple[Route, ...]]
    unmapped: tuple[str, ...]
    kind: str
    not_judged: tuple[str, ...] = ()
    """The keys that the framework is known to log and that carry no judgement; like unknown ones, they keep their name."""
    guessed: tuple[str, ...] = ()
    """The keys whose metric was guessed by the parts of their name."""

    @cached_property
    def copied(self) -> tuple[tuple[str, str], ...]:
        """The keys whose values are taken as they are, each with its metric; those of no metric keep their name."""
        alone = ((ways[0].parts[0], name) for name, ways in self.routes.items() if _is_copy(ways))
        return (*((key, key) for key in (*self.unmapped, *self.not_judged)), *alone)

    @cached_property
    def made(self) -> tuple[tuple[str, tuple[Route, ...]], ...]:
        """The other metrics, with their routes."""
        return tuple((name, ways) for name, ways in self.routes.items() if not _is_copy(ways))

    @cached_property
    def sources(self) -> dict[str, str]:
        """The raw key of each metric, that of its first route."""
        return {name: ways[0].source for name, ways in self.routes.items()}

    @cached_property
    def reductions(self) -> dict[str, str]:
        """Over what each metric is reduced, that of its first route."""
        return {name: ways[0].per for name, ways in self.routes.items()}

    @cached_property
    def contested(self) -> tuple[str, ...]:
        """The metrics that several keys of a row say."""
        return tuple(name for name, ways in self.routes.items() if len(ways) > 1)

    @cached_property
    def changes_nothing(self) -> bool:
        """Whether every key is kept as it is."""
        return not self.made and all(key == name for key, name in self.copied)

    def values(self, row: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
        """The numbers of a row by canonical name, or by their own where they have none; and the metrics logged as `null`."""
        found: dict[str, float] = {}
        nulls = []
        for key, name in self.copied:
            value = row[key]
            if type(value) is not float:
                if value is None:
                    nulls.append(name)
                if (value := to_number(value)) is None:
                    continue
            found[name] = value
        for name, ways in self.made:
            number = next((made for way in ways if (made := way.value(row)) is not None), None)
            if number is not None:
                found[name] = number
            elif any(part in row and row[part] is None for way in ways for part in way.parts):
                nulls.append(name)
        return found, nulls


def _is_copy(ways: tuple[Route, ...]) -> bool:
    return len(ways) == 1 and ways[0].transform == "same" and len(ways[0].parts) == 1


@dataclass(slots=True)
class Resolution:
    """A row in canonical terms.

    `sources` says which raw key each metric came from, `reductions` over what it was reduced (`token`, `sequence`,
    `batch`, `run`, or `unstated`), `duplicates` which raw keys say the same as one that was taken, `nulls` which
    metrics were logged without a value, `not_judged` which keys the framework is known to log, and `kind` whether this is
    a row of `train`, `eval`, a `summary`, or `other`.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    unmapped: list[str] = field(default_factory=list)
    reductions: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    nulls: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    kind: str = "other"
    framework: str | None = None


def resolve(raw: Mapping[str, Any], *, framework: str | None = None, field_map: Mapping[str, str] | None = None) -> Resolution:
    """Put a logged row into canonical terms. Without `framework` it is recognised by the row's keys."""
    if framework is not None and framework not in FRAMEWORKS:
        raise UsageError(f"Expected `framework` to be one of {list(FRAMEWORKS)}, got {framework!r}.")
    keys = tuple(raw)
    framework = framework or identify(keys)
    plan = plan_for(keys, framework, tuple(sorted((field_map or {}).items())))
    values, nulls = plan.values(raw)
    result = Resolution(kind=plan.kind, framework=framework)
    result.metrics = {name: values[name] for name in plan.routes if name in values}
    result.sources = {name: plan.sources[name] for name in result.metrics}
    result.reductions = {name: plan.reductions[name] for name in result.metrics}
    for name in plan.contested:
        if name in values:
            taken, *others = (route for route in plan.routes[name] if route.value(raw) is not None)
            result.sources[name], result.reductions[name] = taken.source, taken.per
            result.duplicates.update((route.source, name) for route in others)
    result.nulls = [name for name in plan.routes if name in nulls] if nulls else []
    result.unmapped = [key for key in plan.unmapped if key in values]
    result.not_judged = [key for key in plan.not_judged if key in values]
    return result


def check_field_map(field_map: Mapping[str, str]) -> None:
    """Refuse a target that is not a canonical name, and suggest those that look like it."""
    for source, target in field_map.items():
        if target in AXIS_TARGETS or (entry_of(target) is not None and not target.endswith(("/", "/*"))):
            continue
        hint = did_you_mean(target, [*CATALOG, *AXIS_TARGETS]) or " `rldk catalog` lists them."
        raise UsageError(f"Cannot map {source!r} to {target!r}: no canonical metric has that name.{hint}")


@lru_cache(maxsize=1024)
def plan_for(
    keys: tuple[str, ...], framework: str | None, field_map: tuple[tuple[str, str], ...] = (), guesses: bool = False
) -> Plan:
    """What becomes of rows with these keys. Cached, since a run has only a few kinds of rows.

    With `guesses`, keys that no known framework logs are matched by the parts of their names where nothing else is that metric.
    That needs all keys of a log: of a single row it would not be known what the others hold.
    """
    given = dict(field_map)
    present = frozenset(keys)
    found: dict[str, list[tuple[int, Route]]] = {}
    unmapped: list[str] = []
    held_out = False
    of_reward_model = reward_model_keys(present)
    for key in keys:
        if key in given:
            if given[key] not in AXIS_TARGETS:
                # A field map says which metric a key is, and not over what it is reduced.
                per = "unstated" if given[key].removeprefix("eval_") == "kl_mean" else ""
                found.setdefault(given[key], []).append((-1, _route(given[key], Key(key), (key,), per)))
            continue
        if (metric := of_reward_model.get(key)) == "":
            unmapped.append(key)
            continue
        place = Place(metric, Key(key), "sequence", 0) if metric else _place_in_row(key, framework, present)
        bare = strip_eval(key) if place is None else None
        if bare is not None:
            held_out = True
            place = _held_out(bare, framework)
        if place is not None:
            found.setdefault(place.metric, []).append((place.rank, _route(place.metric, place.key, (key,), place.per)))
        elif not is_axis(key):
            unmapped.append(key)
    _add_sums(found, unmapped, present, framework)
    guessed = _add_guesses(found, unmapped, framework) if guesses else ()
    routes = {name: tuple(route for _, route in sorted(ranked, key=lambda pair: pair[0])) for name, ranked in found.items()}
    _part_reductions(routes)
    not_judged = tuple(key for key in unmapped if is_not_judged(key, framework))
    others = tuple(key for key in unmapped if key not in not_judged)
    return Plan(routes, others, _kind(routes, present, held_out), not_judged, guessed)


def _route(name: str, key: Key, parts: tuple[str, ...], per: str) -> Route:
    entry = entry_of(name)
    signs = tuple(-1.0 if part.startswith("-") else 1.0 for part in key.parts) if len(parts) > 1 else (1.0,)
    return Route(name, parts, key.transform, per or (entry.reduction if entry else "unstated"), signs)


def _place_in_row(key: str, framework: str | None, present: frozenset[str]) -> Place | None:
    """Where a key goes in the company of the others: beside `kl_ref`, a bare `kl` is the KL of the update.

    `acc` beside margins is the share of pairs in the right order; by itself it may be the share of right answers.
    """
    place = locate(key, framework)
    named = (place is None or place.metric == "accuracy") and normalise(key).removeprefix("train_") in _OF_PAIRS
    if named and any(map(_is_of_pairs, present)):
        return Place("preference_accuracy", Key(key), "sequence", 50)
    if place is None or place.metric != "kl_mean" or key.rsplit("/", 1)[-1].lower() != "kl":
        return place
    if any(other.rsplit("/", 1)[-1].lower() == "kl_ref" for other in present):
        return Place("kl_update", Key(key), "token", 50)
    return place


def _is_of_pairs(key: str) -> bool:
    place = locate(key)
    return place is not None and place.metric in ("preference_margin", "chosen_reward_mean", "rejected_reward_mean")


def _held_out(bare: str, framework: str | None) -> Place | None:
    """Where a metric of held-out data goes: the same metric, with `eval_` before its name."""
    place = locate(bare, framework) or locate(_last_words(bare), None)
    return Place(f"eval_{place.metric}", place.key, place.per, place.rank) if place is not None else None


def _last_words(bare: str) -> str:
    """verl and others put the data set before the metric: `gsm8k/acc/mean@8` is `acc`, and older `test_score/gsm8k` the score."""
    if bare.startswith("test_score/") or bare.endswith("/test_score"):
        return "score"
    parts = [part for part in bare.split("/") if not part.startswith(("mean@", "best@", "maj@", "std@", "worst@", "avg@"))]
    return parts[-1] if parts else bare


def _add_sums(
    found: dict[str, list[tuple[int, Route]]], unmapped: list[str], present: frozenset[str], framework: str | None
) -> None:
    for entry, key, rank in sums(framework):
        for prefix in ("", "train/"):
            parts = tuple(prefix + part.removeprefix("-") for part in key.parts)
            if all(part in present for part in parts):
                found.setdefault(entry.name, []).append((rank, _route(entry.name, key, parts, key.per)))
                unmapped[:] = [name for name in unmapped if name not in parts]
                break


def _add_guesses(
    found: dict[str, list[tuple[int, Route]]], unmapped: list[str], framework: str | None
) -> tuple[str, ...]:
    """Match keys that are not known by their parts, where no other key is that metric; of a known framework, held-out ones."""
    guessed: dict[str, Place] = {}
    for key in unmapped:
        if framework is not None and (strip_eval(key) is None or is_not_judged(key, framework)):
            continue
        place = guess(key)
        if place is not None and place.metric not in found and place.metric not in (one.metric for one in guessed.values()):
            guessed[key] = place
    for key, place in guessed.items():
        found[place.metric] = [(place.rank, _route(place.metric, place.key, (key,), place.per))]
    unmapped[:] = [key for key in unmapped if key not in guessed]
    return tuple(guessed)


def _part_reductions(routes: dict[str, tuple[Route, ...]]) -> None:
    """A KL per token and one per sequence are two quantities: the second gets its own name."""
    for held_out in ("", "eval_"):
        rivals = routes.get(f"{held_out}kl_mean", ())
        others = [route for route in rivals if route.per in _RIVALS and route.per != rivals[0].per]
        if not others:
            continue
        routes[f"{held_out}kl_mean"] = tuple(route for route in rivals if route not in others)
        for per, rival in _RIVALS.items():
            own = tuple(Route(held_out + rival, route.parts, route.transform, per) for route in others if route.per == per)
            if own:
                routes[held_out + rival] = routes.get(held_out + rival, ()) + own


_DESCRIBING = frozenset({"settings", "optimisation", "throughput", "resources"})


def _kind(routes: Iterable[str], present: frozenset[str], held_out: bool) -> str:
    """Whether such a row describes training, held-out data, the whole run, or something unknown."""
    measured = {name for name in routes if not name.startswith("eval_") and _group(name) not in _DESCRIBING}
    if present & SUMMARY_KEYS and measured <= {"loss"}:
        return "summary"
    if measured:
        return "train"
    if held_out:
        return "eval"
    return "train" if any(not name.startswith("eval_") for name in routes) else "other"


def _group(name: str) -> str:
    entry = entry_of(name)
    return entry.group if entry else ""
