"""The gallery: failures with their plots. `docs/generate.py` writes the page; this script draws the pictures again.

    python docs/gallery.py
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import rldk
from rldk.core.event import Event
from rldk.core.text import in_words
from rldk.detectors.normal import NORMAL
from rldk.detectors.table import DETECTORS
from rldk.judge.results import Results
from rldk.testing.streams import faulty, healthy

FOLDER = Path(__file__).parent / "images/gallery"
STEPS, ONSET, SEED = 300, 120, 1
WHY_NORMAL = {oddity.name: oddity for oddity in NORMAL}
TYPES = {kind.type: kind for kind in DETECTORS}


@dataclass(frozen=True, slots=True)
class Failure:
    """What is seen of a failure, the plots that show it, how its neighbours differ, and what looks like it but is normal."""

    detector: str
    title: str
    seen: str
    panels: tuple[str, ...]
    neighbours: dict[str, str]
    normal: tuple[str, ...] = ()
    fault: str = ""  # the simulated fault, if it has another name than the detector
    onset: int = ONSET

    def judged(self) -> Results:
        """The simulated run with this failure, as `rldk scan` judges it."""
        return judged(faulty(self.fault or self.detector, steps=STEPS, onset=self.onset, seed=SEED))

    def picture(self, panel: str) -> str:
        return f"{self.detector}-{panel}.svg"


@dataclass(frozen=True, slots=True)
class Healthy:
    """A healthy run that looks odd: what is seen is described in `rldk.detectors.normal`."""

    oddity: str
    panel: str
    profile: str
    seed: int

    def judged(self) -> Results:
        return judged(healthy(self.profile, steps=STEPS, seed=self.seed))

    @property
    def picture(self) -> str:
        return f"normal-{self.oddity}.svg"


def judged(events: list[Event]) -> Results:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "gallery_events.jsonl"
        log.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
        return rldk.scan(log)


FAILURES = (
    Failure(
        "policy_collapse", "The reward rose, then fell, and stays down",
        "The reward loses most of what it had gained within a few dozen steps and does not come back. The KL often jumps too.",
        ("reward", "kl"),
        {
            "reward_changed": "The reward jumps within a single row, while KL and entropy stay as they were: the reward function "
            "changed, not the policy.",
            "weights_replaced": "The KL falls back towards its start together with the reward: old weights were loaded.",
            "held_out_collapse": "The training reward holds, and only the held-out one falls: the policy overfits.",
        },
        ("noisy_reward",),
    ),
    Failure(
        "reward_hacking", "The reward rises, and other curves break",
        "The reward climbs faster than before, while KL, entropy, length or held-out quality leave their range.",
        ("reward", "kl"),
        {
            "kl_explosion": "The KL runs away, and the reward does not profit from it.",
            "length_bias": "Length alone determines the reward: look at the correlation of length and reward.",
            "reward_saturation": "The reward reaches its ceiling while the other curves stay in their range.",
        },
        ("longer_responses",),
    ),
    Failure(
        "dead_reward", "Every response gets the same reward",
        "The reward and its spread are flat from the start, so no response is better than another. What is left of the gradient "
        "comes from the KL and the value loss.",
        ("reward", "reward_spread"),
        {
            "sparse_reward": "Now and then a response scores higher: the task is too hard, and the reward works.",
            "reward_saturation": "All responses score the same because they are all right.",
            "policy_frozen": "Rewards differ, but the weights do not move.",
        },
        ("reward_spread_falls", "loss_near_zero"), onset=1,
    ),
    Failure(
        "reward_saturation", "The reward is at its ceiling",
        "The reward is flat at its best value and its spread is gone: nothing is left to learn, and the policy only drifts.",
        ("reward", "reward_spread"),
        {
            "dead_reward": "Flat as well, but not at a good value.",
            "plateau": "Flat, but responses still differ: there is something to learn, and it is not learnt.",
        },
        ("reward_spread_falls",),
    ),
    Failure(
        "kl_explosion", "The KL runs away",
        "The KL from the reference grows beyond what healthy runs reach, often faster and faster.",
        ("kl", "reward"),
        {
            "kl_spike": "Single rows jump, and the level stays.",
            "reference_wrong": "The KL is far from zero in the first row: the reference is another model.",
            "learning_rate_too_high": "The KL of each single update is large too.",
        },
        ("first_kl_not_zero",),
    ),
    Failure(
        "negative_kl", "The KL is negative",
        "The KL stays below zero, row after row. A true KL cannot: the probabilities come from different models or settings.",
        ("kl",),
        {
            "sampler_mismatch": "The trainer logs the disagreement with the sampler directly.",
            "reference_wrong": "The KL is exactly zero while the policy moves.",
        },
        ("negative_kl", "kl_zero_without_penalty"),
    ),
    Failure(
        "entropy_collapse", "The entropy falls to almost zero",
        "The policy writes nearly the same text for each prompt and explores nothing any more.",
        ("entropy", "reward"),
        {
            "response_collapse": "Responses are the same although the entropy per token may still look fine.",
            "temperature_wrong": "The entropy has been low since the first row: the sampling temperature is too low.",
        },
        ("entropy_falls", "negative_entropy"),
    ),
    Failure(
        "entropy_explosion", "The entropy shoots up",
        "The policy drifts towards random tokens. Responses grow until the length limit, and the reward falls.",
        ("entropy", "length"),
        {
            "temperature_wrong": "The entropy has been high since the first row.",
            "eos_starvation": "Responses stop ending while the entropy stays in its range.",
        },
    ),
    Failure(
        "length_runaway", "Responses grow and grow",
        "The mean length multiplies, more and more responses reach the limit, and the reward does not improve.",
        ("length", "truncated"),
        {
            "eos_starvation": "Responses do not emit the end token, whatever their length was before.",
            "length_bias": "The reward pays for length: it rises together with it.",
        },
        ("longer_responses", "all_truncated"),
    ),
    Failure(
        "length_collapse", "Responses shrink to a few tokens",
        "The mean length falls to a fraction of its start, and the reward with it.",
        ("length", "reward"),
        {
            "policy_collapse": "The reward falls first, and the length stays or grows.",
            "tools_abandoned": "Only turns and tool calls become fewer.",
        },
        ("shorter_responses",),
    ),
    Failure(
        "clip_saturation", "A third of the tokens is clipped",
        "The clip fraction rises and stays high: the updates want to move further than the clip range allows.",
        ("clip", "kl_update"),
        {
            "ratio_explosion": "The mean ratio itself leaves its range: clipping no longer holds the update back.",
            "stale_rollouts": "Responses are several updates old before they are used.",
        },
        ("no_update_kl",),
    ),
    Failure(
        "exploding_gradient_anomaly", "The gradient norm is far above its normal",
        "The gradient norm climbs to many times the level of the run and stays there.",
        ("gradients", "losses"),
        {
            "gradient_stability_anomaly": "Single rows spike, and the level stays.",
            "loss_explosion": "The loss leaves its scale, with or without the gradients.",
            "gradient_imbalance_anomaly": "Only the gradient of the value function, or only that of the policy, grows.",
        },
        fault="exploding_gradients",
    ),
    Failure(
        "vanishing_gradient_anomaly", "The gradient norm falls to almost zero",
        "Rewards still differ between responses, but the gradient has gone: the update does not reach the weights.",
        ("gradients", "reward_spread"),
        {
            "dead_reward": "The spread of the reward is zero: there is nothing to learn from.",
            "learning_rate_too_low": "The gradient is in its range, and the learning rate is not.",
            "policy_frozen": "The weights do not change, whatever the gradient is.",
        },
        ("gradient_norm_zero", "reward_spread_falls"), fault="vanishing_gradients",
    ),
    Failure(
        "value_divergence", "The value loss runs away",
        "The value loss grows to many times its start, the explained variance falls, and advantages become noise.",
        ("value_loss", "explained_variance"),
        {
            "value_unexplained": "The value loss is in its range, but the values never learn to predict returns.",
            "value_frozen": "The weights of the value function do not change at all.",
        },
        ("explained_variance_negative",),
    ),
    Failure(
        "train_inference_mismatch", "Sampler and trainer drift from each other",
        "The same tokens get different probabilities in the inference engine and in the trainer, and increasingly so.",
        ("mismatch", "reward"),
        {
            "sampler_mismatch": "They disagree since the first row: a setting or the precision differs.",
            "stale_rollouts": "The sampler has old weights; staleness is logged.",
            "throttled_update": "The probabilities agree, and only the importance weights shrink the update.",
        },
    ),
    Failure(
        "preference_degenerate", "The margin of DPO explodes",
        "The margin grows without bound, the loss is flat, and chosen answers become unlikely too.",
        ("margin", "losses"),
        {"preference_unlearnt": "The margin does not grow: the pairs are never ordered, or both answers become unlikely."},
        ("dpo_chosen_falls",),
    ),
    Failure(
        "nonfinite_metric", "A curve ends in NaN",
        "A loss, a gradient norm or another metric is NaN or infinite, and mostly stays so.",
        ("losses", "gradients"),
        {
            "vanished_metric": "The metric is missing, not NaN. Some loggers drop values that are not finite.",
            "loss_explosion": "The loss is huge but finite; NaN often follows.",
        },
    ),
)  # fmt: skip
"""The failures of the page, in the order in which people ask about them."""

HEALTHY = (
    Healthy("loss_near_zero", "losses", "grpo", 3),
    Healthy("noisy_reward", "reward", "ppo", 6),
    Healthy("reward_spread_falls", "reward_spread", "grpo", 3),
    Healthy("shorter_responses", "length", "ppo", 5),
)
"""Healthy runs that people ask about."""


def page() -> str:
    lines = [
        "# My run looks like this",
        "",
        "Failures as they look in the curves. Each is a simulated run, judged and drawn by rldk; the mark is the step at which",
        "the incident began. `rldk scan` reports them by the names below, and `rldk explain NAME` says what to do.",
        "",
    ]
    lines += [f"- [{failure.title}](#{failure.detector})" for failure in FAILURES]
    lines += ["- [Healthy, though it looks odd](#healthy-though-it-looks-odd)"]
    for failure in FAILURES:
        lines += ["", *_section(failure)]
    lines += ["", "## Healthy, though it looks odd", "", "`rldk scan` is silent on these runs. [The whole list](normal.md)."]
    for one in HEALTHY:
        oddity = WHY_NORMAL[one.oddity]
        lines += ["", f"### {oddity.seen.removesuffix('.')}", "", f"![{oddity.seen}](images/gallery/{one.picture})"]
        lines += ["", oddity.why, "", f"*Not normal:* {oddity.unless}"]
    return "\n".join([*lines, ""])


def _section(failure: Failure) -> list[str]:
    lines = [f'<a id="{failure.detector}"></a>', "", f"## {failure.title}", "", failure.seen]
    lines += [f"It is reported as {_link(failure.detector)}.", ""]
    lines += [f"![{failure.title}: {in_words(panel)}](images/gallery/{failure.picture(panel)})" for panel in failure.panels]
    lines += ["", "Neighbours, and how they differ:", ""]
    lines += [f"- {_link(other)}: {how}" for other, how in failure.neighbours.items()]
    if failure.normal:
        lines += ["", "Looks odd, but is normal:", ""]
        lines += [f"- {WHY_NORMAL[name].seen} {WHY_NORMAL[name].why}" for name in failure.normal]
    return lines


def _link(detector: str) -> str:
    return f"[{TYPES[detector].type}](detectors/{detector}.md)"


def draw(failure: Failure) -> None:
    found = failure.judged()
    for panel in failure.panels:
        found.plot(panel).save(FOLDER / failure.picture(panel))
    worst = found.worst_run.worst
    print(f"{failure.detector}: {found.verdict}, {worst.title if worst else 'nothing'} at step {worst.step if worst else '-'}")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for failure in FAILURES:
        draw(failure)
    for one in HEALTHY:
        one.judged().plot(one.panel).save(FOLDER / one.picture)
