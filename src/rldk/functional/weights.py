"""How far a model's weights move, measured on a small sample of them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter

__all__ = ["WeightSample"]

_TINY = float(np.finfo(np.float32).tiny)
MAX_TENSORS = 4
MAX_ELEMENTS = 65_536
_SPARSE = ("embed", "wte", "expert")
"""Tensors of which a batch moves only some rows, or none."""


class WeightSample:
    """The relative change of a few tensors, `||after - before|| / ||before||` over all of them together.

    The first `measure` keeps a copy of the sample; each later one compares with the copy before it. The sample is taken
    from the tensors that are trained; where none is, from all, so that a frozen model reads exactly 0. Of a model that is
    split over processes, the part on this process is sampled.

    Args:
        model: what to sample.
        trained: the parameters that the optimizer holds, by `id`; without them those that require a gradient.
        leave_out: parameters that are not of this model although it contains them, by `id`.
    """

    def __init__(self, model: Module, trained: Container[int] = (), leave_out: Container[int] = ()) -> None:
        named = [(name, one) for name, one in model.named_parameters() if id(one) not in leave_out and _is_sampled(one)]
        learnt = [(name, one) for name, one in named if one.requires_grad]
        chosen = _choose([pair for pair in learnt if id(pair[1]) in trained] or learnt or named)
        self._places = [_place_of(model, name) for name in chosen]  # weights may be loaded by replacing a parameter
        self.names = chosen
        self._rows: list[tuple[Any, int, Any]] = []  # each tensor with its address, and its numbers as an array of that memory
        self._before: Any = None  # arrays and numbers for weights in the processor's memory, tensors elsewhere
        self._norm: Any = None
        self._total: Any = None
        self._count = 0

    def measure(self) -> None:
        """Compare the sample with its last copy, and keep a new one. Nothing waits for the device here."""
        if not self._places:
            return
        if self._in_memory():
            self._measure_rows([row for _, _, row in self._rows])
            return
        import torch

        with torch.no_grad():
            now = _gathered(self._places)
            norm = torch.linalg.vector_norm(now)
            if self._before is not None and self._norm is not None:
                moved = torch.linalg.vector_norm(now - self._before)
                change = moved / torch.where(self._norm > 0, self._norm, norm.clamp(min=torch.finfo(norm.dtype).tiny))
                self._total = change if self._total is None else self._total + change
                self._count += 1
            self._before, self._norm = now, norm

    def _in_memory(self) -> bool:
        """Whether the sample is float32 on the processor; `_rows` are then arrays of the weights' own memory."""
        held: list[Any] = [getattr(owner, leaf) for owner, leaf in self._places]
        if len(held) == len(self._rows) and all(
            one is known and one.data_ptr() == address for one, (known, address, _) in zip(held, self._rows, strict=True)
        ):
            return True
        whole = all(one.is_cpu and one.element_size() == 4 and not hasattr(one, "to_local") for one in held)
        self._rows = [(one, one.data_ptr(), _row_of(one)) for one in held] if whole else []
        return whole

    def _measure_rows(self, rows: list[Any]) -> None:
        """The same with numpy, where calls of torch would cost more than the numbers."""
        now = np.concatenate(rows)
        norm = math.sqrt(now.dot(now))
        if self._before is not None:
            way = now - self._before
            change = math.sqrt(way.dot(way)) / (self._norm or norm or _TINY)
            self._total = change if self._total is None else self._total + change
            self._count += 1
        self._before, self._norm = now, norm

    def read(self) -> float | None:
        """The mean change since the last reading; `None` where nothing was compared since."""
        if self._total is None:
            return None
        mean = float(self._total) / self._count
        self._total, self._count = None, 0
        return mean


def _is_sampled(parameter: Parameter) -> bool:
    """Whether it holds floating-point values on this process: the bytes of a quantised weight and an empty shard do not."""
    return bool(parameter.is_floating_point() and parameter.numel() and not parameter.is_meta)


def _choose(named: Iterable[tuple[str, Parameter]]) -> list[str]:
    """A few names, matrices first, evenly spaced from first layer to last; of low-rank adapters both halves."""
    pairs = list(named)
    pairs = [pair for pair in pairs if pair[1].ndim > 1] or pairs
    names = [name for name, _ in pairs]
    names = [name for name in names if not any(word in name.lower() for word in _SPARSE)] or names
    second = [name for name in names if "lora_B" in name]  # 0 at first, when only these move
    if second:
        first = [name for name in names if name not in set(second)]
        return _spaced(first, MAX_TENSORS // 2) + _spaced(second, MAX_TENSORS // 2)
    return _spaced(names, MAX_TENSORS)


def _spaced(names: list[str], count: int) -> list[str]:
    if len(names) <= count:
        return names
    return [names[round(n * (len(names) - 1) / (count - 1))] for n in range(count)]


def _place_of(model: Module, name: str) -> tuple[Module, str]:
    path, _, leaf = name.rpartition(".")
    return model.get_submodule(path), leaf


def _row_of(held: Any) -> Any:
    """The numbers of a tensor, or evenly spaced ones of a large tensor, as an array that shares its memory."""
    row = held.detach().numpy().reshape(-1)
    return row if row.size <= MAX_ELEMENTS else row[:: -(-row.size // MAX_ELEMENTS)]


def _gathered(places: list[tuple[Module, str]]) -> Tensor:
    """The sample as one row of float32: it is a copy."""
    import torch

    parts = []
    for owner, leaf in places:
        held: Any = getattr(owner, leaf).detach()
        held = held.to_local() if hasattr(held, "to_local") else held
        parts.append(held.reshape(-1)[:: -(-held.numel() // MAX_ELEMENTS) or 1])
    device = parts[0].device
    return torch.cat([part.to(device, torch.float32) for part in parts])
