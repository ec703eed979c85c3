"""Where local copies lie, what they are copies of, and of which version.

The path of a copy says its address. One small file for each address that was copied says which version of each file the copies
are, by which those that are still good are known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from rldk.core.errors import ReadError
from rldk.core.files import write_json
from rldk.core.jsonio import loads

__all__ = [
    "ARCHIVES", "SCHEMES", "OnBytes", "cache_folder", "copied_files", "folder_of", "has_archive_name", "is_archive", "is_url",
    "known_versions", "lies_within", "local_path", "remember_versions", "safe_below", "shown", "shown_in", "target_of", "url_of",
]  # fmt: skip

OnBytes = Callable[[int, int], None]
"""Called with the bytes that were copied so far, and those to copy in all."""


SCHEMES = ("s3", "gs", "az", "hf", "http", "https", "wandb", "mlflow", "memory")
ARCHIVES = "archive"
_URL = re.compile(r"([a-z][a-z0-9]+)://(.+)", re.DOTALL)
_SOURCE = ".source"
_VERSIONS = "versions"
_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def is_url(item: object) -> bool:
    """Whether a path is an address that rldk knows how to fetch."""
    found = _URL.fullmatch(str(item))
    return found is not None and found[1] in SCHEMES


def has_archive_name(path: Path) -> bool:
    """Whether a path is named like an archive."""
    return path.name.lower().endswith(_ENDINGS)


def is_archive(path: Path) -> bool:
    """Whether a path is an archive, by its name."""
    return has_archive_name(path) and path.is_file()


def cache_folder() -> Path:
    """The folder of local copies: `RLDK_CACHE`, else `rldk` in the user's cache folder."""
    given = os.environ.get("RLDK_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given).expanduser().absolute() if given else Path(base, "rldk").absolute()


def local_path(url: str) -> Path:
    """Where the copy of an address lies: `s3://bucket/a/b` is `s3/bucket/a/b` in the folder of copies."""
    scheme, rest = url.split("://", 1)
    return safe_below(cache_folder() / scheme, rest.split("?", 1)[0])


def folder_of(store: str) -> Path:
    """The folder on this machine for a store that is given by its path or address; nothing is fetched."""
    return local_path(store.rstrip("/")) if is_url(store) else Path(store).expanduser()


def safe_below(folder: Path, name: str) -> Path:
    """A path in a folder for a name from elsewhere; a name that would lead out of the folder is an error."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or parts[0] == "/" or ".." in parts or any(":" in part[:2] or "\0" in part for part in parts):
        raise ReadError(f"{name[:200]!r} is not a name that can be copied: it leads out of its folder.")
    return folder.joinpath(*parts)


def lies_within(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path, and all that is below it, lies in one of these folders with all links followed."""
    try:
        tops = [folder.resolve() for folder in folders]
        waiting, seen = [path], set[Path]()
        while waiting:
            target = waiting.pop().resolve()
            if not any(map(target.is_relative_to, tops)):
                return False
            if target not in seen and target.is_dir():
                waiting += [one for one in target.rglob("*") if one.is_symlink()]
            seen.add(target)
    except (OSError, RuntimeError, ValueError):
        return False  # such as a link in a circle
    return True


def url_of(path: Path) -> str | None:
    """The address that a path is the copy of; `None` for other paths."""
    try:
        scheme, *rest = path.relative_to(cache_folder()).parts
    except ValueError:
        return None
    if scheme == ARCHIVES and rest:
        source = cache_folder() / ARCHIVES / rest[0] / _SOURCE
        return "/".join((os.fsdecode(source.read_bytes()), *rest[1:])) if source.exists() else None
    return f"{scheme}://{'/'.join(rest)}" if scheme in SCHEMES and rest else None


def shown(path: Path | str) -> str:
    """A path as it is shown to people and programs: the address of a copy, else the path itself."""
    return url_of(Path(path)) or str(path)


def shown_in(text: str) -> str:
    """A message with the addresses of the copies that it names."""
    folder = str(cache_folder())
    if folder not in text:
        return text
    return re.sub(re.escape(folder) + r"/[^\s:,;'\"]+", lambda found: shown(found[0]), text)


def target_of(scheme: str, name: str) -> Path:
    """Where the copy of a file lies, by its name in its store."""
    return safe_below(cache_folder() / scheme, name.split("://")[-1].split("?", 1)[0].lstrip("/"))


def known_versions(scheme: str, base: str, kind: str) -> dict[str, str]:
    """The versions of what was copied from an address, by name; `kind` says whether logs or weights were."""
    return _read_versions(_manifest(scheme, base, kind))


def remember_versions(scheme: str, base: str, kind: str, versions: Mapping[str, str]) -> None:
    """Keep the versions of what was copied, and remove copies of what is gone."""
    gone = known_versions(scheme, base, kind).keys() - versions.keys()
    write_json(_manifest(scheme, base, kind), versions)
    for name in gone:
        target_of(scheme, name).unlink(missing_ok=True)


def copied_files(scheme: str) -> Iterator[Path]:
    """Where all copies of a scheme lie or lay."""
    for manifest in (cache_folder() / _VERSIONS / scheme).glob("*.json"):
        for name in _read_versions(manifest):
            yield target_of(scheme, name)


def _manifest(scheme: str, base: str, kind: str) -> Path:
    ending = "" if kind == "logs" else f".{kind}"
    return cache_folder() / _VERSIONS / scheme / f"{base.replace('/', '%2F')[:180]}{ending}.json"


def _read_versions(path: Path) -> dict[str, str]:
    try:
        found = loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
