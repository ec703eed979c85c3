"""Draws the pictures of docs/frameworks: what rldk shows of a run that fails, one simulated failure per page.

    python docs/framework_pictures.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import rldk
from rldk.testing.streams import faulty

FOLDER = Path(__file__).parent / "images/frameworks"
PICTURES: dict[str, tuple[str, str]] = {
    "any_command": ("loss_explosion", "loss"),
    "areal": ("entropy_collapse", "entropy"),
    "art": ("policy_collapse", "reward"),
    "classic_rl": ("policy_collapse", "reward"),
    "deepspeed_chat": ("policy_collapse", "reward"),
    "huggingface": ("kl_explosion", "kl"),
    "llama_factory": ("loss_explosion", "loss"),
    "minimind": ("kl_explosion", "kl"),
    "ms_swift": ("exploding_gradients", "grad_norm"),
    "nemo_rl": ("ratio_explosion", "ratio_max"),
    "openrlhf": ("length_runaway", "length"),
    "prime_rl": ("train_inference_mismatch", "mismatch_kl"),
    "roll": ("exploding_gradients", "grad_norm"),
    "skyrl": ("clip_saturation", "clip_frac"),
    "slime": ("length_collapse", "length"),
    "tinker": ("reward_saturation", "reward"),
    "torchtune": ("learning_rate_too_high", "kl"),
    "trackers": ("reward_hacking", "reward"),
    "unsloth": ("length_collapse", "length"),
    "verl": ("entropy_explosion", "entropy"),
}
"""For each page the fault that is simulated, and the plot that shows it."""


def draw(page: str, fault: str, panel: str) -> None:
    """Simulate the run, judge it, and draw the plot with its incident marked."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / f"{page}_events.jsonl"
        log.write_bytes(b"".join(event.to_json() + b"\n" for event in faulty(fault, steps=300, onset=120, seed=1)))
        found = rldk.scan(log)
        found.plot(panel).save(FOLDER / f"{page}.svg")
        worst = found.worst_run.worst
        print(f"{page}: {found.verdict}, {worst.title if worst else 'nothing'} at step {worst.step if worst else '-'}")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page, (fault, panel) in PICTURES.items():
        draw(page, fault, panel)
