"""What an optimizer step shows: the gradients just before it, and how far it moves the weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from rldk.functional.gradients import combined_norm, gradient_norms
from rldk.functional.weights import WeightSample
from rldk.integrations.processes import any_of
from rldk.integrations.trl.probes.stack import ModelParts, array_of, plain_optimizer, ratio_of
from rldk.monitor.guard import Guard

__all__ = ["GradientProbe", "WeightProbe"]

_NORMS = ("policy_grad_norm", "value_grad_norm", "grad_norm")
_QUICK = 65536
_SMALL = 16384


class GradientProbe:
    """A hook before each optimizer step: it checks that gradients are finite, and reads their norms and the learning rate.

    In PPO, norms are taken at every optimizer step of an update; `read` gives their mean and their maximum. Other trainers log
    the norm: a small parameter of the first and of the last layer then shows whether gradients are finite, since an error in the
    loss reaches the last layer, and one in the backward pass reaches the first. In PPO the ratio of new to old probability is
    also taken at the last step (`last_ratio`), since TRL only logs its means over minibatches.

    Args:
        model: the policy, or TRL's wrapper of policy and value function, whose norms are then separate.
        norms: false for trainers that log the norm.
        skip: skip an optimizer step in which the gradients of any process are not finite.
        on_nonfinite: called with a sentence before a step with such a gradient, once per update.
        guard: keeps a failure in the hook away from the training.
        flow_due: whether to take the norm of each layer before this step (`layer_norms`), which costs more than the others.
    """

    def __init__(
        self,
        model: Any,
        norms: bool = True,
        skip: bool = False,
        on_nonfinite: Callable[[str], None] = lambda message: None,
        guard: Guard | None = None,
        flow_due: Callable[[], bool] | None = None,
    ) -> None:
        whole, _, value = ModelParts.of(model)
        named = [(name, one) for name, one in whole.named_parameters() if one.requires_grad]
        ours = {id(one) for one in value.parameters()} if value is not None else set()
        self.policy = [one for _, one in named if id(one) not in ours]
        self.value = [one for _, one in named if id(one) in ours]
        self.names = {id(one): name for name, one in named}
        self.watched = [one for part in (self.policy, self.value) for one in _ends(part)]
        self._small = _SmallGradients([[one for one in part if _is_small(one)] for part in (self.policy, self.value)])
        self._large = [[one for one in part if not _is_small(one)] for part in (self.policy, self.value)]
        self.norms, self.skip, self.on_nonfinite = norms, skip, on_nonfinite
        self.guard = guard or Guard(strict=True)
        self.steps = self.skipped = self.bad = 0
        self.times: list[float] = []
        self._rates: tuple[float, ...] = ()
        self._usual = self._before = 0
        self._ratio: tuple[Any, Any, Any] | None = None
        self._norms: list[list[float | None]] = []  # of each step: of the policy, of the value function, of all
        self.flow_due = flow_due
        self.layer_norms: dict[str, float] = {}
        self._named = named
        self._handle: Any = None

    def attach(self, optimizer: Any) -> None:
        """Hook into an optimizer; one that accelerate has wrapped is unwrapped."""
        hook = self.guard.hook("the probe of gradients", self._before_step)
        self._handle = plain_optimizer(optimizer).register_step_pre_hook(hook)

    def detach(self) -> None:
        """Remove the hook."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _before_step(self, optimizer: Any, args: Any, options: Any) -> None:
        bad = bool(self.guard.call("the probe of gradients", self._look, optimizer.param_groups))
        if self.skip:
            bad = any_of(bad)
        if bad:
            self.guard.call("the probe of gradients", self._report_nonfinite, optimizer)

    def _look(self, groups: list[dict[str, Any]]) -> bool:
        """Count the step, take the norms, and return whether something is not finite."""
        self.steps += 1
        self.times.append(time.perf_counter())
        self._rates = (float(groups[0]["lr"]), float(groups[-1]["lr"]))
        if self.flow_due is not None and self.flow_due():
            self.layer_norms = self._flow()
        if self.norms:
            if self.steps >= self._usual:  # this may be the last step
                self._ratio = ratio_of()
            return not math.isfinite(self._measure())
        return any((grad := one.grad) is not None and not math.isfinite(grad.sum().item()) for one in self.watched)

    def _flow(self) -> dict[str, float]:
        """The norm of the gradient of each layer."""
        from rldk.checkpoints.report import layer_of

        present = [(layer_of(name), one) for name, one in self._named if one.grad is not None]
        squares: dict[str, float] = {}
        for (layer, _), norm in zip(present, gradient_norms(one for _, one in present), strict=True):
            squares[layer] = squares.get(layer, 0.0) + norm**2
        return {layer: math.sqrt(square) for layer, square in squares.items()}

    def _measure(self) -> float:
        """Take the norms of policy and value function; returns that of all gradients, 0 where there are none."""
        norms = []
        for small, large in zip(self._small.norms(), self._large, strict=True):
            parts = [*small, *gradient_norms(large)] if large else small
            norms.append(combined_norm(*parts) if parts else None)
        there = [norm for norm in norms if norm is not None]
        whole = combined_norm(*there)
        self._norms.append([*norms, whole if there else None])
        return whole

    def last_ratio(self) -> Any:
        """The ratio of new to old probability of each token of the last optimizer step; `None` where there is none."""
        if self._ratio is None:
            return None
        ratio, padding, rows = self._ratio
        return array_of(ratio)[~array_of(padding)[rows]]

    def _report_nonfinite(self, optimizer: Any) -> None:
        self.bad += 1
        every = [one for group in optimizer.param_groups for one in group["params"]]
        lost = [one for one in every if one.grad is not None and not bool(one.grad.isfinite().all())]
        if self.skip:
            for one in every:
                one.grad = None
            self.skipped += 1
        if self.bad == 1:
            first = self.names.get(id(lost[0]), "a parameter") if lost else "one of another process"
            done = "the step is skipped and the weights do not change" if self.skip else "the step destroys the weights"
            self.on_nonfinite(f"the gradients of {len(lost)} of {len(every)} parameters are not finite ({first} first): {done}")

    def read(self) -> dict[str, float]:
        """The metrics since the last reading; the next one starts from here."""
        names = ("policy_lr", "value_lr") if self.value else ("policy_lr",)
        found = dict(zip(names, self._rates, strict=False))
        for name, column in zip(_NORMS, zip(*self._norms, strict=True), strict=False):
            if norms := [norm for norm in column if norm is not None]:
                mean = sum(norms) / len(norms)
                found |= {name: mean, f"{name}_max": max(norms) if math.isfinite(mean) else mean}
        if self.bad:
            found["nonfinite_count"] = float(self.bad)
        if self.skip and self.steps:
            found["update_applied"] = 1.0 - self.skipped / self.steps
        self._usual = min(self.steps, self._before)  # with some settings every other update has one step less
        self._before = self.steps
        self.steps = self.skipped = self.bad = 0
        self._norms, self.times, self._ratio = [], [], None
        return found


class _SmallGradients:
    """The norms of small gradients, which are copied into one array first: a call for each would cost more than the arithmetic.

    The array and its places are made once. Joining the gradients into a new array at each step would make the callback 4 %
    slower.

    Args:
        parts: the parameters whose norm is taken together, for each of the norms.
    """

    def __init__(self, parts: list[list[Any]]) -> None:
        import torch

        self._parameters = [one for part in parts for one in part]
        sizes = [one.numel() for one in self._parameters]
        wide = any(one.element_size() > 4 for one in self._parameters)
        row: Any = torch.zeros(sum(sizes), dtype=torch.float64 if wide else torch.float32)
        self._places = [place.view(one.shape) for place, one in zip(row.split(sizes), self._parameters, strict=True)]
        self._row = row.numpy()
        ends = [0, *accumulate(sum(one.numel() for one in part) for part in parts)]
        self._rows = [self._row[begin:end] for begin, end in pairwise(ends)]
        self._parts = parts
        self._copy: Callable[[list[Any], list[Any]], None] = torch._foreach_copy_

    def norms(self) -> list[list[float]]:
        """The norm of each part, as a list of one; empty for a part without gradients."""
        grads, places = [grad for one in self._parameters if (grad := one.grad) is not None], self._places
        if len(grads) < len(places):
            self._row[:] = 0.0
            places = [place for place, one in zip(places, self._parameters, strict=True) if one.grad is not None]
        if grads:
            self._copy(places, grads)
        whole = len(places) == len(self._places)
        return [
            [math.sqrt(row.dot(row))] if part and (whole or any(one.grad is not None for one in part)) else []
            for row, part in zip(self._rows, self._parts, strict=True)
        ]


class WeightProbe:
    """Samples the weights of the policy, and of the value model if it exists, after each update.

    Args:
        model: the policy, or TRL's wrapper of policy and value model.
        optimizer: what it is trained with; a policy that is not in it is still sampled, and reads 0.
    """

    def __init__(self, model: Any, optimizer: Any = None) -> None:
        _, policy, value = ModelParts.of(model)
        trained = {id(one) for group in getattr(optimizer, "param_groups", ()) for one in group["params"]}
        self._samples = {"weight_change": WeightSample(policy, trained)}
        if value is not None:
            shared = {id(one) for one in policy.parameters()}
            self._samples["weight_change_value"] = WeightSample(value, trained, shared)

    def measure(self) -> None:
        """Measure the weights after an update. The first call comes before any update."""
        for sample in self._samples.values():
            sample.measure()

    def read(self) -> dict[str, float]:
        """The metrics since the last reading; means, if there were several updates."""
        found = {name: sample.read() for name, sample in self._samples.items()}
        return {name: change for name, change in found.items() if change is not None}


def _ends(parameters: list[Any]) -> list[Any]:
    """The first and the last of the small parameters; of all parameters, if none is small, as with adapters."""
    small = [one for one in parameters if one.ndim < 2 and one.numel() <= _QUICK] or parameters
    return [small[0], small[-1]] if len(small) > 1 else small


def _is_small(parameter: Any) -> bool:
    """Whether a call of torch costs more than its arithmetic: such gradients are first copied into one array."""
    return bool(parameter.is_cpu and parameter.numel() <= _SMALL and parameter.element_size() >= 4)
