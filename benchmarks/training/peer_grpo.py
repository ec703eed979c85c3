"""TRL's GRPOTrainer on the same task; prints one JSON object. `python peer_grpo.py FOLDER SETTINGS_JSON`.

The interpreter decides which TRL this is: `.venvs/trl-1.16.0/bin/python` has 1.16.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch
import trl
import world
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback, logging
from trl import GRPOConfig, GRPOTrainer

logging.set_verbosity_error()


class Clock(TrainerCallback):
    """Seconds at the end of every update, and what was logged."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []
        self.rows: list[dict[str, float]] = []

    def on_log(self, args, state, control, logs=None, **_):
        if "reward" in logs:
            self.marks.append((time.perf_counter(), time.process_time()))
            self.rows.append(dict(logs))


def main() -> None:
    folder, given = Path(sys.argv[1]), json.loads(sys.argv[2])
    torch.set_num_threads(given["threads"])
    module, _, function = given["reward"].partition(":")
    score = getattr(importlib.import_module(module), function)
    tokenizer = AutoTokenizer.from_pretrained(str(folder / "model"), padding_side="left")
    rows = [json.loads(line) for line in (folder / "prompts.jsonl").open()]
    columns = [key for key in rows[0] if key not in ("text", "source")]
    data = Dataset.from_list([{"prompt": row["text"], **{key: row[key] for key in columns}} for row in rows])
    with tempfile.TemporaryDirectory() as out:
        config = GRPOConfig(
            output_dir=out, seed=given["seed"], use_cpu=True, bf16=False, gradient_checkpointing=False, report_to=[],
            per_device_train_batch_size=given["batch"], gradient_accumulation_steps=1, num_generations=given["generations"],
            num_iterations=given["epochs"], max_completion_length=given["response"], temperature=1.0, top_k=0,
            beta=given["kl_coef"], learning_rate=given["lr"], lr_scheduler_type="constant", weight_decay=0.0,
            max_grad_norm=given["grad_clip"], max_steps=given["updates"] * given["epochs"], logging_steps=given["epochs"],
            save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        clock = Clock()

        def judged(prompts, completions, **more):
            return score(prompts, completions, **{key: more[key] for key in columns})

        model = AutoModelForCausalLM.from_pretrained(str(folder / "model"), dtype=torch.float32)
        trainer = GRPOTrainer(
            model=model, args=config, train_dataset=data, reward_funcs=judged, processing_class=tokenizer, callbacks=[clock]
        )
        trainer.callback_handler.callbacks = [one for one in trainer.callback_handler.callbacks if "Print" not in str(type(one))]
        if given["freeze"]:
            gc.collect()
            gc.freeze()
        keep, sys.stdout = sys.stdout, sys.stderr
        trainer.train()
        sys.stdout = keep
        if given.get("save"):
            trainer.model.save_pretrained(given["save"])
            tokenizer.save_pretrained(given["save"])
    tokens = [row["completions/mean_length"] * given["batch"] for row in clock.rows]
    found = world.measured(clock.marks, tokens, given["warmup"]) | {"rewards": [row["reward"] for row in clock.rows]}
    print(json.dumps({**found, "trl": trl.__version__}))


if __name__ == "__main__":
    main()
