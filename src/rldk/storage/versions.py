"""Which version of each file was copied: one small file per address, by which copies that are still good are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rldk.core.files import write_json
from rldk.core.jsonio import loads
from rldk.storage.places import cache_folder, safe_below

__all__ = ["copied_files", "known_versions", "remember_versions", "target_of"]

_FOLDER = "versions"


def target_of(scheme: str, name: str) -> Path:
    """Where the copy of a file lies, by its name in its store."""
    return safe_below(cache_folder() / scheme, name.split("://")[-1].split("?", 1)[0].lstrip("/"))


def known_versions(scheme: str, base: str, kind: str) -> dict[str, str]:
    """The versions of what was copied from an address, by name; `kind` says whether logs or weights were."""
    return _read(_manifest(scheme, base, kind))


def remember_versions(scheme: str, base: str, kind: str, versions: Mapping[str, str]) -> None:
    """Keep the versions of what was copied, and remove copies of what is gone."""
    gone = known_versions(scheme, base, kind).keys() - versions.keys()
    write_json(_manifest(scheme, base, kind), versions)
    for name in gone:
        target_of(scheme, name).unlink(missing_ok=True)


def copied_files(scheme: str) -> Iterator[Path]:
    """Where all copies of a scheme lie or lay."""
    for manifest in (cache_folder() / _FOLDER / scheme).glob("*.json"):
        for name in _read(manifest):
            yield target_of(scheme, name)


def _manifest(scheme: str, base: str, kind: str) -> Path:
    ending = "" if kind == "logs" else f".{kind}"
    return cache_folder() / _FOLDER / scheme / f"{base.replace('/', '%2F')[:180]}{ending}.json"


def _read(path: Path) -> dict[str, str]:
    try:
        found = loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
