"""Failures of the policy and its updates."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "entropy_collapse", "The entropy falls to almost zero",
        "The policy writes nearly the same text for each prompt and explores nothing any more.",
        ("entropy", "reward"),
        {
            "response_collapse": "Responses are the same although the entropy per token may still look fine.",
            "temperature_wrong": "The entropy has been low since the first row: the sampling temperature is too low.",
        },
        ("entropy_falls", "negative_entropy"),
    ),
    Failure(
        "entropy_explosion", "The entropy shoots up",
        "The policy drifts towards random tokens. Responses grow until the length limit, and the reward falls.",
        ("entropy", "length"),
        {
            "temperature_wrong": "The entropy has been high since the first row.",
            "eos_starvation": "Responses stop ending while the entropy stays in its range.",
        },
    ),
    Failure(
        "response_collapse", "Every prompt gets the same response",
        "The share of different responses falls to a few percent, or a response repeats itself. The entropy need not show it.",
        ("distinct_responses_frac",),
        {
            "entropy_collapse": "The entropy per token is near zero as well.",
            "too_few_prompts": "The responses are the same because the prompts are.",
            "length_collapse": "Responses are alike because they are only a few tokens long.",
        },
        ("entropy_falls",),
    ),
    Failure(
        "temperature_wrong", "Responses are sampled far too hot or too cold",
        "The temperature is far below or above what recipes use: near 0 all responses to a prompt are the same, far above 1 they "
        "are noise.",
        ("temperature", "reward"),
        {
            "entropy_collapse": "The temperature is fine, and the entropy falls during the run.",
            "entropy_explosion": "The temperature is fine, and the entropy rises during the run.",
        },
        recorded="ours-model--s2--temperature_high",
    ),
    Failure(
        "clip_saturation", "A third of the tokens is clipped",
        "The clip fraction rises and stays high: the updates want to move further than the clip range allows.",
        ("clip", "kl_update"),
        {
            "ratio_explosion": "The mean ratio itself leaves its range: clipping no longer holds the update back.",
            "stale_rollouts": "Responses are several updates old before they are used.",
        },
        ("no_update_kl",),
    ),
    Failure(
        "batch_overused", "Each batch is used for too many passes",
        "Each batch is trained on ten times or more, and an update moves the policy many times further than is usual.",
        ("kl_update",),
        {
            "learning_rate_too_high": "There are few passes per batch, and the updates are just as large.",
            "clip_saturation": "Many tokens are clipped, whatever the number of passes.",
        },
        ("no_update_kl",),
    ),
    Failure(
        "sampling_restricted", "The sampler leaves out what the policy would write",
        "The settings of the sampler (`top_p`, `top_k`, a repetition penalty) restrict it from the first update on.",
        ("top_p",),
        {
            "temperature_wrong": "All tokens can be sampled, but at a temperature far from 1.",
            "response_collapse": "The sampler is free, and the policy itself writes one text.",
        },
    ),
    Failure(
        "ratio_explosion", "The probability ratio leaves 1",
        "The mean ratio of new to old probability is far from 1, or its spread has grown many times over.",
        ("ratio", "kl_update"),
        {
            "clip_saturation": "Many tokens are clipped, but the mean ratio is still near 1.",
            "importance_weights_degenerate": "The weights between sampler and trainer are uneven, not those of the update.",
            "learning_rate_too_high": "The learning rate itself is out of range or has jumped.",
        },
        ("no_update_kl",),
    ),
    Failure(
        "tools_abandoned", "The policy stops using its tools",
        "The mean number of tool calls falls to a fifth of what it was. The reward may even rise, since guesses are short.",
        ("tool_calls_mean",),
        {
            "length_collapse": "The responses themselves shrink to a few tokens.",
            "broken_episodes": "Calls are still made, and fail.",
        },
        ("shorter_responses",),
    ),
    Failure(
        "expert_imbalance", "A few experts get all the tokens",
        "In a mixture of experts, the load of the busiest expert grows to several times its fair share.",
        ("expert_violation_max",),
        {
            "sampler_mismatch": "Trainer and sampler route tokens to different experts: their probabilities differ too.",
            "throughput_drop": "Steps take longer, and the load of the experts is even.",
        },
    ),
)  # fmt: skip
