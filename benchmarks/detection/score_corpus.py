"""How right rldk is on the recorded corpus, and how right its peers are on the same runs.

    python benchmarks/detection/score_corpus.py                       # the table, from event logs, plain logs and few rows
    python benchmarks/detection/score_corpus.py --split tune --misses # every miss and every false alarm of the tune split
    python benchmarks/detection/score_corpus.py --page out/detection.html --json out/detection.json
    python benchmarks/detection/score_corpus.py --split tune --peers "" --sensitivity high   # the effect of the setting
    python benchmarks/detection/score_corpus.py --write-baseline      # the baseline that the tests check
    python benchmarks/detection/score_corpus.py --reveal              # look at the runs of judge, and retire them

Of the *judge* split only totals are printed: rules are made from *tune* alone. docs/benchmark.md explains the columns.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import vocabulary
from corpus.label import LABELS
from corpus.settings import SETTINGS, all_runs, reveal_judge, split_of
from corpus.store import EVENTS, PLAIN, RECORDED
from peers import PEERS, open_peers
from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.detectors.base import SENSITIVITIES
from rldk.detectors.table import DETECTORS
from rldk.ingest import read_runs
from rldk.judge.config import ScanConfig
from rldk.judge.result import Result, result_of
from rldk.judge.scan import judge_run
from rldk.runs.run import Run
from rldk.testing.metamorphic import average_rows
from rldk.testing.scoring import Alarm, Judged, Label, RunScore, Totals, by_kind, delay_quantiles, score_run, total_scores

ROOT = Path(__file__).resolve().parents[2]
BASELINE = Path(__file__).parents[1] / "corpus" / "baseline.json"
LOGS = {"events": EVENTS, "plain": PLAIN, "few": PLAIN}
"""The logs that are judged and their files: `few` is the plain log averaged to twelve rows, as of a trainer that logs seldom."""
TITLES = {"events": "event logs", "plain": "the plain logs", "few": "the plain logs averaged to twelve rows"}
FEW_ROWS = 12
FRAMEWORKS = {"ppo": "trl-ppo", "grpo": "trl-grpo", "rloo": "trl-rloo", "dpo": "trl-dpo", "ours": "rldk-trainer"}
FAMILY = {detector.type: detector.__module__.split(".")[2] for detector in DETECTORS}
SICK_ORDER = ("FAILING", "DEGRADED", "HARMLESS")
MACHINE = frozenset({"throughput_drop", "memory_pressure"})
"""Findings about the machine: a busy one says nothing about the training."""

_peers: dict[str, Any] = {}


@dataclass(frozen=True)
class Task:
    """One log of one run, to be judged by rldk and by peers."""

    label: Label
    log: str
    peers: tuple[str, ...]
    sensitivity: str = "normal"


def read_labels(split: str = "") -> list[Label]:
    """The frozen labels of a split, or of all runs."""
    wanted = {spec.id for spec in all_runs() if not split or split_of(spec) == split}
    rows = [row for row in json.loads(LABELS.read_text()) if row["run"] in wanted]
    names = ("run", "verdict", "kind", "cause", "injected", "onset", "updates", "log_every", "hidden")
    return [Label(**{name: row[name] for name in names}, families=tuple(row["families"])) for row in rows]


def start(names: tuple[str, ...]) -> None:
    """Begin a worker: with a child process of each peer that has one."""
    global _peers
    _peers = open_peers(names)


def work(task: Task) -> dict[str, RunScore]:
    """The scores of one log, by tool."""
    try:
        runs = read_runs([RECORDED / task.label.run / LOGS[task.log]]).runs
    except ReadError:  # the training crashed before it logged anything
        runs = []
    if not runs:
        return {name: score_run(task.label, Judged([])) for name in ("rldk", *task.peers)}
    run = max(runs, key=len)
    config = ScanConfig(sensitivity=task.sensitivity)
    if task.log == "few":
        events = average_rows(list(run.events()), run.coverage.reductions, max(round(len(run) / FEW_ROWS), 1)).events
        judgement = judge_events(events, run, config)
    else:
        events = list(run.events()) if task.peers else []
        judgement = judge_run(run, config)
    found = {"rldk": score_run(task.label, judged_by_rldk(judgement, task.label))}
    framework = FRAMEWORKS[SETTINGS[task.label.run.split("--")[0]].trainer]
    for name in task.peers:
        alarms = _peers[name].ask(events, framework, run.coverage.reductions)
        found[name] = score_run(task.label, judged_by_peer(alarms, events))
    return found


def judge_events(events: Sequence[Event], run: Run, config: ScanConfig) -> Result:
    """Judge other rows of a run."""
    judge = config.judge(run.coverage.reductions)
    judge.engine.take_settings(run.config)
    for event in events:
        judge.take(event)
    return result_of(judge, run)


def judged_by_rldk(judgement: Any, label: Label) -> Judged:
    """rldk's anomalies as alarms, and the causes of its worst incident since the injection."""
    anomalies = [one for one in judgement.engine.anomalies if one.type not in MACHINE]
    alarms = [Alarm(one.step, one.severity, FAMILY.get(one.type, "run"), one.type) for one in anomalies]
    incidents = [one for one in judgement.incidents if one.step >= label.injected and one.first not in MACHINE]
    worst = min(incidents, key=lambda one: (one.severity != "critical", one.index), default=None)
    if worst is None:
        return Judged(alarms, ())
    causes = [vocabulary.names_of(cause) for cause in (worst.cause, *worst.rivals)]
    return Judged(alarms, causes, vocabulary.misleads(label.cause, worst.cause))


def judged_by_peer(alarms: Sequence[tuple[int, str, str]], events: Sequence[Event]) -> Judged:
    """A peer's alarms. Peers have no families of ours: whatever they raise after the injection counts as told."""
    return Judged([Alarm(events[row].step, severity, "", what) for row, severity, what in alarms])


def judge_all(
    labels: Sequence[Label], logs: Sequence[str], peers: Sequence[str], sensitivity: str = "normal"
) -> dict[str, dict[str, list[RunScore]]]:
    """Scores by log and tool."""
    tasks = [Task(label, log, tuple(peers), sensitivity) for log in logs for label in labels]
    workers = os.cpu_count() or 2
    with ProcessPoolExecutor(workers, initializer=start, initargs=(tuple(peers),)) as pool:
        answers = list(pool.map(work, tasks, chunksize=4))
    found: dict[str, dict[str, list[RunScore]]] = {log: {name: [] for name in ("rldk", *peers)} for log in logs}
    for task, scores in zip(tasks, answers, strict=True):
        for name, score in scores.items():
            found[task.log][name].append(score)
    return found


# The baseline.

MORE_IS_BETTER = ("told", "critical", "degraded_told", "family", "cause", "cause_of_two")
LESS_IS_BETTER = {"false_critical": 0, "false_any": 0, "early_false": 0, "misleading": 1}
"""With the runs that may be more: who says more may be wrong once. All else is deterministic and needs no tolerance."""
ONSET_ERROR = 5
"""Updates. The onset is known to within the interval of the outcome probe: 3 to 13 updates."""


def regressions(was: Mapping[str, Any], now: Totals) -> list[str]:
    """What is worse than in the baseline, with both figures. What is better is never an error.

    Delays count as runs detected in time: a judge that detects more runs, some of them late, is not worse.
    """
    pairs = {name: (was[name]["count"], getattr(now, name).count) for name in (*MORE_IS_BETTER, *LESS_IS_BETTER)}
    worse = [name for name in MORE_IS_BETTER if pairs[name][1] < pairs[name][0]]
    worse += [name for name, more in LESS_IS_BETTER.items() if pairs[name][1] > pairs[name][0] + more]
    said = [f"{name}: {pairs[name][0]} runs in the baseline, {pairs[name][1]} now" for name in worse]
    if was["delay_median"] is not None:
        limit, half = was["delay_median"] + ONSET_ERROR, -(-was["told"]["count"] // 2)
        soon = sum(delay <= limit for delay in now.delays)
        said += [f"told within {limit:g} updates: {half} runs in the baseline, {soon} now"] if soon < half else []
    return said


# What people read.


def show_totals(title: str, tools: dict[str, Totals]) -> None:
    names = list(tools)
    print(f"\n{title}")
    print(f"{'':37}" + "".join(f"{name:>26}" for name in names))
    rows = {
        "FAILING told": "told", "FAILING told, hidden ones aside": "visible_told", "of these, before the effect": "early",
        "FAILING told, at or after the onset": "told_after_onset",
        "FAILING critical": "critical", "DEGRADED told": "degraded_told",
        "sound runs with a critical": "false_critical", "sound runs with any alarm": "false_any",
        "sick runs: alarm before the fault": "early_false",
        "sick runs: alarm before the onset": "alarm_before_onset", "right family": "family", "right cause": "cause",
        "right cause among two": "cause_of_two", "misleading advice": "misleading",
    }  # fmt: skip
    for said, field in rows.items():
        print(f"{said:37}" + "".join(f"{getattr(tools[name], field)!s:>26}" for name in names))
    for said, field in {"delay (updates), median / 90 %": "delays", "delay of the first critical": "critical_delays"}.items():
        cells = [delay_quantiles(getattr(tools[name], field)) for name in names]
        print(f"{said:37}" + "".join(f"{_pair(cell):>26}" for cell in cells))
    print(f"{'share of a FAILING run saved':37}" + "".join(f"{tools[name].saved:>26.0%}" for name in names))


def _pair(cell: tuple[float | None, float | None]) -> str:
    return "–" if cell[0] is None else f"{cell[0]:.0f} / {cell[1]:.0f}"


def show_kinds(scores: Sequence[RunScore]) -> None:
    """For each kind of fault: how many runs came to what, and how many of them were told."""
    print(f"\n{'kind of fault':28}{'FAILING':>9} told crit{'DEGRADED':>10} told{'HARMLESS':>10} false  raised")
    for kind, rows in sorted(by_kind(scores).items()):
        failing, degraded, harmless = ([one for one in rows if one.label.verdict == name] for name in SICK_ORDER)
        told, grave, told_too = sum(map(_told, failing)), sum(bool(one.critical) for one in failing), sum(map(_told, degraded))
        raised = sorted({alarm.type for one in rows for alarm in one.alarms if alarm.step >= one.label.injected})
        print(
            f"{kind:28}{len(failing):>9}{told:>5}{grave:>5}{len(degraded):>10}{told_too:>5}{len(harmless):>10}"
            f"{sum(map(_is_false, harmless)):>6}  {', '.join(raised)}"
        )


def _told(one: RunScore) -> bool:
    return bool(one.told)


def _is_false(one: RunScore) -> bool:
    return one.false_criticals + one.false_warnings > 0


def show_runs(scores: Sequence[RunScore]) -> None:
    """Every miss and every false alarm, one line per run."""
    for one in scores:
        missed, label = one.label.is_sick and not one.told, one.label
        if missed or _is_false(one):
            raised = [f"{alarm.type}@{alarm.step}{'!' * (alarm.severity == 'critical')}" for alarm in one.alarms]
            said = f"{'missed' if missed else 'false':6} {label.run:52} {label.verdict:9} onset {label.onset:4}"
            print(f"{said}  {', '.join(raised) or 'nothing'}")


def totals_of(found: dict[str, list[RunScore]]) -> dict[str, Totals]:
    return {name: total_scores(rows) for name, rows in found.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--split", choices=("tune", "judge", ""), default="", help="one split; by default both, one after the other"
    )
    parser.add_argument("--logs", default=",".join(LOGS), help="which of the logs")
    parser.add_argument("--peers", default=",".join(PEERS), help="peers to run beside rldk; empty for none")
    parser.add_argument("--sensitivity", choices=tuple(SENSITIVITIES), default="normal", help="rldk's own knob")
    parser.add_argument("--misses", action="store_true", help="list every miss and false alarm of tune")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--page", type=Path, help="write a page of small plots with every miss and false alarm of tune")
    parser.add_argument("--write-baseline", action="store_true")
    parser.add_argument("--reveal", action="store_true", help="list the runs of judge, and move them to tune")
    args = parser.parse_args(arguments)
    began = time.perf_counter()
    peers = tuple(name for name in args.peers.split(",") if name)
    peers = tuple(open_and_close(peers)) if peers else ()
    logs = [log for log in args.logs.split(",") if log]
    figures: dict[str, Any] = {}
    if args.write_baseline and (args.split or set(logs) != set(LOGS) or set(peers) != set(PEERS)):
        parser.error("--write-baseline needs both splits, all logs and all peers")
    if args.write_baseline and args.sensitivity != "normal":
        parser.error("--write-baseline is of the normal sensitivity")
    if args.reveal:
        args.split = "judge"
    for split in [args.split] if args.split else ["tune", "judge"]:
        labels = read_labels(split)
        found = judge_all(labels, logs, peers, args.sensitivity)
        for log in logs:
            tools = totals_of(found[log])
            show_totals(f"{split}: {len(labels)} runs, from {TITLES[log]}", tools)
            figures.setdefault(split, {})[log] = {name: totals.to_dict() for name, totals in tools.items()}
            if split == "tune":
                kinds = by_kind(found[log]["rldk"])
                figures[split][f"{log}_by_kind"] = {kind: total_scores(rows).to_dict() for kind, rows in sorted(kinds.items())}
        if split == "tune" or args.reveal:
            show_kinds(found[logs[0]]["rldk"])
            if args.misses or args.reveal:
                show_runs(found[logs[0]]["rldk"])
        if split == "tune" and args.page:
            from miss_page import write_page

            for log in (log for log in logs if log != "few"):
                out = args.page if log == "events" else args.page.with_stem(f"{args.page.stem}_{log}")
                write_page(out, found[log]["rldk"], LOGS[log])
                print(f"wrote {out}")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    if args.write_baseline:
        from detection_plot import write_plot

        BASELINE.write_text(json.dumps(figures, indent=1) + "\n")
        write_plot(ROOT / "docs" / "images" / "detection.svg", figures)
    if args.reveal:
        print(reveal_judge())
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


def open_and_close(names: Sequence[str]) -> list[str]:
    """The peers that can be opened here; each is installed once, before the workers ask for it."""
    opened = open_peers(names)
    for peer in opened.values():
        print(f"{peer.name}: {peer.version}")
        peer.close()
    return list(opened)


if __name__ == "__main__":
    sys.exit(main())
