"""pass@k: how likely one of k sampled answers is right, from n answers of which c are."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["mean_pass_at_k", "pass_at_k"]


def pass_at_k(n: int, right: int, k: int) -> float:
    """The unbiased estimate `1 - C(n - c, k) / C(n, k)` (Chen et al. 2021), as a product that does not overflow.

    It is the share of all choices of k among the n answers that have a right one. The share of right answers put into
    `1 - (1 - p)^k` would be too low.
    """
    if not 1 <= k <= n:
        raise ValueError(f"Expected `k` to be at least 1 and at most the {n} answers to a prompt, got {k}.")
    if not 0 <= right <= n:
        raise ValueError(f"Expected `right` to be between 0 and {n}, got {right}.")
    if n - right < k:
        return 1.0
    missed = 1.0
    for place in range(n - right + 1, n + 1):
        missed *= 1.0 - k / place
    return 1.0 - missed


def mean_pass_at_k(passed: Sequence[Sequence[bool]], k: int) -> float:
    """The mean over prompts; `passed` says of each answer to each prompt whether it is right."""
    if not passed:
        raise ValueError("Expected answers to at least one prompt, got none.")
    return sum(pass_at_k(len(row), sum(map(bool, row)), k) for row in passed) / len(passed)
