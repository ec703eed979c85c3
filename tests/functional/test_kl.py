"""KL estimators against plain loops, and the controllers of the coefficient."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.functional.kl import AdaptiveKL, FixedKL, estimate_kl, kl_per_sequence, kl_per_token

LOGPS = st.lists(st.tuples(st.floats(-8, -0.01), st.floats(-8, -0.01), st.booleans()), min_size=1, max_size=30)


@pytest.mark.full
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
@settings(max_examples=30, deadline=None)
@given(rows=LOGPS)
def test_estimators_are_those_of_a_plain_loop(rows, estimator) -> None:
    torch = pytest.importorskip("torch")
    p, q, _ = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True))
    expected = []
    for first, second, _ in rows:
        d = first - second
        expected.append({"k1": d, "k2": d * d / 2, "k3": math.exp(-d) - 1 + d}[estimator])
    assert estimate_kl(p, q, estimator).tolist() == pytest.approx(expected, abs=1e-9, rel=1e-9)


@pytest.mark.full
def test_estimators_agree_with_the_kl_itself() -> None:
    """The expectation of k1 and of k3 under p is the KL; that of k2 is near it for policies that are near."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    p, q = torch.randn(2, 50, dtype=torch.float64).mul(0.1).log_softmax(-1)
    exact = (p.exp() * (p - q)).sum()
    for estimator, close in (("k1", 1e-12), ("k3", 1e-12), ("k2", 0.1)):
        assert (p.exp() * estimate_kl(p, q, estimator)).sum().item() == pytest.approx(exact.item(), rel=close)


@pytest.mark.full
@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=4, max_size=4), min_size=1, max_size=6))
def test_by_token_and_by_sequence(rows) -> None:
    torch = pytest.importorskip("torch")
    kl = torch.tensor([[value for value, _ in row] for row in rows], dtype=torch.float64)
    mask = torch.tensor([[on for _, on in row] for row in rows])
    counted = [value for row in rows for value, on in row if on]
    sums = [sum(value for value, on in row if on) for row in rows]
    assert kl_per_sequence(kl, mask).item() == pytest.approx(sum(sums) / len(sums), abs=1e-9)
    if counted:
        assert kl_per_token(kl, mask).item() == pytest.approx(sum(counted) / len(counted), abs=1e-9)
    else:
        assert math.isnan(kl_per_token(kl, mask).item())


@pytest.mark.full
def test_what_is_not_finite_outside_the_mask_does_no_harm() -> None:
    torch = pytest.importorskip("torch")
    kl = torch.tensor([[1.0, float("nan")], [3.0, float("inf")]])
    mask = torch.tensor([[1, 0], [1, 0]])
    assert kl_per_token(kl, mask) == 2.0 and kl_per_sequence(kl, mask) == 2.0


@pytest.mark.full
def test_an_unknown_estimator_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"one of .*k1.*k2.*k3.*, got 'k9'"):
        estimate_kl(torch.zeros(1), torch.zeros(1), "k9")


def test_a_fixed_coefficient_stays() -> None:
    controller = FixedKL(0.3)
    assert [controller.update(kl, 8) for kl in (0.0, 9.0, float("nan"))] == [0.3] * 3


def test_an_adaptive_coefficient_follows_the_error_cut_at_a_fifth() -> None:
    controller = AdaptiveKL(0.2, target=0.1, horizon=100)
    assert controller.update(0.11, 10) == pytest.approx(0.2 * (1 + 0.1 * 10 / 100))
    before = controller.coef
    assert controller.update(5.0, 10) == pytest.approx(before * (1 + 0.2 * 0.1))
    before = controller.coef
    assert controller.update(-1.0, 10) == pytest.approx(before * (1 - 0.2 * 0.1))
    before = controller.coef
    assert controller.update(float("nan"), 10) == before


def test_an_adaptive_coefficient_brings_the_kl_to_its_target() -> None:
    controller = AdaptiveKL(0.01, target=0.1, horizon=50)
    for _ in range(500):
        kl = 0.05 / controller.coef**0.5  # the more it costs, the less of it there is
        controller.update(kl, 8)
    assert kl == pytest.approx(0.1, rel=0.02)


def test_a_controller_goes_on_where_another_was() -> None:
    first, second = AdaptiveKL(0.2, 0.1, 100), AdaptiveKL(9.0, 0.1, 100)
    first.update(0.3, 8)
    second.load_state_dict(first.state_dict())
    assert second.update(0.05, 8) == first.update(0.05, 8)


@pytest.mark.parametrize(("target", "horizon"), [(0.0, 10.0), (-1.0, 10.0), (0.1, 0.0), (float("nan"), 10.0)])
def test_a_target_or_horizon_that_means_nothing_is_refused(target, horizon) -> None:
    with pytest.raises(ValueError, match="above 0"):
        AdaptiveKL(0.2, target, horizon)


def test_the_corrected_estimate_has_the_value_and_the_gradient_of_the_divergence() -> None:
    """Over all tokens, each with the chance that the old policy gives it."""
    torch = pytest.importorskip("torch")
    from rldk.functional.kl import corrected_kl, estimate_kl

    torch.manual_seed(0)
    old, reference = (torch.randn(6, dtype=torch.float64).log_softmax(0) for _ in range(2))
    logits = torch.randn(6, dtype=torch.float64, requires_grad=True)
    logp = logits.log_softmax(0)
    (expected,) = torch.autograd.grad((logp.exp() * (logp - reference)).sum(), logits, retain_graph=True)
    (found,) = torch.autograd.grad((old.exp() * corrected_kl(logp, old, reference)).sum(), logits, retain_graph=True)
    (plain,) = torch.autograd.grad((old.exp() * estimate_kl(logp, reference, "k3")).sum(), logits)
    assert torch.allclose(found, expected) and not torch.allclose(plain, expected, rtol=0.1)
