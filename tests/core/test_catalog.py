"""The one table of metrics: complete by the contract, in order by itself, and right by what the frameworks really log."""

from __future__ import annotations

import math

import pytest

from rldk.core.catalog import CATALOG, FRAMEWORKS, Key, Metric, entry_of, identify, locate, resolve
from rldk.core.catalog.axes import STEP_KEYS, TIME_KEYS, is_axis, strip_eval
from rldk.core.catalog.lookup import AMBIGUOUS, keys_by_framework
from rldk.core.catalog.metric import REDUCTIONS, TRANSFORMS, TROUBLE, normalise

# Word for word from the contract, section 2.
RLDK_METRICS = """
reward_mean reward_std reward_min reward_max · kl_mean kl_std entropy_mean clip_frac · value_loss policy_loss value_policy_loss
policy_grad_norm value_grad_norm · value_mean value_std rollout_length_mean rollout_length_std · advantage_mean advantage_std ·
kl_coef target_kl advantage_normalized clip_range clip_range_value batch_size global_step · model_type vocab_size
tokenizer_vocab_size dataset_size · rollout_buffer_size rollout_buffer_pos rollout_mean_reward rollout_std_reward ·
policy_total_params policy_trainable_params policy_lr · value_total_params value_trainable_params value_lr
"""
TRACKED = "kl_mean kl_coef entropy_mean reward_mean reward_std policy_grad_norm value_grad_norm advantage_mean advantage_std "
TRACKED += "grad_norm advantage_min advantage_max advantage_median advantage_skewness advantage_kurtosis clip_frac value_loss lr "
TRACKED += "rollout_length_mean loss"
CANONICAL = [name for name in RLDK_METRICS.split() if name != "·"]
ENTRIES = list(CATALOG.values())


def test_the_contract_lists_forty_fields() -> None:
    assert len(CANONICAL) == len(set(CANONICAL)) == 40


def test_every_field_of_the_contract_is_canonical() -> None:
    for name in sorted({*CANONICAL, *TRACKED.split()}):
        assert CATALOG[name].name == name
        place = locate(name)
        assert place is not None and place.metric == name


def test_every_metric_says_what_it_is() -> None:
    for entry in ENTRIES:
        assert len(entry.meaning) > 8 and entry.unit and entry.group, entry
        assert entry.reduction in REDUCTIONS and entry.trouble in TROUBLE, entry
        bare = entry.name.removesuffix("/*")
        assert entry.name == entry.name.lower() and normalise(bare) == bare, entry


def test_aliases_are_normalised_unique_and_no_names_of_others() -> None:
    owner: dict[str, str] = {}
    for entry in ENTRIES:
        for alias in (*entry.aliases, *entry.complements):
            assert alias == normalise(alias), f"{alias} of {entry.name}"
            assert owner.setdefault(alias, entry.name) == entry.name, f"{alias} is of {owner[alias]} and of {entry.name}"
            assert alias not in CATALOG, f"{alias} of {entry.name} is a metric of its own"
            assert not is_axis(alias), f"{alias} of {entry.name} places a row"


def test_every_key_that_means_two_things_has_its_line() -> None:
    meanings: dict[str, set[tuple[str, str, str]]] = {}
    for framework, table in keys_by_framework().items():
        for key, place in table.items() if framework != "rldk" else ():
            for name in (key, f"train/{key}"):
                meanings.setdefault(name, set()).add((place.metric, place.key.transform, place.per))
    ambiguous = {key for key, found in meanings.items() if len(found) > 1}
    assert {"kl", "train/kl", "train/entropy_loss"} <= ambiguous <= set(AMBIGUOUS)


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_every_framework_has_keys(framework: str) -> None:
    table = FRAMEWORKS[framework].keys
    keys = [key for keys in table.values() for key in keys]
    assert list(table) == [name for name in CATALOG if name in table], "not in the order of the metrics"
    assert len(keys) >= (4 if framework == "llama_factory" else 8)
    assert len({key.name for key in keys}) == len(keys), "a key stands in two lines"


def test_wrong_lines_are_refused() -> None:
    with pytest.raises(ValueError, match="Expected `transform`"):
        Key("a", "squared")
    with pytest.raises(ValueError, match="Expected `reduction`"):
        Metric("a", "g", "m", "u", "word")
    with pytest.raises(ValueError, match="Expected `trouble`"):
        Metric("a", "g", "m", "u", "token", "sideways")


# Read by hand from what the frameworks log: framework -> (raw key, canonical name, logged, read).
BY_HAND: dict[str, list[tuple[str, str, float, float]]] = {
    "trl_old": [
        ("objective/kl", "kl_mean", 5.5, 5.5), ("objective/kl_coef", "kl_coef", 0.2, 0.2),
        ("ppo/mean_scores", "reward_mean", 1.5, 1.5),
        ("ppo/std_scores", "reward_std", 0.3, 0.3), ("ppo/policy/entropy", "entropy_mean", 2.5, 2.5),
        ("ppo/policy/approxkl", "kl_update", 0.01, 0.01), ("ppo/policy/clipfrac", "clip_frac", 0.2, 0.2),
        ("ppo/loss/value", "value_loss", 0.7, 0.7), ("ppo/loss/policy", "policy_loss", -0.1, -0.1),
        ("ppo/loss/total", "loss", 0.6, 0.6),
        ("ppo/returns/var", "return_std", 4.0, 2.0), ("ppo/val/var", "value_std", 9.0, 3.0),
        ("ppo/val/var_explained", "explained_variance", 0.4, 0.4), ("ppo/learning_rate", "lr", 1e-5, 1e-5),
        ("tokens/responses_len_mean", "rollout_length_mean", 33.0, 33.0), ("env/reward_mean", "reward_mean", 0.9, 0.9),
        ("ppo/rewards/mean", "reward_mean", 0.5, 0.5), ("ppo/rewards/min", "reward_min", -1.0, -1.0),
        ("ppo/policy/kl_mean", "kl_mean", 0.1, 0.1),
        ("ppo/policy/kl_std", "kl_std", 0.02, 0.02), ("ppo/policy/policy_loss", "policy_loss", 0.3, 0.3),
        ("ppo/val/policy_loss", "value_policy_loss", 0.4, 0.4), ("ppo/policy/grad_norm", "policy_grad_norm", 1.1, 1.1),
        ("ppo/val/grad_norm", "value_grad_norm", 2.2, 2.2), ("ppo/val/value_loss", "value_loss", 0.8, 0.8),
        ("ppo/val/mean", "value_mean", 0.1, 0.1),
        ("ppo/val/std", "value_std", 0.2, 0.2), ("ppo/rollout/length_mean", "rollout_length_mean", 20.0, 20.0),
        ("ppo/rollout/length_std", "rollout_length_std", 5.0, 5.0), ("ppo/advantages/mean", "advantage_mean", 0.0, 0.0),
        ("ppo/advantages/std", "advantage_std", 1.0, 1.0),
    ],
    "trl_ppo": [
        ("objective/kl", "kl_mean", 7.0, 7.0), ("objective/scores", "reward_mean", 2.0, 2.0),
        ("objective/rlhf_reward", "reward_after_kl", 1.5, 1.5),
        ("objective/entropy", "entropy_sequence", 120.0, 120.0), ("policy/entropy_avg", "entropy_mean", 1.1, 1.1),
        ("objective/non_score_reward", "kl_penalty_reward", -0.35, -0.35), ("policy/approxkl_avg", "kl_update", 0.004, 0.004),
        ("policy/clipfrac_avg", "clip_frac", 0.1, 0.1), ("loss/policy_avg", "policy_loss", -0.02, -0.02),
        ("loss/value_avg", "value_loss", 0.3, 0.3),
        ("val/clipfrac_avg", "value_clip_frac", 0.05, 0.05), ("val/ratio", "ratio_mean", 1.01, 1.01),
        ("val/ratio_var", "ratio_std", 0.25, 0.5),
        ("val/num_eos_tokens", "eos_count", 12.0, 12.0), ("lr", "lr", 3e-6, 3e-6), ("episode", "episodes", 64.0, 64.0),
        ("eps", "samples_per_second", 2.0, 2.0),
    ],
    "trl_grpo": [
        ("completion_length", "rollout_length_mean", 200.0, 200.0), ("reward", "reward_mean", 0.4, 0.4),
        ("reward_std", "reward_std", 0.2, 0.2),
        ("kl", "kl_mean", 0.002, 0.002), ("completions/mean_length", "rollout_length_mean", 90.0, 90.0),
        ("completions/clipped_ratio", "truncated_frac", 0.25, 0.25), ("frac_reward_zero_std", "reward_zero_std_frac", 0.5, 0.5),
        ("clip_ratio/region_mean", "clip_frac", 0.01, 0.01), ("clip_ratio/low_mean", "clip_frac_low", 0.0, 0.0),
        ("entropy", "entropy_mean", 0.8, 0.8),
        ("rewards/accuracy/mean", "reward_function_mean/accuracy", 0.3, 0.3),
        ("rewards/accuracy/std", "reward_function_std/accuracy", 0.1, 0.1),
        ("rewards/format_fn", "reward_function_mean/format_fn", 0.6, 0.6), ("grad_norm", "grad_norm", 0.9, 0.9),
        ("learning_rate", "lr", 1e-6, 1e-6),
        ("sampling/sampling_logp_difference/mean", "mismatch_logp_diff", 0.01, 0.01), ("loss", "loss", 0.0, 0.0),
        ("step_time", "step_time", 3.0, 3.0),
    ],
    "trl_dpo": [
        ("rewards/chosen", "chosen_reward_mean", 0.4, 0.4), ("rewards/rejected", "rejected_reward_mean", -0.4, -0.4),
        ("rewards/accuracies", "preference_accuracy", 0.7, 0.7), ("rewards/margins", "preference_margin", 0.8, 0.8),
        ("logps/chosen", "chosen_logp_mean", -90.0, -90.0), ("logps/rejected", "rejected_logp_mean", -99.0, -99.0),
        ("mean_token_accuracy", "token_accuracy", 0.6, 0.6), ("loss", "loss", 0.69, 0.69),
        ("min_reward", "reward_min", -1.0, -1.0),
    ],
    "verl": [
        ("actor/pg_loss", "policy_loss", 0.1, 0.1), ("actor/kl_loss", "kl_mean", 0.003, 0.003),
        ("actor/kl_coef", "kl_coef", 0.001, 0.001),
        ("actor/ppo_kl", "kl_update", 0.0001, 0.0001), ("actor/pg_clipfrac", "clip_frac", 0.02, 0.02),
        ("actor/pg_clipfrac_lower", "clip_frac_dual", 0.0, 0.0), ("actor/entropy", "entropy_mean", 0.5, 0.5),
        ("actor/entropy_loss", "entropy_mean", 0.5, 0.5),
        ("actor/grad_norm", "policy_grad_norm", 1.5, 1.5), ("actor/lr", "policy_lr", 1e-6, 1e-6),
        ("actor/reward_kl_penalty", "kl_mean", 0.02, 0.02),
        ("critic/score/mean", "reward_mean", 0.6, 0.6), ("critic/rewards/mean", "reward_after_kl", 0.5, 0.5),
        ("critic/score/max", "reward_max", 1.0, 1.0),
        ("critic/advantages/mean", "advantage_mean", 0.0, 0.0), ("critic/advantages/max", "advantage_max", 3.0, 3.0),
        ("critic/returns/mean", "return_mean", 0.2, 0.2), ("critic/values/mean", "value_mean", 0.3, 0.3),
        ("critic/vf_loss", "value_loss", 0.1, 0.1),
        ("critic/vf_explained_var", "explained_variance", 0.7, 0.7), ("critic/grad_norm", "value_grad_norm", 9.0, 9.0),
        ("response_length/mean", "rollout_length_mean", 512.0, 512.0), ("response_length/clip_ratio", "truncated_frac", 0.1, 0.1),
        ("training/rollout_probs_diff_mean", "mismatch_prob_diff", 0.01, 0.01), ("rollout_corr/kl", "mismatch_kl", 0.001, 0.001),
        ("perf/throughput", "tokens_per_second", 900.0, 900.0), ("timing_s/step", "step_time", 40.0, 40.0),
        ("perf/mfu/actor", "mfu", 0.35, 0.35),
    ],
    "openrlhf": [
        ("policy_loss", "policy_loss", 0.1, 0.1), ("entropy_loss", "entropy_mean", 0.7, 0.7),
        ("actor_lr", "policy_lr", 5e-7, 5e-7),
        ("actor_grad_norm", "policy_grad_norm", 0.4, 0.4), ("critic_loss", "value_loss", 0.2, 0.2),
        ("values", "value_mean", 0.1, 0.1),
        ("reward", "reward_mean", 0.8, 0.8), ("return", "reward_after_kl", 0.7, 0.7), ("kl", "kl_mean", 0.01, 0.01),
        ("group_reward_std", "reward_group_std", 0.3, 0.3), ("response_length", "rollout_length_mean", 300.0, 300.0),
        ("truncated", "truncated_frac", 0.05, 0.05), ("dynamic_filtering_pass_rate", "reward_zero_std_frac", 0.75, 0.25),
        ("rollout/reward_mean", "reward_mean", 0.8, 0.8), ("ppo_clip_ratio", "clip_frac", 0.1, 0.1),
        ("vllm_kl", "mismatch_kl", 0.02, 0.02),
        ("logprobs_diff", "mismatch_logp_diff", 0.02, 0.02), ("ent_loss", "entropy_mean", 0.7, 0.7),
        ("gen_len", "rollout_length_mean", 300.0, 300.0),
    ],
    "nemo_rl": [
        ("loss", "loss", 0.1, 0.1), ("grad_norm", "grad_norm", 1.0, 1.0), ("reward", "reward_mean", 0.5, 0.5),
        ("kl_penalty", "kl_mean", 0.01, 0.01),
        ("approx_entropy", "entropy_mean", 1.2, 1.2), ("probs_ratio", "ratio_mean", 1.0, 1.0),
        ("probs_ratio_max", "ratio_max", 3.0, 3.0),
        ("token_mult_prob_error", "mismatch_ratio", 1.02, 1.02), ("gen_kl_error", "mismatch_kl", 0.001, 0.001),
        ("advantages/mean", "advantage_mean", 0.0, 0.0),
        ("advantages/min", "advantage_min", -2.0, -2.0), ("truncation_rate", "truncated_frac", 0.1, 0.1),
        ("mean_gen_tokens_per_sample", "rollout_length_mean", 250.0, 250.0), ("critic/loss", "value_loss", 0.3, 0.3),
        ("critic/explained_var", "explained_variance", 0.2, 0.2), ("lr", "lr", 1e-6, 1e-6),
    ],
    "areal": [
        ("ppo_actor/task_reward/avg", "reward_mean", 0.6, 0.6), ("ppo_actor/final_reward/avg", "reward_after_kl", 0.5, 0.5),
        ("ppo_actor/task_reward/min", "reward_min", 0.0, 0.0), ("ppo_actor/advantages/avg", "advantage_mean", 0.0, 0.0),
        ("ppo_actor/advantages/max", "advantage_max", 2.0, 2.0), ("ppo_actor/seq_len/avg", "rollout_length_mean", 800.0, 800.0),
        ("ppo_actor/no_eos_ratios/avg", "truncated_frac", 0.1, 0.1),
        ("ppo_actor/update/actor_loss/avg", "policy_loss", -0.01, -0.01),
        ("ppo_actor/update/entropy/avg", "entropy_mean", 0.4, 0.4), ("ppo_actor/update/approx_kl/avg", "kl_update", 0.001, 0.001),
        ("ppo_actor/update/importance_weight/avg", "ratio_mean", 1.0, 1.0),
        ("ppo_actor/update/clip_ratio/avg", "clip_frac", 0.02, 0.02),
        ("ppo_actor/update/grad_norm", "policy_grad_norm", 0.3, 0.3), ("ppo_actor/update/lr", "policy_lr", 2e-6, 2e-6),
        ("ppo_actor/update/update_successful", "update_applied", 1.0, 1.0),
    ],
    "ms_swift": [
        ("loss", "loss", 0.0, 0.0), ("reward", "reward_mean", 0.9, 0.9), ("reward_std", "reward_std", 0.1, 0.1),
        ("kl", "kl_mean", 0.01, 0.01),
        ("entropy/mean", "entropy_mean", 0.3, 0.3), ("entropy/max", "entropy_max", 2.0, 2.0),
        ("entropy/min", "entropy_min", 0.0, 0.0),
        ("completions/mean_length", "rollout_length_mean", 60.0, 60.0), ("completions/clipped_ratio", "truncated_frac", 0.2, 0.2),
        ("rewards/MathAccuracy/mean", "reward_function_mean/MathAccuracy", 0.2, 0.2), ("num_turns", "turns_mean", 2.0, 2.0),
        ("memory(GiB)", "gpu_memory_gb", 40.0, 40.0), ("learning_rate", "lr", 1e-6, 1e-6), ("grad_norm", "grad_norm", 0.5, 0.5),
    ],
    "llama_factory": [
        ("loss", "loss", 0.7, 0.7), ("reward", "reward_mean", 0.1, 0.1), ("learning_rate", "lr", 1e-5, 1e-5),
        ("epoch", "epoch", 0.5, 0.5),
        ("grad_norm", "grad_norm", 1.0, 1.0), ("lr", "lr", 1e-5, 1e-5),
    ],
    "slime": [
        ("train/loss", "loss", 0.1, 0.1), ("train/pg_loss", "policy_loss", 0.1, 0.1),
        ("train/entropy_loss", "entropy_mean", 0.6, 0.6),
        ("train/pg_clipfrac", "clip_frac", 0.01, 0.01), ("train/ppo_kl", "kl_update", 1e-9, 1e-9),
        ("train/kl_loss", "kl_mean", 0.002, 0.002),
        ("train/value_loss", "value_loss", 0.4, 0.4), ("train/train_rollout_logprob_abs_diff", "mismatch_logp_diff", 0.02, 0.02),
        ("train/grad_norm", "grad_norm", 0.2, 0.2), ("train/lr-pg_0", "lr", 1e-6, 1e-6),
        ("rollout/raw_reward", "reward_mean", 0.5, 0.5),
        ("rollout/advantages", "advantage_mean", 0.0, 0.0),
    ],
    "prime_rl": [
        ("loss/mean", "loss", 0.02, 0.02), ("entropy/all/mean", "entropy_mean", 0.4, 0.4),
        ("mismatch_kl/all/mean", "mismatch_kl", 0.001, 0.001),
        ("optim/lr", "lr", 1e-6, 1e-6), ("optim/grad_norm", "grad_norm", 0.05, 0.05),
        ("perf/throughput", "tokens_per_second", 5000.0, 5000.0),
        ("perf/mfu", "mfu", 35.0, 0.35), ("perf/peak_memory", "gpu_memory_gb", 60.0, 60.0),
        ("is_truncated/mean", "truncated_frac", 0.1, 0.1),
        ("math/all/agent/reward/mean", "reward_mean", 0.7, 0.7), ("loss/nan_count", "nonfinite_count", 0.0, 0.0),
        ("system/ckpt_disk_free_gib", "disk_free_gb", 900.0, 900.0),
    ],
    "cleanrl": [
        ("charts/episodic_return", "reward_mean", 200.0, 200.0), ("charts/episodic_length", "rollout_length_mean", 200.0, 200.0),
        ("charts/learning_rate", "lr", 2.5e-4, 2.5e-4), ("losses/policy_loss", "policy_loss", -0.01, -0.01),
        ("losses/value_loss", "value_loss", 5.0, 5.0),
        ("losses/entropy", "entropy_mean", 0.6, 0.6), ("losses/approx_kl", "kl_update", 0.01, 0.01),
        ("losses/clipfrac", "clip_frac", 0.1, 0.1),
        ("losses/explained_variance", "explained_variance", 0.5, 0.5), ("charts/SPS", "samples_per_second", 1500.0, 1500.0),
    ],
    "sb3": [
        ("train/loss", "loss", 4.0, 4.0), ("train/policy_gradient_loss", "policy_loss", -0.01, -0.01),
        ("train/value_loss", "value_loss", 8.0, 8.0),
        ("train/entropy_loss", "entropy_mean", -0.65, 0.65), ("train/approx_kl", "kl_update", 0.01, 0.01),
        ("train/clip_fraction", "clip_frac", 0.1, 0.1),
        ("train/clip_range", "clip_range", 0.2, 0.2), ("train/explained_variance", "explained_variance", 0.6, 0.6),
        ("train/learning_rate", "lr", 3e-4, 3e-4), ("rollout/ep_rew_mean", "reward_mean", 22.0, 22.0),
        ("rollout/ep_len_mean", "rollout_length_mean", 22.0, 22.0),
        ("rollout/success_rate", "accuracy", 0.5, 0.5), ("time/fps", "samples_per_second", 800.0, 800.0),
    ],
    "minimind": [
        ("actor_loss", "policy_loss", 0.1, 0.1), ("critic_loss", "value_loss", 0.2, 0.2), ("aux_loss", "aux_loss", 0.0, 0.0),
        ("reward", "reward_mean", 1.0, 1.0), ("kl", "kl_update", 0.001, 0.001), ("kl_ref", "kl_mean", 0.05, 0.05),
        ("approx_kl", "kl_update", 0.002, 0.002),
        ("clipfrac", "clip_frac", 0.1, 0.1), ("avg_response_len", "rollout_length_mean", 150.0, 150.0),
        ("actor_lr", "policy_lr", 8e-8, 8e-8),
        ("critic_lr", "value_lr", 8e-8, 8e-8), ("advantages_std", "advantage_std", 1.0, 1.0),
        ("advantages_mean", "advantage_mean", 0.0, 0.0),
        ("policy_loss", "policy_loss", 0.1, 0.1), ("learning_rate", "lr", 1e-7, 1e-7),
        ("group_reward_std", "reward_group_std", 0.2, 0.2),
        ("Reward", "reward_mean", 1.0, 1.0), ("KL_ref", "kl_mean", 0.05, 0.05), ("Approx KL", "kl_update", 0.002, 0.002),
        ("ClipFrac", "clip_frac", 0.1, 0.1), ("Critic Loss", "value_loss", 0.2, 0.2),
        ("Avg Response Len", "rollout_length_mean", 150.0, 150.0),
    ],
    "skyrl": [
        ("reward/avg_raw_reward", "reward_mean", 0.4, 0.4), ("policy/policy_kl", "kl_mean", 0.01, 0.01),
        ("policy/policy_entropy", "entropy_mean", 0.5, 0.5), ("policy/raw_grad_norm", "policy_grad_norm", 0.3, 0.3),
        ("generate/avg_num_tokens", "rollout_length_mean", 300.0, 300.0), ("policy/policy_lr", "policy_lr", 1e-6, 1e-6),
        ("policy/final_loss", "loss", 0.1, 0.1), ("async/num_groups_dropped", "dropped_rollouts", 3.0, 3.0),
    ],
    "roll": [
        ("reward/selected_mean", "reward_mean", 0.4, 0.4), ("length/mean", "rollout_length_mean", 120.0, 120.0),
        ("actor/approxkl", "kl_update", 0.001, 0.001), ("actor/clipfrac", "clip_frac", 0.01, 0.01),
        ("actor_train/grad_norm", "policy_grad_norm", 0.8, 0.8), ("critic/entropy/mean", "entropy_mean", 0.6, 0.6),
        ("critic/kl", "kl_mean", 0.02, 0.02), ("system/tps", "tokens_per_second", 900.0, 900.0),
    ],
    "art": [
        ("train/reward", "reward_mean", 0.4, 0.4), ("loss/train", "loss", 0.2, 0.2), ("loss/entropy", "entropy_mean", 0.7, 0.7),
        ("loss/grad_norm", "grad_norm", 0.5, 0.5), ("loss/learning_rate", "lr", 5e-6, 5e-6),
        ("loss/kl_policy_ref", "kl_mean", 0.01, 0.01), ("train/exception_rate", "aborted_frac", 0.25, 0.25),
        ("train/completion_tokens", "rollout_length_mean", 80.0, 80.0),
    ],
    "torchtune": [
        ("scores", "reward_mean", 0.4, 0.4), ("kl", "kl_mean", 6.0, 6.0), ("response_lengths", "rollout_length_mean", 50.0, 50.0),
        ("approx_policy_kl", "kl_update", 0.002, 0.002), ("ratios", "ratio_mean", 1.01, 1.01), ("loss", "loss", 0.3, 0.3),
        ("num_stop_tokens", "eos_count", 12.0, 12.0),
    ],
    "deepspeed_chat": [
        ("average reward score", "reward_mean", -2.5, -2.5), ("act_loss", "policy_loss", 0.02, 0.02),
        ("cri_loss", "value_loss", 0.2, 0.2), ("Actor Loss", "policy_loss", 0.02, 0.02), ("Critic Loss", "value_loss", 0.2, 0.2),
        ("unsuper_loss", "ptx_loss", 0.0, 0.0), ("Average reward score", "reward_mean", 0.5, 0.5),
    ],
    "baselines": [
        ("eprewmean", "reward_mean", 100.0, 100.0), ("mean 100 episode reward", "reward_mean", 20.0, 20.0),
        ("eplenmean", "rollout_length_mean", 200.0, 200.0), ("loss/policy_entropy", "entropy_mean", 0.6, 0.6),
        ("loss/approxkl", "kl_update", 0.003, 0.003), ("misc/explained_variance", "explained_variance", 0.4, 0.4),
    ],
    "tinker": [
        ("env/all/reward/total", "reward_mean", 0.4, 0.4), ("optim/lr", "lr", 1e-5, 1e-5),
        ("optim/entropy", "entropy_mean", 0.9, 0.9),
        ("optim/kl_sample_train_v1", "mismatch_kl", 0.001, 0.001), ("kl_policy_base", "kl_mean", 0.02, 0.02),
        ("env/all/ac_tokens_per_turn", "rollout_length_mean", 80.0, 80.0), ("time/total", "step_time", 12.0, 12.0),
    ],
    "trainer": [
        ("train/actor_loss", "policy_loss", 0.23, 0.23), ("train/critic_loss", "value_loss", 0.12, 0.12),
        ("train/reward", "reward_mean", 1.2, 1.2),
        ("train/kl", "kl_update", 0.001, 0.001), ("train/kl_ref", "kl_mean", 0.02, 0.02),
        ("train/avg_response_len", "rollout_length_mean", 90.0, 90.0),
        ("train/actor_lr", "policy_lr", 1e-6, 1e-6), ("train/critic_lr", "value_lr", 1e-6, 1e-6),
        ("train/actor_grad_norm", "policy_grad_norm", 0.8, 0.8), ("train/critic_grad_norm", "value_grad_norm", 0.9, 0.9),
        ("train/tokens_per_second", "tokens_per_second", 12345.0, 12345.0),
        ("train/samples_per_second", "samples_per_second", 8.0, 8.0),
        ("train/steps_per_second", "steps_per_second", 1.0, 1.0), ("train/num_tokens_generated", "num_tokens", 1e6, 1e6),
        ("train/mfu_percent", "mfu", 0.35, 0.0035), ("train/eta_minutes", "eta_minutes", 5.0, 5.0),
        ("tokens/s", "tokens_per_second", 12345.0, 12345.0),
        ("MFU", "mfu", 0.35, 0.0035), ("grad_norm_actor", "policy_grad_norm", 0.8, 0.8),
    ],
    "rldk": [
        ("kl", "kl_mean", 0.1, 0.1), ("kl_mean", "kl_mean", 0.1, 0.1), ("grad_norm_policy", "policy_grad_norm", 1.0, 1.0),
        ("grad_norm_value", "value_grad_norm", 2.0, 2.0), ("entropy", "entropy_mean", 0.9, 0.9),
        ("learning_rate", "lr", 1e-3, 1e-3),
        ("total_grad_norm", "grad_norm", 1.5, 1.5), ("advantage_p25", "advantage_p25", -0.5, -0.5),
    ],
}  # fmt: skip
ROWS = [(framework, *row) for framework, rows in BY_HAND.items() for row in rows]


def test_every_framework_is_in_the_table_written_by_hand() -> None:
    assert set(BY_HAND) == set(FRAMEWORKS)
    assert all(len(rows) >= 6 for rows in BY_HAND.values())


@pytest.mark.parametrize("framework", BY_HAND)
def test_keys_of_a_framework_go_where_they_belong(framework: str) -> None:
    for _, key, metric, logged, read in (row for row in ROWS if row[0] == framework):
        result = resolve({key: logged}, framework=framework)
        assert result.metrics == {metric: pytest.approx(read)}, key
        assert result.sources == {metric: key} and result.unmapped == [], key


SHARING_KEYS = {"rldk", "trainer", "llama_factory", "ms_swift", "trl_old", "minimind"}


@pytest.mark.parametrize("framework", sorted(set(FRAMEWORKS) - SHARING_KEYS))
def test_a_framework_is_recognised_by_its_keys(framework: str) -> None:
    assert identify([key for key, *_ in BY_HAND[framework]]) == framework


def test_frameworks_that_share_keys_are_told_by_what_is_their_own() -> None:
    assert identify(["ppo/mean_scores", "ppo/std_scores", "objective/kl", "ppo/policy/entropy"]) == "trl_old"
    assert identify(["loss", "reward", "current_steps", "total_steps", "percentage", "epoch"]) == "llama_factory"
    assert identify(["loss", "reward", "global_step/max_steps", "remaining_time", "memory(GiB)"]) == "ms_swift"
    assert identify(["loss", "learning_rate", "epoch"]) is None
    assert identify([]) is None


def test_square_roots_of_what_has_none_are_nan() -> None:
    assert math.isnan(TRANSFORMS["root"](-1.0))
    assert TRANSFORMS["root"](4.0) == 2.0 and TRANSFORMS["milli"](5.0) == 0.005


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("Avg Response Len", "avg_response_len"),
        ("avgResponseLen", "avg_response_len"),
        ("kl--div/", "kl_div"),
        ("KL_Ref", "kl_ref"),
        ("", ""),
    ],
)
def test_normalise(key: str, said: str) -> None:
    assert normalise(key) == said


def test_axes_are_told_from_metrics() -> None:
    assert all(map(is_axis, (*STEP_KEYS, *TIME_KEYS, "run_id", "model_info/phase", "notes")))
    assert not any(map(is_axis, ("loss", "reward_mean", "epoch")))


@pytest.mark.parametrize(
    ("key", "bare"),
    [("eval_loss", "loss"), ("eval/mean_reward", "mean_reward"), ("train/eval_loss", "loss"), ("validation/accuracy", "accuracy"),
     ("val-core/gsm8k/acc/mean@8", "gsm8k/acc/mean@8"), ("loss", None), ("eval_", None), ("evaluation", None),
     ("train/loss", None)],
)  # fmt: skip
def test_held_out_keys_are_stripped_of_their_prefix(key: str, bare: str | None) -> None:
    assert strip_eval(key) == bare


def test_entry_of_knows_families_and_held_out_data() -> None:
    assert entry_of("loss") is CATALOG["loss"]
    assert entry_of("eval_loss") is CATALOG["loss"]
    assert entry_of("reward_function_mean/accuracy") is CATALOG["reward_function_mean/*"]
    assert entry_of("reward_function_mean/*") is CATALOG["reward_function_mean/*"]
    assert entry_of("nothing") is None and entry_of("loss/x") is None


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("mean_completion_len", "rollout_length_mean"),
        ("train/avg_response_length", "rollout_length_mean"),
        ("zero_std_group_ratio", "reward_zero_std_frac"),
        ("zero_adv_fraction", "reward_zero_std_frac"),
        ("group_reward_std_mean", "reward_group_std"),
        ("train/truncated_completions_ratio", "truncated_frac"),
        ("perf/step_time_s", "step_time"),
        ("train/tokens_per_sec", "tokens_per_second"),
        ("memory/vram_used_gb", "gpu_memory_gb"),
        ("avg_loss", "loss"),
        ("training_tokens", "num_tokens"),
        ("reward/total", "reward_mean"),
        ("validation_accuracy", "eval_accuracy"),
        ("completions / mean_length", "rollout_length_mean"),
        ("rewards / works / mean", "reward_function_mean/works"),
        ("rewards / works / std", "reward_function_std/works"),
        ("train / sampling / sampling_logp_difference / mean", "mismatch_logp_diff"),
        ("eval / reward", "eval_reward_mean"),
        ("rewards_chosen", "chosen_reward_mean"),
        ("train_rewards_rejected", "rejected_reward_mean"),
        ("reward_margins", "preference_margin"),
        ("reward/format", "reward_function_mean/format"),
        ("train/reward/format/mean", "reward_function_mean/format"),
        ("return", "reward_mean"),
    ],
)
def test_names_of_peoples_own_are_placed(key: str, metric: str) -> None:
    assert resolve({key: 0.25}).metrics == {metric: 0.25}


@pytest.mark.parametrize(
    "key", ["reward/p90", "reward/median", "reward/count", "informative_groups", "t_step", "reward_acc", "a / b"]
)
def test_names_that_may_mean_two_things_are_not(key: str) -> None:
    found = resolve({key: 0.25})
    assert found.metrics == {} and found.unmapped == [key]


def test_a_share_that_is_the_other_way_round_is_turned() -> None:
    assert resolve({"effective_signal_fraction": 0.25}).metrics == {"reward_zero_std_frac": 0.75}
    both = resolve({"effective_signal_fraction": 0.25, "zero_std_group_ratio": 0.7})
    assert both.metrics == {"reward_zero_std_frac": 0.7} and both.sources == {"reward_zero_std_frac": "zero_std_group_ratio"}


def test_beside_margins_an_accuracy_of_rewards_is_that_of_pairs() -> None:
    found = resolve({"reward_acc": 0.75, "margin": 0.1, "loss": 0.5})
    assert found.metrics["preference_accuracy"] == 0.75


def test_keys_with_blanks_around_the_slash_give_the_framework_away() -> None:
    keys = ["completions / mean_length", "completions / clipped_ratio", "rewards / a / mean", "rewards / a / std"]
    assert identify(keys) == identify([key.replace(" / ", "/") for key in keys])
    assert identify(keys) is not None


def test_the_share_of_pairs_in_the_right_order_is_known_by_its_company() -> None:
    """OpenRLHF logs `acc` in training on preferences; by itself it is the share of right answers."""
    pairs = resolve({"acc": 0.7, "chosen_reward": 0.4, "reject_reward": 0.1}).metrics
    assert pairs == {"preference_accuracy": 0.7, "chosen_reward_mean": 0.4, "rejected_reward_mean": 0.1}
    assert resolve({"acc": 0.7, "reward": 0.4}).metrics == {"accuracy": 0.7, "reward_mean": 0.4}
