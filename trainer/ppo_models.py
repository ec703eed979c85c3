"""The trained models of PPO, the frozen reference, and the optimizers."""

from __future__ import annotations

import argparse
import copy
from typing import Any

import torch
from accelerate import Accelerator

from faults import StepSettings
from logprobs import TokenLogprobs
from lora import AdaptersOff, add_adapters
from machine import seed_everything
from models import checkpoint_activations, count_parameters, disable_dropout, load_critic, load_model, trained_work
from optimization import clip_gradients, make_optimizer, plain_optimizer, set_learning_rate, step_optimizers
from ppo_arguments import critic_rate


class Learners:
    """The policy and, where the estimator needs one, the value model, each with its optimizer; and the frozen reference.

    `models` has them as they are loaded and saved, by the names `actor` and `critic`; the attributes `actor` and `critic` are
    wrapped by accelerate, for training.
    """

    def __init__(self, args: argparse.Namespace, tokenizer: Any, device: torch.device) -> None:
        self.chunk, self.compiled = args.logprob_chunk, args.compile
        self.policy = add_adapters(args, disable_dropout(load_model(args, "causal", tokenizer=tokenizer)))
        if args.lora_rank:
            self.reference: torch.nn.Module = AdaptersOff(TokenLogprobs(self.policy, self.chunk), self.policy)
        else:
            frozen = copy.deepcopy(self.policy).to(device).requires_grad_(False)
            self.reference = TokenLogprobs(frozen, self.chunk, self.compiled)
        seed_everything(args.seed)  # the head of the value model is new
        self.models = {"actor": self.policy}
        if args.advantage == "gae":
            self.models["critic"] = add_adapters(args, disable_dropout(load_critic(args, tokenizer)))
            if self.compiled:
                self.models["critic"].compile(dynamic=True)
        self.peaks = {"actor": args.learning_rate, "critic": critic_rate(args)}
        for model in self.models.values():
            checkpoint_activations(args, model)
            model.to(device)
        self.optimizers = {
            name: make_optimizer(model, self.peaks[name], args.weight_decay, kind=args.optimizer)
            for name, model in self.models.items()
        }

    def prepare(self, accelerator: Accelerator) -> None:
        """Wrap the trained models with accelerate, after a checkpoint was loaded."""
        self.actor = accelerator.prepare(TokenLogprobs(self.policy, self.chunk, self.compiled))
        self.critic = accelerator.prepare(self.models["critic"]) if "critic" in self.models else None
        self.trained = [self.actor] if self.critic is None else [self.actor, self.critic]
        self.optimizers = {name: plain_optimizer(accelerator.prepare(one)) for name, one in self.optimizers.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """The number of parameters of each model, for the count of operations."""
        found = {"policy": trained_work(self.policy), "reference": count_parameters(self.policy, False)}
        return found | ({"critic": trained_work(self.models["critic"])} if "critic" in self.models else {})

    def train(self) -> None:
        for model in self.models.values():
            model.train()

    def set_learning_rates(self, settings: StepSettings) -> None:
        for name, rate in (("actor", settings.learning_rate), ("critic", settings.critic_learning_rate)):
            if name in self.optimizers:
                set_learning_rate(self.optimizers[name], rate)

    def clip_gradients(self, accelerator: Accelerator, largest: float) -> dict[str, float]:
        """The gradient norm of each model before clipping."""
        return {
            f"{name}_grad_norm": clip_gradients(accelerator, self.optimizers[name], model.parameters(), largest)
            for name, model in self.models.items()
        }

    def step(self, accelerator: Accelerator, frozen: tuple[str, ...]) -> None:
        step_optimizers(accelerator, [one for name, one in self.optimizers.items() if name not in frozen])

    def zero_grad(self) -> None:
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
