"""The standard panels in one table. A panel is drawn if the run logged its metrics, and left out otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from rldk.present.plots.panel import Level

__all__ = ["GROUPS", "MAIN_METRICS", "MAIN_PANELS", "STANDARD", "CurveSpec", "PanelSpec"]


@dataclass(frozen=True, slots=True)
class CurveSpec:
    """A curve: the first of `metrics` that the run has, with the first of each of `bands` whose two columns it has.

    `label` may hold one label for each metric, separated by `|`. A band is written `label: low high`; of several bands
    separated by `|`, the first that the run has is drawn.
    """

    label: str
    metrics: str
    bands: tuple[str, ...] = ()
    style: str = "solid"


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """A panel, drawn if the run has one of its first `needs` curves; `log` allows a logarithmic axis where the values need it."""

    key: str
    group: str
    title: str
    unit: str
    curves: tuple[CurveSpec, ...]
    levels: tuple[Level, ...] = ()
    limits: tuple[float, float] | None = None
    log: bool = False
    needs: int = 99


_SHARE = (0.0, 1.0)


def _curve(label: str, metrics: str, *bands: str, style: str = "solid") -> CurveSpec:
    return CurveSpec(label, metrics, bands, style)


STANDARD: tuple[PanelSpec, ...] = (
    PanelSpec("reward", "Reward", "Reward", "", (
        _curve("mean", "reward_mean rollout_mean_reward", "± 1 std: reward_mean-std reward_mean+std | min to max: reward_min reward_max"),
        _curve("held-out", "eval_reward_mean", style="dashed"),
        _curve("after the KL penalty", "reward_after_kl", style="faint"),
    )),
    PanelSpec("reward_spread", "Reward", "Standard deviation of the reward", "", (
        _curve("of the batch", "reward_std rollout_std_reward"),
        _curve("within groups", "reward_group_std", style="dashed"),
    )),
    PanelSpec("reward_signal", "Reward", "Groups without spread", "share", (
        _curve("all rewards equal", "reward_zero_std_frac"),
    ), limits=_SHARE),
    PanelSpec("accuracy", "Reward", "Accuracy", "share", (
        _curve("training", "accuracy"), _curve("held-out", "eval_accuracy", style="dashed"),
        _curve("preferences", "preference_accuracy"), _curve("preferences, held-out", "eval_preference_accuracy", style="dashed"),
    ), limits=_SHARE),
    PanelSpec("margin", "Reward", "Preference margin", "", (
        _curve("margin", "preference_margin"), _curve("chosen", "chosen_reward_mean", style="dashed"),
        _curve("rejected", "rejected_reward_mean", style="dashed"),
    )),
    PanelSpec("logps", "Reward", "Log-probability of responses", "nats", (
        _curve("chosen", "chosen_logp_mean"), _curve("rejected", "rejected_logp_mean", style="dashed"),
    )),
    PanelSpec("kl", "KL", "KL against its target", "nats", (
        _curve("KL", "kl_mean kl_mean_per_sequence kl_mean_per_token", "± 1 std: kl_mean-std kl_mean+std"),
        _curve("target", "target_kl", style="dashed"),
    ), log=True, needs=1),
    PanelSpec("kl_coef", "KL", "KL coefficient", "", (_curve("coefficient", "kl_coef"),), log=True),
    PanelSpec("kl_update", "KL", "KL per update", "nats", (_curve("old against new policy", "kl_update"),), log=True),
    PanelSpec("entropy", "Policy", "Entropy", "nats", (
        _curve("mean", "entropy_mean entropy_sequence", "min to max: entropy_min entropy_max"),
    )),
    PanelSpec("clip", "Policy", "Clipped tokens", "share", (
        _curve("clipped", "clip_frac"), _curve("low side", "clip_frac_low", style="dashed"), _curve("high side", "clip_frac_high", style="dashed"),
        _curve("values clipped", "value_clip_frac", style="faint"),
    ), limits=_SHARE),
    PanelSpec("ratio", "Policy", "Probability ratio", "", (
        _curve("mean", "ratio_mean ratio_max", "min to max: ratio_min ratio_max"),
    ), levels=(Level(1.0, "no change"),), log=True),
    PanelSpec("gradients", "Gradients", "Gradient norms", "", (
        _curve("all", "grad_norm"), _curve("policy", "policy_grad_norm"), _curve("value", "value_grad_norm"),
    ), log=True),
    PanelSpec("gradient_ratio", "Gradients", "Policy to value gradients", "ratio", (
        _curve("ratio", "gradient_ratio"),
    ), levels=(Level(1.0, "balanced"),), log=True),
    PanelSpec("advantages", "Advantages", "Advantages", "", (
        _curve("median|mean", "advantage_median advantage_mean",
               "5 to 95 %: advantage_p5 advantage_p95 | min to max: advantage_min advantage_max",
               "25 to 75 %: advantage_p25 advantage_p75 | ± 1 std: advantage_mean-std advantage_mean+std"),
    ), levels=(Level(0.0, "no advantage"),)),
    PanelSpec("advantage_std", "Advantages", "Standard deviation of the advantages", "", (_curve("std", "advantage_std"),)),
    PanelSpec("advantage_shape", "Advantages", "Shape of the advantages", "", (
        _curve("skewness", "advantage_skewness"), _curve("excess kurtosis", "advantage_kurtosis"),
    )),
    PanelSpec("length", "Lengths", "Length of responses", "tokens", (
        _curve("mean", "rollout_length_mean", "min to max: rollout_length_min rollout_length_max | ± 1 std: rollout_length_mean-std rollout_length_mean+std"),
        _curve("ended with EOS", "terminated_length_mean", style="dashed"),
    )),
    PanelSpec("truncated", "Lengths", "Truncated responses", "share", (
        _curve("truncated", "truncated_frac"), _curve("ended with EOS", "eos_frac", style="dashed"),
    ), limits=_SHARE),
    PanelSpec("length_bias", "Lengths", "Correlation of length and reward", "correlation", (
        _curve("length and reward", "length_reward_corr"),
    ), levels=(Level(0.0, "no correlation"),), limits=(-1.0, 1.0)),
    PanelSpec("value", "Value", "Values and returns", "", (
        _curve("values", "value_mean", "± 1 std: value_mean-std value_mean+std"), _curve("returns", "return_mean", style="dashed"),
    )),
    PanelSpec("explained_variance", "Value", "Explained variance", "share", (
        _curve("explained", "explained_variance"),
    ), levels=(Level(0.0, "no better than a constant"),)),
    PanelSpec("value_loss", "Value", "Value loss", "", (
        _curve("loss", "value_loss"), _curve("squared error", "value_error", style="dashed"),
    ), log=True),
    PanelSpec("losses", "Losses", "Losses", "", (
        _curve("loss", "loss"), _curve("policy", "policy_loss"), _curve("preference", "dpo_loss"), _curve("held-out", "eval_loss", style="dashed"),
    ), log=True),
    PanelSpec("lr", "Losses", "Learning rate", "", (
        _curve("rate", "lr"), _curve("policy", "policy_lr"), _curve("value", "value_lr", style="dashed"),
    )),
    PanelSpec("mismatch", "Policy", "Mismatch of sampler and trainer", "nats", (
        _curve("KL", "mismatch_kl"), _curve("log-probability", "mismatch_logp_diff", style="dashed"),
    ), log=True),
    PanelSpec("quality", "Quality", "Quality of text", "share", (
        _curve("distinct responses", "distinct_responses_frac"), _curve("repetition", "repetition_frac"),
        _curve("distinct token pairs", "distinct_2"), _curve("aborted", "aborted_frac", style="dashed"),
    ), limits=_SHARE),
    PanelSpec("perplexity", "Quality", "Perplexity", "", (
        _curve("training", "perplexity"), _curve("held-out", "eval_perplexity", style="dashed"),
    ), log=True),
    PanelSpec("throughput", "Machine", "Throughput", "tokens/s", (_curve("tokens", "tokens_per_second"),)),
    PanelSpec("mfu", "Machine", "Model FLOPs utilisation", "share of peak", (_curve("MFU", "mfu"),), limits=_SHARE),
    PanelSpec("step_time", "Machine", "Step time", "s", (
        _curve("step", "step_time"), _curve("generation", "generation_time", style="dashed"), _curve("update", "update_time", style="faint"),
    )),
    PanelSpec("memory", "Machine", "Memory", "GiB", (
        _curve("accelerator", "gpu_memory_gb"), _curve("reserved", "gpu_memory_reserved_gb", style="dashed"), _curve("host", "cpu_memory_gb"),
    )),
    PanelSpec("memory_share", "Machine", "Memory in use", "share", (
        _curve("memory", "memory_usage"), _curve("accelerator busy", "gpu_utilization", style="dashed"),
    ), limits=_SHARE),
)  # fmt: skip
"""Every standard panel, in the order of the page."""

GROUPS: tuple[str, ...] = tuple(dict.fromkeys(spec.group for spec in STANDARD))
"""The groups of panels, in the order of the page."""

MAIN_PANELS: tuple[str, ...] = ("reward", "kl", "entropy", "gradients", "length", "losses", "margin", "accuracy")
"""The panels to show where there is room for a few, the most important first."""

MAIN_METRICS: tuple[str, ...] = (
    "reward_mean", "reward_std", "kl_mean", "kl_coef", "entropy_mean", "clip_frac", "rollout_length_mean", "policy_grad_norm",
    "value_grad_norm", "grad_norm", "explained_variance", "value_loss", "policy_loss", "loss", "preference_margin",
    "preference_accuracy", "lr", "tokens_per_second", "mfu", "gpu_memory_gb",
)  # fmt: skip
"""The metrics to show where there is room for a few curves, the most important first."""
