"""Label every recorded run by its outcome, and freeze the labels.

    python benchmarks/corpus/label.py             # write labels.json and its hash; runs that have a label keep it
    python benchmarks/corpus/label.py --check     # whether the labels on disk are the frozen ones, and follow from the outcomes
    python benchmarks/corpus/label.py --counts    # how many of each, beside what the corpus must have
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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus.counts import show_counts
from corpus.faults import FAULTS
from corpus.settings import SETTINGS, RunSpec, all_runs
from corpus.store import OUTCOME, RECORDED, read_json

LABELS = Path(__file__).with_name("labels.json")
FROZEN = Path(__file__).with_name("labels.sha256")

END = 4
"""The end of a run is the mean of its last four measurements: about the last quarter."""


@dataclass(frozen=True)
class Limits:
    """What a policy must come to. Each is on what a user would see of it, and far from what seeds alone do."""

    lost_failing: float = 0.5  # share of the twin's gain in true reward that is missing at the end
    lost_degraded: float = 0.2  # the same at the end, or on average over any four measurements in a row
    ended_failing: float = 0.4  # share of responses that end; and at least `ended_drop` below the twin's
    ended_drop: float = 0.25
    distinct_failing: float = 0.05  # different responses among 96: four sentences; one correct answer per question gives 0.125
    distinct_drop: float = 0.35
    kl_failing: float = 3.0  # nats per token from the start, and at least three times the twin's
    kl_degraded: float = 1.5
    entropy_failing: float = 2.8  # of ln(53) = 3.97: most of the vocabulary is about as likely
    still_degraded: float = 0.01  # weights that at last move by less than this share of the twin's: nothing is learnt any more

    def scaled(self, factor: float) -> Limits:
        """Stricter or looser limits, all by the same factor."""
        return Limits(**{name: getattr(self, name) * factor for name in self.__dataclass_fields__})


NOISE = 3.0
"""Spreads between seeds that a difference in reward has to exceed."""
BORDER = (0.85, 1.15)
"""A run whose verdict is another with all limits moved by so much is borderline."""

Row = dict[str, Any]


@dataclass
class Outcome:
    """What became of a run, beside its twin."""

    verdict: str
    channels: list[str] = field(default_factory=list)
    onset: int = 0
    lost: float = 0.0


def end_of(rows: Sequence[Row], name: str) -> float:
    """The level of a channel at the end of a run."""
    known = [row[name] for row in rows if name in row][-END:]
    return statistics.fmean(known) if known else float("nan")


def worst_stretch(run: Sequence[Row], twin: Sequence[Row], name: str) -> float:
    """How far a channel was below the twin's, on average over four measurements in a row, where that was worst."""
    gaps = [t[name] - r[name] for r, t in zip(run, twin, strict=False) if name in r and name in t]
    spans = [statistics.fmean(gaps[first : first + END]) for first in range(len(gaps) - END + 1)]
    return max(spans, default=0.0)


def seed_noise(twins: Sequence[Sequence[Row]], name: str) -> float:
    """The spread of a channel's end between seeds of the healthy setting."""
    ends = [end_of(rows, name) for rows in twins]
    return statistics.stdev(ends) if len(ends) > 1 else 0.0


def judge_outcome(
    run: dict[str, Any], twin: dict[str, Any], twins: Sequence[Sequence[Row]], limits: Limits | None = None
) -> Outcome:
    """The verdict on a run with a fault, by what its policy came to."""
    return judge_since(leaves_range(run, twin, twins), run, twin, twins, limits or Limits())


def judge_since(
    onset: int | None, run: dict[str, Any], twin: dict[str, Any], twins: Sequence[Sequence[Row]], limit: Limits
) -> Outcome:
    """The verdict on a run that leaves the range of its twin at `onset`, which no limit changes."""
    rows, healthy = run["rows"], twin["rows"]
    best, gain = end_of(healthy, "reward"), gain_of(healthy)
    if not rows[-1]["finite"] or (run["ended"] and rows[-1]["update"] < 0.95 * run["updates"]):
        crash = _first_bad(rows, run)
        return Outcome("FAILING", ["finite"], crash if onset is None else min(crash, onset), 1.0)
    noise = NOISE * seed_noise(twins, "reward") / gain
    lost, worst = (best - end_of(rows, "reward")) / gain, worst_stretch(rows, healthy, "reward") / gain
    fewer = {name: end_of(healthy, name) - end_of(rows, name) for name in ("ended", "distinct")}
    kl = end_of(rows, "kl")
    far = kl > 3.0 * end_of(healthy, "kl")
    failing = {
        "reward": lost > limit.lost_failing and lost > noise,
        "ended": end_of(rows, "ended") < limit.ended_failing and fewer["ended"] > limit.ended_drop,
        "distinct": end_of(rows, "distinct") < limit.distinct_failing and fewer["distinct"] > limit.distinct_drop,
        "kl": kl > limit.kl_failing and far,
        "entropy": end_of(rows, "entropy") > limit.entropy_failing,
    }
    degraded = {
        "reward": max(lost, worst) > max(limit.lost_degraded, noise),
        "ended": fewer["ended"] > limit.ended_drop,
        "distinct": fewer["distinct"] > limit.distinct_drop,
        "kl": kl > limit.kl_degraded and far,
    }
    still = rows[-1]["moved"] < limit.still_degraded * end_of(healthy, "moved")
    channels = [name for name in failing if failing[name] or degraded.get(name)] if onset is not None else []
    verdict = "HARMLESS"
    if channels:
        verdict = "FAILING" if any(failing.values()) else "DEGRADED"
    elif still:
        verdict = "DEGRADED"
    return Outcome(verdict, [*channels, *(["weights"] if still else [])], onset or max(1, run["injected"]), round(lost, 3))


def gain_of(healthy: Sequence[Row]) -> float:
    """What the twin learns, in reward."""
    return max(end_of(healthy, "reward") - float(healthy[0]["reward"]), 1e-6)


def _first_bad(rows: Sequence[Row], run: dict[str, Any]) -> int:
    """The first measurement with weights that are not finite; else the last update there is, or the injection if later."""
    bad = next((row["update"] for row in rows if not row["finite"]), rows[-1]["update"])
    return max(1, int(bad), int(run["injected"]))


def leaves_range(run: dict[str, Any], twin: dict[str, Any], twins: Sequence[Sequence[Row]]) -> int | None:
    """The first update from which a channel is outside of the twin's range for two measurements, at the injection or after.

    The range is the twin's value, give or take three spreads between seeds at that update and no less than a floor. `None`
    where nothing leaves it: then the run is no worse than another seed.
    """
    floors = {
        "reward": 0.2 * gain_of(twin["rows"]),
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
    return None


CHANNEL_FAMILIES = {
    "reward": ("reward",), "ended": ("length",), "distinct": ("policy", "reward"), "kl": ("kl",), "entropy": ("policy",),
    "finite": ("run",), "weights": ("gradients", "run"),
}  # fmt: skip
"""The families that may name a channel which has truly left its range, whatever the fault."""


def label(spec: RunSpec, outcomes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The label of a run, as it is stored. Its split is not part of it: that changes when runs of *judge* are revealed."""
    run, setting = outcomes[spec.id], SETTINGS[spec.setting]
    common = {"run": spec.id, "updates": setting.updates, "log_every": setting.log_every}
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
            "hidden": False,
        }
    fault, twin = FAULTS[spec.fault], outcomes[spec.twin.id]
    seeds = [outcomes[one.id]["rows"] for one in spec.sister_seeds() if one.id in outcomes]
    onset = leaves_range(run, twin, seeds)
    found = judge_since(onset, run, twin, seeds, Limits())
    moved = [judge_since(onset, run, twin, seeds, Limits().scaled(factor)).verdict for factor in BORDER]
    families = sorted({*fault.families, *(family for channel in found.channels for family in CHANNEL_FAMILIES[channel])})
    return {
        **common, "verdict": found.verdict, "kind": spec.fault, "families": families, "cause": fault.cause,
        "injected": run["injected"], "onset": found.onset, "channels": found.channels, "lost": found.lost,
        "borderline": sorted({*moved} - {found.verdict}), "hidden": fault.hidden,
    }  # fmt: skip


def sick_twins(outcomes: dict[str, dict[str, Any]]) -> list[str]:
    """Runs without a fault that are not healthy by their outcome: the corpus must have none."""
    found = []
    for spec in (one for one in all_runs() if not one.fault and one.id in outcomes):
        rows = outcomes[spec.id]["rows"]
        gain, ended = end_of(rows, "reward") - rows[0]["reward"], end_of(rows, "ended")
        distinct, kl = end_of(rows, "distinct"), end_of(rows, "kl")
        if not rows[-1]["finite"] or gain < 0.1 or ended < 0.6 or distinct < 0.3 or kl > Limits().kl_failing:
            found.append(f"{spec.id}: gain {gain:.2f}, ended {ended:.2f}, distinct {distinct:.2f}, KL {kl:.2f}")
    return found


def read_outcomes() -> dict[str, dict[str, Any]]:
    return {one.id: read_json(RECORDED / one.id / OUTCOME) for one in all_runs() if (RECORDED / one.id / OUTCOME).exists()}


def written(labels: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(one) for one in labels) + "\n]\n"


def frozen() -> bool:
    """Whether the labels on disk are those that were frozen."""
    return hashlib.sha256(LABELS.read_bytes()).hexdigest() == FROZEN.read_text().split()[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--borderline", action="store_true")
    parser.add_argument("--draft", type=Path, help="write the labels here, frozen or not")
    args = parser.parse_args()
    if args.counts or args.borderline:
        labels = json.loads((args.draft or LABELS).read_text())
        short = show_counts(labels) if args.counts else 0
        for one in labels if args.borderline else ():
            if one.get("borderline"):
                print(f"{one['run']:50} {one['verdict']:9} or {' or '.join(one['borderline'])}; {', '.join(one['channels'])}")
        return short
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
    return show_counts(labels)


if __name__ == "__main__":
    sys.exit(main())
