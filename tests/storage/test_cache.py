"""The limit of the folder of copies: what was used least recently makes room; what is in use stays, and what is no copy."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rldk.core.errors import UsageError
from rldk.judge.project_settings import project_settings
from rldk.log.lock import release
from rldk.storage import cache
from rldk.storage.cache import cache_limit, make_room, parse_size, set_cache_limit, use
from rldk.storage.copies import local_copies
from rldk.storage.places import remember_versions

KILOBYTE = 1000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("RLDK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_set_limit", None)
    monkeypatch.setattr(cache, "_held", {})
    yield tmp_path / "cache"
    forget()


def forget() -> None:
    """What happens when a process ends: its locks are gone."""
    for handle in cache._held.values():
        release(handle)
    cache._held.clear()


def copied(folder: Path, name: str, used: float, size: int = 10) -> Path:
    """A copy of so many kilobytes of `s3://bucket/NAME`, used at a time."""
    base = folder / "s3" / "bucket" / name
    file = base / "log.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size * KILOBYTE)
    use(base)
    remember_versions("s3", f"bucket/{name}", "logs", {f"bucket/{name}/log.jsonl": "1"})
    os.utime(cache._uses_of(base) / "last", (used, used))
    return file


def test_what_was_used_least_recently_makes_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, middle = copied(folder, "old", 100), copied(folder, "new", 300), copied(folder, "middle", 200)
    forget()
    monkeypatch.setenv("RLDK_CACHE_SIZE", "25KB")
    assert make_room() == 10 * KILOBYTE
    assert not old.exists() and not old.parent.exists() and middle.exists() and new.exists()
    assert make_room(12 * KILOBYTE) == 10 * KILOBYTE, "before something is copied"
    assert not middle.exists() and new.exists()


def test_what_is_in_use_is_never_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = copied(folder, "old", 100), copied(folder, "new", 200)
    monkeypatch.setenv("RLDK_CACHE_SIZE", "1KB")
    assert make_room() == 0 and old.exists() and new.exists(), "this process uses both"
    forget()
    use(old.parent)
    make_room()
    assert old.exists() and not new.exists()


def test_what_another_process_uses_stays_until_it_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = copied(folder, "old", 100)
    forget()
    monkeypatch.setenv("RLDK_CACHE_SIZE", "1KB")
    code = "import sys, pathlib, rldk.storage.cache as c; c.use(pathlib.Path(sys.argv[1])); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(file.parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "1\n"
        assert make_room() == 0 and file.exists()
        other.kill()
        other.wait()
        assert make_room() == 10 * KILOBYTE and not file.exists(), "a lock ends with its process, however that ended"


def test_a_copy_that_a_newer_address_needs_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = copied(folder, "team/run0", 100)
    other = copied(folder, "team/run1", 100)
    use(folder / "s3" / "bucket" / "team")
    os.utime(cache._uses_of(folder / "s3" / "bucket" / "team") / "last", (50, 50))
    forget()
    os.utime(cache._uses_of(shared.parent) / "last", (900, 900))
    monkeypatch.setenv("RLDK_CACHE_SIZE", "15KB")
    make_room()
    assert shared.exists() and not other.exists(), "run0 was used by itself since"


def test_what_is_no_copy_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = copied(folder, "old", 100)
    kept = [file.parent / "rldk_acks.json", file.parent / ".rldk" / "index.parquet", file.parent / "notes.txt"]
    for one in kept:
        one.parent.mkdir(exist_ok=True)
        one.write_text("mine")
    forget()
    monkeypatch.setenv("RLDK_CACHE_SIZE", "0")
    make_room()
    assert not file.exists() and all(one.exists() for one in kept)


def test_an_archive_is_removed_as_a_whole_and_unpacked_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/log.jsonl", "1" * 10 * KILOBYTE)
        archive.writestr("b/log.jsonl", "2" * 10 * KILOBYTE)
    unpacked = local_copies(path)
    forget()
    monkeypatch.setenv("RLDK_CACHE_SIZE", "5KB")
    assert make_room() >= 20 * KILOBYTE and not unpacked.exists()
    assert not list(unpacked.parent.iterdir()), "and nothing else is left"
    assert sorted(file.name for file in local_copies(path).iterdir()) == [".source", "a", "b"]


@pytest.mark.parametrize(("text", "size"), [("20GB", 20 * 10**9), ("1.5 M", 1_500_000), ("17", 17), ("2kB", 2000)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_the_limit_comes_from_the_environment_the_file_or_is_twenty_gigabytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLDK_CACHE_SIZE", raising=False)
    assert cache_limit() == 20 * 10**9
    (tmp_path / "rldk.toml").write_text('cache_size = "3GB"\n')
    set_cache_limit(str(project_settings(tmp_path).options["cache_size"]))
    assert cache_limit() == 3 * 10**9
    monkeypatch.setenv("RLDK_CACHE_SIZE", "1GB")
    assert cache_limit() == 10**9
    monkeypatch.setenv("RLDK_CACHE_SIZE", "much")
    with pytest.raises(UsageError, match=r"RLDK_CACHE_SIZE: Expected a size such as 20GB or 500MB, got 'much'\."):
        cache_limit()
