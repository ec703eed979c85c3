"""The page of all runs, drawn by Streamlit without a browser: table, search, selection, curves, comparison, address."""

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
from rldk.testing.streams import healthy

from .conftest import write

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]

APP = Path(rldk.dashboard.__file__).with_name("app.py")
HOSTILE = "<script>alert(1)</script> [x](javascript:alert(2)) $\\alert(3)$ :red[y]"


def run(events: list[Event], name: str, **config: Any) -> list[Event]:
    made = [replace(event, model_info={**event.model_info, "run_id": name}) for event in events]
    made[0].model_info["config"] = config
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sick_events: list[Event]) -> Path:
    made = tmp_path_factory.mktemp("runs")
    write(made / "sick_events.jsonl", run(sick_events, "sick", learning_rate=1e-3, seed=1))
    for seed in (1, 2):
        write(made / f"calm{seed}_events.jsonl", run(healthy("ppo", 150, seed), f"calm{seed}", learning_rate=1e-6, seed=seed))
    write(made / "odd_events.jsonl", run([Event(n, {"reward_mean": 0.1 * n, HOSTILE: 1.0 * n}) for n in range(40)], HOSTILE))
    return made


@pytest.fixture(scope="module")
def bench(folder: Path) -> Iterator[Any]:
    pytest.importorskip("streamlit.testing.v1")
    from rldk.dashboard.client import reader_of, workbench_of

    found = workbench_of(str(folder))
    until = time.monotonic() + 60
    while found.ask("table")["waiting"] and time.monotonic() < until:
        time.sleep(0.05)
    yield found
    found.close()
    reader_of(str(folder)).close()
    workbench_of.cache_clear()
    reader_of.cache_clear()


@pytest.fixture
def page(folder: Path, bench: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    from streamlit.testing.v1 import AppTest

    monkeypatch.setattr(sys, "argv", ["app", str(folder), "0"])
    return AppTest.from_file(str(APP), default_timeout=60)


def ids(bench: Any) -> dict[str, str]:
    return {row["name"]: row["id"] for row in bench.ask("table")["rows"]}


def names(page: Any) -> list[str]:
    (found,) = page.dataframe
    return list(found.value["run"])


def param(page: Any, name: str) -> str:
    """A value of the address; Streamlit's test gives it as a list or by itself."""
    given = page.query_params[name]
    return str(given[0] if isinstance(given, list) else given)


def told(page: Any) -> str:
    return " ".join(str(getattr(element, "proto", "")) for element in page.main)


def plots(page: Any) -> dict[str, Any]:
    given = [json.loads(element.proto.bytes) for element in page.main if element.type == "bidi_component"]
    return given[0] if given else {"figures": [], "legend": []}


def test_the_page_opens_on_a_table_of_runs(page: Any) -> None:
    page.run()
    assert not page.exception and set(names(page)) == {"sick", "calm1", "calm2", HOSTILE}
    (table,) = page.dataframe
    shown = table.value.set_index("run")
    assert list(shown.loc["sick", "verdict"]) == ["critical"] and list(shown.loc["calm1", "verdict"]) == ["healthy"]
    assert shown.loc["sick", "learning_rate "] == 1e-3 and shown.loc["calm2", "seed "] == 2
    assert len(shown.loc["sick", "curve"]) > 20 and "KL" in shown.loc["sick", "cause"]
    assert page.query_params == {} and "4 runs" in told(page)


def test_search_and_filter_and_order(page: Any) -> None:
    page.run()
    page.text_input(key="rldk_search").set_value("CALM[12]|seed=7").run()
    assert names(page) and set(names(page)) == {"calm1", "calm2"} and param(page, "q") == "CALM[12]|seed=7"
    page.text_input(key="rldk_search").set_value("learning_rate=0.001").run()
    assert names(page) == ["sick"]
    page.text_input(key="rldk_search").set_value("(").run()
    assert "not a regular expression" in told(page) and len(names(page)) == 4
    page.text_input(key="rldk_search").set_value("").run()
    page.session_state["rldk_shown"] = ["critical"]
    page.run()
    assert names(page) == ["sick"]
    page.session_state["rldk_shown"] = []
    page.session_state["rldk_order"] = "worst"
    page.run()
    assert names(page)[0] == "sick" and param(page, "order") == "worst"


def test_the_selection_is_drawn_over_each_other(page: Any, bench: Any) -> None:
    known = ids(bench)
    page.query_params["runs"] = ".".join(known[name] for name in ("sick", "calm1", "calm2"))
    page.run()
    assert not page.exception
    given = plots(page)
    assert [one["label"] for one in given["legend"]] == ["sick", "calm1", "calm2"]
    assert len({one["colour"] for one in given["legend"]}) == 3
    reward = given["figures"][0]["spec"]
    assert [trace["legendgroup"] for trace in reward["data"]] == ["sick", "calm1", "calm2"]
    page.session_state["rldk_group_by"] = "config.learning_rate"
    page.run()
    given = plots(page)
    assert [one["label"] for one in given["legend"]] == ["learning_rate=0.001 (1 run)", "learning_rate=1e-06 (2 runs)"]
    assert any(trace.get("fill") == "tonexty" for trace in given["figures"][0]["spec"]["data"])
    page.session_state["rldk_group_by"] = "config"
    page.run()
    assert len(plots(page)["legend"]) == 2  # one setting, two seeds


def test_metrics_are_searched_and_pinned(page: Any, bench: Any) -> None:
    page.query_params["runs"] = ids(bench)["sick"]
    page.run()
    few = [figure["key"] for figure in plots(page)["figures"]]
    assert few[:2] == ["reward_mean", "kl_mean"] and len(few) < 10
    page.session_state["rldk_all_metrics"] = True
    page.run()
    assert len(plots(page)["figures"]) > 2 * len(few)
    page.text_input(key="rldk_metric_search").set_value("^clip_frac").run()
    page.session_state["rldk_pinned"] = ["lr"]
    page.run()
    assert [figure["key"] for figure in plots(page)["figures"]] == ["lr", "clip_frac"]
    page.text_input(key="rldk_metric_search").set_value("[").run()
    assert "not a regular expression" in told(page)


def test_axes_and_range_come_from_the_address(page: Any, bench: Any) -> None:
    for name, value in {"runs": ids(bench)["sick"], "zoom": "100~200", "y": "log", "logx": "1", "smooth": "0.9"}.items():
        page.query_params[name] = value
    page.run()
    layout = plots(page)["figures"][0]["spec"]["layout"]
    assert layout["yaxis"]["type"] == layout["xaxis"]["type"] == "log"
    assert layout["xaxis"]["range"] == pytest.approx([2.0, 2.30103])
    assert "Steps 100 to 200" in told(page) and param(page, "zoom") == "100~200"
    assert ", smooth" in json.dumps(plots(page))


def test_a_wrong_address_is_ignored(page: Any) -> None:
    for name, value in {
        "runs": "../../etc/passwd.ffffffff", "zoom": "nan~inf", "y": "<b>", "x": "../x", "smooth": "7", "tab": "Etc",
        "group": "config.__", "order": "rm -rf", "show": "x.y", "pin": "../a", "logx": "2", "base": "zz", "q": "a" * 5000,
        "metric": "\x00", "page": "x",
    }.items():  # fmt: skip
        page.query_params[name] = value
    page.run()
    assert not page.exception and "cannot be drawn" not in told(page)
    assert page.session_state["rldk_y_scale"] == "auto" and page.session_state["rldk_span"] is None


def test_selected_runs_are_compared(page: Any, bench: Any) -> None:
    known = ids(bench)
    page.query_params["runs"] = f"{known['calm1']}.{known['sick']}"
    page.query_params["tab"] = "Compare"
    page.run()
    assert not page.exception and "sick diverges from calm1 at step" in told(page) and "learning_rate" in told(page)
    page.session_state["rldk_selected"] = [known["sick"]]
    page.run()
    assert "Select two or more runs" in told(page)


def test_a_run_is_opened_from_the_table_and_the_table_from_the_run(page: Any, bench: Any) -> None:
    page.query_params["runs"] = ids(bench)["sick"]
    page.run()
    page.button(key="rldk_open").click().run()
    assert not page.exception and param(page, "run") == "sick_events.jsonl" and "runs" not in page.query_params
    page.session_state["rldk_view"] = "Alerts"
    page.session_state["rldk_smoothing"] = 0.5
    page.run()
    assert param(page, "view") == "Alerts" and param(page, "smooth") == "0.5"
    page.button(key="rldk_all_runs").click().run()
    assert len(names(page)) == 4 and param(page, "runs") == ids(bench)["sick"] and "run" not in page.query_params


def test_the_view_of_a_run_comes_from_the_address(page: Any) -> None:
    given = {"run": "sick_events.jsonl", "view": "Curves", "zoom": "50~150", "with": "calm1_events.jsonl", "smooth": "0.3"}
    for name, value in given.items():
        page.query_params[name] = value
    page.run()
    assert page.session_state["rldk_view"] == "Curves" and "Steps 50 to 150" in told(page)
    assert page.session_state["rldk_compared"] == ["calm1_events.jsonl"] and page.session_state["rldk_smoothing"] == 0.3


def test_hostile_names_are_text(page: Any, bench: Any) -> None:
    known = ids(bench)
    page.query_params["runs"] = f"{known[HOSTILE]}.{known['sick']}"
    page.session_state["rldk_all_metrics"] = True
    page.run()
    assert not page.exception and HOSTILE in names(page)
    drawn = [figure["spec"] for figure in plots(page)["figures"]]
    titles = [trace["name"] for spec in drawn for trace in spec["data"]] + [spec["layout"]["title"]["text"] for spec in drawn]
    assert not any("<script" in title for title in titles)
    page.session_state["rldk_tab"] = "Compare"
    page.run()
    html = [str(element.proto.body) for element in page.main if element.type == "html"]
    assert not any("<script" in part for part in html) and any("&lt;script&gt;" in part for part in html)
    assert not any(HOSTILE[:9] in str(element.proto) for element in page.main if element.type in ("markdown", "caption"))


def test_a_folder_of_one_run_opens_on_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, healthy_events: list[Event]
) -> None:
    testing = pytest.importorskip("streamlit.testing.v1")
    from rldk.dashboard.client import reader_of, workbench_of

    write(tmp_path / "only_events.jsonl", healthy_events[:60])
    monkeypatch.setattr(sys, "argv", ["app", str(tmp_path), "0"])
    page = testing.AppTest.from_file(str(APP), default_timeout=60)
    page.run()
    try:
        assert not page.exception and not page.dataframe and param(page, "run") == "only_events.jsonl"
        page.button(key="rldk_all_runs").click().run()
        assert len(names(page)) == 1
    finally:
        for client in (reader_of(str(tmp_path)), workbench_of(str(tmp_path))):
            client.close()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("", 3), ("B", 1), ("^a.c$|!$", 2), ("(a+)+$", 1), ("(", None), ("x{999}{999}", None), (r"(a)\1", None), ("(?<=a)b", None)],
)
def test_any_pattern_is_answered_and_a_wrong_one_says_why(pattern: str, found: int | None) -> None:
    pytest.importorskip("pyarrow")
    from rldk.dashboard.page.run_rows import matching

    there, problem = matching(["abc", "aaa", "a" * 20_000 + "!"], pattern)
    assert sum(there) == (3 if found is None else found)
    assert ("not a regular expression" in problem) == (found is None)
