"""What writing one event costs a training step: to the event log, and to the table of metrics."""

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

NEW_KEYS = """
import json, sys, time
from rldk.core.event import Event
from rldk.monitor import Monitor
from rldk.monitor.outputs import MetricsCsv
from speed.logs import event
table, steps, taken = MetricsCsv(sys.argv[1]), int(sys.argv[2]), []
table.start(Monitor())
for step in range(steps):
    one = Event.from_dict(event(step))
    one.metrics[f"key_{step}"] = 1.0
    begun = time.process_time()
    table.take(one, [])
    taken.append(1e3 * (time.process_time() - begun))
table.close()
quarter = max(1, steps // 4)
print(json.dumps([sum(taken) / steps, sum(taken[-quarter:]) / quarter, max(taken)]))
"""


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    middle, late = child(SCRIPT, folder / "written.jsonl", sizes.writes)
    yield Row("EventWriter.write, 25 metrics", f"median {middle:.1f} µs, 99 % {late:.1f} µs", "at most 30 µs", middle <= 30)
    mean, last, longest = child(NEW_KEYS, folder / "metrics.csv", sizes.writes // 4)
    said = f"mean {mean:.2f} ms, at the end {last:.2f} ms, longest {longest:.0f} ms"
    holds = mean <= 0.5 and last <= mean and longest <= 100
    yield Row("MetricsCsv, a new metric in each step", said, "at most 0.5 ms, 100 ms", holds)
