"""From whatever a user names to paths on this machine.

Files in object storage and on the web are copied in parallel, with retries, and only those that have changed since.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from rldk.core.errors import MissingDependencyError, ReadError, require
from rldk.core.text import first_line
from rldk.storage.archives import unpack
from rldk.storage.cache import make_room, use
from rldk.storage.places import OnBytes, is_archive, is_url, known_versions, local_path, remember_versions, target_of
from rldk.storage.tracked import fetch_mlflow, fetch_wandb

__all__ = ["local_copies"]

Wanted = Callable[[str], bool]
"""Whether a file is wanted, by its name."""

ATTEMPTS, FIRST_WAIT = 6, 0.2
"""How often a file is tried, and the seconds before the second time; the wait doubles each time."""

_THREADS = 32
_RETRY: dict[str, Any] = {"max_retries": 2}  # by the client itself, beside our own attempts
_GLOB = frozenset("*?[")
_OBJECT_STORES = ("s3", "gs", "az")
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_NOT_LOGS = frozenset({
    ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".onnx", ".h5", ".npz", ".npy", ".pkl", ".pickle", ".distcp",
    ".png", ".jpg", ".jpeg", ".gif", ".mp4", ".wav", ".py", ".so", ".whl",
})  # fmt: skip
"""Endings of files beside logs that are never logs, and may be as large as a model; one that is named itself is copied."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as its store lists it. `version` is its etag, or what else changes with it."""

    name: str
    size: int
    version: str
    modified: float | None


_CLIENTS: dict[str, Callable[[str], Path]] = {"wandb": fetch_wandb, "mlflow": fetch_mlflow}


def _may_be_log(name: str) -> bool:
    """Whether a file may be a log, by its name."""
    return PurePosixPath(name).suffix.lower() not in _NOT_LOGS


def local_copies(
    item: str | os.PathLike[str], on_bytes: OnBytes | None = None, wanted: Wanted = _may_be_log, kind: str = "logs"
) -> Path:
    """The file or folder on this machine that holds what an address or an archive holds; any other path as it is.

    Of a folder in a store only those files are copied that are `wanted`, by default what may be a log.
    """
    if not is_url(item):
        path = Path(item).expanduser()
        return unpack(path) if is_archive(path) else path
    url = str(item)
    scheme = url.split("://", 1)[0]
    path = _fetched(scheme, url) if scheme in _CLIENTS else _copied(url, on_bytes, wanted, kind)
    return unpack(path) if is_archive(path) else path


def _fetched(scheme: str, url: str) -> Path:
    """What the client of a tracker fetches."""
    use(local_path(url))
    make_room()
    return _CLIENTS[scheme](url)


def _filesystem(scheme: str) -> Any:
    """The file system of a scheme, with the credentials of the usual environment."""
    fsspec = require("fsspec", extra="storage", purpose=f"{scheme}://")
    if scheme in _OBJECT_STORES:
        try:
            return import_module("obstore.fsspec").FsspecStore(scheme, **_options(), skip_instance_cache=True)
        except ImportError:
            pass  # s3fs, gcsfs or adlfs, where they are installed
    try:
        return fsspec.filesystem(scheme, skip_instance_cache=True)
    except ImportError as error:
        raise MissingDependencyError(f"{scheme}:// needs another package ({error}): pip install 'rldk[storage]'") from error


def _options() -> dict[str, Any]:
    """How obstore talks to a store; plain HTTP only where the environment names such a server."""
    endpoints = (value for name, value in os.environ.items() if name.startswith(("AWS_ENDPOINT", "GOOGLE_", "AZURE_")))
    plain = any(value.startswith("http://") for value in endpoints)
    return {"client_options": {"allow_http": plain, "timeout": "60s"}, "retry_config": _RETRY}


def _copied(url: str, on_bytes: OnBytes | None, wanted: Wanted, kind: str) -> Path:
    """Copy a file, all logs below an address, or those that a pattern matches; gives the file or folder that holds the copies.

    What was copied before and has the same size and etag is not copied again. `wanted` says by its name which files of a folder
    are copied, and `kind` what those are.
    """
    scheme, path = url.split("://", 1)
    system = _filesystem(scheme)
    base = _base(path)
    use(local_path(f"{scheme}://{base}"))
    files = _retried(lambda: _listed(system, scheme, url if scheme.startswith("http") else path, wanted), url)
    if not files:
        raise ReadError(f"{url} holds no {'file that may be a log' if kind == 'logs' else f'file of {kind}'}.")
    targets = {file: target_of(scheme, file.name) for file in files}
    known = known_versions(scheme, base, kind)
    stale = [file for file, target in targets.items() if known.get(file.name) != file.version or not _is_copy(target, file)]
    if stale:
        make_room(sum(file.size for file in stale))
    _copy_all(system, stale, targets, on_bytes, url)
    remember_versions(scheme, base, kind, {file.name: file.version for file in files})
    single = len(files) == 1 and files[0].name.split("://")[-1].strip("/") == path.split("?", 1)[0].strip("/")
    return targets[files[0]] if single else local_path(f"{scheme}://{base}")


def _base(path: str) -> str:
    """The part of a path before the first pattern."""
    parts = path.rstrip("/").split("/")
    plain = next((number for number, part in enumerate(parts) if _GLOB & set(part)), len(parts))
    return "/".join(parts[:plain])


def _listed(system: Any, scheme: str, path: str, wanted: Wanted) -> list[RemoteFile]:
    """The files at a path, in the order of their names."""
    if "://" in path:
        return [_file(path, system.info(path))]
    if _GLOB & set(path):
        found = system.glob(path, detail=True)
    else:
        found = _objects(scheme, path) if scheme in _OBJECT_STORES else system.find(path, detail=True)
        if not found or list(found) == [path]:
            return [_file(path, system.info(path))]
    files = [_file(name, info) for name, info in sorted(found.items()) if info.get("type", "file") == "file"]
    return [file for file in files if wanted(file.name)]


def _objects(scheme: str, path: str) -> dict[str, dict[str, Any]]:
    """All objects below a path in a few requests; fsspec would ask once for each folder."""
    try:
        stores = import_module("obstore.store")
    except ImportError:
        found: dict[str, dict[str, Any]] = _filesystem(scheme).find(path, detail=True)
        return found
    bucket, _, prefix = path.partition("/")
    store = stores.from_url(f"{scheme}://{bucket}", **_options())
    pages = store.list(prefix.strip("/") or None)
    return {f"{bucket}/{one['path']}": {**one, "type": "file"} for page in pages for one in page}


def _file(name: str, info: dict[str, Any]) -> RemoteFile:
    size = int(info.get("size") or 0)
    changed = next((info[key] for key in ("last_modified", "LastModified", "mtime", "created") if info.get(key)), None)
    seconds = changed.timestamp() if isinstance(changed, datetime) else changed if isinstance(changed, (int, float)) else None
    tag = next((info[key] for key in ("e_tag", "ETag", "etag", "content_hash", "blob_id", "oid") if info.get(key)), None)
    return RemoteFile(name, size, f"{size} {tag or changed or ''}", seconds)


def _is_copy(target: Path, file: RemoteFile) -> bool:
    return target.is_file() and (not file.size or target.stat().st_size == file.size)


def _copy_all(
    system: Any, files: list[RemoteFile], targets: dict[RemoteFile, Path], on_bytes: OnBytes | None, url: str
) -> None:
    """Copy files in parallel. Those that fail are named at the end; the others are kept."""
    total, done = sum(file.size for file in files), 0
    failed: list[tuple[RemoteFile, BaseException]] = []
    with ThreadPoolExecutor(_THREADS) as threads:
        jobs = {threads.submit(_retried, partial(_copy, system, file, targets[file]), url): file for file in files}
        try:
            for job in as_completed(jobs):
                if error := job.exception():
                    failed.append((jobs[job], error))
                done += jobs[job].size
                if on_bytes is not None:
                    on_bytes(done, total)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    if failed:
        file, error = failed[0]
        raise ReadError(
            f"{len(failed)} of {len(files)} files of {url} could not be copied ({file.name}: {error}). "
            "Run the command again: those that were copied are kept."
        )


def _copy(system: Any, file: RemoteFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        system.get_file(file.name, str(part))
        got = part.stat().st_size
        if file.size and got != file.size:
            raise OSError(f"the connection ended after {got} of {file.size} bytes")
        if file.modified is not None:
            os.utime(part, (file.modified, file.modified))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _retried(action: Callable[[], Any], url: str) -> Any:
    """The result of an action; an error that may pass is met with patience."""
    for attempt in range(ATTEMPTS):
        try:
            return action()
        except _FINAL as error:
            raise ReadError(f"{url} cannot be read: {first_line(error)}.") from error
        except (ReadError, MissingDependencyError):
            raise
        except Exception as error:
            if attempt + 1 == ATTEMPTS:
                raise ReadError(f"{url} cannot be read, after {ATTEMPTS} attempts: {first_line(error)}.") from error
            time.sleep(FIRST_WAIT * 2**attempt * random.uniform(0.5, 1.0))
    raise AssertionError
