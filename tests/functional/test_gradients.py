"""Gradient norms against plain sums."""

from __future__ import annotations

import math

import pytest

from rldk.functional.gradients import combined_norm, gradient_norm


@pytest.mark.full
def test_the_norm_over_all_gradients() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    assert math.isnan(gradient_norm(model.parameters()))  # none yet: not 0
    model(torch.randn(5, 3)).pow(2).sum().backward()
    expected = math.sqrt(sum(float(x) ** 2 for p in model.parameters() for x in p.grad.flatten()))
    assert gradient_norm(model.parameters()) == pytest.approx(expected, rel=1e-5)
    halves = [gradient_norm(part.parameters()) for part in model]
    assert combined_norm(*halves) == pytest.approx(expected, rel=1e-5)
    model[0].weight.grad[0, :2] = math.nan
    model[1].bias.grad[0] = math.inf
    assert not math.isfinite(gradient_norm(model.parameters()))


def test_norms_combine() -> None:
    assert combined_norm(3.0, 4.0) == 5.0 and combined_norm(2.0) == 2.0
