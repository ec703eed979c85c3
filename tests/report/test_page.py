"""The page tells what was found, is one file by itself, and holds whatever a log says as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.judge.acknowledgements import Acknowledgement
from rldk.present.html import text
from rldk.report import Case, markdown, page, write_report

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Checked(HTMLParser):
    """Checks that elements are closed in order, and collects ids, links and what could load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str | None] = []
        self.handlers: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [given["id"]] if given.get("id") else []  # type: ignore[list-item]
        self.links += [str(given[name]) for name in ("href", "src", "action") if name in given]
        self.handlers += [name for name in given if name.startswith("on")]
        if tag == "script":
            self.scripts.append(given.get("type"))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)


def checked(content: str) -> Checked:
    parser = Checked()
    parser.feed(content)
    assert parser.open == [] and len(parser.ids) == len(set(parser.ids)) and parser.handlers == []
    assert [link for link in parser.links if not link.startswith(("#", "data:,"))] == []
    assert [link for link in parser.links if link.startswith("#") and link[1:] not in parser.ids] == []
    assert parser.scripts.count(None) == 1 and set(parser.scripts) <= {None, "application/json"}
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", content)
    return parser


def words(content: str) -> str:
    return " ".join(" ".join(checked(content).words).split())


def test_a_broken_run_is_told_as_a_story(cases: dict[str, Case]) -> None:
    said = words(page([cases["broken"]]))
    incident = cases["broken"].judgement.incidents[0]
    assert "critical broken The policy has degenerated" in said and f"first seen at step {incident.step}" in said
    assert "moved first" in said and "What to do Go back to the last checkpoint at or before step" in said
    assert f"Last good step {incident.last_good_step}" in said and "It may also be the learning rate is too high" in said
    for anomaly in cases["broken"].judgement.engine.anomalies:
        assert anomaly.message in said


def test_an_acknowledged_incident_says_so(cases: dict[str, Case]) -> None:
    result = cases["broken"].judgement
    acks = [Acknowledgement("x", "broken", one.type, "critical", "a <b>known</b> one", "2999-01-01") for one in result.anomalies]
    said = words(page([Case(replace(result, acknowledged=tuple(acks)))]))
    assert "Acknowledged until 2999-01-01: a <b>known</b> one" in said and " (acknowledged)." in said
    assert "cknowledged" not in words(page([cases["broken"]]))


def test_the_story_is_in_the_order_in_which_things_began(cases: dict[str, Case]) -> None:
    case = cases["broken"]
    incident = case.judgement.incidents[0]
    story = case.story(incident)
    assert story[0].first and story[0].anomaly.type == incident.first
    assert [moment.began for moment in story] == sorted(moment.began for moment in story)
    assert len({moment.anomaly.type for moment in story}) == len(story)
    assert {moment.anomaly.type for moment in story} == {case.judgement.engine.anomalies[n].type for n in incident.anomalies}


def test_the_pictures_of_an_incident_show_it_with_its_moment_marked(cases: dict[str, Case]) -> None:
    case = cases["broken"]
    incident = case.judgement.incidents[0]
    panels = case.evidence_panels(incident)
    assert {"kl", "entropy", "reward"} <= {panel.key for panel in panels}
    for panel in panels:
        assert {(mark.x, mark.severity) for mark in panel.marks} == {
            (incident.step, "critical"), (incident.last_good_step, "good"),
        }  # fmt: skip


def test_a_warning_has_its_last_good_step_and_the_reward_beside_it(case_of: Callable[..., Case]) -> None:
    events = [Event(n, {"clip_frac": 0.1 if n < 23 else 0.8, "reward_mean": 0.3 + 0.02 * (n % 3)}) for n in range(80)]
    case = case_of(events)
    incident = case.judgement.incidents[0]
    panels = case.evidence_panels(incident)
    assert [panel.key for panel in panels] == ["clip", "reward"] and incident.severity == "warning"
    assert [(mark.x, mark.severity) for mark in panels[0].marks] == [
        (incident.step, "warning"),
        (incident.last_good_step, "good"),
    ]


def test_all_standard_panels_scores_and_coverage_are_there(cases: dict[str, Case]) -> None:
    content = page([cases["broken"]])
    said = words(content)
    for title in ("Reward", "KL against its target", "KL coefficient", "Gradient norms", "Advantages",
                  "Policy to value gradients", "Entropy",
                  "Length of responses", "Explained variance", "Losses", "Throughput", "Memory"):  # fmt: skip
        assert title in said
    pictures = content.count('<svg xmlns="http://www.w3.org/2000/svg"')
    assert content.count('<figure class="panel"') == pictures
    assert "Overall health 0." in said and "reward held" in said
    assert "checks could run" in said and "detectors are inactive: a metric is not logged" in said
    assert "target_kl 6" in said


def test_a_healthy_run_says_so_and_silence_is_not_health(cases: dict[str, Case]) -> None:
    said = words(page([cases["healthy"]]))
    assert "healthy Nothing found by" in said.replace("healthy healthy", "healthy")
    assert "Nothing was found. Coverage is full" in said
    assert "An inactive detector finds nothing, whatever the state of the run" in said


def test_several_runs_are_compared_the_worst_first(cases: dict[str, Case]) -> None:
    content = page([cases["healthy"], cases["broken"]])
    said = words(content)
    assert "2 runs 1 critical · 1 healthy" in said
    table = said[said.index("last reward") :]
    assert table.index("broken") < table.index("healthy")
    assert "since step" in said and "last reward" in said
    assert content.count('id="run-') == 2


def test_many_runs_make_a_page_of_bounded_size(cases: dict[str, Case]) -> None:
    content = page([cases["broken"]] * 40)
    said = words(content)
    assert "40 runs" in said and "The first 5 are drawn" in said and content.count('id="run-') == 40
    assert len(content) < 4_000_000


def test_a_run_without_metrics_of_rl_gets_its_curves_and_a_hint(case_of: Callable[..., Case]) -> None:
    said = words(page([case_of([Event(n, {"loss": 1.0 / (n + 1), "my_thing": float(n % 7)}) for n in range(40)])]))
    assert "no data" in said and "--field-map KEY=METRIC" in said and "Losses" in said and "my_thing" in said


def test_a_run_of_one_event_is_a_page(case_of: Callable[..., Case]) -> None:
    said = words(page([case_of([Event(1, {"reward_mean": 0.5, "kl_mean": 0.1, "entropy_mean": 1.0})])]))
    assert "only 1 event: too few to judge" in said.lower() and "Reward" in said


def test_no_run_at_all_is_a_page_that_helps() -> None:
    said = words(page([], [("/tmp/<b>x</b>.jsonl", "is empty <i>")]))
    assert "No run could be read" in said and "rldk ingest PATH --explain" in said and "/tmp/<b>x</b>.jsonl" in said


def test_values_that_are_not_finite_are_shown_as_such(case_of: Callable[..., Case]) -> None:
    events = [
        Event(n, {"reward_mean": 0.1 * n, "loss": float("nan") if n > 30 else 1.0, "kl_mean": float("inf") if n == 9 else 0.1})
        for n in range(60)
    ]
    content = page([case_of(events)])
    checked(content)
    assert "not a finite number" in content and not re.search(r' d="[^"]*nan', content)


HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'`&\x1b[31m\u202e"


def test_what_a_log_says_is_text_and_not_markup(case_of: Callable[..., Case]) -> None:
    events = [Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1, HOSTILE: float(n % 3)}) for n in range(30)]
    for event in events:
        event.notes = [HOSTILE]
        event.model_info["git_sha"] = HOSTILE
    case = case_of(events, HOSTILE)
    case.judgement.run.notes.append(HOSTILE)
    case.checkpoints = [{"checkpoint": HOSTILE, "step": HOSTILE, "verdict": HOSTILE, "problems": HOSTILE}]
    content = page([case, case], [(HOSTILE, HOSTILE)], title=HOSTILE)
    parser = checked(content)
    assert "<img" not in content and "\x1b" not in content and "\u202e" not in content
    assert any("<script>document.title" in word for word in parser.words)


def test_a_megabyte_of_text_does_not_make_a_megabyte_of_page(case_of: Callable[..., Case]) -> None:
    events = [Event(n, {"reward_mean": 0.1, "x" * 1_000_000: float(n)}) for n in range(3)]
    for event in events:
        event.notes = ["n" * 1_000_000]
    case = case_of(events, "r" * 1_000_000)
    assert len(page([case])) < 300_000 and len(markdown([case])) < 10_000
    assert len(text("<" * 1_000_000)) < 2000


def test_a_long_run_makes_a_page_of_bounded_size(case_of: Callable[..., Case]) -> None:
    chance = np.random.default_rng(0).normal(size=(20_000, 2))
    case = case_of([Event(n, {"reward_mean": float(a), "entropy_mean": float(b)}) for n, (a, b) in enumerate(chance)])
    content = page([case])
    assert len(content) < 400_000
    peak = f"{chance[:, 0].max():.5g}"
    assert peak in content  # the highest value of twenty thousand is among the points


@pytest.mark.parametrize("present", ["run", "stem"])
def test_checkpoints_are_taken_from_the_summary_beside_the_log(case_of: Callable[..., Case], present: str) -> None:
    from rldk.judge.scan import judge_run

    run = case_of([Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1}) for n in range(40)], "my_run").judgement.run
    name = "my_run" if present == "run" else "run"
    rows = "checkpoint,step,verdict,health_score,update_ratio,drift_from_start,problems\n"
    rows += "checkpoint-10,10,healthy,0.98,0.01,0.01,\ncheckpoint-20,20,critical,0.1,0.5,0.6,nonfinite\n"
    (run.path.parent / f"{name}_checkpoint_summary.csv").write_text(rows)
    case = Case(judge_run(run))
    said = words(page([case]))
    assert "checkpoint-20" in said and "nonfinite" in said and "How far the weights moved" in said
    panel = next(panel for panel in case.panels if panel.key == "checkpoints")
    assert [curve.y.tolist() for curve in panel.curves] == [[0.01, 0.5], [0.01, 0.6]]


def test_a_run_id_that_leads_out_of_the_folder_reads_no_file_there(case_of: Callable[..., Case], tmp_path: Path) -> None:
    run = case_of([Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1}) for n in range(9)], "../evil").judgement.run
    (run.path.parent.parent / "evil_checkpoint_summary.csv").write_text("checkpoint,step\nsecret,1\n")
    from rldk.report.case import checkpoint_rows

    assert checkpoint_rows(run) == []


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    from rldk.core.errors import UsageError

    target = write_report(tmp_path / "deep" / "report.html", "old")
    write_report(target, "new")
    assert target.read_text() == "new" and [path.name for path in target.parent.iterdir()] == ["report.html"]
    with pytest.raises(UsageError, match="got the folder"):
        write_report(tmp_path, "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(tmp_path / "file" / "report.html", "x")


def test_the_summary_tells_verdict_story_and_advice(cases: dict[str, Case]) -> None:
    said = markdown([cases["broken"], cases["healthy"]], [("a.txt", "is no log")], ["pictures/my kl.png"])
    assert said.startswith("## rldk: critical\n") and "| `broken` | **critical** | 300 |" in said
    assert "### The policy has degenerated: critical at step" in said and "(moved first)" in said and "**What to do:**" in said
    assert "Not judged: `a.txt`: is no log" in said and "![my kl](pictures/my%20kl.png)" in said
    table = [line for line in said.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1


def test_the_summary_of_hostile_text_is_plain_text(case_of: Callable[..., Case]) -> None:
    case = case_of([Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1}) for n in range(9)], "`@all` | <img src=http://x> [a](b)")
    said = markdown([case], [("p", "@all <b>x</b> [a](http://x)")])
    assert "`'@all' \\| <img src=http://x> [a](b)`" in said  # as code, in which nothing is markup
    assert "@\u200ball \\<b\\>x\\</b\\> \\[a\\](http\u200b://x)" in said


def test_names_in_advice_are_code_in_markdown_and_text_around_them_is_escaped(cases: dict[str, Case]) -> None:
    judged = cases["broken"].judgement
    advice = "Lower it (`PPOConfig.learning_rate`, it was <b>_high_</b>). [a](http://x) A lone ` is text."
    changed = replace(judged, incidents=[replace(judged.incidents[0], advice=advice)])
    said = markdown([Case(changed)])
    assert "(`PPOConfig.learning_rate`, it was \\<b\\>\\_high\\_\\</b\\>)" in said
    assert "\\[a\\](http\u200b://x) A lone \\` is text." in said
