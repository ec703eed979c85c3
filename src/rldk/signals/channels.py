"""The channels that describe the policy independently of the reward, and which of them have left their range.

A rising reward does not matter here: these channels separate learning from gaming the reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from rldk.signals.held_out import HELD_OUT, held_out_fall
from rldk.signals.kl import is_assumed, kl_level
from rldk.signals.optimizer import NORMS, gradient_norm, learning_rate
from rldk.signals.reward import score_of
from rldk.signals.view import View, once_per_event

__all__ = [
    "CHANNEL_METRICS", "LEARNS", "LN2", "ON_POLICY", "PREFERENCE_LOSSES", "UNDERSIZED", "VARIETY", "Sign", "ailing", "damage",
    "ending_share", "harm", "is_alone", "is_on_policy", "length_words", "policy_moves", "reward_has_fallen",
    "updates_are_undersized", "weights_stayed", "works", "writes_text",
]  # fmt: skip

CHANNEL_METRICS = (
    "entropy_mean", "vocab_size", "truncated_frac", "eos_frac", "eos_count", "rollout_length_mean", "reward_std", "kl_mean",
    "kl_coef", "target_kl", "entropy_sequence", "eval_perplexity", *HELD_OUT, *NORMS, "chosen_logp_mean",
)  # fmt: skip
"""All metrics that `damage` reads."""
OF_LANGUAGE = ("kl_mean", "entropy_sequence", "eos_frac", "eos_count", "truncated_frac", "vocab_size")
"""Metrics that runs of language models log, and control tasks do not."""
ON_POLICY = ("num_iterations", "mismatch_kl", "mismatch_logp_diff")
"""All metrics that `is_on_policy` reads."""
PREFERENCE_LOSSES = ("loss", "dpo_loss")
"""The loss of a preference training: the whole of it, or that of the pairs alone where nothing else is logged."""
LN2 = log(2.0)  # the loss of a pair whose answers have the same implicit reward, as before any training
ENTROPY_GONE, ENTROPY_SHARE = 0.02, 0.1
"""Entropy (nats per token) and share of its start below which a policy writes one text. Healthy language models of public
runs end between 0.006 and 2, but those below 0.02 started below 0.3."""
ENTROPY_RISE = 1.0
"""Rise in nats per token that, together with a doubling, no healthy run of the corpus or in public reached."""
SURELY = 0.95  # share of endings in the first row from which that one row counts as the start
ENTROPY_LEFT, ENDING_LOST = 0.35, 0.35
"""Share of the entropy that is left, and share of the responses that no longer end, from which a channel is ailing."""
LENGTH_FACTOR = 4.0
GRADIENT_FACTOR = 10.0
VARIETY = ("entropy", "gradients", "spread")
"""The channels that depend on the variety of responses: they fade where a policy has found the one right answer."""
UNDERSIZED = 0.1
"""Relative change of the weights beside the learning rate. The medians of 124 sound runs of the corpus are 0.9 to 43."""
STAYED = 1e-3
"""Relative change of the weights, summed over all updates, below which a policy is what it was. At a learning rate of 1e-6, the
lowest of recipes, forty updates of a language model (weights of about 0.02) come to twice that."""
LEARNS = 3.0  # t value of the reward's trend that a policy which does not move reaches once in seven hundred times
MAX_RATE = 0.01  # learning rate beyond those of language models
STILL = 1e-12  # relative change of the weights that is only rounding: float32 rounds at 6e-8


@dataclass(frozen=True, slots=True)
class Sign:
    """A channel that has left its range, in words.

    A strong sign is damage by itself. One that `fades` goes wherever all responses score the same, as on a solved task.
    """

    channel: str
    words: str
    strong: bool = True
    fades: bool = False


def ending_share(view: View) -> tuple[float, float]:
    """The share of responses that emit the end token, now and at its best; 1 and 1 if it is not logged."""
    ended = view.get("eos_frac")
    if ended.n >= 3:
        return ended.level, max(ended.high, ended.first if ended.first > SURELY else 0.0)
    cut = view.get("truncated_frac")
    if cut.n >= 3:
        return 1.0 - cut.level, 1.0 - min(cut.low, cut.first if cut.first < 1.0 - SURELY else 1.0)
    count = view.get("eos_count")
    if count.n >= 3:
        best = max(count.high, count.first)
        return (count.level / best, 1.0) if best > 0.0 else (0.0, 0.0)
    return 1.0, 1.0


@once_per_event
def damage(view: View) -> tuple[Sign, ...]:
    """The channels that have left their range, each once."""
    found = (
        _entropy(view), _ending(view), _length(view), _kl(view), _held_out(view), _spread(view), _gradients(view), _chosen(view),
    )  # fmt: skip
    return tuple(filter(None, found))


def ailing(view: View) -> list[str]:
    """The channels that are on their way out of their range, in words: not damage yet, but no coincidence beside a loss."""
    found = {sign.channel: sign.words for sign in damage(view)}
    entropy = view.get("entropy_mean")
    start = max(entropy.first, entropy.start)
    if entropy.ready and entropy.low >= 0.0 and entropy.level < ENTROPY_LEFT * start:
        found.setdefault("entropy", _entropy_fell(start, entropy.level))
    now, best = ending_share(view)
    if best - now > ENDING_LOST:
        found.setdefault("ending", _fewer_end(best, now))
    return [*found.values()]


def policy_moves(view: View) -> bool:
    """Whether the policy changes: by its weights if they are watched, else by reward and updates, but not by its KL."""
    weights, score, update = view.get("weight_change"), score_of(view), view.get("kl_update")
    if weights.n:
        return weights.level > STILL
    learns = score.n >= 10 and (view.reward.gain > 4.0 * view.reward.noise > 0.0 or view.reward.trend > LEARNS)
    clipped = view.get("clip_frac").slow > 0.0  # only ratios that differ from 1 are clipped
    return learns or clipped or (update.ready and update.level > 1e-6)


def is_on_policy(view: View) -> bool:
    """Whether the settings say that each batch is used for one optimizer step, by the policy that sampled it."""
    if view.get("num_iterations").last != 1.0 or view.get("mismatch_kl").n or view.get("mismatch_logp_diff").n:
        return False  # batches are used again, or another engine samples
    return view.setting("steps_per_generation") <= view.setting("gradient_accumulation_steps")


def weights_stayed(view: View) -> bool:
    """Whether all updates together cannot have moved the weights by a thousandth of their size; false if they are not watched."""
    change = view.get("weight_change")
    return change.ready and change.slow * (view.index + 1) * view.steps_per_row < STAYED


def updates_are_undersized(view: View) -> bool:
    """Whether updates change the weights by far less than the learning rate implies.

    Adam moves each weight by up to the learning rate, and weights of language models are mostly below 0.1: the relative change
    is ten times the rate or more, and a few times less where gradients are noisy. Where gradients have become small, as on a
    solved task, so do updates, and a rate that no optimizer survives says nothing.
    """
    weights, rate = view.get("weight_change"), learning_rate(view)
    if not (weights.ready and 0.0 < weights.slow < UNDERSIZED * rate.slow < UNDERSIZED * MAX_RATE):
        return False
    gradient = gradient_norm(view)
    return not gradient.n or gradient.level > 0.2 * gradient.start > 0.0


def reward_has_fallen(view: View) -> bool:
    """Whether the reward has lost half of its gain, beyond its noise; used to corroborate other channels.

    The mean over about twenty rows must have lost nearly half of it as well, so that a dip of a dozen rows does not count.
    """
    score, reward = score_of(view), view.reward
    if score.n < 8 or not reward.lost(score) > max(0.5 * reward.gain, 4.0 * reward.noise) > 0.0:
        return False
    return score.n < 30 or reward.best - score.slow > 0.45 * reward.gain


def is_alone(view: View, *channels: str) -> bool:
    """Whether nothing has left its range besides these channels."""
    return all(sign.channel in channels for sign in damage(view))


def harm(view: View, besides: str = "") -> list[str]:
    """What is damaged, in words: strong signs of channels other than `besides`, and a reward that has fallen."""
    words = [sign.words for sign in damage(view) if sign.strong and sign.channel != besides]
    if reward_has_fallen(view):
        words.append(f"the reward fell from {view.reward.best:.3g} to {score_of(view).level:.3g}")
    return words


def works(view: View, besides: str = "") -> bool:
    """Whether the reward has risen and is near its best, and nothing is damaged: what looks odd then is not yet a defect."""
    return view.reward.thrives(score_of(view)) and not harm(view, besides)


def _entropy(view: View) -> Sign | None:
    entropy = view.get("entropy_mean")
    if entropy.n < 3 or entropy.low < 0.0:  # below 0 it is that of continuous actions
        return None
    start = entropy.first if entropy.n < 5 else max(entropy.first, entropy.start)
    level = entropy.level
    if level < ENTROPY_GONE and level < ENTROPY_SHARE * start:
        return Sign("entropy", _entropy_fell(start, level))
    start = min(entropy.first, start)
    if level > start + ENTROPY_RISE and level > 2.0 * start:
        return Sign("entropy", f"entropy rose from {start:.3g} to {level:.3g}")
    vocabulary = view.get("vocab_size").last
    if vocabulary > 1.0 and level > 0.9 * log(vocabulary) and start < 0.7 * log(vocabulary):
        return Sign("entropy", f"entropy is {level:.3g}, and random tokens have {log(vocabulary):.3g}")
    return None


def _ending(view: View) -> Sign | None:
    now, best = ending_share(view)
    if best > 0.5 and now < 0.3:
        return Sign("ending", _fewer_end(best, now), strong=now < 0.1)
    return None


def _entropy_fell(start: float, level: float) -> str:
    return f"entropy fell from {start:.3g} to {level:.2g}"


def _fewer_end(best: float, now: float) -> str:
    return f"the share of responses that emit the end token fell from {best:.0%} to {now:.0%}"


def _length(view: View) -> Sign | None:
    length = view.get("rollout_length_mean")
    if not length.ready or not length.start > 0.0:
        return None
    longer = max(length.start, length.base)
    if length.level > LENGTH_FACTOR * longer and length.level > longer + 3.0 * length.scale:
        return Sign("length", f"responses grew from {length.start:.3g} to {length.level:.3g} tokens", strong=False)
    if length.level < 0.2 * min(length.start, length.base):
        return Sign("length", f"responses shrank from {length.start:.3g} to {length.level:.3g} tokens", strong=False)
    return None


def _kl(view: View) -> Sign | None:
    level = kl_level(view)
    if level.strain > 0.5 and not view.get("kl_mean").receded:
        return Sign("kl", f"KL from the reference is {level.words}", strong=level.strain > 1.0)
    if is_assumed(view):
        words = f"KL from the reference is {view.get('kl_mean').level:.3g}, in a unit that the log does not say"
        return Sign("kl", words, strong=False)
    return None


def _held_out(view: View) -> Sign | None:
    perplexity = view.get("eval_perplexity")
    if perplexity.n >= 3 and perplexity.last > 2.0 * perplexity.first > 0.0:
        return Sign("held_out", f"held-out perplexity rose from {perplexity.first:.3g} to {perplexity.last:.3g}")
    for name, what in HELD_OUT.items():
        series = view.get(name)
        if series.n < 4:
            continue
        fall = held_out_fall(view, name)
        if fall.lost > max(0.6 * fall.whole, 4.0 * fall.noise, 0.2 * fall.size):
            return Sign("held_out", f"held-out {what} fell from {fall.best:.3g} to {fall.now:.3g}")
    return None


def _spread(view: View) -> Sign | None:
    spread = view.get("reward_std")
    if spread.ready and spread.level < 0.02 * spread.base and spread.slow < 0.5 * spread.base:
        return Sign("spread", "the spread of rewards is gone", strong=False, fades=True)
    return None


def _chosen(view: View) -> Sign | None:
    chosen = view.get("chosen_logp_mean")
    if chosen.n >= 3 and chosen.first < 0.0 and chosen.level < 2.0 * chosen.first - 1.0:
        words = f"the log-probability of chosen answers fell from {chosen.first:.3g} to {chosen.level:.3g}"
        return Sign("preference", words, strong=chosen.level < 4.0 * chosen.first)
    return None


def _gradients(view: View) -> Sign | None:
    grad = gradient_norm(view)
    if grad.n < 10 or not grad.base > 0.0:
        return None
    if grad.level > GRADIENT_FACTOR * max(grad.start, grad.base) and not grad.receded:
        return Sign("gradients", f"gradient norm rose from {grad.base:.3g} to {grad.level:.3g}", strong=False)
    if grad.level < 1e-5 * grad.base:
        return Sign("gradients", f"gradient norm fell from {grad.base:.3g} to {grad.level:.2g}", strong=False, fades=True)
    return None


def length_words(view: View) -> tuple[str, str]:
    """What has a length, and its unit, for messages: those of a language model are responses of tokens."""
    return ("Responses", " tokens") if writes_text(view) else ("The lengths of rollouts", "")


def writes_text(view: View) -> bool:
    """Whether the policy is a language model, and not one of a control task, by what is logged."""
    return any(view.get(name).n for name in OF_LANGUAGE)
