"""Your own callback: metrics added to the log, targets to reach, and an action at each alert.

python examples/trl_integration/custom_callbacks.py [OUTPUT_DIR]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tiny_world import make_model, make_prompts, ppo_config, settle

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.integrations.trl import CustomRLDKCallback, create_ppo_trainer
from rldk.monitor import Monitor


class Mine(CustomRLDKCallback):
    """Logs how much of the budget is used, and prints alerts."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> Any:
        if logs and "episode" in logs:
            logs["budget_used"] = logs["episode"] / args.total_episodes  # kept, under its own name
        return super().on_log(args, state, control, logs=logs, **kwargs)

    def on_event(self, event: Event, raised: list[Anomaly], monitor: Monitor) -> None:
        super().on_event(event, raised, monitor)
        for anomaly in raised:
            print(f"!! {anomaly.type} at step {anomaly.step}: {anomaly.advice}")


def main(out: Path) -> None:
    marks = {"target_reward": 0.5, "max_kl_divergence": 0.5}
    watched = Mine(out, performance_benchmarks=marks, run_id="custom", terminal=False)
    trainer = create_ppo_trainer(
        model_name=make_model(), ppo_config=ppo_config(str(out / "training")), train_dataset=make_prompts(), callbacks=[watched]
    )
    settle()
    trainer.train()
    print(f"\ntargets: {watched.benchmarks}")
    print(f"last record: reward {watched.metrics.reward_mean:.3f}, KL {watched.metrics.kl_mean:.3f}")
    last = (out / "custom_events.jsonl").read_text().splitlines()[-1]
    print(f"in the log: {last[last.index('budget_used') - 1 :][:18]}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/custom"))
