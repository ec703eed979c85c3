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
    assert clip_gradients(accelerator, None, iter(ours), largest) == norm > 0.5
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        assert one.grad.equal(other.grad)
    assert ours[2].grad is None
    spoiled = with_gradients(float("nan"))
    assert not clip_gradients(accelerator, None, spoiled, largest) < float("inf")


def test_an_accelerate_that_shards_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.utils import DistributedType

    import machine

    monkeypatch.setattr(machine, "Accelerator", lambda **_: SimpleNamespace(distributed_type=DistributedType.FSDP))
    with pytest.raises(ValueError, match="accelerate is configured for FSDP"):
        machine.make_accelerator(SimpleNamespace(device="cpu", dtype="float32", accumulation_steps=1, seed=0))


def test_in_float16_each_optimizer_is_unscaled_once_and_the_scaler_adapts_once() -> None:
    """Two models of which one has gradients that are not finite: the other is updated as if there were no scaler."""
    from accelerate.utils import DistributedType

    from trainer_utils import clip_gradients, make_optimizer, step_optimizers

    def train(scaled: bool, spoil: bool = False) -> tuple[list, float]:
        torch.manual_seed(0)
        models = [torch.nn.Linear(3, 2) for _ in range(2)]
        optimizers = [make_optimizer(model, 0.1) for model in models]
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
        accelerator = SimpleNamespace(distributed_type=DistributedType.NO, scaler=scaler if scaled else None)
        loss = sum(model(torch.ones(4, 3)).square().mean() for model in models)
        scaler.scale(loss).backward()
        if spoil:
            models[1].weight.grad[0, 0] = float("inf")
        norms = [clip_gradients(accelerator, one, model.parameters(), 0.5) for one, model in zip(optimizers, models, strict=True)]
        step_optimizers(accelerator, optimizers)
        return [[weight.detach() for weight in model.parameters()] for model in models] + [norms], scaler.get_scale()

    plain, _ = train(False)
    scaled, scale = train(True)
    assert scaled[2] == pytest.approx(plain[2], rel=1e-5) and scale == 1024.0
    for ours, theirs in zip(scaled[:2], plain[:2], strict=True):
        assert all(torch.allclose(one, other, rtol=1e-4) for one, other in zip(ours, theirs, strict=True))
    spoiled, scale = train(True, spoil=True)
    torch.manual_seed(0)
    untouched = [torch.nn.Linear(3, 2) for _ in range(2)][1]
    assert scale == 512.0 and spoiled[1][0].equal(untouched.weight) and torch.allclose(spoiled[0][0], plain[0][0], rtol=1e-4)
