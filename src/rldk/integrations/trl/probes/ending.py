"""How often responses should end by the policy's own probabilities, to be compared with how often they do."""

from __future__ import annotations

from typing import Any

from rldk.monitor.guard import Guard

__all__ = ["EndingProbe"]

UPDATES = 8
"""The number of updates that are probed: a few show whether the model can end a response."""
RESPONSES, POSITIONS = 4, 16
"""The number of responses per update and of positions per response that are probed: each costs a whole vocabulary."""


class EndingProbe:
    """A hook behind the policy's last layer, for the first few updates: the probability of an end token while it trains.

    The sum over a response is the expected number of end tokens. If it is far from 0 and no response ends, the generation does
    not let them end: the stop token is suppressed, or is not the model's.

    Args:
        policy: the model that is trained.
        tokens: the tokens that end a response.
        limit: the longest response, in tokens.
        guard: keeps a failure in the hook away from the training.
    """

    def __init__(self, policy: Any, tokens: list[int], limit: int, guard: Guard) -> None:
        self.tokens, self.limit = tokens, limit
        self._found: Any = None
        self._reads = 0
        self._handle: Any = None
        head = policy.get_output_embeddings() if hasattr(policy, "get_output_embeddings") else None
        if head is not None and tokens and limit > 0:
            self._handle = head.register_forward_hook(guard.hook("the probe of endings", self._after_head))

    def _after_head(self, head: Any, given: Any, logits: Any) -> None:
        """Look at the first training pass of an update; generation computes no gradients."""
        if self._found is not None or not getattr(logits, "requires_grad", False) or logits.ndim != 3:
            return
        length = min(self.limit, logits.shape[1])
        every = max(1, length // POSITIONS)
        sample = logits.detach()[:RESPONSES, logits.shape[1] - length + self._reads % every :: every].float()
        chance = sample[..., self.tokens].logsumexp(-1) - sample.logsumexp(-1)
        self._found = chance.exp().mean() * length

    def read(self) -> dict[str, float]:
        """The expected number of end tokens per response since the last reading."""
        if self._found is None:
            return {}
        found, self._found = float(self._found), None
        self._reads += 1
        if self._reads >= UPDATES:
            self.detach()
        return {"eos_expected": found}

    def detach(self) -> None:
        """Remove the hook."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
