"""The result of a judgement: the one object that the terminal, files, the report, the dashboard and the Python API show."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from math import nan
from typing import TYPE_CHECKING, Any

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.text import counted
from rldk.core.verdicts import worst_of
from rldk.judge.acknowledgements import Acknowledgement, is_acknowledged
from rldk.judge.coverage import CheckCoverage, coverage_of
from rldk.judge.engine import Engine
from rldk.judge.incidents.advice import Setup
from rldk.judge.incidents.incident import Incident, anomaly_dicts, group_incidents, worst_incident
from rldk.judge.scores.alarms import alarm
from rldk.judge.scores.overall import named_scores
from rldk.judge.verdict import state_of, status_of, verdict_of
from rldk.runs.run import Run
from rldk.storage.places import shown

if TYPE_CHECKING:
    from rldk.judge.judge import Judge

__all__ = ["Result", "result_of"]


@dataclass(slots=True, repr=False)
class Result:
    """What is known of a run, live or finished.

    `verdict` is the worst that was found over the whole run and `state` how it stands now: `critical` or `warning` while
    such an anomaly stands, `recovered` where all of them are over, else the verdict. `scores` are those of now and
    `worst_scores` what the run's anomalies left of them at its worst; `score_parts` says what each is made of. `machine`
    lists findings about the machine, which change nothing else; `notes` lists what is worth knowing but not an anomaly.
    `skipped_lines` counts the lines of the run's file that could not be read, and `acknowledged` has what `rldk ack` accepted.
    """

    engine: Engine
    verdict: str
    state: str
    reason: str
    scores: dict[str, float]
    worst_scores: dict[str, float]
    anomalies: list[Anomaly]
    incidents: list[Incident]
    coverage: CheckCoverage
    machine: list[Anomaly] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    score_parts: dict[str, dict[str, float]] = field(default_factory=dict)
    source: Run | None = None
    skipped_lines: int = 0
    acknowledged: tuple[Acknowledgement, ...] = ()

    @property
    def run(self) -> Run:
        """The run that was read; a live run has none."""
        assert self.source is not None, "the result of a live run holds no run"
        return self.source

    @property
    def standing(self) -> list[Anomaly]:
        """The anomalies that stand now."""
        return [anomaly for anomaly in self.anomalies if anomaly.cleared_index is None]

    @property
    def status(self) -> str:
        """The status of a health summary: the verdict, or `degraded` where health is below 0.7 and nothing was critical."""
        return status_of(self.verdict, self.scores.get("overall_health", nan))

    @property
    def worst(self) -> Incident | None:
        """The incident to read first: the first critical one, else the first."""
        return worst_incident(self.incidents)

    @property
    def open_verdict(self) -> str:
        """The verdict without the findings that were acknowledged: what makes a command fail."""
        if not self.acknowledged or self.verdict not in SEVERITIES:
            return self.verdict
        return worst_of(one.severity for one in self.anomalies if not is_acknowledged(one, self.acknowledged))

    def acknowledgement_of(self, incident: Incident) -> Acknowledgement | None:
        """The acknowledgement of an incident, if every anomaly in it is acknowledged."""
        members = [self.anomalies[number] for number in incident.anomalies]
        if not all(is_acknowledged(one, self.acknowledged) for one in members):
            return None
        return next(iter(self.acknowledgements_in(incident)), None)

    def acknowledgements_in(self, incident: Incident) -> list[Acknowledgement]:
        """The acknowledgements that cover an anomaly of an incident, whether or not they cover all of it."""
        members = [self.anomalies[number] for number in incident.anomalies]
        return [ack for ack in self.acknowledged if any(ack.holds(one) for one in members)]

    @property
    def would_stop(self) -> dict[str, int] | None:
        """Where the first critical was raised: a run with stopping enabled would have stopped there."""
        first = next((anomaly for anomaly in self.anomalies if anomaly.severity == "critical"), None)
        return None if first is None else {"step": first.step, "index": first.index}

    def plot(self, *names: str, **options: Any) -> Any:
        """The run's plots for a notebook, as a `rldk.plots.Picture`, with the incidents of this result marked.

        Plots stand above the judge in the layers, so they are looked up when they are asked for.
        """
        return import_module("rldk.plots").plot(self, *names, **options)

    def __repr__(self) -> str:
        name = "live run" if self.source is None else self.source.run_id
        worst = "" if self.worst is None else f"; {self.worst.title} at step {self.worst.step}"
        return f"<Result of {name}: {self.verdict}, {self.reason}{worst}; {counted(self.engine.events, 'event')}>"

    def _repr_html_(self) -> str:
        return str(import_module("rldk.present.notebook").result_html(self))

    def to_dict(self) -> dict[str, Any]:
        """The result as `rldk scan --json` prints it; that of a live run has no path, adapter, framework and kind."""
        acks = {"acknowledged": [ack.to_dict() for ack in self.acknowledged]} if self.acknowledged else {}
        return {**self._place(), **self._judgement(), **acks}

    def _place(self) -> dict[str, Any]:
        run, engine = self.source, self.engine
        if run is None:
            return {"events": engine.events, "first_step": engine.first_step, "last_step": engine.last_step}
        return {
            "path": shown(run.path),
            "adapter": run.adapter,
            "framework": run.framework,
            "run_id": run.run_id,
            "kind": run.kind,
            "events": len(run),
            "first_step": int(run.steps[0]) if len(run) else None,
            "last_step": int(run.steps[-1]) if len(run) else None,
            "skipped_lines": self.skipped_lines,
        }

    def _judgement(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "state": self.state,
            "status": self.status,
            "reason": self.reason,
            "scores": self.scores,
            "worst_scores": self.worst_scores,
            "coverage": self.coverage.to_dict(),
            "anomalies": anomaly_dicts(self.anomalies, self.incidents),
            "incidents": [incident.to_dict() for incident in self.incidents],
            "machine": [anomaly.to_dict() for anomaly in self.machine],
            "would_stop": self.would_stop,
            "notes": self.notes,
        }


def result_of(judge: Judge, run: Run | None = None, setup: Setup | None = None) -> Result:
    """The result of what a judge has seen so far; `run` is what was read, where it comes from a log.

    `setup` is what advice may name, by default what `run` knows.
    """
    engine, anomalies = judge.engine, judge.anomalies
    if run is None:
        coverage = coverage_of(engine)
    else:
        known = run.coverage
        coverage = coverage_of(engine, known.metrics, known.reductions, known.unmapped, run.kind == "supervised")
    verdict, reason = verdict_of(engine, anomalies, coverage)
    found = Result(
        engine, verdict, state_of(verdict, anomalies), reason, {}, {}, anomalies,
        group_incidents(anomalies, engine.events, engine.cleared_steps, setup or _setup(run)), coverage, judge.machine,
        [*(run.notes if run is not None else ()), *_notes(engine)], source=run,
    )  # fmt: skip
    if verdict != "no_data":  # a score would suggest that something was judged
        _add_scores(found, judge)
    return found


def _setup(run: Run | None) -> Setup:
    return Setup() if run is None else Setup.of(run)


def _add_scores(found: Result, judge: Judge) -> None:
    standing = found.standing
    found.scores = named_scores(judge.trackers, judge.engine, standing)
    worst = named_scores(judge.trackers, judge.engine, found.anomalies)
    found.worst_scores = {name: min(score, found.scores.get(name, 1.0)) for name, score in worst.items()}
    parts = judge.current().score_parts
    for name in found.scores.keys() - {"training_stability"}:  # the parts under that name are those of the gradients' own
        if name in parts:
            parts[name].setdefault("alarms", alarm(standing, name))
    found.score_parts = parts


def _notes(engine: Engine) -> list[str]:
    """The notes of the detectors, each sentence once, and what they say of the run as it stands."""
    said = [f"step {note.step}: {note.message}" for note in engine.notes]
    closing = [sentence for detector in engine.detectors if (sentence := detector.closing()) is not None]
    return list(dict.fromkeys([*said, *closing]))
