"""Two simulated PPO runs, one healthy and one whose entropy explodes: written as a run writes them, then judged."""

from __future__ import annotations

import sys
from pathlib import Path

from rldk.cli.main import main
from rldk.log import EventWriter
from rldk.testing.streams import faulty, healthy

OUT = Path("out/demo")


def record(name: str, events: list) -> Path:
    """Write a run's events as a callback would: each one is on its way to the disk before the next begins."""
    path = OUT / f"{name}_events.jsonl"
    path.unlink(missing_ok=True)
    with EventWriter(path) as log:
        for event in events:
            event.model_info["run_id"] = name
            log.write(event)
    return path


if __name__ == "__main__":
    runs = [
        record("healthy", healthy("ppo", steps=600, seed=3)),
        record("broken", faulty("entropy_explosion", "ppo", steps=600, onset=360, seed=3)),
    ]
    print(f"recorded {' and '.join(map(str, runs))}\n\n$ rldk scan {OUT}\n")
    main(["scan", str(OUT)])
    print(f"\n$ rldk replay {runs[1]}\n")
    main(["replay", str(runs[1])])
    sys.exit(0)
