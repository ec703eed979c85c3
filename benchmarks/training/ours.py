"""trainer/train_ppo.py on the same task; prints one JSON object. `python ours.py FOLDER SETTINGS_JSON`."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "trainer"), str(Path(__file__).parent)]

import torch  # noqa: E402
import world  # noqa: E402

import train_ppo  # noqa: E402


def main() -> None:
    folder, given = Path(sys.argv[1]), json.loads(sys.argv[2])
    torch.set_num_threads(given["threads"])
    rows: list[dict[str, float]] = []
    marks: list[tuple[float, float]] = []
    watching: list[float] = []
    firsts: list[float] = []
    log = train_ppo.Logger.log

    def noted(self, step, metrics, *rest):
        before = time.process_time()
        log(self, step, metrics, *rest)  # event, event log and monitor, and a line now and then
        watching.append(time.process_time() - before)
        marks.append((time.perf_counter(), time.process_time()))
        firsts.append(sum(os.times()[:4]))
        rows.append(metrics)

    train_ppo.Logger.log = noted
    if given["freeze"]:
        gc.collect()
        gc.freeze()
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
        words = {
            "data_config": folder / "ppo.yaml", "model_path": folder / "model", "reward": given.get("reward", "world:reward"),
            "save_dir": given.get("save", out),
            "batch_size": given["batch"], "max_steps": given["updates"], "epochs": 10_000, "max_new_tokens": given["response"],
            "learning_rate": given["lr"], "kl_coef": given["kl_coef"], "ppo_epochs": given["epochs"], "seed": given["seed"],
            "grad_clip": given.get("grad_clip", 0), "max_update_kl": 0, "save_interval": 0, "num_threads": given["threads"],
        }  # fmt: skip
        if "generations" in given:
            words |= {"advantage": "grpo", "num_generations": given["generations"]}
        begun = sum(os.times()[:4])
        train_ppo.main([*(f"--{key}={value}" for key, value in words.items()), *given.get("flags", [])])
    skip = given["warmup"]
    counts = [row["num_tokens_generated"] for row in rows]
    found = world.measured(marks, [after - before for before, after in pairwise([0, *counts])], skip)
    found["first"] = firsts[skip] - begun  # CPU seconds up to the end of the first updates, of compilers too
    found["rewards"] = [row["reward"] for row in rows]
    found["watching"] = sum(watching[skip + 1 :]) / (marks[-1][1] - marks[skip][1])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
