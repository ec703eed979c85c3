"""What each framework calls the settings that advice names, by the names of `knobs.KNOBS`."""

from __future__ import annotations

__all__ = ["FRAMEWORK_KNOBS", "KNOBS_BY_KEY"]

_TRL = {
    "learning_rate": "learning_rate", "kl_coef": "beta", "num_iterations": "num_iterations", "clip_range": "epsilon",
    "max_grad_norm": "max_grad_norm", "temperature": "temperature", "max_response_length": "max_completion_length",
    "batch_size": "per_device_train_batch_size",
}  # fmt: skip
"""The settings that GRPO, RLOO and ms-swift share."""


def _prefixed(prefix: str, names: dict[str, str]) -> dict[str, str]:
    return {knob: f"{prefix}{name}" for knob, name in names.items()}


FRAMEWORK_KNOBS: dict[str, dict[str, str]] = {
    "trl_ppo": _prefixed("PPOConfig.", {
        "learning_rate": "learning_rate", "value_learning_rate": "learning_rate", "kl_coef": "kl_coef",
        "num_iterations": "num_ppo_epochs", "clip_range": "cliprange", "temperature": "temperature",
        "max_response_length": "response_length", "batch_size": "per_device_train_batch_size",
    }),
    "trl_old": _prefixed("PPOConfig.", {
        "learning_rate": "learning_rate", "value_learning_rate": "learning_rate", "kl_coef": "init_kl_coef",
        "num_iterations": "ppo_epochs", "clip_range": "cliprange", "max_grad_norm": "max_grad_norm", "batch_size": "batch_size",
    }),
    "trl_grpo": _prefixed("GRPOConfig.", _TRL),
    "trl_rloo": _prefixed("RLOOConfig.", _TRL),
    "trl_dpo": _prefixed("DPOConfig.", {
        "learning_rate": "learning_rate", "kl_coef": "beta", "max_grad_norm": "max_grad_norm",
        "batch_size": "per_device_train_batch_size",
    }),
    "ms_swift": _prefixed("--", _TRL),
    "llama_factory": {
        "learning_rate": "learning_rate", "num_iterations": "ppo_epochs", "max_grad_norm": "max_grad_norm",
        "kl_coef": "pref_beta", "temperature": "temperature", "max_response_length": "max_new_tokens",
        "batch_size": "per_device_train_batch_size",
    },
    "trainer": {
        "learning_rate": "--learning_rate", "value_learning_rate": "--critic_learning_rate", "kl_coef": "--kl_coef",
        "num_iterations": "--ppo_epochs", "clip_range": "--clip_range", "max_grad_norm": "--grad_clip",
        "temperature": "--temperature", "max_response_length": "--max_new_tokens", "batch_size": "--batch_size",
    },
    "minimind": {
        "learning_rate": "--learning_rate", "value_learning_rate": "--critic_learning_rate", "kl_coef": "--kl_coef",
        "clip_range": "--clip_epsilon", "max_grad_norm": "--grad_clip", "max_response_length": "--max_gen_len",
        "batch_size": "--batch_size",
    },
    "verl": {
        "learning_rate": "actor_rollout_ref.actor.optim.lr", "value_learning_rate": "critic.optim.lr",
        "kl_coef": "actor_rollout_ref.actor.kl_loss_coef", "num_iterations": "actor_rollout_ref.actor.ppo_epochs",
        "clip_range": "actor_rollout_ref.actor.clip_ratio", "max_grad_norm": "actor_rollout_ref.actor.grad_clip",
        "temperature": "actor_rollout_ref.rollout.temperature", "max_response_length": "data.max_response_length",
        "batch_size": "data.train_batch_size",
    },
    "openrlhf": {
        "learning_rate": "--actor.adam.lr", "value_learning_rate": "--critic.adam.lr", "kl_coef": "--algo.kl.init_coef",
        "num_iterations": "--train.max_epochs", "clip_range": "--actor.eps_clip", "max_grad_norm": "--actor.max_norm",
        "temperature": "--rollout.temperature", "max_response_length": "--rollout.max_new_tokens",
        "batch_size": "--train.batch_size",
    },
    "skyrl": {
        "learning_rate": "trainer.policy.optimizer_config.lr", "value_learning_rate": "trainer.critic.optimizer_config.lr",
        "kl_coef": "trainer.algorithm.kl_loss_coef", "num_iterations": "trainer.update_epochs_per_batch",
        "clip_range": "trainer.algorithm.eps_clip_low", "max_grad_norm": "trainer.policy.optimizer_config.max_grad_norm",
        "temperature": "generator.sampling_params.temperature",
        "max_response_length": "generator.sampling_params.max_generate_length", "batch_size": "trainer.train_batch_size",
    },
    "prime_rl": {
        "learning_rate": "trainer.optim.lr", "kl_coef": "trainer.loss.kl_tau", "max_grad_norm": "trainer.optim.max_norm",
        "temperature": "orchestrator.sampling.temperature", "max_response_length": "orchestrator.sampling.max_tokens",
        "batch_size": "orchestrator.batch_size",
    },
    "nemo_rl": {
        "learning_rate": "policy.optimizer.kwargs.lr", "value_learning_rate": "value.optimizer.kwargs.lr",
        "kl_coef": "loss_fn.reference_policy_kl_penalty", "clip_range": "loss_fn.ratio_clip_min",
        "max_grad_norm": "policy.max_grad_norm", "temperature": "policy.generation.temperature",
        "max_response_length": "policy.generation.max_new_tokens", "batch_size": "grpo.num_prompts_per_step",
    },
    "areal": {
        "learning_rate": "actor.optimizer.lr", "value_learning_rate": "critic.optimizer.lr", "kl_coef": "actor.kl_ctl",
        "num_iterations": "actor.ppo_n_minibatches", "clip_range": "actor.eps_clip",
        "max_grad_norm": "actor.optimizer.gradient_clipping", "temperature": "gconfig.temperature",
        "max_response_length": "gconfig.max_new_tokens", "batch_size": "train_dataset.batch_size",
    },
    "slime": {
        "learning_rate": "--lr", "value_learning_rate": "--critic-lr", "kl_coef": "--kl-loss-coef",
        "num_iterations": "--num-steps-per-rollout", "clip_range": "--eps-clip", "max_grad_norm": "--clip-grad",
        "temperature": "--rollout-temperature", "max_response_length": "--rollout-max-response-len",
        "batch_size": "--rollout-batch-size",
    },
    "torchtune": {
        "learning_rate": "optimizer.lr", "kl_coef": "kl_coeff", "num_iterations": "ppo_epochs", "clip_range": "loss.epsilon",
        "max_grad_norm": "clip_grad_norm", "temperature": "temperature", "max_response_length": "max_generated_tokens",
        "batch_size": "batch_size",
    },
    "tinker": _prefixed("Config.", {
        "learning_rate": "learning_rate", "kl_coef": "kl_penalty_coef", "num_iterations": "num_substeps",
        "temperature": "temperature", "max_response_length": "max_tokens", "batch_size": "groups_per_batch",
    }),
    "roll": {
        "learning_rate": "actor_train.training_args.learning_rate",
        "value_learning_rate": "critic.training_args.learning_rate", "kl_coef": "init_kl_coef", "num_iterations": "ppo_epochs",
        "clip_range": "pg_clip", "max_grad_norm": "max_grad_norm", "temperature": "actor_infer.generating_args.temperature",
        "max_response_length": "response_length", "batch_size": "rollout_batch_size",
    },
    "art": {
        "learning_rate": "TrainConfig.learning_rate", "kl_coef": "TrainConfig.kl_penalty_coef", "clip_range": "epsilon",
        "max_response_length": "max_completion_tokens", "batch_size": "groups_per_step",
    },
    "deepspeed_chat": {
        "learning_rate": "--actor_learning_rate", "value_learning_rate": "--critic_learning_rate",
        "num_iterations": "--ppo_epochs", "max_response_length": "--max_answer_seq_len",
        "batch_size": "--per_device_training_batch_size",
    },
    "sb3": _prefixed("PPO.", {
        "learning_rate": "learning_rate", "value_learning_rate": "learning_rate", "num_iterations": "n_epochs",
        "clip_range": "clip_range", "max_grad_norm": "max_grad_norm", "batch_size": "n_steps",
    }),
    "cleanrl": {
        "learning_rate": "--learning-rate", "value_learning_rate": "--learning-rate", "num_iterations": "--update-epochs",
        "clip_range": "--clip-coef", "max_grad_norm": "--max-grad-norm", "batch_size": "--num-steps",
    },
    "baselines": {
        "learning_rate": "--lr", "num_iterations": "--noptepochs", "clip_range": "--cliprange",
        "max_grad_norm": "--max_grad_norm", "batch_size": "--nsteps",
    },
}  # fmt: skip
"""The name of each setting in each framework, as its command line, configuration file or class has it."""

KNOBS_BY_KEY: dict[str, dict[str, str]] = {"actor/reward_kl_penalty": {"kl_coef": "algorithm.kl_ctrl.kl_coef"}}
"""What a setting is called where a metric of the log comes from this key: verl penalises the KL in the loss or in the reward, and
has a coefficient for each."""
