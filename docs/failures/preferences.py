"""Failures of preferences."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "preference_degenerate", "The margin of DPO explodes",
        "The margin grows without bound, the loss is flat, and chosen answers become unlikely too.",
        ("margin", "losses"),
        {"preference_unlearnt": "The margin does not grow: the pairs are never ordered, or both answers become unlikely."},
        ("dpo_chosen_falls",),
    ),
    Failure(
        "preference_unlearnt", "Chosen answers become unlikely",
        "In DPO the log-probability of chosen answers falls to twice its size and more, and pairs are ordered no better than by "
        "chance.",
        ("logps", "accuracy"),
        {
            "preference_degenerate": "The margin grows without bound, and the pairs are ordered.",
            "policy_frozen": "The margin stays at exactly 0.",
        },
        ("dpo_chosen_falls",),
        recorded="dpo-strict--s1--lr_x100_mid",
    ),
)  # fmt: skip
