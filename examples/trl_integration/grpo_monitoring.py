"""GRPO, watched: rewards per function, groups without spread, advantages, and samples of responses.

python examples/trl_integration/grpo_monitoring.py [OUTPUT_DIR]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tiny_world import good_words, make_model, make_prompts, settle
from trl import GRPOConfig, GRPOTrainer

from rldk.integrations.trl import RLDKCallback


def main(out: Path) -> None:
    watched = RLDKCallback(out, run_id="grpo", log_interval=10, samples=2, stop_on="critical")
    config = GRPOConfig(
        output_dir=str(out / "training"), report_to="none", per_device_train_batch_size=16, num_generations=4, max_steps=30,
        max_completion_length=12, learning_rate=3e-3, beta=0.02, logging_steps=1, use_cpu=True, bf16=False, disable_tqdm=True,
        save_strategy="no", gradient_checkpointing=False,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=make_model(), reward_funcs=good_words, args=config, train_dataset=make_prompts(), callbacks=[watched]
    )
    settle()
    trainer.train()
    events = [json.loads(line) for line in (out / "grpo_events.jsonl").read_text().splitlines()]
    first, last = events[0]["metrics"], events[-1]["metrics"]
    print(f"\nreward {first['reward_mean']:.2f} -> {last['reward_mean']:.2f}")
    print(f"groups without spread {last['reward_zero_std_frac']:.0%}")
    for sample in next(event["samples"] for event in reversed(events) if "samples" in event):
        print(f"  {sample['prompt']!r} -> {sample['completion']!r}: {sample['reward']:.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/grpo"))
