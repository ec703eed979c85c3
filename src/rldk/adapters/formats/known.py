"""What the catalogue makes of a key by itself: whether it knows it, and whether it is measured anew at each step."""

from __future__ import annotations

from functools import lru_cache

from rldk.core.catalog import CATALOG, locate
from rldk.core.catalog.axes import is_axis, strip_eval

__all__ = ["is_known", "is_measured"]


@lru_cache(maxsize=8192)
def is_known(key: str) -> bool:
    """Whether the catalogue has a place for a key, of training or of held-out data."""
    bare = strip_eval(key)
    return locate(key) is not None or (bare is not None and locate(bare) is not None)


@lru_cache(maxsize=8192)
def is_measured(key: str) -> bool:
    """Whether a key names what each step measures anew: a reward is, a learning rate or a coefficient is a setting."""
    if is_axis(key):
        return False
    place = locate(key) or locate(strip_eval(key) or "")
    if place is None:
        return False
    entry = CATALOG.get(place.metric) or CATALOG.get(f"{place.metric.split('/', 1)[0]}/*")
    return entry is not None and entry.reduction != "run"
