"""The learning rate and the gradient norm, whatever name they are logged under."""

from __future__ import annotations

import pytest

from rldk.core.event import Event
from rldk.judge.engine import Engine
from rldk.signals.optimizer import ALL_NORMS, RATES, gradient_norm, learning_rate, rate_in_brackets, with_rate
from rldk.signals.view import View


def view_of(**metrics: float) -> View:
    engine = Engine([], follow=(*RATES, *ALL_NORMS))
    engine.observe(Event(0, metrics))
    return engine.view


def test_the_rate_of_the_policy_and_the_norm_of_all_gradients_come_first():
    view = view_of(lr=1e-5, policy_lr=2e-5, grad_norm=3.0, policy_grad_norm=4.0)
    assert (learning_rate(view).last, gradient_norm(view).last) == (2e-5, 3.0)
    view = view_of(lr=1e-5, policy_grad_norm=4.0)
    assert (learning_rate(view).last, gradient_norm(view).last) == (1e-5, 4.0)


def test_advice_names_a_rate_above_zero():
    view = view_of(lr=1e-5)
    assert with_rate("Lower it.", view) == "Lower it. The learning rate is 1e-05 now."
    assert rate_in_brackets(learning_rate(view)) == " (now 1e-05)"


@pytest.mark.parametrize("metrics", [{}, {"lr": 0.0}, {"lr": float("nan")}])
def test_advice_leaves_out_a_rate_that_is_zero_or_unknown(metrics):
    view = view_of(**metrics)
    assert with_rate("Lower it.", view) == "Lower it." and rate_in_brackets(learning_rate(view)) == ""
