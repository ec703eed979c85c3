"""Kill writers with SIGKILL at random moments: every acknowledged event is there, no half line, nothing twice."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

HARNESS = """
import json, logging, os, random, signal, struct, sys, time
from rldk.core.event import Event
from rldk.log import EventReader, EventWriter

logging.disable(logging.CRITICAL)
folder, files, kills_each, seed = sys.argv[1], *map(int, sys.argv[2:5])
rng = random.Random(seed)
PADDINGS = ["x" * size for size in (0, 0, 0, 300, 20_000, 400_000)]


def write_until_killed(path, resume_step, first, into):
    writer = EventWriter(path, resume_step=resume_step)
    if writer.repair:
        os.write(into, struct.pack("q", -1))
    step = first
    while True:
        notes = [rng.choice(PADDINGS)]
        if writer.write(Event(step, {"loss": 0.5}, notes=notes)):
            os.write(into, struct.pack("q", step))
        step += 1


def kill_one(path, resume_step, first):
    out, into = os.pipe()
    rng.random()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        write_until_killed(path, resume_step, first, into)
    os.close(into)
    time.sleep(rng.uniform(0.0005, 0.012))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with open(out, "rb") as pipe:
        said = pipe.read()
    return [step for (step,) in struct.iter_unpack("q", said[: len(said) // 8 * 8])]


totals = {"kills": 0, "acknowledged": 0, "repairs": 0, "missing": 0, "malformed": 0, "disorder": 0, "ends_badly": 0}
for n in range(files):
    path, acknowledged = f"{folder}/{n}.jsonl", []
    for kill in range(kills_each):
        resume = acknowledged[-1] if acknowledged and kill % 2 else None
        said = kill_one(path, resume, (kill + 1) * 1_000_000)
        totals["kills"] += 1
        totals["repairs"] += said.count(-1)
        acknowledged += [step for step in said if step >= 0]
    EventWriter(path).close()
    reader = EventReader(path)
    steps = [event.step for event in reader]
    totals["acknowledged"] += len(acknowledged)
    totals["missing"] += len(set(acknowledged) - set(steps))
    totals["malformed"] += reader.problems.total
    totals["disorder"] += sum(a >= b for a, b in zip(steps, steps[1:]))
    totals["ends_badly"] += not open(path, "rb").read().endswith(b"\\n")
    os.unlink(path)
print(json.dumps(totals))
"""


def test_nothing_acknowledged_is_lost(tmp_path, run_script):
    totals = run_script(HARNESS, tmp_path, 15, 24, 20240607)
    print(totals)  # `repairs` says how many kills tore a line: about 10, and nothing on earth guarantees one
    assert totals["kills"] == 360
    assert totals["acknowledged"] > 360
    bad = {name: totals[name] for name in ("missing", "malformed", "disorder", "ends_badly")}
    assert bad == {"missing": 0, "malformed": 0, "disorder": 0, "ends_badly": 0}
