"""What every clause of every detector is worth on the *tune* split: what it tells, by what margin, and whether it is needed.

    python benchmarks/detection/calibrate.py [--json out/calibration.json]

A clause *fires* on a run if it holds for as long as it needs, whether or not a worse one of the same detector is raised. Of a
sick run only rows since the fault count. *sound* is the longest that it held in a sound run on which it does not fire, as a
share of what it needs: near 1 it almost was a false alarm. *sick* is the shortest that it held in a FAILING run on which it
fires: near 1 it was almost missed. *alone* is the number of sick runs that no other clause detects, or calls critical.
The *judge* split is never read. Where the corpus says nothing about a clause, because no run logs what it needs or no run has
the defect, that is said beside the basis that the clause states.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from score_corpus import LOGS, RECORDED, read_labels

from rldk.core.errors import ReadError
from rldk.detectors.base import NOTE, Detector, Finding, View
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.ingest import read_runs
from rldk.judge.engine import Engine
from rldk.judge.scan import judge_run
from rldk.testing.scoring import Label
from rldk.testing.streams import FAULTS, simulate

KINDS = [kind for kind in DETECTORS if not kind.machine]
CLAUSES = {f"{kind.type}.{name}": clause for kind in KINDS for name, clause in kind.clauses.items()}
ALARMS = {name for name, clause in CLAUSES.items() if clause.severity != NOTE}
SOUND = ("HEALTHY", "HARMLESS")
Held = dict[str, float]

_held: Held = {}
_from_step = 0


def watch(kind: type[Detector]) -> None:
    """Have a detector record the longest that each clause has held, as a share of what it needs, before it raises anything."""
    find = kind.find

    def found(self: Detector, view: View) -> Sequence[Finding]:
        findings = find(self, view)
        if view.step >= _from_step:
            for finding in findings:
                name = finding.clause or next(iter(self.clauses))
                clause, rows = self.clauses[name], self._holding.get(name, (0,))[0] + 1
                needs = self._rows_needed(
                    view, finding.persist or clause.persist, clause.min_rows, finding.severity or clause.severity
                )
                share = max(rows / needs, float(finding.confirmed))
                _held[f"{self.type}.{name}"] = max(_held.get(f"{self.type}.{name}", 0.0), share)
        return findings

    kind.find = found  # type: ignore[method-assign]


def start() -> None:
    for kind in KINDS:
        watch(kind)


def of_label(label: Label) -> tuple[Held, set[str]]:
    """What the clauses do on both logs of a run, and the metrics that these have."""
    global _held, _from_step
    _held, _from_step = {}, 0 if label.verdict in SOUND else label.injected
    logged: set[str] = set()
    for log in LOGS.values():
        try:
            runs = read_runs([RECORDED / label.run / log]).runs
        except ReadError:  # the training crashed before it logged anything
            continue
        if runs:
            longest = max(runs, key=len)
            judge_run(longest)
            logged.update(longest.columns)
    return _held, logged


def of_fault(fault: str) -> list[Held]:
    """What they do on simulated runs with a fault."""
    global _held, _from_step
    found = []
    for run in (simulate(profile, 600, seed, fault=fault) for profile in FAULTS[fault].profiles for seed in range(2)):
        _held, _from_step, engine = {}, run.onset or 0, Engine()
        for event in run.events:
            engine.observe(event)
        found.append(_held)
    return found


def fired(held: Mapping[str, float]) -> set[str]:
    return {name for name, share in held.items() if share >= 1.0}


def needed(runs: Iterable[Held]) -> Counter[str]:
    """By clause: how many runs no other clause tells, or no other one calls critical."""
    count: Counter[str] = Counter()
    for held in runs:
        alarms = fired(held) & ALARMS
        critical = {name for name in alarms if CLAUSES[name].severity == "critical"}
        count.update({name for group in (alarms, critical) if len(group) == 1 for name in group})
    return count


def measure(
    name: str, runs: Mapping[str, list[Held]], alone: Counter[str], faults: Mapping[str, list[Held]], logged: set[str]
) -> dict[str, Any]:
    shares = {verdict: [held.get(name, 0.0) for held in rows] for verdict, rows in runs.items()}
    sound = [share for verdict in SOUND for share in shares.get(verdict, [])]
    sick = [share for share in shares.get("FAILING", []) if share >= 1.0]
    return {
        "clause": name,
        "severity": CLAUSES[name].severity,
        "failing": len(sick),
        "degraded": sum(share >= 1.0 for share in shares.get("DEGRADED", [])),
        "false": sum(share >= 1.0 for share in sound),
        "sound": max((share for share in sound if share < 1.0), default=0.0),
        "sick": min(sick, default=None),
        "alone": alone[name],
        "faults": sorted(fault for fault, rows in faults.items() if any(name in fired(held) for held in rows)),
        "unlogged": unlogged(BY_TYPE[name.partition(".")[0]], logged),
        "basis": CLAUSES[name].basis,
    }


def unlogged(kind: type[Detector], logged: Iterable[str]) -> list[str]:
    """The metrics that a detector needs and that no run of the corpus has."""
    families = {name.split("/", 1)[0] + "/*" for name in logged}.union(logged)
    return [metric for group in kind.needs if families.isdisjoint(group) for metric in group]


def without_evidence(rows: list[dict[str, Any]]) -> list[str]:
    """The clauses about which the corpus says nothing: why, and what their numbers rest on."""
    said = []
    for row in rows:
        if row["unlogged"]:
            said.append(f"{row['clause']}: no run of the corpus has {' or '.join(row['unlogged'])}; basis: {row['basis']}.")
        elif not (row["failing"] or row["degraded"]):
            said.append(f"{row['clause']}: no sick run of the corpus has this defect; basis: {row['basis']}.")
    return said


def show(rows: list[dict[str, Any]], unneeded: list[str]) -> None:
    heads = ("failing", "degraded", "false", "sound", "sick", "alone", "faults")
    print(f"{'clause':52}{'severity':10}" + "".join(f"{head:>9}" for head in heads))
    for row in rows:
        cells = [len(row[head]) if head == "faults" else row[head] for head in heads]
        said = ("" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells)
        print(f"{row['clause']:52}{row['severity']:10}" + "".join(f"{cell:>9}" for cell in said))
    silent = [row["clause"] for row in rows if not (row["failing"] or row["degraded"] or row["faults"])]
    print(f"\nNo sick run of tune and no simulated fault fires these ({len(silent)}): {', '.join(silent)}")
    print(f"\nThese fire, but never alone, nor as the only critical ({len(unneeded)}): {', '.join(unneeded)}")
    said = without_evidence(rows)
    print(f"\nThe corpus says nothing about these ({len(said)}):", *said, sep="\n  ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    labels = read_labels("tune")
    with ProcessPoolExecutor(os.cpu_count() or 2, initializer=start) as pool:
        judged = list(pool.map(of_label, labels, chunksize=4))
        faults = dict(zip(FAULTS, pool.map(of_fault, FAULTS), strict=True))
    runs: dict[str, list[Held]] = {}
    logged: set[str] = set()
    for label, (held, metrics) in zip(labels, judged, strict=True):
        runs.setdefault(label.verdict, []).append(held)
        logged |= metrics
    alone = needed(held for verdict, rows in runs.items() if verdict not in SOUND for held in rows)
    simulated = needed(held for rows in faults.values() for held in rows)
    rows = [measure(name, runs, alone, faults, logged) for name in CLAUSES]
    fires = {row["clause"] for row in rows if row["failing"] or row["degraded"] or row["faults"]}
    show(rows, sorted(name for name in fires & ALARMS if not alone[name] and not simulated[name]))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
