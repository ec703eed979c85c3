"""PPO with a learning rate a hundred times too high: your own limits, the full analysis, and a stop with a checkpoint.

python examples/trl_integration/advanced_monitoring.py [OUTPUT_DIR]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tiny_world import make_model, make_prompts, ppo_config, settle

from rldk.integrations.trl import CheckpointMonitor, ComprehensivePPOMonitor, PPOMonitor, create_ppo_trainer
from rldk.monitor import TrainingStopped


def main(out: Path) -> None:
    callbacks = [
        PPOMonitor(out, kl_threshold=15.0, run_id="too_fast", stop_on="warning", confirm=1, terminal=True, log_interval=5),
        ComprehensivePPOMonitor(out, kl_target=4.0, window_size=50),
        CheckpointMonitor(out),
    ]
    config = ppo_config(str(out / "training"), updates=30, learning_rate=0.1, save_strategy="steps", save_steps=2)
    trainer = create_ppo_trainer(model_name=make_model(), ppo_config=config, train_dataset=make_prompts(), callbacks=callbacks)
    settle()
    try:
        trainer.train()
        print("the run finished")
    except TrainingStopped as stopped:
        print(f"\n{stopped}")
        print(f"checkpoint kept: {stopped.checkpoint}")

    health = json.loads((out / "too_fast_health_summary.json").read_text())
    print(f"status {health['status']}, overall health {health['overall_health_score']}")
    print((out / "too_fast_checkpoint_summary.csv").read_text().splitlines()[-1][:120])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/advanced"))
