"""How right `rldk compare` is on the recorded corpus: seeds of one healthy setting, and a fault against another seed.

    python benchmarks/detection/seeds.py            # the table
    python benchmarks/detection/seeds.py --misses   # and every miss and false alarm of the tune split
    python benchmarks/detection/seeds.py --null     # the distribution by which a distance is judged, from the tune split alone

A pair of healthy seeds must show no divergence. A FAILING run whose fault begins during the run, against a healthy run of another
seed of its setting, must diverge between the injection and 15 updates after its onset. Of *judge* only totals are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import log
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus.label import LABELS
from corpus.settings import RunSpec, all_runs, split_of
from corpus.store import EVENTS, RECORDED
from rldk.comparison.divergence import Divergence, divergences, largest_distance
from rldk.ingest import read_runs
from rldk.judge.result import Result
from rldk.judge.scan import judge_run

UPDATES = 15
BARS = {"healthy seeds without divergence": 0.95, "faults found in time": 0.85}


@dataclass(frozen=True, eq=False)
class Pair:
    """A healthy run and another run of its setting with another seed; `label` is that of the other run."""

    split: str
    healthy: str
    other: str
    label: dict[str, Any]


def pairs() -> tuple[list[Pair], list[Pair]]:
    """Pairs of healthy seeds, and pairs of a healthy run with a fault that begins in the middle."""
    labels = {one["run"]: one for one in json.loads(LABELS.read_text())}
    known = [spec for spec in all_runs() if spec.id in labels and (RECORDED / spec.id).exists()]
    healthy = [spec for spec in known if not spec.fault and labels[spec.id]["verdict"] == "HEALTHY"]
    failing = [spec for spec in known if labels[spec.id]["verdict"] == "FAILING" and labels[spec.id]["injected"] > 0]
    seeds = [_pair(one, other, labels) for one, other in combinations(healthy, 2) if one.setting == other.setting]
    faults = [
        _pair(one, other, labels)
        for other in failing for one in healthy
        if one.setting == other.setting and one.seed != other.seed
    ]  # fmt: skip
    return seeds, faults


def _pair(one: RunSpec, other: RunSpec, labels: dict[str, Any]) -> Pair:
    split = "judge" if "judge" in (split_of(one), split_of(other)) else "tune"
    return Pair(split, one.id, other.id, labels[other.id])


@cache
def result_of(name: str) -> Result:
    return judge_run(read_runs(RECORDED / name / EVENTS).runs[0])


def first_divergence(pair: Pair) -> Divergence | None:
    found = divergences([result_of(pair.healthy)], [result_of(pair.other)])
    return found[0] if found else None


def in_time(pair: Pair, found: Divergence | None) -> bool:
    """A fault that is set up before an update may show in the row of the update before."""
    label = pair.label
    return found is not None and label["injected"] - label["log_every"] <= found.certain_step <= label["onset"] + UPDATES


def print_null() -> None:
    tune = [pair for pair in pairs()[0] if pair.split == "tune"]
    measured = [largest_distance([result_of(pair.healthy).run], [result_of(pair.other).run]) for pair in tune]
    logs = [log(distance) for distance, _ in measured]
    print(f"largest distance of {len(logs)} pairs of healthy seeds: its logarithm has mean {mean(logs):.2f} and spread")
    print(f"{stdev(logs):.2f}, over {median(windows for _, windows in measured):.0f} windows in the middle")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--misses", action="store_true", help="list the misses and false alarms of the tune split")
    parser.add_argument("--null", action="store_true", help="print the distribution by which a distance is judged")
    args = parser.parse_args()
    if args.null:
        print_null()
        return
    seeds, faults = pairs()
    right = {
        "healthy seeds without divergence": {pair: first_divergence(pair) is None for pair in seeds},
        "faults found in time": {pair: in_time(pair, first_divergence(pair)) for pair in faults},
    }
    print("rldk compare, on the corpus")
    for what, answers in right.items():
        for split in ("tune", "judge", "all"):
            chosen = [good for pair, good in answers.items() if split in (pair.split, "all")]
            if chosen:
                share = sum(chosen) / len(chosen)
                print(f"  {what:34} {split:6} {sum(chosen):4} of {len(chosen):4}  {share:6.1%}  (bar {BARS[what]:.0%})")
        if args.misses:
            for pair in (pair for pair, good in answers.items() if not good and pair.split == "tune"):
                print(f"    {pair.other} against {pair.healthy}: {first_divergence(pair)}")


if __name__ == "__main__":
    main()
