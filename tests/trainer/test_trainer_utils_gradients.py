"""Gradients are clipped, and optimizers step, as accelerate would do it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")


def with_gradients(scale: float = 1.0) -> list:
    torch.manual_seed(0)
    found = [torch.nn.Parameter(torch.randn(size)) for size in ((3, 4), (5,), (2,))]
    for parameter in found[:2]:  # the last one has none
        parameter.grad = scale * torch.randn_like(parameter)
    return found


@pytest.mark.parametrize("largest", [0.0, 0.5, 100.0])
def test_clipping_is_accelerates(largest) -> None:
    from accelerate import Accelerator

    from trainer_utils import clip_gradients

    accelerator = Accelerator(cpu=True)
    ours, theirs = with_gradients(), with_gradients()
    norm = float(accelerator.clip_grad_norm_(theirs, largest or float("inf")))
    assert clip_gradients(accelerator, iter(ours), largest) == norm > 0.5
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        assert one.grad.equal(other.grad)
    assert ours[2].grad is None
    spoiled = with_gradients(float("nan"))
    assert not clip_gradients(accelerator, spoiled, largest) < float("inf")


def test_sharded_gradients_are_left_to_accelerate() -> None:
    from accelerate.utils import DistributedType

    from trainer_utils import clip_gradients, plain_optimizer

    asked = []
    sharded = SimpleNamespace(distributed_type=DistributedType.FSDP, scaler=None)
    sharded.clip_grad_norm_ = lambda parameters, largest: asked.append((len(parameters), largest)) or torch.tensor(2.0)
    assert clip_gradients(sharded, with_gradients(), 0.0) == 2.0 and asked == [(3, float("inf"))]
    wrapped = SimpleNamespace(optimizer="torch's own")
    assert plain_optimizer(sharded, wrapped) is wrapped
    one = SimpleNamespace(distributed_type=DistributedType.NO, scaler=None)
    assert plain_optimizer(one, wrapped) == "torch's own"
    one.scaler = object()  # float16: it decides whether a step is made
    assert plain_optimizer(one, wrapped) is wrapped
