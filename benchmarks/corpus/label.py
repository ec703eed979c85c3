"""Label every recorded run by its outcome, and freeze the labels.

    python benchmarks/corpus/label.py             # write labels.json and its hash; runs that have a label keep it
    python benchmarks/corpus/label.py --check     # whether the labels on disk are the frozen ones, and follow from the outcomes
    python benchmarks/corpus/label.py --counts    # how many of each, by split, kind and trainer
    python benchmarks/corpus/label.py --borderline

Only the outcome probe is looked at, and the run's twin: the same setting and seed without the fault. No detector is imported
here. docs/benchmark.md says what the rules mean.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus.faults import FAULTS
from corpus.settings import SETTINGS, RunSpec, all_runs, split_of
from corpus.store import OUTCOME, RECORDED, read_json

LABELS = Path(__file__).with_name("labels.json")
FROZEN = Path(__file__).with_name("labels.sha256")

END = 4
"""The end of a run is the mean of its last four measurements: about the last fifth."""

# Limits. Each is on what a user would see of the policy, and far from what seeds alone do (see `--borderline`).
LOST_FAILING, LOST_DEGRADED = 0.5, 0.2  # share of the twin's gain in true reward that is missing at the end
ENDED_FAILING, ENDED_DROP = 0.4, 0.25  # share of responses that end: below the first it is broken, by the second it is worse
DISTINCT_FAILING, DISTINCT_DROP = 0.15, 0.35  # different responses among 96 to 48 prompts
KL_FAILING, KL_DEGRADED = 3.0, 1.5  # nats per token from the start, and at least thrice the twin's
NOISE_ENTROPY = 2.8  # of ln(53) = 3.97: most of the vocabulary is as likely
NOISE = 3.0  # spreads between seeds that a difference has to exceed
GAP = 0.06
"""How near to a limit a run may be before it counts as borderline, in the limit's own unit."""


@dataclass
class Outcome:
    """What became of a run, beside its twin."""

    verdict: str
    channels: list[str] = field(default_factory=list)
    onset: int = 0
    lost: float = 0.0
    near: list[str] = field(default_factory=list)


Row = dict[str, Any]


def end_of(rows: Sequence[Row], name: str) -> float:
    """The level of a channel at the end of a run."""
    known = [row[name] for row in rows if name in row][-END:]
    return statistics.fmean(known) if known else float("nan")


def worst_stretch(run: Sequence[Row], twin: Sequence[Row], name: str) -> float:
    """How far a channel was below the twin's for four measurements in a row, wherever that was worst."""
    gaps = [t[name] - r[name] for r, t in zip(run, twin, strict=False) if name in r and name in t]
    spans = [statistics.fmean(gaps[first : first + END]) for first in range(len(gaps) - END + 1)]
    return max(spans, default=0.0)


def seed_noise(twins: Sequence[Sequence[Row]], name: str) -> float:
    """The spread of a channel's end between seeds of the healthy setting."""
    ends = [end_of(rows, name) for rows in twins]
    return statistics.stdev(ends) if len(ends) > 1 else 0.0


def judge_outcome(run: dict[str, Any], twin: dict[str, Any], twins: Sequence[Sequence[Row]]) -> Outcome:
    """The verdict on a run with a fault, by what its policy came to."""
    rows, healthy = run["rows"], twin["rows"]
    if not rows[-1]["finite"] or (run["ended"] and rows[-1]["update"] < 0.95 * run["updates"]):
        return Outcome("FAILING", ["finite"], _first_bad(rows, run), 1.0)
    start, best = healthy[0]["reward"], end_of(healthy, "reward")
    gain = max(best - start, 1e-6)
    noise = NOISE * seed_noise(twins, "reward") / gain
    lost, worst = (best - end_of(rows, "reward")) / gain, worst_stretch(rows, healthy, "reward") / gain
    ended, twin_ended = end_of(rows, "ended"), end_of(healthy, "ended")
    distinct, twin_distinct = end_of(rows, "distinct"), end_of(healthy, "distinct")
    kl, twin_kl = end_of(rows, "kl"), end_of(healthy, "kl")
    entropy = end_of(rows, "entropy")
    far = kl > 3.0 * twin_kl
    failing = {
        "reward": lost > LOST_FAILING and lost > noise,
        "ended": ended < ENDED_FAILING and twin_ended - ended > ENDED_DROP,
        "distinct": distinct < DISTINCT_FAILING and twin_distinct - distinct > DISTINCT_DROP,
        "kl": kl > KL_FAILING and far,
        "entropy": entropy > NOISE_ENTROPY,
    }
    degraded = {
        "reward": max(lost, worst) > max(LOST_DEGRADED, noise),
        "ended": twin_ended - ended > ENDED_DROP,
        "distinct": twin_distinct - distinct > DISTINCT_DROP,
        "kl": kl > KL_DEGRADED and far,
    }
    verdict = "FAILING" if any(failing.values()) else "DEGRADED" if any(degraded.values()) else "HARMLESS"
    channels = [name for name, broken in {**degraded, **{k: v for k, v in failing.items() if v}}.items() if broken]
    near = [
        name for name, gap in _gaps(lost, max(lost, worst), ended, distinct, twin_ended, twin_distinct).items() if abs(gap) < GAP
    ]
    return Outcome(verdict, channels, _onset(run, twin, twins, gain), round(lost, 3), near)


def _gaps(lost: float, worst: float, ended: float, distinct: float, twin_ended: float, twin_distinct: float) -> dict[str, float]:
    return {
        "lost near half of the gain": lost - LOST_FAILING,
        "lost near a fifth of the gain": worst - LOST_DEGRADED,
        "ended near its limit": ended - ENDED_FAILING,
        "fewer responses end": twin_ended - ended - ENDED_DROP,
        "distinct near its limit": distinct - DISTINCT_FAILING,
        "fewer distinct responses": twin_distinct - distinct - DISTINCT_DROP,
    }


def _first_bad(rows: Sequence[Row], run: dict[str, Any]) -> int:
    """The first measurement with weights that are not finite; else the last update there is, or the injection if later."""
    bad = next((row["update"] for row in rows if not row["finite"]), rows[-1]["update"])
    return max(int(bad), int(run["injected"]))


def _onset(run: dict[str, Any], twin: dict[str, Any], twins: Sequence[Sequence[Row]], gain: float) -> int:
    """The first update from which a channel is outside of the twin's range for two measurements, at the injection or after.

    The range is the twin's value, give or take three spreads between seeds at that update and no less than a floor.
    """
    floors = {
        "reward": 0.2 * gain,
        "ended": 0.2,
        "distinct": 0.25,
        "kl": max(0.3, 2.0 * end_of(twin["rows"], "kl")),
        "entropy": 0.5,
    }
    outside: list[tuple[int, bool]] = []
    for place, (row, healthy) in enumerate(zip(run["rows"], twin["rows"], strict=False)):
        left = not row["finite"]
        for name, floor in floors.items() if row["finite"] else ():
            seeds = [rows[place][name] for rows in twins if len(rows) > place and name in rows[place]]
            band = max(floor, NOISE * statistics.stdev(seeds) if len(seeds) > 1 else 0.0)
            left |= abs(row[name] - healthy[name]) > band
        outside.append((row["update"], left))
    for place, (update, left) in enumerate(outside):
        if left and update >= run["injected"] and (place + 1 == len(outside) or outside[place + 1][1]):
            return max(1, int(update))
    return max(1, int(run["injected"]))


CHANNEL_FAMILIES = {
    "reward": ("reward",), "ended": ("length",), "distinct": ("policy", "reward"), "kl": ("kl",), "entropy": ("policy",),
    "finite": ("run",),
}  # fmt: skip
"""The families that may name a channel which has truly left its range, whatever the fault."""


def label(spec: RunSpec, outcomes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The label of a run, as it is stored."""
    run, setting = outcomes[spec.id], SETTINGS[spec.setting]
    common = {"run": spec.id, "split": split_of(spec), "updates": setting.updates, "log_every": setting.log_every}
    if not spec.fault:
        return {
            **common,
            "verdict": "HEALTHY",
            "kind": "",
            "families": [],
            "cause": "",
            "injected": 0,
            "onset": 0,
            "channels": [],
        }
    fault = FAULTS[spec.fault]
    seeds = [
        outcomes[one.id]["rows"] for one in all_runs() if one.setting == spec.setting and not one.fault and one.id in outcomes
    ]
    found = judge_outcome(run, outcomes[spec.twin.id], seeds)
    families = sorted({*fault.families, *(family for channel in found.channels for family in CHANNEL_FAMILIES[channel])})
    return {
        **common, "verdict": found.verdict, "kind": spec.fault, "families": families, "cause": fault.cause,
        "injected": run["injected"], "onset": found.onset, "channels": found.channels, "lost": found.lost,
        "borderline": found.near,
    }  # fmt: skip


def sick_twins(outcomes: dict[str, dict[str, Any]]) -> list[str]:
    """Runs without a fault that are not healthy by their outcome: the corpus must have none."""
    found = []
    for spec in (one for one in all_runs() if not one.fault and one.id in outcomes):
        rows = outcomes[spec.id]["rows"]
        gain, ended = end_of(rows, "reward") - rows[0]["reward"], end_of(rows, "ended")
        distinct, kl = end_of(rows, "distinct"), end_of(rows, "kl")
        if not rows[-1]["finite"] or gain < 0.1 or ended < 0.6 or distinct < 0.3 or kl > KL_FAILING:
            found.append(f"{spec.id}: gain {gain:.2f}, ended {ended:.2f}, distinct {distinct:.2f}, KL {kl:.2f}")
    return found


def read_outcomes() -> dict[str, dict[str, Any]]:
    return {one.id: read_json(RECORDED / one.id / OUTCOME) for one in all_runs() if (RECORDED / one.id / OUTCOME).exists()}


def written(labels: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(one) for one in labels) + "\n]\n"


def frozen() -> bool:
    """Whether the labels on disk are those that were frozen."""
    return hashlib.sha256(LABELS.read_bytes()).hexdigest() == FROZEN.read_text().split()[0]


def show_counts(labels: list[dict[str, Any]]) -> None:
    verdicts = Counter(one["verdict"] for one in labels)
    faulty = [one for one in labels if one["kind"]]
    kinds = Counter(one["kind"] for one in faulty)
    print(f"{len(labels)} runs: {verdicts['HEALTHY']} healthy, {len(faulty)} faulty over {len(kinds)} kinds of fault")
    print("faulty: " + ", ".join(f"{verdicts[name]} {name}" for name in ("FAILING", "DEGRADED", "HARMLESS")))
    if kinds:
        name, most = kinds.most_common(1)[0]
        print(
            f"the most frequent kind is {name}: {most} runs, {most / len(faulty):.1%}; "
            f"{len({one['cause'] for one in faulty})} causes"
        )
    for split in ("tune", "judge"):
        part = Counter(one["verdict"] for one in labels if one["split"] == split)
        print(f"{split}: " + ", ".join(f"{count} {name}" for name, count in sorted(part.items())))
    unseen = {one["kind"] for one in faulty if one["split"] == "judge"} - {
        one["kind"] for one in faulty if one["split"] == "tune"
    }
    print(f"kinds that are in judge only: {len(unseen)}: {', '.join(sorted(unseen))}")
    trainers = Counter(SETTINGS[one["run"].split("--")[0]].trainer for one in labels)
    print("trainers: " + ", ".join(f"{count} {name}" for name, count in trainers.most_common()))
    print(f"borderline: {sum(bool(one.get('borderline')) for one in labels)} of {len(faulty)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--borderline", action="store_true")
    parser.add_argument("--draft", type=Path, help="write the labels here, frozen or not")
    args = parser.parse_args()
    if args.counts or args.borderline:
        labels = json.loads((args.draft or LABELS).read_text())
        if args.counts:
            show_counts(labels)
        for one in labels if args.borderline else ():
            if one.get("borderline"):
                print(f"{one['run']:50} {one['verdict']:9} {', '.join(one['borderline'])}")
        return 0
    outcomes = read_outcomes()
    fresh = {one.id: label(one, outcomes) for one in all_runs() if one.id in outcomes and one.twin.id in outcomes}
    if args.draft:
        args.draft.write_text(written(list(fresh.values())))
        print("\n".join(sick_twins(outcomes)))
        return 0
    kept = {one["run"]: one for one in json.loads(LABELS.read_text())} if LABELS.exists() else {}
    if args.check:
        wrong = [name for name, one in kept.items() if one != fresh.get(name)]
        print(f"{len(kept)} labels; frozen: {frozen()}; that do not follow from the outcomes: {wrong or 'none'}")
        return int(bool(wrong) or not frozen())
    labels = [kept.get(name, one) for name, one in fresh.items()]
    LABELS.write_text(written(labels))
    FROZEN.write_text(f"{hashlib.sha256(LABELS.read_bytes()).hexdigest()}  labels.json\n")
    show_counts(labels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
