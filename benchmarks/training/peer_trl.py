"""TRL's PPOTrainer on the same task; prints one JSON object. `python peer_trl.py FOLDER SETTINGS_JSON`."""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch
import world
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    TrainerCallback,
    logging,
)

logging.set_verbosity_error()


class Backbone(torch.nn.Module):
    """Hidden states that count words and good words up to each position, after the prompt."""

    def __init__(self, context: int) -> None:
        super().__init__()
        self.context = context
        self.tokens: list[int] = []

    def forward(self, input_ids, **_):
        self.tokens.append(int((input_ids[:, self.context :] != world.PAD).sum()))
        after = torch.arange(input_ids.shape[1]) >= self.context
        words = ((input_ids >= 4) & after).float().cumsum(1)
        good = ((input_ids >= world.GOOD.start) & (input_ids < world.GOOD.stop) & after).float().cumsum(1)
        hidden = (good / words.clamp(min=1.0)).unsqueeze(-1)
        return type("Output", (), {"hidden_states": (hidden,)})()


class Reward(torch.nn.Module):
    """What TRL asks of a reward model: a backbone and a head over its hidden states."""

    base_model_prefix = "model"

    def __init__(self, context: int) -> None:
        super().__init__()
        self.model = Backbone(context)
        self.score = torch.nn.Identity()


class Clock(TrainerCallback):
    """Seconds at the end of every update, and the rewards."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []
        self.rows: list[dict[str, float]] = []

    def on_log(self, args, state, control, logs=None, **_):
        self.marks.append((time.perf_counter(), time.process_time()))
        self.rows.append(dict(logs))


def main() -> None:
    folder, given = Path(sys.argv[1]), json.loads(sys.argv[2])
    torch.set_num_threads(given["threads"])
    from trl.experimental.ppo import PPOConfig, PPOTrainer

    tokenizer = AutoTokenizer.from_pretrained(str(folder / "model"), padding_side="left")
    texts = [json.loads(line)["text"] for line in (folder / "prompts.jsonl").open()]
    context = world.PROMPT_WORDS
    tokens = [tokenizer(text, padding="max_length", max_length=context)["input_ids"] for text in texts]
    data = Dataset.from_dict({"input_ids": tokens})
    load = lambda: AutoModelForCausalLM.from_pretrained(str(folder / "model"), dtype=torch.float32)  # noqa: E731
    value = AutoModelForSequenceClassification.from_pretrained(str(folder / "model"), num_labels=1, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as out:
        config = PPOConfig(
            output_dir=out, seed=given["seed"], use_cpu=True, bf16=False, gradient_checkpointing=False, report_to=[],
            per_device_train_batch_size=given["batch"], gradient_accumulation_steps=1, num_mini_batches=1,
            total_episodes=given["batch"] * given["updates"], response_length=given["response"], stop_token="eos",
            temperature=1.0, kl_coef=given["kl_coef"], num_ppo_epochs=given["epochs"], cliprange=0.2, cliprange_value=0.2,
            gamma=1.0, lam=0.95, vf_coef=0.1, learning_rate=given["lr"], lr_scheduler_type="constant", weight_decay=0.0,
            num_sample_generations=0, save_strategy="no", disable_tqdm=True, local_rollout_forward_batch_size=given["batch"],
        )  # fmt: skip
        clock, reward = Clock(), Reward(context)
        trainer = PPOTrainer(
            args=config, processing_class=tokenizer, model=load(), ref_model=load(), reward_model=reward,
            value_model=value, train_dataset=data, eval_dataset=data.select(range(given["batch"])), callbacks=[clock],
        )  # fmt: skip
        trainer.callback_handler.callbacks = [clock]
        if given["freeze"]:
            gc.collect()
            gc.freeze()
        sys.stdout.flush()
        keep, sys.stdout = sys.stdout, sys.stderr
        trainer.train()
        sys.stdout = keep
    found = world.measured(clock.marks, reward.model.tokens, given["warmup"])
    print(json.dumps({**found, "rewards": [row["objective/scores"] for row in clock.rows]}))


if __name__ == "__main__":
    main()
