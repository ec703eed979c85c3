"""The run's side of the table: trainer against sampler, throughput, resources, and what describes the run itself."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, Metric, metric

__all__ = ["RUN"]

MISMATCH: tuple[Metric, ...] = (
    metric(
        "mismatch_kl", "mismatch", "KL between the policy that sampled and the one that trains, on the same tokens", "nats", "token", "high", aliases="vllm_kl rollout_kl",
        verl=("rollout_corr/kl", "mismatch/mismatch_kl"), openrlhf="vllm_kl", nemo_rl="gen_kl_error", prime_rl=("mismatch_kl/all/mean", "mismatch_kl/mean"),
        tinker=("optim/kl_sample_train_v2", "optim/kl_sample_train_v1"), areal="ppo_actor/update/behave_approx_kl",
    ),
    metric(
        "mismatch_logp_diff", "mismatch", "mean absolute difference of log-probabilities between trainer and sampler", "nats", "token", "high",
        trl_grpo="sampling/sampling_logp_difference/mean", openrlhf="logprobs_diff", slime="train_rollout_logprob_abs_diff", ms_swift="sampling/sampling_logp_difference/mean",
    ),
    metric("mismatch_prob_diff", "mismatch", "mean absolute difference of probabilities between trainer and sampler", "fraction", "token", "high", verl="training/rollout_probs_diff_mean"),
    metric("mismatch_prob_corr", "mismatch", "correlation of probabilities between trainer and sampler", "1", "token", "low", verl="training/rollout_actor_probs_pearson_corr"),
    metric("mismatch_ratio", "mismatch", "mean factor between the probabilities of trainer and sampler; 1 where they agree", "1", "token", "high", nemo_rl="token_mult_prob_error"),
    metric("sampling_ratio_mean", "mismatch", "mean importance weight of trainer over sampler", "1", "token", "both", trl_grpo="sampling/importance_sampling_ratio/mean",
           nemo_rl="sampling_importance_ratio", verl="rollout_corr/rollout_is_mean", areal="ppo_actor/update/behave_imp_weight"),
    metric("mismatch_masked_frac", "mismatch", "share of tokens masked for disagreeing with the sampler", "fraction", "token", "high", aliases="is_masked", prime_rl=("is_masked/mean", "is_masked/all/mean"),
           nemo_rl="is_oob_ratio", areal="rs_filtered_fraction"),
)

THROUGHPUT: tuple[Metric, ...] = (
    metric("tokens_per_second", "throughput", "tokens processed in a second", "tokens/s", "run", "low", aliases="tokens_s tps throughput tokens_per_sec tokens_sec tok_s tok_per_sec", trainer=("tokens_per_second", "tokens/s"),
           verl="perf/throughput", prime_rl="perf/throughput"),
    metric("samples_per_second", "throughput", "samples processed in a second", "1/s", "run", "low", aliases="samples_s", trainer="samples_per_second", trl_ppo="eps", cleanrl="charts/SPS",
           sb3="time/fps"),
    metric("steps_per_second", "throughput", "optimizer steps in a second", "1/s", "run", "low", aliases="steps_s", trainer="steps_per_second", ms_swift="train_speed(iter/s)"),
    metric("step_time", "throughput", "seconds a step took", "s", "run", "high", aliases="time_per_step seconds_per_step step_seconds step_time_s step_time_sec perf_step_time_s sec_per_step", trl_grpo="step_time", verl=("timing_s/step", "perf/time_per_step"),
           openrlhf="timing/step_total", prime_rl="time/step", tinker="time/total", trl_old="time/ppo/total", slime="perf/step_time"),
    metric("generation_time", "throughput", "seconds spent generating", "s", "run", "high", trainer="generation_time", verl="timing_s/gen", openrlhf="timing/generation", prime_rl="time/generate_completions"),
    metric("update_time", "throughput", "seconds spent updating", "s", "run", "high", trainer="update_time", verl="timing_s/update_actor", openrlhf="timing/ppo_train",
           prime_rl="time/forward_backward", tinker="time/train", trl_old="time/ppo/optimize_step"),
    metric("mfu", "throughput", "model FLOPs utilisation: the share of the hardware's peak that was used", "fraction", "run", "low", trainer=(Key("mfu_percent", "percent"), Key("MFU", "percent")),
           verl=("perf/mfu/actor", "mfu/actor"), prime_rl=Key("perf/mfu", "percent")),
    metric("num_tokens", "throughput", "tokens seen so far", "tokens", "run", aliases="total_tokens training_tokens", trainer="num_tokens_generated", trl_grpo="num_tokens", trl_dpo="num_tokens", ms_swift="num_tokens",
           prime_rl="progress/total_tokens"),
    metric("step_tokens", "throughput", "tokens of this step", "tokens", "batch", verl="perf/total_num_tokens", nemo_rl="global_valid_toks", prime_rl="progress/tokens"),
    metric("scoring_time", "throughput", "seconds spent on score, reference and value", "s", "run", trainer="scoring_time"),
    metric("epoch_time", "throughput", "minutes that the present epoch has taken", "min", "run", trainer=("epoch_time", "system/epoch_time")),
    metric("eta_minutes", "throughput", "minutes left", "min", "run", trainer="eta_minutes"),
)

RESOURCES: tuple[Metric, ...] = (
    metric("gpu_memory_gb", "resources", "memory allocated on the accelerator", "GiB", "run", "high", aliases="memory_gb gpu_memory_used_gb memory_gib gpu_mem gpu_mem_gb vram_used_gb vram_gb memory_vram_used_gb peak_mem_gb peak_memory_gb actor_peak_mem_gb", verl="perf/max_memory_allocated_gb",
           prime_rl="perf/peak_memory", ms_swift=("memory(GiB)", "memory/max_memory_allocated (GiB)")),
    metric("gpu_memory_reserved_gb", "resources", "memory the allocator holds on the accelerator", "GiB", "run", "high", verl="perf/max_memory_reserved_gb"),
    metric("memory_usage", "resources", "share of the accelerator's memory in use (of the machine's where there is no accelerator)", "fraction", "run", "high", aliases="gpu_memory_frac memory_frac"),
    metric("gpu_utilization", "resources", "share of time the accelerator was busy", "fraction", "run", "low", aliases="gpu_util"),
    metric("cpu_percent", "resources", "processor use of the process, 100 for a whole core", "%", "run", aliases="cpu_utilization cpu_usage"),
    metric("cpu_memory_gb", "resources", "main memory in use", "GiB", "run", "high", aliases="rss_gb ram_gb", verl="perf/cpu_memory_used_gb"),
    metric("disk_free_gb", "resources", "space left for checkpoints", "GiB", "run", "low", prime_rl="system/ckpt_disk_free_gib"),
)

SETTINGS: tuple[Metric, ...] = (
    metric("global_step", "settings", "optimizer step as the trainer counts it", "count", "run"),
    metric("epoch", "settings", "passes over the data, fractions included", "1", "run", aliases="training_epoch epochs", verl="training/epoch"),
    metric("episodes", "settings", "episodes sampled so far", "count", "run", aliases="episode", trl_ppo="episode"),
    metric("batch_size", "settings", "responses in a batch", "count", "run", aliases="global_batch_size", slime="global_batch_size"),
    metric("model_type", "settings", "the policy's architecture, as its configuration names it", "text", "run"),
    metric("vocab_size", "settings", "rows of the model's embedding", "count", "run"),
    metric("tokenizer_vocab_size", "settings", "words the tokenizer knows", "count", "run"),
    metric("dataset_size", "settings", "records of the training set", "count", "run"),
    metric("rollout_buffer_size", "settings", "places in the rollout buffer", "count", "run"),
    metric("rollout_buffer_pos", "settings", "places taken in the rollout buffer", "count", "run"),
    metric("policy_total_params", "settings", "parameters of the policy", "count", "run"),
    metric("policy_trainable_params", "settings", "parameters of the policy that are trained", "count", "run"),
    metric("value_total_params", "settings", "parameters of the value function", "count", "run"),
    metric("value_trainable_params", "settings", "parameters of the value function that are trained", "count", "run"),
    metric("alert_count", "settings", "alerts that came before this event, where nothing else was logged with it", "count", "run"),
    metric("temperature", "settings", "sampling temperature", "1", "run", "both"),
    metric("max_response_length", "settings", "longest response that is generated", "tokens", "run", "low"),
    metric("num_generations", "settings", "responses to each prompt: the size of a group", "count", "run", "low"),
    metric("num_iterations", "settings", "passes over each batch of responses", "count", "run", "high"),
    metric("distinct_prompts", "settings", "different prompts seen so far (counted up to 65536)", "count", "run", "low"),
    metric("distinct_prompts_frac", "settings", "share of different prompts among up to 1024 evenly spaced records of the data set", "fraction", "run", "low"),
    metric("dropout_active", "settings", "1 where the policy drops activations at random while it is trained and judged, 0 where not", "fraction", "run", "high"),
    metric("reference_is_policy", "settings", "1 where the reference shares the weights that are trained, 0 where it has its own", "fraction", "run", "high"),
)

RUN: tuple[Metric, ...] = (*MISMATCH, *THROUGHPUT, *RESOURCES, *SETTINGS)
