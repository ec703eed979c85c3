"""What notifications cost a training whose incident none of them can report, because every service is broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from report import Row, Sizes, child, median

TESTS = Path(__file__).parents[2] / "tests" / "monitor"
SCRIPT = """
import json, os, statistics, sys, time
sys.path.insert(0, sys.argv[1])
from servers import WebServer
from rldk.monitor import Command, Monitor, notifications
from rldk.testing.streams import faulty

server = WebServer()
server.answers = ["hang", 500, 429, 404, "cut"] * 1000
for name, path in (("SLACK", "a"), ("DISCORD", "b"), ("TEAMS", "c"), ("NTFY", "d/topic")):
    os.environ[f"RLDK_{name}_URL"] = f"{server.url}/{path}"
os.environ.update(RLDK_SMTP_URL="smtp://127.0.0.1:9", RLDK_MAIL_TO="me@example.org")
services = ["slack", "discord", "teams", "ntfy", "email", server.url, "http://127.0.0.1:9/x"]

def followed(folder, broken):
    actions = []
    if broken:
        actions = [*notifications(services, "warning"), Command([sys.executable, "-c", "raise SystemExit(3)"], "warning")]
    events, taken = faulty("kl_explosion", steps=int(sys.argv[3])), []
    with Monitor(folder, run_id="run", actions=actions) as monitor:
        for event in events:
            time.sleep(0.002)  # the training, in which the services' threads have their turn
            begun = time.thread_time_ns()
            monitor.observe(event)
            taken.append(time.thread_time_ns() - begun)
    with open(f"{folder}/run_events.jsonl") as log:
        kept = sum('"step"' in line for line in log)
    return statistics.fmean(taken) / 1e6, len(events) - kept

found = []
try:
    for round in range(int(sys.argv[4])):
        found += [followed(f"{sys.argv[2]}/{round}-{broken}", broken) for broken in (False, True)]
finally:
    server.close()
print(json.dumps(found))
"""


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    found = child(SCRIPT, TESTS, folder / "notified", min(300, sizes.events), sizes.repetitions)
    alone, broken = (median([cost for cost, _ in found[place::2]]) for place in (0, 1))
    said = f"{broken:.2f} ms, without any {alone:.2f} ms"
    yield Row("an event of the training, every service broken", said, "0.1 ms more at most", broken - alone <= 0.1)
    lost = sum(lost for _, lost in found)
    yield Row("events lost", str(lost), "0", lost == 0)
