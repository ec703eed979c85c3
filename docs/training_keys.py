"""What the stages of the trainer log, by their names in the trackers; meanings come from the catalogue if it has them."""

from __future__ import annotations

from rldk.core.catalog import CATALOG, resolve

_RATES = (
    "epoch global_step epoch_time step_time tokens_per_second samples_per_second steps_per_second eta_minutes "
    "mfu_percent num_tokens"
)
_LEARNING = "loss grad_norm lr padding_frac"
_LANGUAGE = "perplexity token_accuracy entropy"
_PAIRS = "rewards/chosen rewards/rejected rewards/margins rewards/accuracies"
_ASKED = (
    "eval_reward eval_reward_sem eval_pass_at_1 eval_pass_at_k eval_distinct_responses_frac eval_distinct_endings_frac "
    "eval_avg_response_len eval_eos_frac"
)
STAGES = {
    "Pretrain, midtrain and SFT": f"{_LEARNING} {_LANGUAGE} {_RATES}",
    "DPO": f"{_LEARNING} {_PAIRS} logps/chosen logps/rejected {_RATES}",
    "Reward model": f"{_LEARNING} {_PAIRS} {_RATES}",
    "PPO": (
        "actor_loss critic_loss reward reward_std reward_min reward_max reward_after_kl kl kl_ref kl_mean_per_sequence "
        "kl_coef target_kl entropy clip_frac value_clip_frac clip_range ratio_mean ratio_std ratio_min ratio_max "
        "actor_grad_norm critic_grad_norm grad_norm actor_weight_change critic_weight_change actor_lr critic_lr "
        "avg_response_len response_len_std "
        "rollout_length_min rollout_length_max eos_frac truncated_frac distinct_responses_frac distinct_endings_frac "
        "repetition_frac length_reward_corr value_mean value_std "
        "return_mean return_std explained_variance advantage_mean advantage_std advantage_min advantage_p5 "
        "advantage_p25 advantage_median advantage_p75 advantage_p95 advantage_max advantage_skewness advantage_kurtosis "
        "advantage_normalized advantage_raw temperature max_response_length num_iterations policy_trainable_params "
        "dropout_active reference_is_policy distinct_prompts distinct_prompts_frac updates update_applied "
        "kl_early_stop mismatch_kl mismatch_logp_diff mismatch_prob_diff mismatch_prob_corr mismatch_ratio "
        "sampling_ratio_mean num_generations reward_group_std reward_zero_std_frac generation_time scoring_time "
        f"update_time num_tokens_generated {_RATES.removesuffix(' num_tokens')}"
    ),
    "Held-out prompts, in all but the reward model": _ASKED,
}
OWN = {  # not in the catalogue, or with another meaning here: meaning, unit
    "loss": ("the stage's loss: the mean over all learnt tokens, or pairs, of the step", "1"),
    "mfu_percent": ("share of the hardware's peak that was used (MFU); in the event log between 0 and 1", "%"),
    "epoch_time": ("minutes spent in the current epoch; `system/epoch_time` in the trackers", "min"),
    "eta_minutes": ("minutes left in the epoch; `epoch_Time` on the console", "min"),
    "tokens_per_second": ("tokens per second since the start of the epoch", "tokens/s"),
    "samples_per_second": ("samples per second since the start of the epoch", "1/s"),
    "steps_per_second": ("steps per second since the start of the epoch", "1/s"),
    "padding_frac": ("share of the batch that is padding", "fraction"),
    "updates": ("optimizer steps made from the rollouts of this step", "count"),
    "update_applied": ("share of them that were made; the others had gradients that were not finite", "fraction"),
    "kl_early_stop": ("1 if the updates of the step ended early because the policy was too far from the old one", "1"),
    "scoring_time": ("seconds spent on score, reference and value", "s"),
    "perplexity": ("e to the loss", "1"),
    "entropy": ("mean entropy of what the model predicts, over the tokens that are learnt or were written", "nats"),
    "reward": ("mean score of the responses, without the KL penalty", "reward"),
    "kl": ("KL from the policy before the updates to the one after them (k3), on every eighth response, at least four", "nats"),
    "num_tokens_generated": ("tokens written so far", "tokens"),
    "eval_reward": ("mean score of the answers to the held-out prompts", "reward"),
    "eval_reward_sem": ("its standard error, over prompts", "reward"),
    "eval_pass_at_1": ("chance that an answer has at least --pass_score", "fraction"),
    "eval_pass_at_k": ("chance that one of --eval_generations answers has (unbiased estimate)", "fraction"),
    "eval_distinct_responses_frac": ("share of different answers", "fraction"),
    "eval_distinct_endings_frac": ("share of different endings among them", "fraction"),
    "eval_avg_response_len": ("their mean length, the end token included", "tokens"),
    "eval_eos_frac": ("share of them that ended", "fraction"),
}


def page() -> str:
    """The page, as text."""
    lines = [
        "# What the trainer logs",
        "",
        "Every stage logs these at every step: to the trackers of `--report_to` as `train/KEY`, to the event log under the name",
        "of the [catalogue](metrics.md), and the first few of them to the console. An unknown number is missing,",
        "never 0: a device with an unknown peak has no MFU. Held-out metrics (`eval_` before the name) are logged every",
        "`--eval_interval` steps. All values cover all processes together.",
        "",
    ]
    for stage, keys in STAGES.items():
        lines += [f"## {stage}", "", "| key | in the event log | meaning | unit |", "|---|---|---|---|"]
        lines += [_row(key) for key in keys.split()]
        lines.append("")
    return "\n".join(lines)


def _row(key: str) -> str:
    found = next(iter(resolve({key: 1.0}, framework="trainer").metrics), None)
    entry = CATALOG.get(found) if found else None
    meaning, unit = OWN.get(key) or ((entry.meaning, entry.unit) if entry else ("", ""))
    assert meaning, f"{key} has no meaning"
    return f"| `{key}` | `{found or key}` | {meaning} | {unit} |"
