"""What writing one event costs a training step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from report import Row, Sizes, child

SCRIPT = """
import json, statistics, sys, time
from rldk.core.event import Event
from rldk.log import EventWriter
from speed.logs import event
events = [Event.from_dict(event(step)) for step in range(int(sys.argv[2]))]
taken = []
with EventWriter(sys.argv[1]) as writer:
    for one in events:
        begun = time.perf_counter_ns()
        writer.write(one)
        taken.append(time.perf_counter_ns() - begun)
taken.sort()
print(json.dumps([statistics.median(taken) / 1000, taken[int(0.99 * len(taken))] / 1000]))
"""


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    middle, late = child(SCRIPT, folder / "written.jsonl", sizes.writes)
    yield Row("EventWriter.write, 25 metrics", f"median {middle:.1f} µs, 99 % {late:.1f} µs", "at most 30 µs", middle <= 30)
