"""The outcome's side of the table: rewards, advantages, values, lengths, preferences, held-out quality."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, Metric, metric

__all__ = ["OUTCOME"]

REWARD: tuple[Metric, ...] = (
    metric(
        "reward_mean", "reward", "mean score of the responses before any KL penalty", "reward", "sequence", "low",
        aliases="reward mean_reward rewards_mean avg_reward score mean_score scores_mean rewards reward_avg episodic_return ep_rew_mean reward_scalar task_reward raw_reward proxy_reward proxy_score proxy reward_total avg_return average_return rewards_avg avg_r_total average_reward avg_episode_reward mean_episode_reward episode_reward_mean avg_ep_reward reward_trace reward_history reward_curve",
        trainer="reward",
        trl_ppo="objective/scores", trl_grpo="reward", trl_old=("ppo/rewards/mean", "ppo/mean_scores", "env/reward_mean"),
        verl="critic/score/mean", openrlhf=("reward", "rollout/reward_mean"), nemo_rl="reward", areal="ppo_actor/task_reward",
        ms_swift="reward", slime="rollout/raw_reward", prime_rl=("reward/mean", "*/all/*/reward/mean"), tinker="env/all/reward/total",
        minimind=("reward", "Reward"), llama_factory="reward", cleanrl="charts/episodic_return", sb3="rollout/ep_rew_mean",
    ),
    metric(
        "reward_after_kl", "reward", "mean reward after the KL penalty was taken off", "reward", "sequence", "low",
        aliases="rlhf_reward final_reward",
        trl_ppo="objective/rlhf_reward", verl="critic/rewards/mean", openrlhf="return", areal="ppo_actor/final_reward",
    ),
    metric(
        "reward_std", "reward", "spread of the score over the batch; TRL GRPO up to 0.24 logs the mean spread within groups under this key", "reward", "batch", "low",
        aliases="std_reward rewards_std score_std reward_stddev",
        trainer="reward_std",
        trl_grpo="reward_std", trl_old=("ppo/rewards/std", "ppo/std_scores", "env/reward_std"), openrlhf=("rollout/reward_std", "reward_std"), ms_swift="reward_std",
        prime_rl=("reward/std", "*/all/*/reward/std"),
    ),
    metric(
        "reward_group_std", "reward", "mean spread of the score within the groups of one prompt", "reward", "batch", "low",
        aliases="group_reward_std group_reward_std_mean mean_group_reward_std", openrlhf="group_reward_std", minimind="group_reward_std",
    ),
    metric("reward_missing_frac", "reward", "share of the responses without a reward: `None`, or not a number", "fraction", "batch", "high"),
    metric(
        "reward_min", "reward", "lowest score in the batch", "reward", "batch",
        aliases="min_reward rewards_min score_min", trainer="reward_min",
        trl_dpo="min_reward", trl_old="ppo/rewards/min", verl="critic/score/min", areal="ppo_actor/task_reward/min", prime_rl=("reward/min", "*/all/*/reward/min"),
    ),
    metric(
        "reward_max", "reward", "highest score in the batch", "reward", "batch",
        aliases="max_reward rewards_max score_max", trainer="reward_max",
        trl_dpo="max_reward", trl_old="ppo/rewards/max", verl="critic/score/max", areal="ppo_actor/task_reward/max", prime_rl=("reward/max", "*/all/*/reward/max"),
    ),
    metric(
        "reward_zero_std_frac", "reward", "share of groups in which all responses scored the same, so that nothing can be learnt from them", "fraction", "batch", "high",
        aliases="zero_std_frac frac_zero_std zero_std_ratio zero_std_group_ratio zero_std_group_frac zero_variance_frac zero_adv_fraction zero_adv_frac zero_advantage_frac",
        complements="effective_signal_fraction informative_group_frac informative_groups_frac frac_informative_groups",
        trl_grpo="frac_reward_zero_std", ms_swift="frac_reward_zero_std", openrlhf=Key("dynamic_filtering_pass_rate", "complement"),
        nemo_rl=Key("baseline_reward/pct_0 + baseline_reward/pct_1", "percent"),
        prime_rl=(Key("batch/solve_none + batch/solve_all"), Key("solved_none + solved_all")),
        tinker=Key("env/all/by_group/frac_all_good + env/all/by_group/frac_all_bad"),
    ),
    metric(
        "reward_function_mean/*", "reward", "mean of one of the reward functions that make up the reward", "reward", "sequence", "low",
        trl_grpo=("rewards/*/mean", "rewards/*"), ms_swift=("rewards/*/mean", "rewards/*"), prime_rl="metrics/*",
    ),
    metric("reward_function_std/*", "reward", "spread of one of the reward functions", "reward", "batch", "low", trl_grpo="rewards/*/std", ms_swift="rewards/*/std"),
    metric("rollout_mean_reward", "reward", "mean reward of the rollout buffer", "reward", "sequence", "low"),
    metric("rollout_std_reward", "reward", "spread of the rewards in the rollout buffer", "reward", "batch", "low"),
    metric("accuracy", "reward", "share of right answers", "fraction", "sequence", "low", aliases="acc correct solve_rate success_rate pass_rate", trl_dpo="accuracy", sb3="rollout/success_rate"),
    metric("tool_failure_rate", "reward", "share of tool calls that failed", "fraction", "batch", "high", trl_grpo="tools/failure_frequency", nemo_rl="invalid_tool_call_rate"),
)

ADVANTAGE: tuple[Metric, ...] = (
    metric(
        "advantage_mean", "advantage", "mean advantage; 0 by construction where advantages are whitened", "reward", "token", "both",
        aliases="adv_mean adv_avg advantages_mean mean_advantage advantage advantages", trainer="advantage_mean",
        trl_old=("ppo/advantages/mean", "ppo/policy/advantages_mean"), verl="critic/advantages/mean", nemo_rl="advantages/mean",
        areal="ppo_actor/advantages", minimind="advantages_mean", slime="rollout/advantages",
    ),
    metric(
        "advantage_std", "advantage", "spread of the advantages; 1 by construction where they are whitened", "reward", "token", "both",
        aliases="adv_std advantages_std std_advantage", trainer="advantage_std",
        trl_old="ppo/advantages/std", minimind="advantages_std",
    ),
    metric("advantage_min", "advantage", "lowest advantage", "reward", "token", "low", aliases="adv_min advantages_min", trainer="advantage_min",
           verl="critic/advantages/min", nemo_rl="advantages/min", areal="ppo_actor/advantages/min"),
    metric("advantage_max", "advantage", "highest advantage", "reward", "token", "high", aliases="adv_max advantages_max", trainer="advantage_max",
           verl="critic/advantages/max", nemo_rl="advantages/max", areal="ppo_actor/advantages/max"),
    metric("advantage_median", "advantage", "median advantage", "reward", "token", "both", aliases="adv_median advantage_p50", trainer="advantage_median"),
    *(
        metric(f"advantage_p{q}", "advantage", f"{q}th percentile of the advantages", "reward", "token", aliases=f"adv_p{q}", trainer=f"advantage_p{q}")
        for q in (5, 25, 75, 95)
    ),
    metric("advantage_skewness", "advantage", "skewness of the advantages", "1", "token", "both", aliases="adv_skew adv_skewness advantage_skew", trainer="advantage_skewness"),
    metric("advantage_kurtosis", "advantage", "excess kurtosis of the advantages", "1", "token", "high", aliases="adv_kurtosis", trainer="advantage_kurtosis"),
    metric("advantage_normalized", "advantage", "1 where advantages are whitened before use, 0 where not", "fraction", "run", aliases="whiten_advantages"),
    metric("advantage_raw", "advantage", "1 where these statistics are of the advantages before whitening, though they are whitened for use", "fraction", "run"),
)

VALUE: tuple[Metric, ...] = (
    metric(
        "value_loss", "value", "loss of the value function", "reward²", "token", "high",
        aliases="critic_loss vf_loss loss_value mean_critic_loss", trainer="critic_loss",
        trl_ppo="loss/value_avg", trl_old=("ppo/val/value_loss", "ppo/loss/value"), verl="critic/vf_loss", openrlhf="critic_loss", nemo_rl="critic/loss",
        slime="value_loss", minimind="critic_loss", cleanrl="losses/value_loss", sb3="train/value_loss",
    ),
    metric(
        "value_mean", "value", "mean of the predicted values", "reward", "token", "both", aliases="values values_mean mean_value vpred_mean", trainer="value_mean",
        trl_old=("ppo/val/mean", "ppo/val/vpred"), verl=("critic/values/mean", "critic/vpred_mean"), openrlhf="values", nemo_rl="critic/values_mean",
    ),
    metric("value_std", "value", "spread of the predicted values", "reward", "token", "both", aliases="values_std", trainer="value_std", trl_old=("ppo/val/std", Key("ppo/val/var", "root"))),
    metric("value_min", "value", "lowest predicted value", "reward", "token", "low", aliases="values_min", verl="critic/values/min", nemo_rl="critic/values_min"),
    metric("value_max", "value", "highest predicted value", "reward", "token", "high", aliases="values_max", verl="critic/values/max", nemo_rl="critic/values_max"),
    metric("value_error", "value", "mean squared error of the predicted values", "reward²", "token", "high", trl_old="ppo/val/error"),
    metric(
        "value_clip_frac", "value", "share of value predictions that were clipped", "fraction", "token", "high", aliases="vf_clipfrac value_clipfrac vf_clip_frac",
        trl_ppo="val/clipfrac_avg", trl_old="ppo/val/clipfrac", verl="critic/vf_clipfrac", nemo_rl="critic/vf_clipfrac", slime="value_clipfrac",
    ),
    metric("clip_range_value", "value", "the value function's clip range", "1", "run", aliases="cliprange_value clip_range_vf", sb3="train/clip_range_vf"),
    metric(
        "explained_variance", "value", "share of the returns' variance that the values explain; below 0 is worse than a constant", "fraction", "token", "low",
        aliases="explained_var var_explained vf_explained_var", trainer="explained_variance",
        trl_old="ppo/val/var_explained", verl="critic/vf_explained_var", nemo_rl="critic/explained_var", cleanrl="losses/explained_variance", sb3="train/explained_variance",
    ),
    metric("return_mean", "value", "mean return", "reward", "token", "both", aliases="returns_mean returns mean_return", trainer="return_mean",
           trl_old="ppo/returns/mean", verl="critic/returns/mean", nemo_rl="critic/returns_mean"),
    metric("return_std", "value", "spread of the returns", "reward", "token", "both", aliases="returns_std", trainer="return_std", trl_old=Key("ppo/returns/var", "root")),
    metric("return_min", "value", "lowest return", "reward", "token", "low", aliases="returns_min", verl="critic/returns/min"),
    metric("return_max", "value", "highest return", "reward", "token", "high", aliases="returns_max", verl="critic/returns/max"),
)

LENGTH: tuple[Metric, ...] = (
    metric(
        "rollout_length_mean", "length", "mean length of the responses", "tokens", "sequence", "both",
        aliases="response_length response_length_mean length completion_length mean_length avg_response_len avg_len mean_response_length completion_tokens gen_len response_len episodic_length ep_len_mean output_length mean_completion_len mean_completion_length avg_completion_length completion_len completion_length_mean avg_response_length mean_response_len mean_completion_tokens avg_completion_tokens mean_response_tokens",
        trainer="avg_response_len",
        trl_grpo=("completions/mean_length", "completion_length"), trl_old=("ppo/rollout/length_mean", "tokens/responses_len_mean"), verl="response_length/mean",
        openrlhf=("response_length", "rollout/response_length_mean"), nemo_rl="mean_gen_tokens_per_sample", areal="ppo_actor/seq_len", ms_swift=("completions/mean_length", "completion_length"),
        slime="rollout/response_length", prime_rl="completion_len/mean", tinker="env/all/ac_tokens_per_turn", minimind=("avg_response_len", "Avg Response Len", "Avg Len"),
        cleanrl="charts/episodic_length", sb3="rollout/ep_len_mean",
    ),
    metric("rollout_length_std", "length", "spread of the response lengths", "tokens", "batch", "both", aliases="response_length_std length_std", trainer="response_len_std",
           trl_old=("ppo/rollout/length_std", "tokens/responses_len_std")),
    metric("rollout_length_min", "length", "shortest response", "tokens", "batch", "low", aliases="response_length_min min_length", trl_grpo="completions/min_length",
           verl="response_length/min", areal="ppo_actor/seq_len/min", ms_swift="completions/min_length", prime_rl="completion_len/min"),
    metric("rollout_length_max", "length", "longest response", "tokens", "batch", "high", aliases="response_length_max max_length", trl_grpo="completions/max_length",
           verl="response_length/max", areal="ppo_actor/seq_len/max", ms_swift="completions/max_length", prime_rl="completion_len/max"),
    metric("terminated_length_mean", "length", "mean length of the responses that ended by themselves", "tokens", "sequence", "both", trl_grpo="completions/mean_terminated_length",
           ms_swift="completions/mean_terminated_length"),
    metric("terminated_length_min", "length", "shortest response that ended by itself", "tokens", "batch", trl_grpo="completions/min_terminated_length",
           ms_swift="completions/min_terminated_length"),
    metric("terminated_length_max", "length", "longest response that ended by itself", "tokens", "batch", trl_grpo="completions/max_terminated_length",
           ms_swift="completions/max_terminated_length"),
    metric(
        "truncated_frac", "length", "share of responses cut off at the length limit", "fraction", "sequence", "high",
        aliases="truncated truncation_rate truncated_rate trunc_frac clipped_ratio no_eos_ratio truncated_ratio truncation_ratio truncated_completions_ratio truncation_frac", trainer="truncated_frac",
        trl_grpo="completions/clipped_ratio", verl="response_length/clip_ratio", openrlhf=("truncated", "rollout/truncated_rate"), nemo_rl="truncation_rate",
        areal="ppo_actor/no_eos_ratios", ms_swift="completions/clipped_ratio", prime_rl="is_truncated/mean", slime="rollout/truncated",
    ),
    metric("eos_frac", "length", "share of responses that ended with the end token", "fraction", "sequence", "low", aliases="eos_rate contain_eos", trainer="eos_frac",
           nemo_rl="natural_termination_rate"),
    metric("eos_count", "length", "how many end tokens the batch holds", "count", "batch", "low", aliases="num_eos_tokens", trl_ppo="val/num_eos_tokens"),
    metric("prompt_length_mean", "length", "mean length of the prompts", "tokens", "sequence", aliases="prompt_length", trl_old="tokens/queries_len_mean", verl="prompt_length/mean",
           areal="ppo_actor/prompt_len", prime_rl="prompt_len/mean", tinker="env/all/ob_tokens_per_turn"),
    metric("total_length_mean", "length", "mean length of prompt and response together", "tokens", "sequence", aliases="total_length tot_len", openrlhf="total_length",
           nemo_rl="mean_total_tokens_per_sample", prime_rl="seq_len/mean"),
    metric("turns_mean", "length", "mean number of turns of an episode", "count", "sequence", aliases="num_turns", verl="num_turns/mean", nemo_rl="avg_turns_per_sample", ms_swift="num_turns",
           tinker="env/all/turns_per_episode"),
    metric("length_reward_corr", "length", "rank correlation of response length with reward", "1", "batch", "both", aliases="length_reward_correlation"),
)

PREFERENCE: tuple[Metric, ...] = (
    metric("preference_margin", "preference", "implicit reward of chosen minus rejected", "reward", "sequence", "both", aliases="margins margin reward_margin", trl_dpo=("rewards/margins", "margin"), trainer="margin"),
    metric("preference_accuracy", "preference", "share of pairs whose chosen answer scores higher", "fraction", "sequence", "low", aliases="accuracies", trl_dpo="rewards/accuracies", trainer="preference_accuracy"),
    metric("chosen_reward_mean", "preference", "implicit reward of the chosen answers", "reward", "sequence", "both", aliases="chosen_reward", trl_dpo="rewards/chosen", trainer="chosen_reward"),
    metric("rejected_reward_mean", "preference", "implicit reward of the rejected answers", "reward", "sequence", "both", aliases="rejected_reward", trl_dpo="rewards/rejected", trainer="rejected_reward"),
    metric("chosen_logp_mean", "preference", "log-probability of the chosen answers", "nats", "sequence", "low", trl_dpo="logps/chosen"),
    metric("rejected_logp_mean", "preference", "log-probability of the rejected answers", "nats", "sequence", trl_dpo="logps/rejected"),
    metric("token_accuracy", "preference", "share of tokens predicted right", "fraction", "token", "low", aliases="token_acc mean_token_accuracy", trl_dpo="mean_token_accuracy", ms_swift="token_acc"),
)

QUALITY: tuple[Metric, ...] = (
    metric("perplexity", "quality", "perplexity of the responses", "1", "token", "high", aliases="ppl"),
    metric("distinct_2", "quality", "share of distinct pairs of words: the responses' diversity", "fraction", "batch", "low", aliases="distinct2 distinct_n"),
    metric("aborted_frac", "quality", "share of responses that were aborted", "fraction", "batch", "high", verl="response/aborted_ratio", prime_rl="has_error/mean"),
)

OUTCOME: tuple[Metric, ...] = (*REWARD, *ADVANTAGE, *VALUE, *LENGTH, *PREFERENCE, *QUALITY)
