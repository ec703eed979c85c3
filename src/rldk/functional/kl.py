"""The KL divergence of a policy from another, from samples, and the controllers of its coefficient.

With x drawn from p and d = log p(x) − log q(x), three estimators of KL(p‖q) are in use: k1 = d (unbiased, may be negative),
k2 = d²/2 (biased, never negative) and k3 = exp(−d) − 1 + d (unbiased, never negative). See Schulman, Approximating KL
Divergence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ESTIMATORS", "AdaptiveKL", "FixedKL", "corrected_kl", "estimate_kl", "kl_per_sequence", "kl_per_token"]

ESTIMATORS = ("k1", "k2", "k3")


def estimate_kl(logp: Tensor, other_logp: Tensor, estimator: str = "k1") -> Tensor:
    """An estimate at each token of KL(p‖q).

    Args:
        logp: log-probabilities of the tokens under p, from which they were drawn.
        other_logp: the same under q.
        estimator: `k1`, `k2` or `k3`.
    """
    difference = logp - other_logp
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return difference * difference / 2.0
    if estimator == "k3":
        return (-difference).expm1() + difference
    raise ValueError(f"Expected `estimator` to be one of {list(ESTIMATORS)}, got {estimator!r}.")


def corrected_kl(logp: Tensor, old_logp: Tensor, other_logp: Tensor) -> Tensor:
    """An estimate at each token of KL(p‖q), for a loss: k3 times the ratio of p to the policy that drew the token.

    k3 alone has the value of KL(p‖q), but not its gradient; with the ratio it has both, also where p is no longer the policy
    that drew (DeepSeek-AI 2025, DeepSeek-V3.2).
    """
    return estimate_kl(logp, other_logp, "k3") * (logp - old_logp).exp()


def kl_per_token(kl: Tensor, mask: Tensor) -> Tensor:
    """The mean over all tokens that count: long responses weigh more."""
    from rldk.functional.masked import masked_mean

    return masked_mean(kl, mask)


def kl_per_sequence(kl: Tensor, mask: Tensor) -> Tensor:
    """The mean over responses of the sum over their tokens."""
    return kl.where(mask.bool(), kl.new_zeros(())).sum(-1).mean()


@dataclass
class FixedKL:
    """A coefficient that stays as it is."""

    coef: float

    def update(self, kl: float, n: float) -> float:
        """Take the KL of `n` responses, and return the coefficient for the next ones."""
        return self.coef

    def state_dict(self) -> dict[str, Any]:
        return {"coef": self.coef}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.coef = float(state["coef"])


@dataclass
class AdaptiveKL(FixedKL):
    """A coefficient that moves so that the KL comes to its target (Ziegler et al. 2019).

    It grows or shrinks in proportion to the relative error, cut at 20 %, and by `n` responses of a `horizon`. A KL that is
    not finite says nothing and moves nothing.
    """

    target: float
    horizon: float = 10_000.0

    def __post_init__(self) -> None:
        if not self.target > 0.0 or not self.horizon > 0.0:
            raise ValueError(f"Expected `target` and `horizon` above 0, got {self.target} and {self.horizon}.")

    def update(self, kl: float, n: float) -> float:
        error = min(max(kl / self.target - 1.0, -0.2), 0.2)
        if error == error:
            self.coef *= max(1.0 + error * n / self.horizon, 0.0)
        return self.coef
