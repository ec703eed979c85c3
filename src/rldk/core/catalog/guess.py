"""Names that people make up, matched by their parts: `avg_rew`, `mean_ep_return` and `resp_len_avg` say what they are.

Such a match is a guess: it is made only where no key of the log is known to be the metric, and the run's notes say so.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rldk.core.catalog.axes import is_axis, strip_eval
from rldk.core.catalog.lookup import CATALOG, Place
from rldk.core.catalog.metric import Key, normalise

__all__ = ["guess"]

GUESSED = 70
"""The rank of a guess: after every key that is known."""

_NO_MEANING = frozenset({
    "mean", "avg", "average", "ave", "ema", "smoothed", "running", "moving", "rolling", "batch", "train", "training",
    "step", "steps", "episode", "episodes", "ep", "eps", "per", "the", "of", "all", "overall", "total", "current",
    "cur", "now", "epoch", "rollout", "rollouts", "raw", "global", "grpo", "gspo", "rloo", "dapo", "last", "ma", "window",
    "curve", "curves", "history", "hist", "list", "series", "trace", "values", "latest", "exact",
})  # fmt: skip
_SAME = {
    "rew": "reward", "rews": "reward", "rewards": "reward", "r": "reward", "ret": "reward", "rets": "reward", "return": "reward",
    "returns": "reward", "score": "reward", "scores": "reward", "ent": "entropy", "entropies": "entropy", "tok": "token",
    "tokens": "token", "toks": "token", "len": "length", "lens": "length", "lengths": "length", "resp": "response",
    "responses": "response", "completion": "response", "completions": "response", "gen": "response", "generation": "response",
    "output": "response", "answer": "response", "reference": "ref", "divergence": "", "div": "", "to": "", "vs": "", "from": "",
    "grads": "grad", "gradient": "grad", "gradients": "grad", "norms": "norm", "gnorm": "grad norm",
    "actor": "policy", "pi": "policy", "pg": "policy", "vf": "value", "v": "value", "critic": "value", "shaped": "reward",
    "acc": "accuracy", "frac": "fraction", "ratio": "fraction", "rate": "fraction", "pct": "percent", "clipped": "clip",
    "clipping": "clip", "clipfrac": "clip fraction", "kls": "kl", "trunc": "truncated", "truncation": "truncated",
    "expl": "explained", "var": "variance", "pref": "preference", "succ": "success", "losses": "loss", "groups": "group",
    "advantages": "advantage", "adv": "advantage", "advs": "advantage", "learning": "lr",
    "hacking": "hack", "hacked": "hack", "hacks": "hack", "exploited": "hack",
}  # fmt: skip
_CHINESE = {
    "平均": "mean", "均值": "mean", "标准差": "std", "方差": "variance", "奖励": "reward", "回报": "reward", "得分": "reward",
    "熵": "entropy", "生成": "response", "回答": "response", "响应": "response", "长度": "length", "截断": "truncated",
    "比例": "ratio", "率": "ratio", "比": "ratio", "损失": "loss", "策略": "policy", "价值": "value", "梯度": "grad",
    "范数": "norm", "准确": "accuracy", "正确": "accuracy", "成功": "success", "散度": "div",
}  # fmt: skip
"""Parts of names in Chinese, longer ones first where one contains another."""
_RULES: dict[frozenset[str], str] = {
    frozenset(words.split()): metric
    for metric, names in {
        "reward_mean": ("reward", "response reward", "task reward", "env reward"),
        "kl_mean": ("kl", "kl ref", "kl policy", "kl policy ref", "kl token", "kl ref token", "kl penalty", "kl loss"),
        "kl_update": ("kl approx", "kl old", "kl old new", "kl update", "kl ppo", "kl approx policy"),
        "entropy_mean": ("entropy", "entropy policy", "entropy token", "entropy policy token"),
        "rollout_length_mean": ("length", "response length", "response token", "response length token"),
        "grad_norm": ("grad norm",),
        "policy_grad_norm": ("policy grad norm",),
        "value_grad_norm": ("value grad norm",),
        "loss": ("loss",),
        "policy_loss": ("policy loss", "policy grad loss"),
        "value_loss": ("value loss",),
        "clip_frac": ("clip fraction", "clip", "policy clip fraction"),
        "truncated_frac": ("truncated", "truncated fraction", "truncated response", "truncated response fraction"),
        "accuracy": (
            "accuracy", "accuracy fraction", "success", "success fraction", "solve fraction", "correct fraction", "win fraction",
        ),
        "exploited_frac": ("hack fraction", "hack reward fraction", "hack response fraction"),
        "advantage_mean": ("advantage",),
        "explained_variance": ("explained variance", "value explained variance"),
        "preference_accuracy": ("preference accuracy", "pair accuracy"),
        "reward_zero_std_frac": ("zero variance group", "zero variance group fraction", "zero variance fraction"),
        "lr": ("lr",),
    }.items()
    for words in names
}
_SPREADS = {"std": "std", "stdev": "std", "stddev": "std", "sd": "std", "min": "min", "max": "max"}
_GOOD = frozenset({
    "accuracy", "acc", "success", "solve", "solved", "correct", "pass", "passed", "win", "exact", "match", "hit",
    "math", "math500", "gsm8k", "aime", "aime24", "aime25", "aime2024", "aime2025", "amc", "amc23", "olympiad", "mmlu", "gpqa",
    "humaneval", "mbpp", "livecodebench", "arc", "hellaswag", "truthfulqa", "countdown", "triviaqa", "hotpotqa", "ifeval", "bbh",
})  # fmt: skip
"""What a share or a score of held-out data counts where more is better: right answers, or those to a known benchmark."""
_BAD = frozenset({
    "false", "negative", "wrong", "not", "non", "hack", "hacking", "refusal", "failed", "failure", "fail", "error",
    "errors", "loss",
})  # fmt: skip
_PARTS = frozenset({
    "format", "formatting", "tag", "tags", "xml", "correct", "correctness", "accuracy", "outcome", "length",
    "reasoning", "think", "thinking", "structure", "syntax", "compile", "execution", "language", "tool", "repetition", "brevity",
})  # fmt: skip
"""What a reward function is often made for: `format_reward` beside the whole reward is one of its parts."""
_PERCENT = frozenset({"percent"})
_WINDOW = re.compile(r"(?:ma|avg|mean|last)?\d{2,5}")
"""Over how many rows or episodes a mean is taken: `reward_100`, `reward_ma10`, `avg100_reward`."""


@lru_cache(maxsize=8192)
def guess(key: str) -> Place | None:
    """What a key that the catalogue does not know probably is; `None` where its parts do not say."""
    if is_axis(key):
        return None
    bare = strip_eval(key)
    if bare is not None:
        place = _by_parts(bare) or _held_out_share(bare)
        return None if place is None else Place(f"eval_{place.metric}", place.key, place.per, place.rank)
    return _by_parts(key)


def _in_english(key: str) -> str:
    if not key.isascii():
        for part, english in _CHINESE.items():
            key = key.replace(part, f" {english} ")
    return key


def _by_parts(key: str) -> Place | None:
    said = [word for part in normalise(_in_english(key)).split("_") for word in _SAME.get(part, part).split()]
    spread = next((_SPREADS[word] for word in said if word in _SPREADS), "")
    words = frozenset(word for word in said if word not in _NO_MEANING and word not in _SPREADS and not _WINDOW.fullmatch(word))
    percent = bool(words & _PERCENT)
    words -= _PERCENT
    if "reward" in words and len(part := words - {"reward"}) == 1 and part <= _PARTS and not spread and not percent:
        return Place(f"reward_function_mean/{next(iter(part))}", Key(key), "sequence", GUESSED)
    metric = _RULES.get(words if not percent or words in _RULES else words | {"fraction"})
    variance = metric is None and "variance" in words and not spread
    if variance:
        metric, spread = _RULES.get(words - {"variance"}), "std"
    if metric is None or (metric == "rollout_length_mean" and "total" in said):  # the tokens of all responses so far
        return None
    if spread:
        metric = f"{metric.removesuffix('mean')}{spread}"
        if metric not in CATALOG:
            return None
    entry = CATALOG[metric]
    transform = "root" if variance else "percent" if percent and entry.unit == "fraction" else "same"
    per = entry.reduction if metric != "kl_mean" or "token" in words else "unstated"
    return Place(metric, Key(key, transform), per, GUESSED)


def _held_out_share(bare: str) -> Place | None:
    """`heldout_math_rate`: a share of right answers in held-out data is an accuracy. Shares of anything else are not guessed."""
    *words, kind = normalise(bare).split("_")
    good = kind in ("acc", "accuracy") or (kind in ("rate", "score") and not _GOOD.isdisjoint(words))
    if not good or _BAD & set(words):
        return None
    return Place("accuracy", Key(bare), CATALOG["accuracy"].reduction, GUESSED)
