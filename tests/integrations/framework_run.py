"""Drives the real logger of a framework with rldk attached, and checks the event log; run by the Python that has the framework.

    python framework_run.py NAME FOLDER

Prints `ok NAME VERSION` when every value is in the event log, under the right metric and step.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

from rldk.ingest.read import read_runs
from rldk.integrations.attach import attach
from rldk.log import EventReader

STEPS = 12


def value(number: int, step: int) -> float:
    """What the metric of that number is at a step; one of them is NaN for once."""
    return math.nan if (number, step) == (1, 7) else round(0.1 + 0.01 * number + 0.001 * step, 6)


Names = dict[str, str]


def rows(names: Names, first: int = 1) -> list[tuple[int, dict[str, float]]]:
    """Rows under the framework's keys."""
    return [(step, {key: value(n, step) for n, key in enumerate(names)}) for step in range(first, first + STEPS)]


def verl(folder: Path) -> tuple[Names, int]:
    from verl.utils.tracking import Tracking

    os.environ["VERL_FILE_LOGGER_ROOT"] = str(folder / "verl")
    names = {
        "critic/score/mean": "reward_mean", "actor/kl_loss": "kl_mean", "actor/entropy": "entropy_mean",
        "actor/grad_norm": "policy_grad_norm", "response_length/mean": "rollout_length_mean", "actor/lr": "policy_lr",
        "actor/pg_loss": "policy_loss", "val-core/openai/gsm8k/acc/mean@1": "eval_accuracy",
    }  # fmt: skip
    attach("verl", output_dir=folder / "rldk", terminal=False)
    attach("verl")
    tracking = Tracking("project", "experiment", ["console", "file"])
    for step, row in rows(names):
        tracking.log(row, step)
    tracking.finish()
    check_file(folder / "verl/project/experiment.jsonl", names, first=1)
    return names, 1


def skyrl(folder: Path) -> tuple[Names, int]:
    from skyrl.train.utils.tracking import Tracking

    names = {
        "reward/avg_raw_reward": "reward_mean", "policy/policy_kl": "kl_mean", "policy/policy_entropy": "entropy_mean",
        "policy/raw_grad_norm": "policy_grad_norm", "generate/avg_num_tokens": "rollout_length_mean",
        "policy/policy_lr": "policy_lr", "policy/policy_loss": "policy_loss",
    }  # fmt: skip
    attach("skyrl", output_dir=folder / "rldk", terminal=False)
    tracking = Tracking("project", "experiment", "console")
    for step, row in rows(names):
        half = len(row) // 2
        tracking.log(dict(list(row.items())[:half]), step)
        tracking.log(dict(list(row.items())[half:]), step)
    tracking.finish()
    return names, 1


def openrlhf(folder: Path) -> tuple[Names, int]:
    from openrlhf.utils.logging_utils import TensorboardLogger

    names = {
        "reward": "reward_mean", "kl": "kl_mean", "entropy_loss": "entropy_mean", "actor_grad_norm": "policy_grad_norm",
        "response_length": "rollout_length_mean", "actor_lr": "policy_lr", "policy_loss": "policy_loss",
    }  # fmt: skip
    where = SimpleNamespace(tensorboard_dir=str(folder / "tb"), wandb=SimpleNamespace(run_name="run"))
    attach("openrlhf", output_dir=folder / "rldk", terminal=False)
    logger = TensorboardLogger(SimpleNamespace(logger=where))
    for step, row in rows(names):
        logger.log_train(step, {**row, "generated_samples": ["a text", 0.5]})
    logger.close()
    return names, 1


def tinker(folder: Path) -> tuple[Names, int]:
    from tinker_cookbook.utils import ml_log

    names = {
        "env/all/reward/total": "reward_mean", "optim/entropy": "entropy_mean", "optim/lr": "lr",
        "env/all/ac_tokens_per_turn": "rollout_length_mean", "optim/kl_sample_train_v1": "mismatch_kl",
    }  # fmt: skip
    attach("tinker", output_dir=folder / "rldk", terminal=False)
    logger = ml_log.setup_logging(str(folder / "log"), do_configure_logging_module=False)
    for step, row in rows(names, first=0):
        logger.log_metrics(row, step=step)
    logger.close()
    return names, 0


def torchtune(folder: Path) -> tuple[Names, int]:
    from omegaconf import OmegaConf
    from torchtune import config

    names = {"loss": "loss", "lr": "lr", "rewards": "reward_mean", "kl_loss": "kl_mean", "tokens_per_second_per_gpu": ""}
    component = {"_component_": "rldk.integrations.torchtune.RLDKLogger", "output_dir": str(folder / "rldk"), "terminal": False}
    logger = config.instantiate(OmegaConf.create(component))
    logger.log_config(OmegaConf.create({}))
    for step, row in rows(names):
        logger.log("loss", row.pop("loss"), step)
        logger.log_dict(row, step)
    logger.close()
    return names, 1


def art(folder: Path) -> tuple[Names, int]:
    from art.model import Model

    names = {"reward": "reward_mean", "loss/train": "loss", "loss/grad_norm": "grad_norm", "loss/entropy": "entropy_mean"}
    attach("art", output_dir=folder / "rldk", terminal=False)
    model = Model(name="agent", project="project", base_path=str(folder / "art"), report_metrics=[])

    async def drive() -> None:
        for step, row in rows(names):
            await model.log(split="train", metrics=row, step=step)

    asyncio.run(drive())
    return names, 1


def areal(folder: Path) -> tuple[Names, int]:
    """Its `StatsLogger` with all trackers off; and what it prints, which is the `main.log` of a run."""
    from areal.api import FinetuneSpec
    from areal.api.cli_args import BaseExperimentConfig, StatsLoggerConfig
    from areal.utils import stats_logger

    names = {
        "ppo_actor/task_reward/avg": "reward_mean", "ppo_actor/update/approx_kl/avg": "kl_update",
        "ppo_actor/update/entropy/avg": "entropy_mean", "ppo_actor/update/grad_norm": "policy_grad_norm",
        "ppo_actor/seq_len/avg": "rollout_length_mean", "ppo_actor/update/lr": "policy_lr",
        "ppo_actor/update/actor_loss/avg": "policy_loss", "ppo_actor/update/behave_imp_weight/avg": "sampling_ratio_mean",
    }  # fmt: skip
    console = folder / "main.log"
    handler = logging.FileHandler(console)
    handler.setFormatter(logging.Formatter("(AReaL) %(asctime)s %(name)s %(levelname)s: %(message)s"))
    stats_logger.logger.addHandler(handler)
    attach("areal", output_dir=folder / "rldk", terminal=False)
    where = StatsLoggerConfig("experiment", "trial", str(folder))
    config = BaseExperimentConfig("experiment", "trial", stats_logger=where)
    logger = stats_logger.StatsLogger(config, FinetuneSpec(1, STEPS, 1))
    for step, row in rows(names, first=0):
        logger.commit(0, step, step, {**row, "ppo_actor/n_seqs__count": 4})
    logger.close()
    handler.close()
    check_file(console, names, first=0, printed_from=1)
    return names, 0


def llama_factory(folder: Path) -> tuple[Names, int]:
    """A real `Trainer` with the callback of LLaMA-Factory that writes `trainer_log.jsonl`, and with `report_to="rldk"`."""
    from llamafactory.train.callbacks import LogCallback

    found = hugging_face(folder, more=[LogCallback()])
    (run,) = read_runs(folder / "trainer_log.jsonl").runs
    events = found_events(folder / "rldk")
    assert run.framework == "llama_factory" and run.steps.tolist()[:STEPS] == list(events), run.steps
    for name in ("loss", "lr"):
        for step, number in zip(run.steps.tolist(), run.columns[name].values.tolist(), strict=True):
            assert math.isclose(number, events[step][name], rel_tol=1e-3) or math.isnan(number), (step, name, number)
    return found


def hugging_face(
    folder: Path, callbacks: Callable[[], list[object]] | None = None, more: Sequence[object] = ()
) -> tuple[Names, int]:
    """A real `Trainer` with `report_to="rldk"`, or with these callbacks."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    import rldk.integrations.huggingface  # noqa: F401  the import by which it is registered

    model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1))
    data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(STEPS)]
    arguments = TrainingArguments(
        str(folder), report_to="rldk" if callbacks is None else "none", max_steps=STEPS, per_device_train_batch_size=1,
        logging_steps=1, save_strategy="no", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[*more, *(callbacks() if callbacks else ())])
    trainer.train()
    logged = {row["step"]: row for row in trainer.state.log_history if "loss" in row}
    found = found_events(folder / "rldk")
    assert list(found) == list(logged) == list(range(1, STEPS + 1)), (list(found), list(logged))
    for step, row in logged.items():
        for key, name in (("loss", "loss"), ("learning_rate", "lr"), ("grad_norm", "grad_norm")):
            assert math.isclose(found[step][name], row[key], rel_tol=1e-6), (step, key, found[step], row)
    return {}, 1


def ms_swift(folder: Path) -> tuple[Names, int]:
    """The plugin file, loaded as ms-swift loads it, and the callback as it makes it."""
    from swift.callbacks import callbacks_map
    from swift.utils import import_external_file

    import rldk

    import_external_file(str(Path(rldk.__file__).parent / "integrations/ms_swift.py"))
    return hugging_face(folder, lambda: [callbacks_map["rldk"](None, None)])


FRAMEWORKS: dict[str, tuple[str, Callable[[Path], tuple[Names, int]]]] = {
    "verl": ("verl", verl), "skyrl": ("skyrl", skyrl), "openrlhf": ("openrlhf", openrlhf), "tinker": ("tinker-cookbook", tinker),
    "torchtune": ("torchtune", torchtune), "art": ("openpipe-art", art),
    "areal": ("areal", areal), "huggingface": ("transformers", hugging_face), "ms_swift": ("ms-swift", ms_swift),
    "llama_factory": ("llamafactory", llama_factory),
}  # fmt: skip


def check_file(path: Path, names: Names, first: int, printed_from: int | None = None) -> None:
    """What a framework has written itself is read with the same values; its printed steps may count from another number."""
    (run,) = read_runs(path).runs
    start = first if printed_from is None else printed_from
    assert run.steps.tolist() == list(range(start, start + STEPS)), run.steps
    for place, (_, row) in enumerate(rows(names, first)):
        for key, number in row.items():
            value = float(run.columns[names[key]].values[place])
            assert math.isclose(value, number, rel_tol=1e-4) or (math.isnan(value) and math.isnan(number)), (key, value, number)


def found_events(folder: Path) -> dict[int, dict[str, float]]:
    """The events of the one log of a folder, by step."""
    (log,) = folder.glob("*_events.jsonl")
    return {event.step: event.metrics for event in EventReader(log)}


def check(folder: Path, names: Names, first: int) -> None:
    """Every value is there, under the right metric and step."""
    found = found_events(folder / "rldk")
    assert list(found) == list(range(first, first + STEPS)), list(found)
    for step, row in rows(names, first):
        for key, number in row.items():
            name = names[key] or key
            assert name in found[step], (name, found[step])
            same = found[step][name] == number or (math.isnan(number) and math.isnan(found[step][name]))
            assert same, (step, name, found[step][name], number)


if __name__ == "__main__":
    name, folder = sys.argv[1], Path(sys.argv[2])
    package, drive = FRAMEWORKS[name]
    names, first = drive(folder)
    if names:
        check(folder, names, first)
    print("ok", name, importlib.metadata.version(package))
