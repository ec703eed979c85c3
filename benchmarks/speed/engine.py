"""What an event costs: through the judge alone, and with the trackers and scores, early and late in a run.

    python benchmarks/speed/engine.py [--quick]

Times are processor time, not wall time, with the garbage collector on. Other work of the machine still slows them down,
so each is the median over blocks of 50 events in the quietest of twelve rounds, some seconds apart; the peer's too.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "detection"))

from peers import open_peers
from peers.rlwatch_peer import RlwatchPeer
from rldk.core.event import Event
from rldk.forensics import ComprehensivePPOForensics
from rldk.judge.engine import Engine
from rldk.testing.streams import simulate

BLOCK = 50
ROUNDS, SCANS = 12, 5
PAUSE = 3.0  # seconds between rounds: what disturbs a machine lasts as long
EARLY, LATE = 1_000, 100_000
BARS = {"step": 0.9, "late": 1.2, "memory": 1.1, "scan": 8_000.0}  # the step beside rlwatch in the same run
LEFT_OUT = (
    "kl_std", "reward_min", "reward_max", "rollout_length_std", "eos_frac", "advantage_min", "advantage_max", "value_std",
    "policy_loss", "tokens_per_second", "gpu_memory_gb", "target_kl", "length_reward_corr",
)  # fmt: skip


def events_of(count: int) -> list[Event]:
    """A PPO run of 25 metrics per event, its first thousand steps repeated from step 1000 on with rising numbers."""
    stream = simulate("ppo", 1000, 3, mismatch=0.0, held_out=0)
    rows = [{name: value for name, value in event.metrics.items() if name not in LEFT_OUT} for event in stream.events]
    info = stream.events[0].model_info
    return [Event(step, rows[step % 1000], float(step), model_info=info) for step in range(count)]


class Times:
    """What an event costs a judge early in a run and late, round after round."""

    def __init__(self, make: Callable[[], Callable[[Event], object]], events: Sequence[Event], late: int) -> None:
        self.make, self.events, self.at = make, events, late - EARLY
        self.late = make()
        for event in events[: self.at]:
            self.late(event)
        self.rounds: list[tuple[float, float]] = []

    def measure(self) -> None:
        """Microseconds an event at step 1 000 and at the end, in turns, block by block: what disturbs meets both alike."""
        early, events = self.make(), self.events
        for event in events[:EARLY]:
            early(event)
        times: tuple[list[float], list[float]] = ([], [])
        for start in range(0, EARLY, BLOCK):
            for taken, observe, first in ((times[0], early, EARLY + start), (times[1], self.late, self.at + start)):
                began = time.thread_time()
                for event in events[first : first + BLOCK]:
                    observe(event)
                taken.append((time.thread_time() - began) / BLOCK * 1e6)
        self.at += EARLY
        self.rounds.append((statistics.median(times[0]), statistics.median(times[1])))

    @property
    def best(self) -> tuple[float, float]:
        """The times of the quietest round."""
        return min(self.rounds, key=sum)


def memory_of(make: Callable[[], Callable[[Event], object]], events: Sequence[Event], marks: Sequence[int]) -> list[float]:
    """Kilobytes held after so many events."""
    held = []
    tracemalloc.start()
    observe = make()
    done = 0
    for mark in marks:
        for event in events[done:mark]:
            observe(event)
        done = mark
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0] / 1024)
    tracemalloc.stop()
    return held


def scan_rate(count: int) -> tuple[float, float]:
    """Events per second of `rldk scan` on a file, with reading and without the start of Python; the quietest of five."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        with path.open("wb") as file:
            for event in events_of(count):
                file.write(event.to_json() + b"\n")
        code = (
            "import sys, time; began = time.process_time()\n"
            "from rldk.ingest import read_runs; from rldk.judge.scan import judge_run\n"
            "from pathlib import Path; runs = read_runs([Path(sys.argv[1])]).runs; read = time.process_time()\n"
            "n = sum(len(judge_run(run).run) for run in runs); print(n, read - began, time.process_time() - began)"
        )
        found = []
        for _ in range(SCANS):
            done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
            rows, reading, whole = map(float, done.stdout.split())
            assert rows == count, f"{rows:.0f} of {count} events were judged"
            found.append((rows / whole, rows / reading))
    return max(found)


def said(reached: bool) -> str:
    return "" if reached else "   NOT reached"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    args = parser.parse_args(arguments)
    late = LATE // 10 if args.quick else LATE
    events = events_of(late + ROUNDS * EARLY)
    print(f"One step of {len(events[0].metrics)} metrics, in microseconds of processor time (quietest of {ROUNDS} rounds)")
    print(f"{'':44}{'step 1 000':>12}{f'step {late:,}'.replace(',', ' '):>16}")
    good = True
    judges: dict[str, Callable[[], Callable[[Event], object]]] = {
        "rldk, all detectors": lambda: Engine().observe,
        "rldk, all detectors and trackers, no record": lambda: ComprehensivePPOForensics().take,
        "rldk, with a record and scores each step": lambda: ComprehensivePPOForensics().observe,
    }
    measured = {label: Times(make, events, late) for label, make in judges.items()}
    peer = open_peers(["rlwatch"]).get("rlwatch")
    peers: list[float] = []
    for _ in range(ROUNDS):
        time.sleep(PAUSE)
        for times in measured.values():
            times.measure()
        if isinstance(peer, RlwatchPeer):
            peers.append(statistics.median(peer.step_times(events[: 2 * EARLY])[EARLY // BLOCK :]))
    for label, times in measured.items():
        first, last = times.best
        reached = last <= BARS["late"] * first
        good &= reached
        print(f"{label:44}{first:>12.1f}{last:>16.1f}{said(reached)}")
    if peer is not None:
        peer.close()
        ratio = measured["rldk, all detectors"].best[0] / min(peers)
        good &= ratio <= BARS["step"]
        print(f"{f'rlwatch {peer.version}, 7 detectors':44}{min(peers):>12.1f}")
        print(f"{'all detectors beside rlwatch':44}{ratio:>11.2f}x{said(ratio <= BARS['step'])}")
    marks = (late // 10, late)
    print(f"\nMemory held, in kB{'':26}{marks[0]:>12}{marks[1]:>16}")
    for label, make in list(judges.items())[:2]:
        before, after = memory_of(make, events, marks)
        reached = after <= BARS["memory"] * before
        good &= reached
        print(f"{label:44}{before:>12.0f}{after:>16.0f}{said(reached)}")
    count = 20_000 if args.quick else 200_000
    rate, reading = scan_rate(count)
    good &= rate >= BARS["scan"] or args.quick
    print(
        f"\nScanning a file of {count} events: {rate:,.0f} events/s on one core "
        f"({reading:,.0f}/s the reading){said(rate >= BARS['scan'])}"
    )
    print("Bars: " + ("reached" if good else "NOT reached"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
