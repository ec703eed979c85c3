from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from pathlib import Path

import pytest
import zstandard

from rldk.core.errors import LogWriteError, RLDKError, UsageError
from rldk.log import EventWriter


def refusal(path: object) -> str:
    with pytest.raises(LogWriteError) as caught:
        EventWriter(path)
    assert isinstance(caught.value, RLDKError)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_folder(tmp_path):
    message = refusal(tmp_path)
    assert "is a folder" in message and str(tmp_path / "events.jsonl") in message


@pytest.mark.parametrize("below", ["events.jsonl", "deeper/events.jsonl"])
def test_a_parent_that_is_a_file(tmp_path, below):
    (tmp_path / "file").write_text("content")
    message = refusal(tmp_path / "file" / below)
    assert f"{tmp_path / 'file'} is not a folder" in message and "Choose another path" in message
    assert (tmp_path / "file").read_text() == "content"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_folder_that_cannot_be_made():
    assert "Choose another path" in refusal("/proc/nowhere/events.jsonl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_and_devices(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")
    assert "not a regular file" in refusal("/dev/null")
    assert "not a regular file" in refusal("/dev/full")


def test_names_that_no_system_takes(tmp_path):
    assert "File name too long" in refusal(tmp_path / ("x" * 300))
    with pytest.raises(LogWriteError, match="null"):
        EventWriter("with\0nul")


def test_a_loop_of_links(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(LogWriteError, match="Too many levels"):
        EventWriter(tmp_path / "a")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_log(tmp_path, compress):
    path = tmp_path / "events.jsonl"
    content = compress(b'{"step":1}\n')
    path.write_bytes(content)
    assert "compressed" in refusal(path)
    assert path.read_bytes() == content
    path.write_bytes(b"")
    EventWriter(path).close()  # and no lock is left behind


AS_NOBODY = """
import json, os, sys
from rldk.core.errors import LogWriteError
from rldk.log import EventWriter
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
said = []
for path in sys.argv[1:]:
    try:
        EventWriter(path)
        said.append("opened")
    except LogWriteError as error:
        said.append(str(error))
print(json.dumps(said))
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
def test_what_this_user_may_not_write(run_script):
    folder = Path(tempfile.mkdtemp())
    try:
        file = folder / "events.jsonl"
        file.write_bytes(b'{"step":1}\n')
        closed = folder / "closed"
        closed.mkdir()
        closed.chmod(0o000)
        file.chmod(0o444)
        folder.chmod(0o555)
        paths = [file, folder / "new.jsonl", folder / "new" / "events.jsonl", closed / "events.jsonl"]
        said = run_script(AS_NOBODY, *paths)
        assert f"{file}: the file may not be written" in said[0]
        assert f"the folder {folder} may not be written" in said[1]
        for path, message in zip(paths, said, strict=True):
            assert str(path) in message and "change its permissions" in message
    finally:
        folder.chmod(0o755)
        closed.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.parametrize("step", ["x", 5.5, float("nan"), [3], True, -1, 2**63])
def test_a_resume_step_that_is_none(tmp_path, event, steps, step):
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as log:
        for number in range(5):
            log.write(event(number))
    with pytest.raises(UsageError, match="Expected `resume_step` to be a whole number"):
        EventWriter(path, resume_step=step)
    assert steps(path) == [0, 1, 2, 3, 4], "and no row has gone"


@pytest.mark.parametrize("given", [{"step": 1, "metrics": {}}, None, "a line"])
def test_what_is_no_event(tmp_path, given, steps, event):
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as log:
        with pytest.raises(UsageError, match=r"Expected an `Event` to write, got .*`Event\(step, metrics\)`"):
            log.write(given)
        log.write(event(1))
    assert steps(path) == [1]
