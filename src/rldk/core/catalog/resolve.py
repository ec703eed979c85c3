"""From a row as a framework logged it to canonical metrics, with the units kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rldk.core.catalog.axes import SUMMARY_KEYS, is_axis, strip_eval
from rldk.core.catalog.frameworks import FRAMEWORKS
from rldk.core.catalog.frameworks.trl import reward_model_keys
from rldk.core.catalog.guess import guess
from rldk.core.catalog.lookup import CATALOG, Place, entry_of, identify, is_not_judged, locate, sums
from rldk.core.catalog.metric import Key, normalise
from rldk.core.catalog.plan import Plan, Route
from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean

__all__ = ["AXIS_TARGETS", "Resolution", "check_field_map", "plan_for", "resolve"]

AXIS_TARGETS = ("step", "wall_time", "run_id", "phase")
"""What a field map may name beside the metrics: where a row belongs."""
_RIVALS = {"token": "kl_mean_per_token", "sequence": "kl_mean_per_sequence"}
_OF_PAIRS = frozenset({"reward_acc", "reward_accuracy", "reward_accuracies", "acc", "accuracy"})


@dataclass(slots=True)
class Resolution:
    """A row in canonical terms.

    `sources` says which raw key each metric came from, `reductions` over what it was reduced (`token`, `sequence`,
    `batch`, `run`, or `unstated`), `nulls` which metrics were logged without a value, `not_judged` which keys the framework
    is known to log, and `kind` whether this is a row of `train`, `eval`, a `summary`, or `other`.
    """

    metrics: dict[str, float]
    sources: dict[str, str]
    reductions: dict[str, str]
    nulls: list[str]
    unmapped: list[str]
    not_judged: list[str]
    kind: str


def resolve(raw: Mapping[str, Any], *, framework: str | None = None, signs: dict[str, float] | None = None) -> Resolution:
    """Put a logged row into canonical terms. Without `framework` it is recognised by the row's keys.

    `signs` is what the rows before it have left there: see `Route.value`.
    """
    if framework is not None and framework not in FRAMEWORKS:
        raise UsageError(f"Expected `framework` to be one of {list(FRAMEWORKS)}, got {framework!r}.")
    keys, signs = tuple(raw), {} if signs is None else signs
    plan = plan_for(keys, framework or identify(keys))
    values, nulls = plan.values(raw, signs)
    taken = {
        name: next(way for way in ways if way.value(raw, signs) is not None)
        for name, ways in plan.routes.items() if name in values
    }  # fmt: skip
    return Resolution(
        metrics={name: values[name] for name in taken},
        sources={name: way.source for name, way in taken.items()},
        reductions={name: way.per for name, way in taken.items()},
        nulls=[name for name in nulls if name in plan.routes],
        unmapped=[key for key in plan.unmapped if key in values],
        not_judged=[key for key in plan.not_judged if key in values],
        kind=plan.kind,
    )


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
            if place.key.transform == "unless_negative":
                name = place.metric.replace("kl_mean", "kl_penalty_reward")
                found.setdefault(name, []).append((place.rank, _route(name, Key(key, "if_negative"), (key,), "")))
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
