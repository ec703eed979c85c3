"""Where a raw key goes: by the keys of its framework first, then by what all frameworks agree on, then by alias."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice

from msgspec import Struct

from rldk.core.catalog.axes import SUMMARY_KEYS, is_axis, strip_eval
from rldk.core.catalog.frameworks import FRAMEWORKS
from rldk.core.catalog.metric import Key, Metric, normalise, without_blanks
from rldk.core.catalog.metrics import METRICS

__all__ = [
    "AMBIGUOUS", "CATALOG", "Place", "entry_of", "identify", "is_known", "is_measured", "is_not_judged", "keys_by_framework",
    "keys_of", "locate", "metric_named",
]  # fmt: skip

CATALOG: dict[str, Metric] = {entry.name: entry for entry in METRICS}
"""Every canonical metric by name."""
assert len(CATALOG) == len(METRICS), "two metrics have one name"


def entry_of(name: str) -> Metric | None:
    """The line of the table that a canonical name belongs to, that of a family or of held-out data included."""
    bare = name.removeprefix("eval_")
    return CATALOG.get(bare) or CATALOG.get(f"{bare.split('/', 1)[0]}/*")


def metric_named(name: str) -> str | None:
    """The canonical metric that a name stands for: a metric's own, or a short one such as `kl`; `None` where no metric has it."""
    if entry_of(name) is not None:
        return name
    return next((entry.name for entry in CATALOG.values() if name in entry.aliases), None)


_PENALTY = Key("kl_penalty", "unless_negative", per="unstated")
AMBIGUOUS: dict[str, tuple[str, Key]] = {
    "kl": ("kl_mean", Key("kl", per="unstated")),
    "entropy_loss": ("entropy_mean", Key("entropy_loss", "magnitude")),
    "train/entropy_loss": ("entropy_mean", Key("train/entropy_loss", "magnitude")),
    "train/kl": ("kl_mean", Key("train/kl", per="unstated")),
    "loss/entropy": ("entropy_mean", Key("loss/entropy", "magnitude")),
    "ent_loss": ("entropy_mean", Key("ent_loss", "magnitude")),
    "kl_penalty": ("kl_mean", _PENALTY),
    "train/kl_penalty": ("kl_mean", _PENALTY),
    "return": ("reward_mean", Key("return")),
    "accuracy": ("accuracy", Key("accuracy")),
    "train/accuracy": ("accuracy", Key("train/accuracy")),
}
"""Keys that mean different things in different frameworks, and how they are read where the framework is not known.

An entropy begins above 0, so the sign of the first value says whether an entropy loss is the entropy or minus the entropy. A
`kl_penalty` is the KL, unless it begins below 0: then it is the penalty's part of the reward."""

PREFIXES = ("train/", "train_", "training/", "trainer/", "metrics/", "global/", "mean ", "mean_")


class Place(Struct, frozen=True, gc=False):
    """Where a raw key goes. Of several keys for one metric the one with the lowest `rank` wins."""

    metric: str
    key: Key
    per: str
    rank: int


def _place(entry: Metric, key: Key, rank: int, captured: str = "") -> Place:
    name = entry.name[:-1] + captured if entry.name.endswith("/*") else entry.name
    return Place(name, key, key.per or entry.reduction, rank)


def _all_keys() -> Iterator[tuple[str, Metric, Key, int]]:
    """Every framework's keys, with the metric that each stands for and its rank among those of that metric."""
    for framework in FRAMEWORKS.values():
        for name, keys in framework.keys.items():
            for rank, key in enumerate(keys):
                yield framework.name, CATALOG[name], key, rank


def keys_of(metric: str) -> dict[str, tuple[Key, ...]]:
    """What each framework calls a canonical metric."""
    return {framework.name: framework.keys[metric] for framework in FRAMEWORKS.values() if metric in framework.keys}


@cache
def keys_by_framework() -> dict[str, dict[str, Place]]:
    """Framework -> raw key -> place, for keys that are neither patterns nor sums."""
    tables: dict[str, dict[str, Place]] = {framework: {} for framework in FRAMEWORKS}
    for framework, entry, key, rank in _all_keys():
        if not key.is_pattern and len(key.parts) == 1:
            tables[framework].setdefault(key.name, _place(entry, key, rank))
    for entry in CATALOG.values():
        if not entry.name.endswith("/*"):
            tables["rldk"].setdefault(entry.name, Place(entry.name, Key(entry.name), entry.reduction, 0))
    return tables


@cache
def _anywhere() -> dict[str, Place]:
    """Raw key -> place, for the keys on which all frameworks agree, and for the ambiguous ones as stated above."""
    agreed: dict[str, Place] = {}
    for table in keys_by_framework().values():
        for key, place in table.items():
            if "/" in key or len(key) > 3 or key == "lr":  # `eps` and `wd` say too little by themselves
                agreed.setdefault(key, place)
    for key, (name, how) in AMBIGUOUS.items():
        agreed[key] = _place(CATALOG[name], how, 0)
    return agreed


@cache
def _aliases() -> dict[str, Place]:
    """Normalised alias or canonical name -> place; in the order of the table, so that a name is never taken twice."""
    found: dict[str, Place] = {}
    for entry in CATALOG.values():
        if not entry.name.endswith("/*"):
            found.setdefault(normalise(entry.name), _place(entry, Key(entry.name, per=_unstated(entry)), 10))
    for entry in CATALOG.values():
        for rank, alias in enumerate(entry.aliases):
            found.setdefault(alias, _place(entry, Key(alias, per=_unstated(entry)), 20 + rank))
        for alias in entry.complements:
            found.setdefault(alias, _place(entry, Key(alias, "complement"), 40))
    for alias in ("entropy_loss", "mean_entropy_loss", "policy_entropy_loss", "loss_entropy_loss", "losses_entropy_loss"):
        found[alias] = _place(CATALOG["entropy_mean"], AMBIGUOUS["entropy_loss"][1], 40)
    found["kl_penalty"] = _place(CATALOG["kl_mean"], _PENALTY, 40)
    return found


def _unstated(entry: Metric) -> str:
    """A KL under a user's own name may be per token or per sequence."""
    return "unstated" if entry.name == "kl_mean" else ""


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], Metric, Key, int], ...]:
    found = [
        (framework, re.compile(re.escape(key.name).replace(r"\*", "(.+?)")), entry, key, rank)
        for framework, entry, key, rank in _all_keys()
        if key.is_pattern
    ]
    return tuple(sorted(found, key=lambda row: -len(row[3].name)))


def _match_pattern(key: str, framework: str | None) -> Place | None:
    held_out = strip_eval(key) is not None
    for owner, expression, entry, how, rank in _patterns():
        if held_out and how.name.startswith("*"):
            continue  # `eval/gsm8k/…` is not the environment `eval`
        if (framework is None or owner == framework) and (match := expression.fullmatch(key)):
            return _place(entry, how, rank + 5, match.group(1))
    return None


@cache
def sums(framework: str | None) -> tuple[tuple[Metric, Key, int], ...]:
    """The keys that are sums of several, of one framework or of all, each with its rank."""
    found = ((entry, key, rank) for owner, entry, key, rank in _all_keys() if framework in (None, owner))
    return tuple(row for row in found if len(row[1].parts) > 1)


def _variants(key: str) -> Iterator[str]:
    """The key as it is, without AReaL's `/avg`, and without the prefixes that trackers put before it."""
    yield key
    base = key.removesuffix("/avg")
    if base != key:
        yield base
    for prefix in PREFIXES:
        if base.startswith(prefix) and len(base) > len(prefix):
            yield base[len(prefix) :]
            break


@lru_cache(maxsize=65536)
def locate(key: str, framework: str | None = None) -> Place | None:
    """What a raw key of a framework (or of an unknown one) becomes; `None` if the catalogue does not know it."""
    key = without_blanks(key)
    variants = tuple(_variants(key))
    family = CATALOG.get(f"{key.split('/', 1)[0]}/*")
    if family is not None and len(key) > len(family.name) - 1:
        return Place(key, Key(key), family.reduction, 0)
    if framework is not None:
        table = keys_by_framework()[framework]
        for variant in variants:
            if (place := table.get(variant)) or (place := _match_pattern(variant, framework)):
                return place
    anywhere = _anywhere()
    for variant in variants:
        if place := anywhere.get(variant):
            return place
    aliases = _aliases()
    for variant in variants:
        if place := aliases.get(normalise(variant)):
            return place
    for variant in variants:
        if place := _match_pattern(variant, None):
            return place
    return next((place for variant in variants if (place := _part_of_reward(variant))), None)


_STATISTIC = re.compile(r"(?:mean|avg|std|var|variance|min|max|median|sum|count|num|n|p\d+|q\d+|ema|clip\w*|lr|loss)(?:/.*)?")


def _part_of_reward(key: str) -> Place | None:
    """Anybody's `reward/format` beside `reward/total` is one of the functions that make up the reward."""
    parent, _, part = key.removesuffix("/mean").partition("/")
    if parent != "reward" or not part or _STATISTIC.fullmatch(part):
        return None
    return _place(CATALOG["reward_function_mean/*"], Key(key), 60, part)


@cache
def _owners() -> dict[str, tuple[str, ...]]:
    """Raw key -> the frameworks that log it."""
    owners: dict[str, list[str]] = {}
    for framework, table in keys_by_framework().items():
        if framework == "rldk":
            continue
        for key in (*table, *FRAMEWORKS[framework].signature):
            if key not in CATALOG and not (key.isalpha() and key != key.lower() and key.lower() in _aliases()):
                # a canonical name may be anybody's, and so may `Reward` and `KL` on a console
                owners.setdefault(key, []).append(framework)
    return {key: tuple(dict.fromkeys(found)) for key, found in owners.items()}


_MAX_TELLING = 4096  # keys by which a framework is identified


def identify(keys: Iterable[str]) -> str | None:
    """The framework that logs such keys, or `None`.

    Each key that at most two frameworks use counts for them; it takes two such keys, since one may be a coincidence.
    A tracker may have put `train/` before any framework's key, so that `train/loss` is not of the one alone that does.
    """
    scores: dict[str, float] = {}
    hits: dict[str, int] = {}
    for raw in islice(keys, _MAX_TELLING):
        key = without_blanks(raw).removeprefix("metrics/")  # under which anybody may put a row
        if key in SUMMARY_KEYS:
            continue  # any Hugging Face trainer ends with them
        known = tuple(dict.fromkeys(owner for variant in _variants(key) for owner in _owners().get(variant, ())))
        if not known:
            known = tuple(dict.fromkeys(owner for owner, expression, *_ in _patterns() if expression.fullmatch(key)))
        if known and len(known) <= 2:
            for framework in known:
                scores[framework] = scores.get(framework, 0.0) + 1.0 / len(known)
                hits[framework] = hits.get(framework, 0) + 1
    best = [name for name in FRAMEWORKS if hits.get(name, 0) >= 2 and scores[name] >= 1.0]
    return max(best, key=lambda name: scores[name], default=None)


@lru_cache(maxsize=8192)
def is_known(key: str) -> bool:
    """Whether the catalogue has a place for a key, of training or of held-out data."""
    bare = strip_eval(key)
    return locate(key) is not None or (bare is not None and locate(bare) is not None)


@cache
def _not_judged(framework: str) -> re.Pattern[str] | None:
    known = FRAMEWORKS[framework].known
    return re.compile("|".join(re.escape(key).replace(r"\*", ".*").replace(r"\?", ".") for key in known)) if known else None


_TIMES = re.compile(r"(eval|train|test|predict)[_/]((.+_)?(runtime|(samples|steps)_per_second|model_preparation_time)|.+_flos)")
"""What every trainer of Hugging Face logs about the speed of an evaluation or of the run."""


@lru_cache(maxsize=8192)
def is_not_judged(key: str, framework: str | None) -> bool:
    """Whether a framework is known to log a key that carries no judgement, with or without a tracker's prefix."""
    known = None if framework is None else _not_judged(framework)
    variants = _variants(without_blanks(key))
    return any(_TIMES.fullmatch(variant) or (known is not None and known.fullmatch(variant)) for variant in variants)


@lru_cache(maxsize=8192)
def is_measured(key: str) -> bool:
    """Whether a key names something measured at each step, such as a reward; a learning rate or a coefficient is a setting."""
    if is_axis(key):
        return False
    place = locate(key) or locate(strip_eval(key) or "")
    if place is None:
        return False
    entry = entry_of(place.metric)
    return entry is not None and entry.reduction != "run"
