"""The policy's side of the table: KL, entropy, what it writes, ratios and clipping, losses, gradients, learning rates."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, Metric, metric

__all__ = ["POLICY"]

KL: tuple[Metric, ...] = (
    metric(
        "kl_mean", "kl", "KL divergence of the policy from the reference model", "nats", "token", "high",
        estimator="k1 (may be slightly negative) or k3 (never negative)",
        aliases="kl kl_ref ref_kl kl_div kl_divergence kl_loss kl_penalty mean_kl avg_kl kl_avg avg_kl_divergence objective_kl objective_kl_div kl_to_ref kl_reference",
        trainer="kl_ref",
        trl_ppo=Key("objective/kl", per="sequence", estimator="k1 or k3"),
        trl_grpo=Key("kl", estimator="k3"),
        trl_old=(Key("ppo/policy/kl_mean", per="unstated"), Key("objective/kl", per="sequence", estimator="k1")),
        verl=(Key("actor/kl_loss", estimator="k3 unless set"), Key("actor/reward_kl_penalty", estimator="k1 unless set")),
        openrlhf="kl",
        nemo_rl=Key("kl_penalty", estimator="k3"),
        ms_swift=Key("kl", estimator="k3"),
        slime=Key("kl_loss", estimator="k3 unless set"),
        tinker="kl_policy_base",
        minimind=("kl_ref", "KL_ref", "KL_Ref"),
        rldk=(Key("kl_mean", per="unstated"), Key("kl", per="unstated")),
    ),
    metric("kl_mean_per_token", "kl", "KL from the reference by token, where the run also logs it by sequence as kl_mean", "nats", "token", "high"),
    metric("kl_mean_per_sequence", "kl", "KL from the reference by sequence, where the run also logs it by token as kl_mean", "nats", "sequence", "high"),
    metric(
        "kl_std", "kl", "spread of the KL from the reference over the batch", "nats", "batch", "high",
        aliases="kl_stddev", trl_old="ppo/policy/kl_std",
    ),
    metric("kl_max", "kl", "largest KL from the reference in the batch", "nats", "batch", "high"),
    metric(
        "kl_update", "kl", "KL of the old policy from the new one within an update: how far one step went", "nats", "token", "high",
        estimator="k1, k2 or k3", aliases="approx_kl approxkl ppo_kl policy_kl update_kl kl_old_new old_approx_kl",
        trainer=("approx_kl", "kl"),
        trl_ppo=Key("policy/approxkl_avg", estimator="k2"),
        trl_old=(Key("ppo/policy/approxkl", estimator="k2"), Key("ppo/policy/policykl", estimator="k1")),
        verl=Key("actor/ppo_kl", estimator="k1"),
        openrlhf="ppo_kl",
        areal="ppo_actor/update/approx_kl",
        slime="ppo_kl",
        minimind=("approx_kl", "kl", "Approx KL", "KL"),
        cleanrl=(Key("losses/approx_kl", estimator="k3, last minibatch only"), Key("losses/old_approx_kl", estimator="k1")),
        sb3=Key("train/approx_kl", estimator="k3"),
    ),
    metric(
        "kl_coef", "kl", "coefficient of the KL penalty", "1", "run", "both",
        aliases="kl_coeff kl_coefficient kl_beta beta kl_ctl init_kl_coef kl_loss_coef",
        trainer="kl_coef", trl_old="objective/kl_coef", verl=("actor/kl_coef", "actor/reward_kl_penalty_coeff"),
    ),
    metric("target_kl", "kl", "the KL that the controller, or the early stop, aims at", "nats", "run", aliases="kl_target"),
    metric(
        "kl_penalty_reward", "kl", "the KL penalty's part of the reward, minus coefficient times KL", "reward", "sequence", "low",
        aliases="non_score_reward kl_reward kl_rewards",
        trl_ppo="objective/non_score_reward", trl_old=Key("ppo/mean_non_score_reward", per="token"),
        areal="ppo_actor/kl_rewards",
    ),
)

ENTROPY: tuple[Metric, ...] = (
    metric(
        "entropy_mean", "policy", "mean entropy of the policy over the tokens it wrote", "nats", "token", "both",
        aliases="entropy mean_entropy policy_entropy avg_entropy entropy_avg token_entropy approx_entropy",
        trainer="entropy",
        trl_ppo="policy/entropy_avg",
        trl_grpo=("entropy", "entropy/mean"),
        trl_dpo="entropy",
        trl_old="ppo/policy/entropy",
        verl=("actor/entropy", "actor/entropy_loss"),
        openrlhf=("entropy_loss", "ent_loss"),
        nemo_rl=Key("approx_entropy", estimator="sampled"),
        areal="ppo_actor/update/entropy",
        ms_swift=("entropy/mean", "entropy"),
        slime=("entropy_loss", "rollout/entropy"),
        prime_rl=("entropy/all/mean", "entropy/mean"),
        tinker="optim/entropy",
        cleanrl="losses/entropy",
        sb3=Key("train/entropy_loss", "negate"),
        rldk=("entropy_mean", "entropy"),
    ),
    metric("entropy_min", "policy", "lowest entropy in the batch", "nats", "batch", ms_swift="entropy/min", prime_rl=("entropy/all/min", "entropy/min")),
    metric("entropy_max", "policy", "highest entropy in the batch", "nats", "batch", ms_swift="entropy/max", prime_rl=("entropy/all/max", "entropy/max")),
    metric("entropy_std", "policy", "spread of the entropy over the batch", "nats", "batch", prime_rl=("entropy/all/std", "entropy/std")),
    metric(
        "entropy_sequence", "policy",
        "sum of -log p over a response; TRL up to 1.9 counts each padded token as -1, so it may be negative: not a measure of entropy by token",
        "nats", "sequence", trl_ppo="objective/entropy", trl_old="objective/entropy",
    ),
    metric("entropy_coef", "policy", "coefficient of the entropy bonus", "1", "run", aliases="ent_coef", trl_grpo="entropy_coef"),
)

TEXT: tuple[Metric, ...] = (
    metric(
        "distinct_responses_frac", "quality",
        "share of different responses among at most 64 of the rollout; 1 where all differ, 1/n where the policy writes one text",
        "fraction", "batch", "low",
    ),
    metric(
        "repetition_frac", "quality",
        "share of repeated pairs of tokens within a response, mean over the responses; near 0 in text, near 1 in `!!!!`",
        "fraction", "sequence", "high", aliases="repetition_rate repetition",
    ),
)

RATIO: tuple[Metric, ...] = (
    metric(
        "clip_frac", "policy", "share of tokens whose ratio was clipped", "fraction", "token", "high",
        aliases="clip_fraction clipfrac clip_ratio pg_clipfrac ppo_clip_ratio clipped_fraction",
        trainer="clip_frac",
        trl_ppo="policy/clipfrac_avg", trl_grpo=("clip_ratio/region_mean", "clip_ratio"), trl_old="ppo/policy/clipfrac",
        verl="actor/pg_clipfrac", openrlhf="ppo_clip_ratio", areal="ppo_actor/update/clip_ratio",
        ms_swift=("clip_ratio/region_mean", "clip_ratio"), slime="pg_clipfrac", minimind="clipfrac",
        cleanrl="losses/clipfrac", sb3="train/clip_fraction",
    ),
    metric("clip_frac_low", "policy", "share of tokens clipped at the lower bound", "fraction", "token", "high", trl_grpo="clip_ratio/low_mean", ms_swift="clip_ratio/low_mean"),
    metric("clip_frac_high", "policy", "share of tokens clipped at the upper bound", "fraction", "token", "high", trl_grpo="clip_ratio/high_mean", ms_swift="clip_ratio/high_mean"),
    metric("clip_frac_low_min", "policy", "smallest share of tokens clipped at the lower bound, over the processes", "fraction", "token", trl_grpo="clip_ratio/low_min", ms_swift="clip_ratio/low_min"),
    metric("clip_frac_high_max", "policy", "largest share of tokens clipped at the upper bound, over the processes", "fraction", "token", trl_grpo="clip_ratio/high_max", ms_swift="clip_ratio/high_max"),
    metric("chosen_logits_mean", "policy", "mean logit of the preferred answers", "1", "token", trl_dpo="logits/chosen"),
    metric("rejected_logits_mean", "policy", "mean logit of the answers that were not preferred", "1", "token", trl_dpo="logits/rejected"),
    metric("updates", "policy", "optimizer steps made from the rollouts of this step", "count", "batch", trainer="updates"),
    metric("kl_early_stop", "policy", "1 where the updates of the step ended early, since the policy was too far from the old one", "fraction", "batch", trainer="kl_early_stop"),
    metric(
        "clip_frac_dual", "policy", "share of tokens caught by the second clip of dual-clip PPO", "fraction", "token", "high",
        verl="actor/pg_clipfrac_lower", areal="ppo_actor/update/dual_clip_ratio",
    ),
    metric("clip_range", "policy", "the ratio's clip range", "1", "run", aliases="cliprange clip_eps", sb3="train/clip_range"),
    metric(
        "ratio_mean", "policy", "mean ratio of new to old probability; 1 where nothing moved", "1", "token", "both",
        aliases="ratio mean_ratio policy_ratio ratio_avg probs_ratio importance_weight",
        trainer="ratio_mean", trl_ppo="val/ratio", nemo_rl="probs_ratio", areal="ppo_actor/update/importance_weight",
        slime="ois",
    ),
    metric("ratio_std", "policy", "spread of the ratio of new to old probability", "1", "token", "high", trainer="ratio_std", trl_ppo=Key("val/ratio_var", "root")),
    metric("ratio_min", "policy", "smallest ratio of new to old probability", "1", "token", "low", aliases="min_ratio", trainer="ratio_min", nemo_rl="probs_ratio_min"),
    metric("ratio_max", "policy", "largest ratio of new to old probability", "1", "token", "high", aliases="max_ratio", trainer="ratio_max", nemo_rl="probs_ratio_max"),
)

LOSS: tuple[Metric, ...] = (
    metric(
        "loss", "loss", "total training loss; Hugging Face's filter may hide a non-finite one behind the running mean", "1", "batch", "high",
        aliases="total_loss mean_total_loss loss_total training_loss avg_loss",
        trl_grpo="loss", trl_dpo="loss", trl_old="ppo/loss/total", nemo_rl="loss", ms_swift="loss", slime="loss",
        prime_rl="loss/mean", llama_factory="loss", sb3="train/loss", rldk=("loss", "total_loss"),
    ),
    metric(
        "policy_loss", "loss", "the policy's loss", "1", "batch", "both",
        aliases="actor_loss pg_loss policy_gradient_loss loss_policy act_loss mean_actor_loss",
        trainer="actor_loss",
        trl_ppo="loss/policy_avg", trl_grpo="policy_loss", trl_old=("ppo/policy/policy_loss", "ppo/loss/policy"),
        verl="actor/pg_loss", openrlhf="policy_loss", areal="ppo_actor/update/actor_loss", slime="pg_loss",
        minimind=("actor_loss", "policy_loss"), cleanrl="losses/policy_loss", sb3="train/policy_gradient_loss",
    ),
    metric(
        "value_policy_loss", "loss", "the policy loss that the value side of old-style logs reports: another number than policy_loss", "1", "batch",
        trl_old="ppo/val/policy_loss",
    ),
    metric("aux_loss", "loss", "load-balancing loss of a mixture of experts", "1", "batch", "high", trl_grpo="aux_loss", trl_dpo="aux_loss", minimind="aux_loss"),
    metric("dpo_loss", "loss", "preference loss without its auxiliary terms", "1", "batch", "high", minimind="dpo_loss"),
    metric("ptx_loss", "loss", "language-modelling loss mixed into PPO", "1", "batch", "high", openrlhf="ptx_loss"),
)

OPTIMISATION: tuple[Metric, ...] = (
    metric(
        "grad_norm", "gradient", "norm of all gradients before clipping", "1", "batch", "both",
        aliases="gradient_norm total_grad_norm global_grad_norm grad_l2 total_norm gnorm",
        trl_grpo="grad_norm", trl_dpo="grad_norm", nemo_rl="grad_norm", ms_swift="grad_norm", slime="grad_norm",
        prime_rl="optim/grad_norm", llama_factory="grad_norm", rldk=("grad_norm", "total_grad_norm"),
    ),
    metric(
        "policy_grad_norm", "gradient", "norm of the policy's gradients before clipping", "1", "batch", "both",
        aliases="grad_norm_policy actor_grad_norm grad_norm_actor",
        trainer=("actor_grad_norm", "grad_norm_actor"), trl_old="ppo/policy/grad_norm", verl="actor/grad_norm",
        openrlhf="actor_grad_norm", areal="ppo_actor/update/grad_norm", rldk=("policy_grad_norm", "grad_norm_policy"),
    ),
    metric(
        "value_grad_norm", "gradient", "norm of the value function's gradients before clipping", "1", "batch", "both",
        aliases="grad_norm_value critic_grad_norm grad_norm_critic",
        trainer="critic_grad_norm", trl_old="ppo/val/grad_norm", verl="critic/grad_norm", openrlhf="critic_grad_norm",
        nemo_rl="critic/grad_norm", slime="critic-train/grad_norm", rldk=("value_grad_norm", "grad_norm_value"),
    ),
    metric(
        "update_applied", "gradient", "1 where the optimizer step was applied, 0 where it was skipped for a non-finite gradient", "fraction", "batch", "low",
        aliases="update_successful", areal="ppo_actor/update/update_successful",
    ),
    metric(
        "weight_change", "gradient", "relative change of a sample of the policy's weights in an update; exactly 0 where nothing moved", "1", "batch", "both",
        trainer="actor_weight_change",
    ),
    metric(
        "weight_change_value", "gradient", "relative change of a sample of the value function's weights in an update; exactly 0 where nothing moved", "1", "batch", "both",
        trainer="critic_weight_change",
    ),
    metric("nonfinite_count", "gradient", "how many values were not finite", "count", "batch", "high", aliases="nan_count", prime_rl="loss/nan_count"),
    metric(
        "lr", "optimisation", "learning rate", "1", "run", "high",
        aliases="learning_rate",
        trl_ppo="lr", trl_grpo="learning_rate", trl_dpo="learning_rate", trl_old="ppo/learning_rate", nemo_rl="lr", ms_swift="learning_rate",
        slime="lr-pg_0", prime_rl="optim/lr", tinker="optim/lr", minimind="learning_rate", llama_factory=("learning_rate", "lr"),
        cleanrl="charts/learning_rate", sb3="train/learning_rate", rldk=("lr", "learning_rate"),
    ),
    metric(
        "policy_lr", "optimisation", "learning rate of the policy", "1", "run", "high", aliases="actor_lr act_lr",
        trainer="actor_lr", verl="actor/lr", openrlhf="actor_lr", areal="ppo_actor/update/lr", minimind="actor_lr",
    ),
    metric(
        "value_lr", "optimisation", "learning rate of the value function", "1", "run", "high", aliases="critic_lr",
        trainer="critic_lr", verl="critic/lr", openrlhf="critic_lr", nemo_rl="critic/lr", minimind="critic_lr",
    ),
    metric("weight_decay", "optimisation", "weight decay", "1", "run", nemo_rl="wd"),
)

POLICY: tuple[Metric, ...] = (*KL, *ENTROPY, *TEXT, *RATIO, *LOSS, *OPTIMISATION)
