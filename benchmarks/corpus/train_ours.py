"""One run with `trainer/train_ppo.py`, with its event log, the outcome probe and a fault."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import set_seed

from corpus import world
from corpus.clock import Clock
from corpus.outcome import OutcomeProbe
from corpus.plan import Batch, Live, Plan

TRAINER = Path(__file__).resolve().parents[2] / "trainer"
sys.path.insert(0, str(TRAINER))

import logger  # noqa: E402
import models  # noqa: E402
import ppo_models  # noqa: E402
import trackers  # noqa: E402
import train_ppo  # noqa: E402

__all__ = ["score", "train"]

_plan: Plan | None = None
_scorer: Any = None


def score(prompts: list[str], responses: list[str]) -> list[float]:
    """The reward function that the trainer is given; the last word says whether a response is whole."""
    assert _plan is not None
    words = [response.split() for response in responses]
    ended = [said[-1:] == ["."] for said in words]
    if _scorer is None:
        scores = [world.gold(_plan.setting.reward, *one) for one in zip(prompts, words, ended, strict=True)]
    else:
        rows = [
            [*world.encode(prompt), *map(world.VOCABULARY.get, said), world.EOS]
            for prompt, said in zip(prompts, words, strict=True)
        ]
        width = max(map(len, rows))
        ids = torch.tensor([row + [world.PAD] * (width - len(row)) for row in rows])
        with torch.no_grad():
            scores = _scorer(input_ids=ids, attention_mask=(ids != world.PAD).long()).logits[:, 0].tolist()
    found = _plan.scores(scores, Batch(prompts, words, ended, len(prompts), _plan.update))
    return [float("nan") if value is None else value for value in found]


class Rows(trackers.Tracker):
    """A tracker that keeps what the trainer sends to W&B and its like."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.rows.append({"_step": step, **metrics})


def train(plan: Plan, bases: Path, out: Path) -> tuple[OutcomeProbe, list[dict[str, Any]], str]:
    """Train; the outcome, the rows that trackers are sent, and how it ended (empty, or the exception)."""
    global _plan, _scorer
    torch.set_num_threads(1)
    set_seed(plan.seed)
    plan.chance = random.Random(plan.seed)
    _plan = plan
    folder = bases / plan.setting.shape / "policy"
    if plan.setting.reward == "model":
        from transformers import AutoModelForSequenceClassification

        _scorer = AutoModelForSequenceClassification.from_pretrained(str(bases / plan.setting.shape / "scorer")).eval()
    rows, live = Rows(), Live(plan, None)
    clock: Clock | None = None
    load, optimizer, begin, log = models.load_model, ppo_models.make_optimizer, logger.Logger.__init__, logger.Logger.log

    def load_model(args: Any, kind: str = "causal", **given: Any) -> Any:
        model = load(args, kind, **given)
        if kind == "causal":
            live.policy = model
        elif kind == "value":
            live.value = model
        return model

    def make_optimizer(*given: Any, **more: Any) -> Any:
        live.optimizers.append(optimizer(*given, **more))
        return live.optimizers[-1]

    def begun(self: Any, *given: Any, **more: Any) -> None:
        nonlocal clock
        begin(self, *given, **more)
        probe = OutcomeProbe(live.policy, plan.setting.reward, plan.setting.length)
        clock = Clock(live, probe)
        for act in plan.after_build:
            act(live)
        probe.measure(live.policy, 0)
        clock.begin()

    def logged(self: Any, step: int, *given: Any, **more: Any) -> None:
        log(self, step, *given, **more)
        assert clock is not None
        clock.done(step)

    models.load_model = ppo_models.load_model = load_model
    ppo_models.make_optimizer = make_optimizer
    logger.Logger.__init__, logger.Logger.log = begun, logged
    logger.make_trackers = lambda *_: rows
    gc.collect()
    gc.freeze()
    ended = ""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            train_ppo.main(_arguments(plan, folder, out))
    except (RuntimeError, ValueError) as error:
        ended = f"{type(error).__name__}: {str(error)[:120]}"
    finally:
        models.load_model = ppo_models.load_model = load
        ppo_models.make_optimizer = optimizer
        logger.Logger.__init__, logger.Logger.log = begin, log
    assert clock is not None
    return clock.probe, json.loads(json.dumps(rows.rows)), ended


def _arguments(plan: Plan, folder: Path, out: Path) -> list[str]:
    setting = plan.setting
    texts = world.training_prompts()
    texts = texts[: plan.prompts] * (len(texts) // plan.prompts) if plan.prompts else texts
    data, config = out / "prompts.jsonl", out / "data.yaml"
    data.write_text("".join(json.dumps({"text": text, "source": "corpus"}) + "\n" for text in texts))
    config.write_text(f"stage: ppo\noutput: {out / 'prepared.jsonl'}\nsources:\n  - {{name: corpus, path: {data}}}\n")
    os.environ["RLDK_TRACEBACK"] = "1"
    given: dict[str, Any] = {
        "data_config": config, "model_path": folder, "save_dir": out, "run_id": "run", "save_weight": "run", "save_interval": 0,
        "max_steps": setting.updates, "epochs": 1000, "batch_size": setting.batch, "learning_rate": setting.lr,
        "kl_coef": setting.beta, "max_new_tokens": setting.length, "ppo_epochs": setting.epochs, "seed": plan.seed,
        "reward": "corpus.train_ours:score", "log_interval": setting.log_every, "num_threads": 1, **setting.more, **plan.options,
    }  # fmt: skip
    flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items()]
    return [*flags, *(f"--inject={fault}" for fault in plan.inject)]
