"""Every view of the page, drawn by Streamlit without a browser."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rldk.dashboard
from rldk.core.event import Event

from .conftest import write

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]

APP = Path(rldk.dashboard.__file__).with_name("app.py")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sick_events: list[Event]) -> Iterator[Any]:
    """The page of a folder with a sick run, once all of it is judged."""
    testing = pytest.importorskip("streamlit.testing.v1")
    from rldk.dashboard.client import reader_of

    with_sample = replace(sick_events[5], extra={"samples": [{"prompt": "<b>2+2?</b>", "completion": "4", "reward": 1.0}]})
    write(tmp_path / "sick_events.jsonl", [*sick_events[:5], with_sample, *sick_events[6:]])
    two = [Event(n, {"loss": 1.0 / (n + 1)}, model_info={"run_id": "ab"[n % 2]}) for n in range(30)]
    write(tmp_path / "two_events.jsonl", two)
    (tmp_path / "sick_checkpoint_summary.csv").write_text("step,verdict\n100,healthy\n200,damaged\n")
    (tmp_path / "sick_alerts.json").write_text('[{"step": 3, "message": "kl above 0.1"}]')
    monkeypatch.setattr(sys, "argv", ["app", str(tmp_path), "0"])
    reader = reader_of(str(tmp_path))
    until = time.monotonic() + 30
    while reader.ask("state", key="sick_events.jsonl").get("judged") != len(sick_events) and time.monotonic() < until:
        time.sleep(0.05)
    app = testing.AppTest.from_file(str(APP), default_timeout=60)
    app.query_params["run"] = "sick_events.jsonl"
    yield app
    reader_of.cache_clear()
    reader.close()


def told(app: Any) -> str:
    return " ".join(str(getattr(element, "proto", "")) for element in app.main)


def figures(app: Any) -> list[dict[str, Any]]:
    given = [element.proto.bytes for element in app.main if element.type == "bidi_component"]
    return [figure for data in given for figure in json.loads(data).get("figures", ())]


def plots(app: Any) -> int:
    return len(figures(app))


def test_every_view_draws_what_it_is_for(page: Any) -> None:
    page.run()
    assert not page.exception and "critical" in told(page) and "the KL penalty is too weak" in told(page) and plots(page) >= 5
    for view, most, awaited in (
        ("Curves", 20, "Learning rate"), ("Analytics", 5, "not logged"), ("Alerts", 2, "kl above 0.1"),
        ("Checkpoints", 1, "damaged"), ("Machine", 3, "Throughput"), ("Samples", 0, "&lt;b&gt;2+2?&lt;/b&gt;"),
        ("Export", 0, "The files contain what is shown"),
    ):  # fmt: skip
        page.session_state["rldk_view"] = view
        page.run()
        assert not page.exception, view
        assert "cannot be drawn" not in told(page), view
        assert awaited in told(page), view
        assert plots(page) >= most, view


def test_a_run_that_moves_is_looked_at_each_second_by_itself(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reader's look and the browser's drawing, that is how a line is on the screen within three."""
    import streamlit as st

    from rldk.dashboard import Dashboard
    from rldk.dashboard.open_log import PAUSE
    from rldk.dashboard.page.main import pause

    seconds = Dashboard(".").refresh_seconds
    assert pause(seconds, is_live=True) + PAUSE <= 1.5 and 1 < pause(seconds, is_live=False) <= 5
    given: dict[str, Any] = {}

    def fragment(draw: Any, run_every: float | None = None) -> Any:
        given[draw.__name__] = run_every
        return draw

    monkeypatch.setattr(st, "fragment", fragment)
    for told, moved in (("1.0", 1.0), ("0", None)):
        monkeypatch.setattr(sys, "argv", [*sys.argv[:2], told])
        page.run()
        assert given == {"_draw_run_or_message": moved, "_check_folder": moved}


def test_smoothing_comparison_and_a_range_go_together(page: Any) -> None:
    page.run()
    page.session_state["rldk_smoothing"] = 0.9
    page.session_state["rldk_compared"] = ["two_events.jsonl"]
    page.session_state["rldk_span"] = (100.0, 200.0)
    page.run()
    assert not page.exception and "cannot be drawn" not in told(page)
    assert "Steps 100 to 200" in told(page) and "first incident" in told(page) and ", smooth" in told(page)


def test_curves_lie_along_hours_where_the_log_has_times(page: Any, sick_events: list[Event]) -> None:
    page.session_state["rldk_axis"] = "hours"
    page.session_state["rldk_span"] = (0.0, 0.01)
    page.run()
    assert not page.exception and "Hours 0 to 0.01, in full detail" in told(page)
    axes = [figure["spec"]["layout"]["xaxis"] for figure in figures(page)]
    assert len(axes) >= 5 and {axis["ticksuffix"] for axis in axes} == {" h"}
    page.session_state["rldk_compared"] = ["two_events.jsonl"]  # which has none
    page.run()
    assert "The curves are drawn by step" in told(page)
    assert {figure["spec"]["layout"]["xaxis"]["ticksuffix"] for figure in figures(page)} == {""}


def test_a_file_with_two_runs_offers_both(page: Any) -> None:
    page.query_params["run"] = "two_events.jsonl"
    page.run()
    for _ in range(100):
        if "This file contains 2 runs" in told(page):
            break
        time.sleep(0.05)
        page.run()
    assert "This file contains 2 runs" in told(page)
    assert not page.exception


def test_an_unknown_run_in_the_address_falls_back_to_one_that_is_there(page: Any) -> None:
    page.query_params["run"] = "../../etc/passwd"
    page.run()
    assert not page.exception
    assert page.query_params["run"] in (["sick_events.jsonl"], ["two_events.jsonl"], "sick_events.jsonl", "two_events.jsonl")
