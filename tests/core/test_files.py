"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rldk.core.files import file_name, replacing, write_text


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "report.html"
    assert write_text(target, "old\r\n") == target and target.read_bytes() == b"old\r\n"
    with replacing(target) as part:
        part.write_bytes(b"new")
        assert target.read_bytes() == b"old\r\n" and part.parent == target.parent
    assert target.read_bytes() == b"new" and list(target.parent.iterdir()) == [target]


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    target = write_text(tmp_path / "a.txt", "old")
    with pytest.raises(KeyError), replacing(target) as part:
        part.write_text("half")
        raise KeyError
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_others_may_read_what_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert write_text(tmp_path / "a.txt", "x").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("text", "name"), [("../../etc/passwd", "etc-passwd"), ("a b/c", "a-b-c"), ("…", "run"), ("x" * 99, "x" * 80)]
)
def test_names_of_files_stay_in_their_folder(text: str, name: str) -> None:
    assert file_name(text) == name
