"""How far the weights move in an update."""

from __future__ import annotations

from typing import Any

from rldk.functional.weights import WeightSample

__all__ = ["WeightProbe"]


class WeightProbe:
    """Samples the weights of the policy, and of the value model where there is one, after each update.

    Args:
        model: the policy, or TRL's wrapper of policy and value model.
        optimizer: what it is trained with; a policy of which it holds nothing is sampled all the same, and reads 0.
    """

    def __init__(self, model: Any, optimizer: Any = None) -> None:
        inner = getattr(model, "module", model)
        trained = {id(one) for group in getattr(optimizer, "param_groups", ()) for one in group["params"]}
        value = getattr(inner, "value_model", None) if hasattr(inner, "policy") else None
        policy = inner if value is None else inner.policy
        self._samples = {"weight_change": WeightSample(policy, trained)}
        if value is not None:
            shared = {id(one) for one in policy.parameters()}
            self._samples["weight_change_value"] = WeightSample(value, trained, shared)

    def measure(self) -> None:
        """An update is done. The first call, before any, keeps what later ones are compared with."""
        for sample in self._samples.values():
            sample.measure()

    def read(self) -> dict[str, float]:
        """The metrics since the last reading, means over the updates where there were several."""
        found = {name: sample.read() for name, sample in self._samples.items()}
        return {name: change for name, change in found.items() if change is not None}
