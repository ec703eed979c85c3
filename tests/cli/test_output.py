"""What commands print with: small curves, strict JSON, a bar on a terminal."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.cli import output
from rldk.cli.output import print_json, sparkline
from rldk.cli.progress import progress_bar


@given(st.lists(st.floats(), max_size=200), st.integers(1, 40))
def test_a_sparkline_has_a_mark_for_each_share(values: list[float], width: int) -> None:
    drawn = sparkline(values, width)
    assert len(drawn) == min(width, len(values))
    assert set(drawn) <= set(output._BARS + output._PLAIN_BARS + "x ")


def test_a_sparkline_goes_where_its_values_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, math.nan, math.inf, 2]) == "▁ x█"
    assert sparkline([5.0] * 3) == "▁▁▁" and sparkline([]) == ""
    assert sparkline([1e308] * 4 + [0.0] * 4, width=2) == "█▁"
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "._-=+*#@"


def test_json_is_strict_and_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"nan": math.nan, "inf": [math.inf, (1.0,)], "path": Path("a"), 3: "é\ud800"})
    said = capsys.readouterr().out
    assert said.isascii() and said.count("\n") == 1
    assert json.loads(said) == {"nan": None, "inf": [None, [1.0]], "path": "a", "3": "é\ud800"}


def test_no_bar_for_small_input_or_without_a_terminal() -> None:
    with progress_bar(1000) as told:
        assert told is None
    with progress_bar(1 << 30) as told:
        assert told is None


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(100 << 20) as told:
        assert told is not None
        told(Path("other.jsonl"), 50 << 20, 50 << 20)
        told(Path("[red]name.jsonl"), 50 << 20, 100 << 20)
    assert "[red]name.jsonl" in terminal.getvalue() and "104.9/104.9 MB" in terminal.getvalue()


def test_what_is_piped_keeps_a_row_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert output.console().width == 200
    monkeypatch.setenv("COLUMNS", "60")
    assert output.console().width == 60
