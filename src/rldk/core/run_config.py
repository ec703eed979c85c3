"""What a run was started with: its knobs by canonical name, the settings as they were, and what rldk was told."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rldk.core.jsonio import MAX_STEP, to_number
from rldk.core.knobs import canonical_knobs

__all__ = ["CONFIG_KEY", "SCAN_KEYS", "RunConfig", "clean_settings"]

CONFIG_KEY = "model_info/config"
"""Where the first event of a log holds the settings of its run."""

SCAN_KEYS = ("detectors", "limits", "kl_target", "kl_target_tolerance", "sensitivity")
"""What a scan can be told by `rldk` settings: the keys of `ScanConfig.from_dict`."""

_OWN = "rldk"
_MAX_TEXT, _MAX_ITEMS, _MAX_KEYS, _MAX_DEPTH = 200, 20, 500, 6
_MAX_VALUES = 20_000


@dataclass(frozen=True, slots=True)
class RunConfig(Mapping[str, Any]):
    """A mapping from knob (`learning_rate`, `kl_coef`, `clip_range`, `num_generations` …, see `core.knobs`) to value.

    Attributes:
        raw: the settings under their own names, without secrets and with long values shortened.
        rldk: what the monitor of a live run was told: `limits` by metric, `kl_target`, `kl_target_tolerance`, `detectors` (as
            `ScanConfig` takes them, see `scan_settings`), `min_scores`, `options` of the trackers, `stop_on`, and `per`, over
            what a limited or targeted metric is reduced (`{"kl_mean": "sequence"}`).
        source: where they were found, for people.
    """

    raw: dict[str, Any] = field(default_factory=dict)
    rldk: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    _knobs: dict[str, tuple[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, settings: Mapping[str, Any], source: str = "") -> RunConfig:
        """From settings as a log, a tracker or a trainer has them; what rldk was told stands under `rldk` in them."""
        clean = clean_settings(settings)
        told = clean.pop(_OWN, None)
        return cls(clean, told if isinstance(told, dict) else {}, source, canonical_knobs(clean))

    def key_of(self, knob: str) -> str | None:
        """What the run's own framework calls a knob (`beta` for `kl_coef`); `None` where it is not known."""
        found = self._knobs.get(knob)
        return None if found is None else found[0]

    @property
    def owner(self) -> str | None:
        """What holds the settings in the user's program, such as `GRPOConfig`; `None` where it is not known."""
        found = self.raw.get("arguments")
        return found if isinstance(found, str) else None

    def scan_settings(self) -> dict[str, Any]:
        """What a scan needs to judge as the live run did, for `ScanConfig.from_dict`; empty where nothing was told."""
        return {key: self.rldk[key] for key in SCAN_KEYS if key in self.rldk}

    def with_defaults(self, other: RunConfig) -> RunConfig:
        """These settings, and those of another place that they do not have."""
        if not other.raw and not other.rldk:
            return self
        if not self.raw and not self.rldk:
            return other
        raw = {**other.raw, **self.raw}
        source = ", ".join(dict.fromkeys(filter(None, (self.source, other.source))))
        return RunConfig(raw, self.rldk or other.rldk, source, {**other._knobs, **self._knobs})

    def to_dict(self) -> dict[str, Any]:
        """As an event holds them."""
        return {**self.raw, **({_OWN: self.rldk} if self.rldk else {})}

    def __getitem__(self, knob: str) -> Any:
        return self._knobs[knob][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._knobs)

    def __len__(self) -> int:
        return len(self._knobs)

    def __bool__(self) -> bool:
        return bool(self.raw or self.rldk)


def clean_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that may be written down: no secrets, nothing empty, long texts and lists shortened, plain values only."""
    found = _Cleaner().clean(settings)
    return found if isinstance(found, dict) else {}


_WORDS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*")
_SECRET_WORDS = frozenset({
    "password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey", "authorization", "auth",
    "webhook", "cookie",
})  # fmt: skip
_SECRET_KEYS = frozenset({"api", "access", "private", "secret", "account", "ssh", "encryption"})
_TOKEN_IDS = frozenset({
    "pad", "eos", "bos", "unk", "sep", "cls", "mask", "stop", "special", "image", "video", "audio", "end", "start", "last",
    "first", "think", "per", "sub", "next",
})  # fmt: skip
"""Names of tokens of text; a token of any other name may be a secret."""

_SECRET_TEXT = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\bsk-[\w-]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bAKIA[0-9A-Z]{12,}"
    r"|\bxox[abposr]-[\w-]{8,}|\bAIza[\w-]{20,}|\bBearer\s+\S{8,}|\beyJ[\w-]{10,}\.[\w-]+\.|://[^/\s:@]+:[^/\s@]+@"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY|(?i:api[_-]?key|password|secret|token)\s*[=:]\s*\S{6,}"
)


def _is_secret(key: str, value: Any) -> bool:
    """Whether a key looks like that of a secret, or its value like one."""
    if isinstance(value, str) and _SECRET_TEXT.search(value):
        return True
    words = [word.lower() for word in _WORDS.findall(key)]
    if _SECRET_WORDS.intersection(words):
        return True
    if words[-1:] in (["key"], ["keys"]) and (len(words) == 1 or _SECRET_KEYS.intersection(words)):
        return True
    return words[-1:] in (["token"], ["tokens"]) and isinstance(value, str) and not _TOKEN_IDS.intersection(words)


class _Cleaner:
    """Makes values plain and short. YAML may hold lists of lists of lists that are one list, or that hold themselves: what is
    nested deeply, and what comes after very many values, is left out."""

    def __init__(self) -> None:
        self._left = _MAX_VALUES

    def clean(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if isinstance(value, Enum):
            value = value.value
        if isinstance(value, int) and abs(value) > MAX_STEP:
            return to_number(value)
        if isinstance(value, (bool, int, float)) or value is None:
            return value
        if isinstance(value, str):
            return value if len(value) <= _MAX_TEXT else f"{value[: _MAX_TEXT - 1]}…"
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            return self._items(value, depth)
        text = str(value)
        return None if _SECRET_TEXT.search(text) else self.clean(text, depth)

    def _items(self, value: Collection[Any], depth: int) -> list[Any]:
        if depth > _MAX_DEPTH or self._left < 0:
            return []
        items = [self.clean(one, depth + 1) for one in list(value)[:_MAX_ITEMS] if not _is_secret("", one)]
        return items if len(value) <= _MAX_ITEMS else [*items, f"… {len(value)} in all"]

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if depth > _MAX_DEPTH or self._left < 0:
            return found
        for name, inner in value.items():
            key = str(name)
            if _is_secret(key, inner) or len(found) >= _MAX_KEYS:
                continue
            cleaned = self.clean(inner, depth + 1)
            if cleaned is not None and cleaned != "" and cleaned != {} and cleaned != []:
                found[key[:_MAX_TEXT]] = cleaned
        return found
