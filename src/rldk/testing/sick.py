"""A sick stream for every detector of the table: a simulated fault if there is one, else columns made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.testing.streams import FAULTS, faulty

__all__ = ["sick"]

FAULT = {
    "target_range_anomaly": "controller_stuck",
    "controller_overshoot_anomaly": "controller_oscillation", "controller_oscillation_anomaly": "controller_oscillation",
    "coef_adaptation_anomaly": "controller_stuck", "eos_starvation": "length_runaway",
    "exploding_gradient_anomaly": "exploding_gradients", "vanishing_gradient_anomaly": "vanishing_gradients",
    "gradient_imbalance_anomaly": "gradient_imbalance", "advantage_bias_anomaly": "advantage_bias",
}  # fmt: skip
"""The simulated fault on which a detector raises, if their names differ."""

ROWS = 300
AT = np.arange(ROWS)
LATE = AT >= 100


def around(level: float, sigma: float, seed: int = 0) -> Any:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


COLUMNS: dict[str, dict[str, Any]] = {
    "reward_changed": {
        "reward_mean": np.where(LATE, -1.0, 1.0) + np.log(around(1.0, 0.05)),
        "kl_mean": around(0.05, 0.03, 1),
        "entropy_mean": around(1.0, 0.03, 2),
    },
    "plateau": {
        "reward_mean": np.log(around(1.5, 0.1)),
        "kl_mean": around(0.5, 0.1, 1),
        "rollout_length_mean": around(50.0, 0.05, 2),
    },
    "kl_penalty_too_strong": {
        "reward_mean": np.log(around(1.5, 0.1)),
        "kl_coef": np.full(ROWS, 20.0),
        "kl_mean": around(0.01, 0.1),
    },
    "reference_wrong": {
        "kl_mean": np.zeros(ROWS),
        "reward_mean": 0.01 * AT + np.log(around(1.0, 0.05)),
        "kl_coef": np.full(ROWS, 0.1),
    },
    "temperature_wrong": {"temperature": np.full(ROWS, 0.05)},
    "sampling_restricted": {"top_p": np.full(ROWS, 0.1), "repetition_penalty": np.full(ROWS, 1.0)},
    "learning_rate_too_low": {"lr": np.zeros(ROWS), "reward_mean": np.log(around(1.0, 0.05))},
    "policy_frozen": {"weight_change": np.zeros(ROWS), "grad_norm": around(1.0, 0.2)},
    "weights_replaced": {
        "kl_mean": np.where(LATE, 0.02, 0.4) * around(1.0, 0.05),
        "reward_mean": np.where(LATE, 0.1, AT / 100.0) + np.log(around(1.0, 0.02)),
        "weight_change": around(1e-4, 0.1, 2) * np.where(AT == 100, 500.0, 1.0),
    },
    "batch_too_small": {"batch_size": np.full(ROWS, 2.0), "reward_mean": around(0.5, 0.1)},
    "settings_unsound": {"reward_mean": around(0.5, 0.1)},
    "batch_overused": {"num_iterations": np.full(ROWS, 20.0), "kl_update": around(0.4, 0.1)},
    "value_frozen": {"weight_change_value": np.zeros(ROWS), "reward_mean": around(0.5, 0.1)},
    "throttled_update": {"sampling_ratio_mean": around(0.4, 0.05), "mismatch_logp_diff": around(0.01, 0.1)},
    "importance_weights_degenerate": {"mismatch_ess": np.where(LATE, 0.1, 0.9) * around(1.0, 0.05)},
    "sampler_mismatch": {"mismatch_kl": around(0.3, 0.1)},
    "expert_imbalance": {"expert_violation_max": np.where(LATE, 4.0, 0.5) * around(1.0, 0.05)},
    "tools_abandoned": {"tool_calls_mean": np.where(LATE, 0.05, 2.0) * around(1.0, 0.05)},
    "uninformative_groups": {"groups_all_bad_frac": np.minimum(around(0.95, 0.01), 1.0)},
    "broken_episodes": {"aborted_frac": np.minimum(np.where(LATE, 0.95, 0.05) * around(1.0, 0.02), 1.0)},
    "stale_rollouts": {"staleness_mean": np.where(LATE, 6.0, 1.0) * around(1.0, 0.05)},
    "vanished_metric": {"reward_mean": around(0.5, 0.1), "grad_norm": np.where(LATE, None, around(1.0, 0.1))},
    "too_few_prompts": {"distinct_prompts": np.full(ROWS, 2.0)},
    "preference_unlearnt": {
        "chosen_logp_mean": np.where(LATE, -90.0, -30.0) + around(1.0, 0.3),
        "preference_accuracy": around(0.5, 0.05),
    },
    "kl_trend_anomaly": {"kl_mean": around(0.02, 0.05) * np.exp(np.maximum(AT - 100, 0) * 0.03)},
    "missing_reward": {"reward_missing_frac": np.where(LATE, 0.8, 0.0)},
    "sparse_reward": {"reward_mean": np.where(AT % 9 == 0, 0.125, 0.0)},
    "held_out_collapse": {"eval_accuracy": np.where(LATE, 0.1, 0.6) + around(0.01, 0.5)},
    "kl_penalty_off": {
        "kl_mean": around(0.02, 0.05) + np.maximum(AT - 100, 0) * 0.01,
        "kl_coef": np.where(LATE, -0.2, 0.1),
        "reward_mean": around(0.5, 0.1),
    },
    "response_collapse": {"distinct_responses_frac": np.where(LATE, 1 / 16, 0.95)},
    "kl_volatility_anomaly": {"kl_mean": around(0.05, 0.05) * np.where(LATE & (AT % 2 == 0), 30.0, 1.0)},
    "controller_responsiveness_anomaly": {
        "kl_mean": np.where(LATE, 30.0, 6.0) + around(0.1, 0.5),
        "kl_coef": np.full(ROWS, 0.2) + 1e-6 * AT,
        "target_kl": np.full(ROWS, 6.0),
    },
    "gradient_flow_anomaly": {"grad_norm": around(6.0, 0.1) * np.where(LATE, 7.5, 1.0)},
    "gradient_balance_anomaly": {
        "policy_grad_norm": around(1.0, 0.3),
        "value_grad_norm": around(1.0, 0.3, 1) * np.where(LATE, 25.0, 1.0),
    },
    "gradient_stability_anomaly": {"grad_norm": around(1.0, 0.1) * np.where(LATE, around(1.0, 3.0, 1), 1.0)},
    "ratio_trend_anomaly": {
        "policy_grad_norm": around(1.0, 0.1),
        "value_grad_norm": around(1.0, 0.1, 1) * np.exp(np.clip(AT - 100, 0, 150) * 0.025),
    },
    "advantage_scale_anomaly": {"advantage_std": around(1.5, 0.1) * np.where(LATE, 100.0, 1.0)},
    "advantage_distribution_anomaly": {
        "advantage_min": np.where(LATE, 5.0, -4.0) + around(0.4, 0.1),
        "advantage_max": np.where(LATE, 13.0, 4.0) + around(0.4, 0.1, 1),
    },
    "advantage_normalization_anomaly": {
        "advantage_mean": np.where(LATE, 2.0, 0.0),
        "advantage_std": np.where(LATE, 5.0, 1.0),
        "advantage_normalized": np.ones(ROWS),
    },
    "advantage_trend_anomaly": {
        "advantage_mean": 0.3 * np.log(around(1.0, 0.2)) + np.clip(AT - 100, 0, 150) * 0.02,
        "advantage_std": around(1.5, 0.1, 1),
    },
    "advantage_volatility_anomaly": {
        "advantage_mean": np.log(around(1.0, 0.1)) + np.where(LATE, 2.0 * (-1.0) ** AT, 0.0),
        "advantage_std": around(1.5, 0.1, 1),
    },
    "advantage_skewness_anomaly": {"advantage_skewness": 2.0 + around(0.5, 0.3) + np.where(LATE, 40.0, 0.0)},
    "advantage_kurtosis_anomaly": {"advantage_kurtosis": 8.0 + around(1.0, 0.3) + np.where(LATE, 900.0, 0.0)},
}

SETTINGS = {"settings_unsound": {"gamma": 0.5, "response_length": 100}}
"""The settings of the run, if the detector judges them."""


def sick(kind: type[Detector]) -> list[Event]:
    """A stream on which a detector raises."""
    if kind.type in COLUMNS:
        columns = {name: values.tolist() for name, values in COLUMNS[kind.type].items()}
        info = {"reductions": {"kl_mean": "token"}, **({"config": SETTINGS[kind.type]} if kind.type in SETTINGS else {})}
        rows = ({name: column[row] for name, column in columns.items() if column[row] is not None} for row in range(ROWS))
        return [Event(step, row, model_info=info) for step, row in enumerate(rows)]
    name = FAULT.get(kind.type, kind.type)
    return faulty(name, seed=1, steps=700, onset=min(FAULTS[name].onset, 200))
