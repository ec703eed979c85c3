"""The consoles of four frameworks, printed from a simulated run."""

from __future__ import annotations

from collections.abc import Callable

from rldk.core.event import Event

__all__ = ["CONSOLES"]


def _named(event: Event, keys: dict[str, str]) -> dict[str, float]:
    return {key: event.metrics[metric] for metric, key in keys.items() if metric in event.metrics}


def verl(events: list[Event]) -> str:
    keys = {
        "reward_mean": "critic/score/mean", "kl_mean": "actor/kl_loss", "entropy_mean": "actor/entropy",
        "grad_norm": "actor/grad_norm", "policy_loss": "actor/pg_loss", "rollout_length_mean": "response_length/mean",
        "clip_frac": "actor/pg_clipfrac",
    }  # fmt: skip
    rows = (
        f"step:{event.step} - " + " - ".join(f"{key}:np.float64({value})" for key, value in _named(event, keys).items())
        for event in events
    )
    return "".join(f"\x1b[36m(TaskRunner pid=64115)\x1b[0m {row}\n" for row in rows)


def trl(events: list[Event]) -> str:
    keys = {
        "loss": "loss", "grad_norm": "grad_norm", "lr": "learning_rate", "reward_mean": "reward", "reward_std": "reward_std",
        "kl_mean": "kl", "entropy_mean": "entropy", "rollout_length_mean": "completions/mean_length",
    }  # fmt: skip
    total = len(events)
    bars = (f"\r {100 * n // total:2d}%|##| {n}/{total} [00:10<00:30,  5.17s/it]" for n in range(1, total + 1))
    return "".join(
        f"{bar}\r{' ' * 60}\r{ {**_named(event, keys), 'epoch': round(n / total, 4)} }\n"
        for n, (bar, event) in enumerate(zip(bars, events, strict=True), 1)
    )


def minimind(events: list[Event]) -> str:
    total = len(events)
    return "".join(
        f"Epoch:[1/1]({n}/{total}), Reward: {event.metrics['reward_mean']:.4f}, KL_ref: {event.metrics['kl_mean']:.4f}, "
        f"Approx KL: 0.0010, ClipFrac: {event.metrics['clip_frac']:.4f}, Critic Loss: 0.7000, "
        f"Avg Response Len: {event.metrics['rollout_length_mean']:.2f}, Actor LR: 8.0e-07, Critic LR: 8.0e-07\n"
        for n, event in enumerate(events, 1)
    )


def openrlhf(events: list[Event]) -> str:
    keys = {
        "policy_loss": "policy_loss", "reward_mean": "reward", "kl_mean": "kl", "entropy_mean": "entropy_loss",
        "rollout_length_mean": "response_length", "grad_norm": "actor_grad_norm", "lr": "actor_lr", "clip_frac": "ppo_clip_ratio",
    }  # fmt: skip
    return "".join(
        f"(PPOTrainer pid=812) INFO 11-17 08:00:01 ppo_trainer.py:551] ✨ Global step {event.step}: {_named(event, keys)}\n"
        for event in events
    )


CONSOLES: dict[str, Callable[[list[Event]], str]] = {"verl": verl, "trl": trl, "minimind": minimind, "openrlhf": openrlhf}
