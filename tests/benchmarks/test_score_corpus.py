"""The detection benchmark end to end: what it prints, what it writes, and what it keeps to itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], Path]:
    """The judge split by plain logs, with one peer: all that is said and written."""
    import contextlib
    import io

    from score_corpus import main

    folder, said = tmp_path_factory.mktemp("scores"), io.StringIO()
    with contextlib.redirect_stdout(said):
        assert (
            main(["--split", "judge", "--logs", "plain", "--peers", "cusum", "--misses", "--json", str(folder / "f.json")]) == 0
        )
    return said.getvalue(), json.loads((folder / "f.json").read_text()), folder


def test_the_figures_of_judge_are_totals_with_intervals(judged: tuple[str, dict[str, Any], Path]) -> None:
    figures = judged[1]["judge"]["plain"]
    assert set(figures) == {"rldk", "cusum"}
    for tool in figures.values():
        low, high = tool["told"]["interval"]
        assert low <= tool["told"]["value"] <= high and tool["told"]["of"] == figures["rldk"]["told"]["of"] > 50
    assert "right_cause" not in figures["cusum"] and not figures["cusum"]["misleading"]["of"]


def test_no_run_of_judge_is_named(judged: tuple[str, dict[str, Any], Path]) -> None:
    said, figures, _ = judged
    assert "--s" not in said + json.dumps(figures)
    assert "FAILING told" in said and "right cause" in said


def test_a_page_shows_misses_and_false_alarms_and_escapes_what_runs_say(tmp_path: Path) -> None:
    from miss_page import write_page
    from score_corpus import LOGS, judge_all, read_labels

    labels = [label for label in read_labels("tune") if label.run.startswith("ppo-dense--s1")]
    scores = judge_all(labels, ["events"], ())["events"]["rldk"]
    write_page(tmp_path / "page.html", scores, LOGS["events"])
    page = (tmp_path / "page.html").read_text()
    listed = [one for one in scores if one.false_criticals + one.false_warnings or (one.label.is_sick and not one.critical)]
    assert page.count("<section>") >= len(listed)
    assert all(one.label.run in page for one in listed) and "<script" not in page


def test_a_run_that_logged_nothing_is_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import score_corpus

    from corpus.store import write_run

    write_run(tmp_path / "ppo-dense--s1--lr_1e6", tmp_path / "absent.jsonl", {"log_history": []}, {})
    monkeypatch.setattr(score_corpus, "RECORDED", tmp_path)
    label = score_corpus.Label("ppo-dense--s1--lr_1e6", "FAILING", "lr_1e6", ("run",), "learning_rate_too_high", 0, 1, 70)
    for log in ("events", "plain"):
        found = score_corpus.work(score_corpus.Task(label, log, ()))
        assert found["rldk"].told is False and found["rldk"].delay is None


def test_text_of_runs_is_escaped_on_pages() -> None:
    from corpus.sheet import page

    made = page("a <b>", [("<i>run", "said & done", [], ["<script>alert(1)</script>"])])
    assert "<script>alert" not in made and "&lt;script&gt;" in made and "<b>" not in made.split("<body>")[1]
