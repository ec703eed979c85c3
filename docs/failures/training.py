"""Failures of the run itself."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "nonfinite_metric", "A curve ends in NaN",
        "A loss, a gradient norm or another metric is NaN or infinite, and mostly stays so.",
        ("losses", "gradients"),
        {
            "vanished_metric": "The metric is missing, not NaN. Some loggers drop values that are not finite.",
            "loss_explosion": "The loss is huge but finite; NaN often follows.",
        },
    ),
    Failure(
        "vanished_metric", "A curve just stops",
        "A metric that was logged row after row is missing from some row on, while the others go on.",
        ("gradients", "reward"),
        {
            "nonfinite_metric": "The metric is still there, as NaN.",
            "missing_reward": "The reward is still logged, with a growing share of responses that have none.",
        },
    ),
    Failure(
        "loss_explosion", "The loss leaves its scale",
        "The loss jumps by orders of magnitude, again and again or to stay.",
        ("losses", "gradients"),
        {
            "exploding_gradient_anomaly": "The gradient norm grows, and the loss stays in its range.",
            "value_divergence": "It is the value loss alone.",
            "nonfinite_metric": "What often follows: NaN.",
        },
        ("loss_near_zero",),
    ),
    Failure(
        "learning_rate_too_high", "Everything breaks in the first rows",
        "Each update moves the policy far: KL up, entropy and reward down within a few dozen updates, and then all is calm.",
        ("lr", "kl"),
        {
            "kl_explosion": "The KL runs away although single updates are small.",
            "policy_collapse": "The run learns for a while before it falls.",
            "ratio_explosion": "The learning rate is in its range, and the ratio is not.",
        },
        onset=1,
    ),
    Failure(
        "learning_rate_too_low", "The learning rate is zero",
        "The rate is 0 from the first row on, or decays to nothing long before the end, and the reward stays where it is.",
        ("lr", "reward"),
        {
            "policy_frozen": "The rate is in its range, and the weights still do not change.",
            "plateau": "The policy moves, but not towards the reward.",
        },
        recorded="ours-model--s2--lr_zero",
    ),
    Failure(
        "policy_frozen", "The weights do not change",
        "Gradients are there, and the relative change of the weights is exactly 0: frozen layers, an adapter that is not "
        "attached, or updates that the precision of the weights cannot hold.",
        ("weight_change", "gradients"),
        {
            "vanishing_gradient_anomaly": "The gradient itself has gone.",
            "learning_rate_too_low": "The learning rate is zero.",
            "reference_wrong": "Only the KL is zero, and the reward rises: the policy is compared with itself.",
        },
        ("no_update_kl", "gradient_norm_zero"),
    ),
    Failure(
        "weights_replaced", "The policy falls back within one row",
        "KL and reward return towards their start from one row to the next: old weights were loaded.",
        ("kl", "reward"),
        {
            "policy_collapse": "The fall takes many rows, and the KL stays high or grows.",
            "reward_changed": "The reward jumps, and the KL goes on as before.",
        },
    ),
    Failure(
        "too_few_prompts", "The same few prompts over and over",
        "The number of different prompts seen so far stays at a handful. The reward rises, since they are learnt by heart.",
        ("distinct_prompts",),
        {
            "response_collapse": "There are many prompts, and all get the same response.",
            "held_out_collapse": "What follows on other prompts.",
        },
    ),
    Failure(
        "settings_unsound", "A setting cannot work",
        "Nothing looks wrong, and little is learnt. A discount far below 1, a warm-up that is longer than the run, or an epsilon "
        "of Adam above the gradients: the settings say it at the first step.",
        ("reward",),
        {
            "learning_rate_too_low": "The learning rate itself is too small.",
            "plateau": "The settings are fine, and the reward does not rise.",
        },
    ),
    Failure(
        "batch_too_small", "Each update learns from two or three responses",
        "The batch holds fewer than four responses, so an advantage is mostly chance, and the reward jumps from row to row.",
        ("batch_size", "reward"),
        {
            "advantage_volatility_anomaly": "The batch is large enough, and its mean advantage still jumps.",
            "plateau": "The reward goes nowhere with a batch of the usual size.",
        },
        ("noisy_reward",),
    ),
    Failure(
        "broken_episodes", "Episodes end with an error",
        "The share of aborted or unreadable episodes rises to nearly all: a tool, a sandbox or the format broke.",
        ("aborted_frac",),
        {
            "tools_abandoned": "Episodes end well, but without tool calls.",
            "eos_starvation": "Episodes end because they reach the length limit.",
            "missing_reward": "Episodes end well and get no reward.",
        },
    ),
    Failure(
        "throughput_drop", "Steps take several times as long",
        "Tokens per second fall below half of the run's own best, and the responses are not longer.",
        ("throughput", "step_time"),
        {
            "length_runaway": "Steps take longer because responses are longer.",
            "memory_pressure": "Memory fills up first.",
        },
    ),
    Failure(
        "memory_pressure", "Memory fills up",
        "Memory grows until almost all of it is in use; the next long batch ends the run.",
        ("memory", "memory_share"),
        {
            "throughput_drop": "Steps are slower, and memory is not full.",
            "length_runaway": "Memory grows because responses do.",
        },
        steps=500,
    ),
)  # fmt: skip
