"""Run by two processes, as torchrun starts them: GRPO and PPO with callbacks attached; each says what it did.

ACCELERATE_USE_CPU=true torchrun --nproc_per_node 2 trl_two_processes.py OUT_DIR ppo|grpo ...
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
import trl_tiny

GROUPS: list[object] = []  # kept to the end: torch may wait for ever where a model is the last owner of its group


def main(kind: str, out: Path) -> None:
    from rldk.integrations.trl import EventWriterCallback, RLDKCallback
    from rldk.monitor import TrainingStopped

    rank = int(os.environ["RANK"])
    watched = RLDKCallback(
        out / "rldk", run_id="two", terminal=False, stop_on="warning", alert_thresholds={"epoch": 0.6 if kind == "ppo" else 0.1},
        skip_nonfinite_steps=True,
    )  # fmt: skip
    callbacks = [watched, EventWriterCallback(out / "own.jsonl")]
    if kind == "ppo":
        trainer = trl_tiny.ppo_trainer(out / "training", callbacks, 8)
    else:
        trainer = trl_tiny.group_trainer("GRPO", out / "training", callbacks, 8, ddp_find_unused_parameters=False)
    stopped = False
    try:
        trainer.train()
    except TrainingStopped:
        stopped = True
    said = {
        "rank": rank, "stopped": stopped, "step": trainer.state.global_step, "stop": watched.stop is not None,
        "events": watched.monitor.forensics.engine.events, "responses": watched.metrics.rollout_buffer_pos,
    }  # fmt: skip
    (out / f"rank{rank}.json").write_text(json.dumps(said))
    GROUPS.append(torch.distributed.group.WORLD)


if __name__ == "__main__":
    for kind in sys.argv[2:]:
        (Path(sys.argv[1]) / kind).mkdir(exist_ok=True)
        main(kind, Path(sys.argv[1]) / kind)
