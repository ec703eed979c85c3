"""Failures of the length of responses."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "length_runaway", "Responses grow and grow",
        "The mean length multiplies, more and more responses reach the limit, and the reward does not improve.",
        ("length", "truncated"),
        {
            "eos_starvation": "Responses do not emit the end token, whatever their length was before.",
            "length_bias": "The reward pays for length: it rises together with it.",
        },
        ("longer_responses", "all_truncated"),
    ),
    Failure(
        "length_collapse", "Responses shrink to a few tokens",
        "The mean length falls to a fraction of its start, and the reward with it.",
        ("length", "reward"),
        {
            "policy_collapse": "The reward falls first, and the length stays or grows.",
            "tools_abandoned": "Only turns and tool calls become fewer.",
        },
        ("shorter_responses",),
    ),
    Failure(
        "eos_starvation", "Responses no longer end",
        "The share of responses that emit the end token falls to hardly any, and with it the share that is cut off rises to one.",
        ("truncated", "length"),
        {
            "length_runaway": "Responses grow, and still end.",
            "entropy_explosion": "The entropy shoots up first: random tokens seldom contain an end.",
        },
        ("all_truncated", "longer_responses"), fault="eos_starvation",
    ),
    Failure(
        "length_bias", "Length alone pays",
        "The correlation of response length and reward rises towards 1: longer responses get higher rewards, whatever they say.",
        ("length_bias", "length"),
        {
            "reward_hacking": "The reward rises by another exploit: the correlation with length stays low.",
            "length_runaway": "Responses grow although the reward does not pay for it.",
        },
        ("longer_responses",),
    ),
)  # fmt: skip
