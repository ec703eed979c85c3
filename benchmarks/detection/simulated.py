"""Simulated runs, healthy and sick, through rldk and its rivals: who raises what, and how late.

    python benchmarks/detection/simulated.py [--quick] [--only FAULT,FAULT] [--misses]

A fault counts as caught by rldk when one of the anomaly types that stand for it is raised at its onset or after; the
others have no name for most faults, so any alarm of theirs after the onset counts. What that is worth shows in the last
lines: how often the same tool raises an alarm in the same stretch of a healthy run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers import Alarm, Peer, open_peers
from peers.simple_rules import fixed_thresholds, rolling_z
from rldk.judge.engine import Engine
from rldk.testing.chance import CHANCE, chance_stream
from rldk.testing.streams import FAULTS, PROFILES, simulate

STEPS = 1000
HEALTHY, SEEDS = 100, 50
BARS = {"criticals": 1, "warnings": 20, "caught": 0.95}
TOOLS = ("rldk", "rlwatch", "z-score", "fixed")
FRAMEWORKS = {"ppo": "trl-ppo", "ppo_token": "rldk-trainer", "grpo": "trl-grpo", "dpo": "trl-dpo"}

_peer: Peer | None = None


@dataclass(frozen=True, slots=True)
class Job:
    fault: str | None
    profile: str
    seed: int


@dataclass(slots=True)
class Outcome:
    job: Job
    onset: int
    every: int
    alarms: dict[str, list[Alarm]] = field(default_factory=dict)

    def after(self, tool: str, types: Sequence[str] = ()) -> list[tuple[int, str, str]]:
        """Alarms at the onset or after, as (steps since, severity, type)."""
        found = [((row + 1) * self.every - self.onset, severity, what) for row, severity, what in self.alarms.get(tool, [])]
        return [alarm for alarm in found if alarm[0] >= 0 and (not types or alarm[2] in types)]


def start(with_rlwatch: bool) -> None:
    """Begin a worker: with a child process of rlwatch, if it is wanted."""
    global _peer
    _peer = open_peers(["rlwatch"])["rlwatch"] if with_rlwatch else None


def work(job: Job) -> Outcome:
    stream = simulate(job.profile, STEPS, job.seed, job.fault)
    engine = Engine()
    for event in stream.events:
        engine.observe(event)
    outcome = Outcome(job, stream.onset or 0, stream.traits.log_every)
    outcome.alarms["rldk"] = [(anomaly.index, anomaly.severity, anomaly.type) for anomaly in engine.anomalies]
    outcome.alarms["z-score"] = rolling_z(stream.events)
    outcome.alarms["fixed"] = fixed_thresholds(stream.events, job.profile == "ppo")
    if _peer:
        outcome.alarms["rlwatch"] = _peer.ask(stream.events, FRAMEWORKS[job.profile])
    return outcome


def jobs(healthy: int, seeds: int, only: Sequence[str], first: int = 0) -> Iterable[Job]:
    """Healthy runs spread over the profiles, and each fault over those it can befall."""
    profiles = list(PROFILES)
    yield from (Job(None, profiles[seed % len(profiles)], seed) for seed in range(first, first + healthy))
    for name, fault in FAULTS.items():
        if not only or name in only:
            yield from (Job(name, fault.profiles[seed % len(fault.profiles)], seed) for seed in range(first, first + seeds))


def caught(outcomes: Sequence[Outcome], tool: str, types: Sequence[str] = ()) -> tuple[float, float]:
    """The share of runs with an alarm after the onset, and the median delay of the first."""
    delays = [found[0][0] for outcome in outcomes if (found := outcome.after(tool, types))]
    return len(delays) / len(outcomes), statistics.median(delays) if delays else float("nan")


def show(outcomes: Sequence[Outcome], tools: Sequence[str], misses: bool) -> bool:
    """Print the table; whether every bar is reached."""
    by_fault: dict[str | None, list[Outcome]] = {}
    for outcome in outcomes:
        by_fault.setdefault(outcome.job.fault, []).append(outcome)
    healthy = by_fault.pop(None, [])
    others = [tool for tool in tools if tool != "rldk"]
    print(f"\nfault{'':24}   rldk: caught  delay  critical  any alarm " + "".join(f"{tool:>16}" for tool in others))
    low = []
    for fault, runs in by_fault.items():
        types = FAULTS[str(fault)].expects
        share, delay = caught(runs, "rldk", types)
        critical = sum(any(alarm[1] == "critical" for alarm in run.after("rldk")) for run in runs) / len(runs)
        anything, _ = caught(runs, "rldk")
        low += [fault] if share < BARS["caught"] else []
        cells = "".join("{:>9.0%} {:>6.0f}".format(*caught(runs, tool)) for tool in others)
        print(f"{fault:29} {share:>14.0%} {delay:>6.0f} {critical:>9.0%} {anything:>10.0%} {cells}")
        for run in runs if misses else ():
            if not run.after("rldk", types):
                print(f"    missed: {run.job.profile} seed {run.job.seed}: {run.after('rldk')}")
    return _show_healthy(healthy, tools, misses) and not low


def _show_healthy(healthy: Sequence[Outcome], tools: Sequence[str], verbose: bool) -> bool:
    head = f"healthy runs ({len(healthy)})"
    print(f"\n{head:27} criticals  warnings  runs with an alarm  of them after step {round(0.4 * STEPS)}")
    good = True
    for tool in tools:
        alarms = [alarm for run in healthy for alarm in run.alarms[tool]]
        criticals = sum(alarm[1] == "critical" for alarm in alarms)
        some = sum(bool(run.alarms[tool]) for run in healthy)
        late = sum(any((row + 1) * run.every >= 0.4 * STEPS for row, _, _ in run.alarms[tool]) for run in healthy)
        print(f"{tool:27} {criticals:>9} {len(alarms) - criticals:>9} {some:>19} {late:>24}")
        if tool == "rldk":
            good = criticals <= BARS["criticals"] and len(alarms) - criticals <= BARS["warnings"]
    for run in healthy if verbose else ():
        if run.alarms["rldk"]:
            print(f"    {run.job.profile} seed {run.job.seed}: {run.alarms['rldk']}")
    return good


def is_critical(kind: str, seed: int) -> bool:
    """Whether rldk finds something critical in a run of chance alone."""
    engine = Engine()
    for event in chance_stream(kind, seed):
        engine.observe(event)
    return any(anomaly.severity == "critical" for anomaly in engine.anomalies)


def show_chance(streams: int) -> None:
    """Print how many runs of chance alone have a critical, of each kind; the bar is one in a hundred."""
    with ProcessPoolExecutor(2) as pool:
        for kind in CHANCE:
            found = sum(pool.map(is_critical, [kind] * streams, range(streams), chunksize=16))
            print(f"{kind:24} {found:>4} of {streams} with a critical" + ("" if found <= 0.01 * streams else ": above the bar"))


def rlwatch_name() -> str | None:
    """rlwatch and its version; `None` if it cannot be had. Its environment is made here, before the workers need it."""
    found = open_peers(["rlwatch"])
    for peer in found.values():
        peer.close()
    return next((f"{peer.name} {peer.version}" for peer in found.values()), None)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a smoke run: few seeds")
    parser.add_argument("--only", default="", help="these faults only, with commas between")
    parser.add_argument("--misses", action="store_true", help="list the runs that were missed, and alarms of healthy ones")
    parser.add_argument("--first-seed", type=int, default=0, help="begin with this seed: other runs of the same kinds")
    parser.add_argument("--without-rlwatch", action="store_true")
    parser.add_argument("--chance", type=int, default=0, help="only this: so many runs of noise, walks and late learners (1000)")
    args = parser.parse_args(arguments)
    if args.chance:
        show_chance(args.chance)
        return 0
    name = None if args.without_rlwatch else rlwatch_name()
    beside = name or "no other monitor"
    print(f"Simulated runs of {STEPS} steps, beside {beside}; z-score: window 50, |z| > 4; fixed: limits of folklore")
    began = time.perf_counter()
    only = [part for part in args.only.split(",") if part]
    todo = list(jobs(8 if args.quick else HEALTHY, 3 if args.quick else SEEDS, only, args.first_seed))
    with ProcessPoolExecutor(2, initializer=start, initargs=(name is not None,)) as pool:
        outcomes = list(pool.map(work, todo, chunksize=8))
    good = show(outcomes, [tool for tool in TOOLS if tool != "rlwatch" or name], args.misses)
    print(f"\n{len(todo)} runs in {time.perf_counter() - began:.0f} s")
    print("Bars (95 % of each fault, at most 1 critical and 20 warnings): " + ("reached" if good else "NOT reached"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
