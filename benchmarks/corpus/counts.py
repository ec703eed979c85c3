"""What the corpus must have and what it has: runs by label, kinds of fault, splits, logs and size.

    python benchmarks/corpus/label.py --counts

`missing` says what is not reached; nothing is, as long as the tests pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from corpus.settings import ROUND, SETTINGS, all_runs, split_of
from corpus.store import EVENTS, PLAIN, RECORDED, read_json, read_text

__all__ = ["ASKED", "missing", "only_in_judge", "show_counts"]

Label = dict[str, Any]
AT_LEAST = {"HEALTHY": 120, "faulty": 250, "kinds": 35, "FAILING": 150, "DEGRADED": 30, "HARMLESS": 30, "kinds only in judge": 10}
MAX_SHARE = 0.05
"""Of the faulty runs, for one kind of fault."""
MAX_BYTES = 25_000_000

ASKED = {
    "constant reward": ("reward_constant", "reward_constant_mid", "reward_constant_below_best"),
    "sign flipped": ("reward_flipped", "reward_flipped_mid"),
    "offset": ("reward_offset_up", "reward_offset_down"),
    "scaled": ("reward_scaled_up", "reward_scaled_down"),
    "random": ("reward_random", "reward_random_mid"),
    "prompt only": ("reward_prompt_only",),
    "NaN": ("reward_nan", "reward_nan_once"),
    "inf in one batch": ("reward_inf_once",),
    "None for half": ("reward_half_missing", "reward_half_missing_mid"),  # NaN where a trainer takes numbers only
    "learning rate x 30": ("lr_x30", "lr_x30_mid"),
    "learning rate x 100": ("lr_x100", "lr_x100_mid"),
    "learning rate 0": ("lr_zero",),
    "learning rate 1e6": ("lr_1e6",),
    "decayed too early": ("lr_gone_early",),
    "KL coefficient 0": ("kl_coef_zero", "kl_coef_zero_mid"),
    "KL coefficient tiny": ("kl_coef_tiny",),
    "KL coefficient huge": ("kl_coef_huge", "kl_coef_huge_mid"),
    "KL coefficient negative": ("kl_coef_negative", "kl_coef_negative_mid"),
    "reference is the policy": ("reference_shared",),
    "foreign reference": ("reference_foreign",),
    "controller unstable": ("controller_unstable",),
    "length reward": ("reward_length", "reward_length_mid"),
    "token reward": ("reward_token",),
    "format reward": ("reward_format",),
    "exploitable reward model": ("reward_exploitable",),
    "EOS impossible": ("eos_impossible", "eos_impossible_mid"),
    "cut at 2 tokens": ("cut_at_two",),
    "truncated excluded": ("truncated_excluded",),
    "temperature 0.05": ("temperature_low",),
    "temperature 3": ("temperature_high",),
    "dropout active": ("dropout_active",),
    "frozen policy": ("policy_frozen",),
    "frozen value": ("value_frozen",),
    "value loss 0": ("value_loss_off",),
    "value loss x 100": ("value_loss_x100",),
    "value overwritten": ("value_overwritten",),
    "20 epochs": ("epochs_20",),
    "clip range 1000": ("clip_wide",),
    "clip range 0.0005": ("clip_narrow",),
    "gradient clip 1e-6": ("grad_clip_tiny",),
    "gradient clip off": ("grad_clip_off",),
    "old weights": ("weights_old",),
    "optimizer state lost": ("optimizer_lost",),
    "weights perturbed": ("weights_perturbed", "weights_perturbed_slightly"),
    "two prompts": ("two_prompts",),
    "data switched": ("data_switched",),
    "batch of 2": ("batch_of_two",),
    "bf16 rounds updates away": ("precision_low",),  # DPO alone has learning rates that are small enough
    "advantages not normalised": ("advantages_unscaled",),
    "rewards shuffled": ("reward_shuffled",),
    "DPO labels swapped": ("labels_swapped",),
    "DPO beta tiny": ("dpo_beta_tiny",),
    "DPO beta huge": ("dpo_beta_huge",),
}
"""The faults that the corpus was asked to have, and the kinds that are them."""


def counted(labels: Sequence[Label]) -> dict[str, int]:
    """The numbers that `AT_LEAST` is about."""
    kinds = Counter(one["kind"] for one in labels if one["kind"])
    only = only_in_judge(labels, "kind")
    found = {"faulty": sum(kinds.values()), "kinds": len(kinds), "kinds only in judge": len(only)}
    return found | Counter(one["verdict"] for one in labels)


def only_in_judge(labels: Sequence[Label], about: str) -> list[str]:
    """The kinds or causes of fault that no run of *tune* has."""
    splits = _splits()
    tune, judge = ({one[about] for one in labels if splits[one["run"]] == part} for part in ("tune", "judge"))
    return sorted(judge - tune)


def missing(labels: Sequence[Label]) -> list[str]:
    """What the corpus must have and has not."""
    found, kinds = counted(labels), Counter(one["kind"] for one in labels if one["kind"])
    least = {name: count for name, count in AT_LEAST.items() if name != "kinds only in judge" or not ROUND}  # later all are known
    wrong = [f"{name}: {found.get(name, 0)}, at least {count}" for name, count in least.items() if found.get(name, 0) < count]
    wrong += [f"{kind}: {n} runs, too many" for kind, n in kinds.items() if n > MAX_SHARE * found["faulty"]]
    wrong += [f"no run with {name}" for name, ours in ASKED.items() if not set(ours) <= set(kinds)]
    wrong += [f"{one['run']}: {what}" for one in labels if (what := _missing_logs(one["run"]))]
    return wrong + ([f"{size_of_corpus()} bytes recorded, at most {MAX_BYTES}"] if size_of_corpus() > MAX_BYTES else [])


def _missing_logs(run: str) -> str:
    """What is missing of a run's two logs. DPO samples no responses: its event logs have none."""
    plain, events = read_json(RECORDED / run / PLAIN), read_text(RECORDED / run / EVENTS)
    if not (plain["log_history"] if isinstance(plain, dict) else plain):
        return "nothing in the plain log"
    samples = SETTINGS[run.split("--")[0]].trainer == "dpo" or '"samples"' in events
    return "" if events and samples else "no samples in the event log"


def size_of_corpus() -> int:
    """The bytes of all recorded files."""
    return sum(path.stat().st_size for path in RECORDED.rglob("*") if path.is_file())


def _splits() -> dict[str, str]:
    return {one.id: split_of(one) for one in all_runs()}


def show_counts(labels: Sequence[Label]) -> int:
    """Print the counts beside what they must be; 1 if something is missing."""
    found, splits, faulty = counted(labels), _splits(), [one for one in labels if one["kind"]]
    print(f"{len(labels)} runs")
    for name, least in AT_LEAST.items():
        print(f"{name:20} {found.get(name, 0):4}  (at least {least})")
    kinds = Counter(one["kind"] for one in faulty)
    kind, most = kinds.most_common(1)[0]
    print(f"most frequent kind   {most:4}  ({kind}: {most / len(faulty):.1%} of the faulty runs; at most {MAX_SHARE:.0%})")
    print(f"faults asked for     {sum(set(ours) <= set(kinds) for ours in ASKED.values()):4}  (of {len(ASKED)})")
    for part in ("tune", "judge"):
        verdicts = Counter(one["verdict"] for one in labels if splits[one["run"]] == part)
        print(f"{part}: " + ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())))
    for about in ("kind", "cause"):
        only = only_in_judge(labels, about)
        print(f"{about}s in judge only, {len(only)} of {len({one[about] for one in faulty})}: {', '.join(only)}")
    trainers = Counter(f"{(setting := SETTINGS[one['run'].split('--')[0]]).trainer} {setting.trl}" for one in labels)
    print("trainer and TRL: " + ", ".join(f"{count} {name}" for name, count in trainers.most_common()))
    intervals = Counter(one["log_every"] for one in labels)
    print("logged every " + ", ".join(f"{every}: {count} runs" for every, count in sorted(intervals.items())))
    print(f"borderline: {sum(bool(one.get('borderline')) for one in labels)} of {len(faulty)}")
    print(f"recorded: {size_of_corpus() / 1e6:.1f} MB  (at most {MAX_BYTES / 1e6:.0f}); each run has both logs")
    wrong = missing(labels)
    print("missing: " + ("; ".join(wrong) or "nothing"))
    return int(bool(wrong))
