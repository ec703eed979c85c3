"""One run with a trainer of TRL: PPO, GRPO, RLOO or DPO, with `RLDKCallback`, the outcome probe and a fault."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import random
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    TrainerCallback,
    set_seed,
)
from transformers import logging as transformers_logging

from corpus import world
from corpus.clock import Clock
from corpus.outcome import OutcomeProbe
from corpus.plan import Batch, Live, Plan
from rldk.integrations.trl import RLDKCallback

__all__ = ["train"]


def block_tokens(model: Any, plan: Plan, always: tuple[int, ...]) -> None:
    """Keep the policy from saying some tokens: padding in PPO, and whatever a fault blocks while it is on."""
    head = model.get_output_embeddings()
    plain = type(head).forward

    class Blocking(type(head)):  # type: ignore[misc]
        def forward(self, hidden: Any) -> Any:
            scores = plain(self, hidden)
            tokens = [*always, *plan.blocked]
            if tokens:
                scores = scores.index_fill(-1, torch.tensor(tokens), -1e4)
            return scores

    head.__class__ = Blocking


def add_dropout(model: Any, share: float) -> None:
    """Dropout after every MLP, active as long as the model is in training mode."""
    for name, module in model.named_modules():
        if name.endswith(".mlp"):
            module.register_forward_hook(lambda owner, _, out: nn.functional.dropout(out, share, owner.training))


class FunctionReward(nn.Module):
    """A reward function in the shape that TRL's PPO calls: a backbone whose last hidden state is the score."""

    base_model_prefix = "backbone"

    def __init__(self, reward: Any) -> None:
        super().__init__()
        self.reward, self.score, self.anchor = reward, nn.Identity(), nn.Parameter(torch.zeros(1))

    @property
    def backbone(self) -> Any:
        def call(input_ids: Any = None, **_: Any) -> Any:
            rows = input_ids.tolist()
            cuts = [row.index(world.ASKED) + 1 if world.ASKED in row else 0 for row in rows]
            prompts = [" ".join(world.decode(row[:cut])) for row, cut in zip(rows, cuts, strict=True)]
            said = [row[cut:] for row, cut in zip(rows, cuts, strict=True)]
            scores = self.reward(prompts, [world.decode(row) for row in said], [world.EOS in row for row in said])
            column = torch.tensor([float("nan") if score is None else score for score in scores], dtype=torch.float32)
            return SimpleNamespace(hidden_states=(column[:, None, None].expand(-1, input_ids.shape[1], 1) + 0.0 * self.anchor,))

        return call


class Reward:
    """The reward of a setting, as the fault leaves it; for GRPO's several components, one of them (`part`)."""

    def __init__(self, plan: Plan, bases: Path, part: int | None = None) -> None:
        self.plan, self.part = plan, part
        self.__name__ = "reward" if part is None else ("right", "pleasant", "ended")[part]
        self.model = None
        if plan.setting.reward == "model":
            self.model = AutoModelForSequenceClassification.from_pretrained(str(bases / plan.setting.shape / "scorer")).eval()

    def __call__(self, prompts: list[str], words: list[list[str]], ended: list[bool]) -> list[Any]:
        plan = self.plan
        group = (
            plan.options.get("num_generations", plan.setting.group) if plan.setting.trainer in ("grpo", "rloo") else len(prompts)
        )
        batch = Batch(prompts, words, ended, group, plan.update)
        return plan.scores(self._scores(prompts, words, ended), batch)

    def _scores(self, prompts: list[str], words: list[list[str]], ended: list[bool]) -> list[float]:
        rows = list(zip(prompts, words, ended, strict=True))
        if self.part is not None:
            return [world.parts(*row)[self.part] for row in rows]
        if self.model is None:
            return [world.gold(self.plan.setting.reward, *row) for row in rows]
        tokens = [[*world.encode(p), *map(world.VOCABULARY.get, w), *([world.EOS] if e else [])] for p, w, e in rows]
        width = max(map(len, tokens))
        ids = torch.tensor([row + [world.PAD] * (width - len(row)) for row in tokens])
        with torch.no_grad():
            return self.model(input_ids=ids, attention_mask=(ids != world.PAD).long()).logits[:, 0].tolist()

    def for_groups(self) -> Any:
        """The same as a reward function of GRPO and RLOO."""

        def reward(prompts: list[str], completions: list[str], completion_ids: Any = None, **_: Any) -> list[Any]:
            tokens = [list(map(int, row)) for row in completion_ids]
            return self(prompts, [world.decode(row) for row in tokens], [world.EOS in row for row in tokens])

        reward.__name__ = self.__name__
        return reward


class Watcher(TrainerCallback):
    """Tells the plan's clock what the trainer is at."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        live = self.clock.live
        live.scheduler, live.optimizers = given["lr_scheduler"], [given["optimizer"]]
        self.clock.begin()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.clock.live.logs = {key: value for key, value in (logs or {}).items() if isinstance(value, float)}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.clock.done(int(state.global_step))


def train(plan: Plan, bases: Path, out: Path) -> tuple[OutcomeProbe, list[dict[str, Any]], str]:
    """Train; the outcome, the trainer's own log, and how it ended (empty, or the exception)."""
    for name in ("rldk", "trl", "transformers", "accelerate", "datasets", "absl"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    set_seed(plan.seed)
    plan.chance = random.Random(plan.seed)
    policy = _load(plan, bases / plan.setting.shape / "policy")
    probe = OutcomeProbe(policy, plan.setting.reward, plan.setting.length)
    live = Live(
        plan, policy, foreign=lambda: AutoModelForCausalLM.from_pretrained(str(bases / "foreign" / "policy")).state_dict()
    )
    # jsonl only: the files at the end of a run are made from the events
    callback = RLDKCallback(out, run_id="run", terminal=False, enable_resource_monitoring=False, log_interval=10)
    callbacks = [callback, Watcher(Clock(live, probe))]
    build = {"ppo": _ppo, "dpo": _dpo}.get(plan.setting.trainer, _group)
    trainer = build(plan, bases, out, live, callbacks)
    live.trainer = trainer
    if plan.dropout:
        add_dropout(policy, plan.dropout)
    for act in plan.after_build:
        act(live)
    probe.measure(policy, 0, plan.blocked)
    np.random.seed(plan.seed)  # TRL's PPO shuffles by numpy's global numbers, and seeds them nowhere
    gc.collect()
    gc.freeze()
    ended = ""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.train()
    except (RuntimeError, ValueError, IndexError) as error:
        ended = f"{type(error).__name__}: {str(error)[:120]}"
    if callback.monitor is not None:
        callback.monitor.close()
    return probe, json.loads(json.dumps(trainer.state.log_history, default=float)), ended


def _load(plan: Plan, folder: Path) -> Any:
    model = AutoModelForCausalLM.from_pretrained(str(folder), torch_dtype=getattr(torch, plan.dtype))
    model.generation_config.pad_token_id = world.PAD
    block_tokens(model, plan, (world.PAD,) if plan.setting.trainer == "ppo" else ())
    return model


def _prompts(plan: Plan) -> list[str]:
    texts = world.training_prompts()
    return texts[: plan.prompts] * (len(texts) // plan.prompts) if plan.prompts else texts


def _common(plan: Plan, out: Path) -> dict[str, Any]:
    setting = plan.setting
    return {
        "output_dir": str(out / "training"), "report_to": "none", "per_device_train_batch_size": setting.batch,
        "gradient_accumulation_steps": 1, "learning_rate": setting.lr, "lr_scheduler_type": "constant", "seed": plan.seed,
        "save_strategy": "no", "use_cpu": True, "bf16": False, "disable_tqdm": True, "gradient_checkpointing": False,
        "logging_steps": setting.log_every, **setting.more,
    }  # fmt: skip


def _ppo(plan: Plan, bases: Path, out: Path, live: Live, callbacks: list[Any]) -> Any:
    from datasets import Dataset

    from rldk.integrations.trl.ppo_trainer import find_ppo

    trainer_kind, config_kind = find_ppo()
    setting, folder = plan.setting, bases / plan.setting.shape / "policy"
    given = _common(plan, out) | {
        "num_ppo_epochs": setting.epochs, "num_mini_batches": 1, "response_length": setting.length, "kl_coef": setting.beta,
        "stop_token": "eos", "num_sample_generations": 0, "missing_eos_penalty": None, "temperature": 1.0,
        "local_rollout_forward_batch_size": 512,
    } | plan.options  # fmt: skip
    given["total_episodes"] = setting.updates * given["per_device_train_batch_size"] * given["gradient_accumulation_steps"]
    live.reference = _load(plan, folder)
    live.value = AutoModelForSequenceClassification.from_pretrained(str(folder), num_labels=1)
    encoded = [world.encode(text) for text in _prompts(plan)]
    data = Dataset.from_dict({"input_ids": encoded})
    if plan.prompt_edit is not None:
        data = data.with_transform(lambda rows: {"input_ids": [_edited(plan, row) for row in rows["input_ids"]]})
    trainer = trainer_kind(
        args=config_kind(**given), processing_class=world.tokenizer(), model=live.policy, ref_model=live.reference,
        reward_model=FunctionReward(Reward(plan, bases)), value_model=live.value, train_dataset=data, callbacks=callbacks,
    )  # fmt: skip
    trainer.is_distributed_loading_by_transformers = False
    return trainer


def _edited(plan: Plan, tokens: list[int]) -> list[int]:
    assert plan.prompt_edit is not None
    return world.encode(plan.prompt_edit(" ".join((*world.SPECIAL, *world.WORDS)[token] for token in tokens), plan.update))


def _group(plan: Plan, bases: Path, out: Path, live: Live, callbacks: list[Any]) -> Any:
    import trl
    from datasets import Dataset

    setting, name = plan.setting, plan.setting.trainer.upper()
    given = _common(plan, out) | {
        "num_generations": setting.group, "max_completion_length": setting.length, "max_steps": setting.updates,
        "beta": setting.beta, "temperature": 1.0,
    } | plan.options  # fmt: skip
    texts = _prompts(plan)
    data = Dataset.from_dict({"prompt": texts})
    if plan.prompt_edit is not None:
        data = data.with_transform(lambda rows: {"prompt": [plan.prompt_edit(text, plan.update) for text in rows["prompt"]]})
    several = setting.reward == "components"
    rewards = [Reward(plan, bases, part).for_groups() for part in ((0, 1, 2) if several else (None,))]
    config = getattr(trl, f"{name}Config")(**given)
    trainer = getattr(trl, f"{name}Trainer")(
        model=live.policy, reward_funcs=rewards, args=config, train_dataset=data, processing_class=world.tokenizer(),
        callbacks=callbacks,
    )  # fmt: skip
    live.reference = trainer.ref_model
    return trainer


def _dpo(plan: Plan, bases: Path, out: Path, live: Live, callbacks: list[Any]) -> Any:
    import trl
    from datasets import Dataset

    setting, chance = plan.setting, random.Random(plan.seed + 1)
    pairs = [_pair(text, chance, setting.reward) for text in (_prompts(plan)[:2] * 72 if plan.prompts else _prompts(plan) * 2)]
    for edit in plan.pair_edits:
        pairs = edit(pairs)
    if plan.prompts:
        pairs = pairs[: plan.prompts] * (len(pairs) // plan.prompts)
    given = _common(plan, out) | {"beta": setting.beta, "max_steps": setting.updates, "max_length": 48} | plan.options
    live.reference = _load(plan, bases / setting.shape / "policy")
    return trl.DPOTrainer(
        model=live.policy, ref_model=live.reference, args=trl.DPOConfig(**given), train_dataset=Dataset.from_list(pairs),
        processing_class=world.tokenizer(), callbacks=callbacks,
    )  # fmt: skip


def _pair(prompt: str, chance: random.Random, reward: str) -> dict[str, str]:
    """Two answers of the base language, the better one chosen."""
    while True:
        one, other = (world.answer(prompt, chance, 0.5) for _ in range(2))
        scores = [world.gold(reward, prompt, words, True) for words in (one, other)]
        if scores[0] != scores[1]:
            better, worse = (one, other) if scores[0] > scores[1] else (other, one)
            return {"prompt": prompt, "chosen": " " + " ".join(better), "rejected": " " + " ".join(worse)}
