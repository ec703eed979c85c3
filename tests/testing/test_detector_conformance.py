"""Every detector of the table keeps what detectors promise; and a detector that does not is found out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

from rldk.core.catalog import entry_of
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.testing.detectors import yield_detector_checks
from rldk.testing.streams import FAULTS, faulty

LIMIT = partial(UserLimit, "kl_mean", highest=1e6)


FAULT = {
    "target_range_anomaly": "controller_stuck",
    "controller_overshoot_anomaly": "controller_oscillation", "controller_oscillation_anomaly": "controller_oscillation",
    "coef_adaptation_anomaly": "controller_stuck", "eos_starvation": "length_runaway",
    "exploding_gradient_anomaly": "exploding_gradients", "vanishing_gradient_anomaly": "vanishing_gradients",
    "gradient_imbalance_anomaly": "gradient_imbalance", "advantage_bias_anomaly": "advantage_bias",
}  # fmt: skip
"""The simulated fault on which a detector raises, where its name is not that of the detector."""

ROWS = 300
AT = np.arange(ROWS)
LATE = AT >= 100


def around(level: float, sigma: float, seed: int = 0) -> Any:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


COLUMNS: dict[str, dict[str, Any]] = {
    "reward_changed": {
        "reward_mean": np.where(LATE, -1.0, 1.0) + np.log(around(1.0, 0.05)),
        "kl_mean": around(0.05, 0.03, 1), "entropy_mean": around(1.0, 0.03, 2),
    },
    "kl_penalty_too_strong": {"reward_mean": np.log(around(1.5, 0.1)), "kl_coef": np.full(ROWS, 20.0), "kl_mean": around(0.01, 0.1)},
    "reference_wrong": {"kl_mean": np.zeros(ROWS), "reward_mean": 0.01 * AT + np.log(around(1.0, 0.05)), "kl_coef": np.full(ROWS, 0.1)},
    "temperature_wrong": {"temperature": np.full(ROWS, 0.05)},
    "learning_rate_too_low": {"lr": np.zeros(ROWS), "reward_mean": np.log(around(1.0, 0.05))},
    "policy_frozen": {"weight_change": np.zeros(ROWS), "grad_norm": around(1.0, 0.2)},
    "weights_replaced": {
        "kl_mean": np.where(LATE, 0.02, 0.4) * around(1.0, 0.05), "reward_mean": np.where(LATE, 0.1, AT / 100.0) + np.log(around(1.0, 0.02)),
        "weight_change": around(1e-4, 0.1, 2) * np.where(AT == 100, 500.0, 1.0),
    },
    "batch_too_small": {"batch_size": np.full(ROWS, 2.0), "reward_mean": around(0.5, 0.1)},
    "value_frozen": {"weight_change_value": np.zeros(ROWS), "reward_mean": around(0.5, 0.1)},
    "too_few_prompts": {"distinct_prompts": np.full(ROWS, 2.0)},
    "preference_unlearnt": {"chosen_logp_mean": np.where(LATE, -90.0, -30.0) + around(1.0, 0.3), "preference_accuracy": around(0.5, 0.05)},
    "kl_trend_anomaly": {"kl_mean": around(0.02, 0.05) * np.exp(np.maximum(AT - 100, 0) * 0.03)},
    "missing_reward": {"reward_missing_frac": np.where(LATE, 0.3, 0.0)},
    "sparse_reward": {"reward_mean": np.where(AT % 9 == 0, 0.125, 0.0)},
    "held_out_collapse": {"eval_accuracy": np.where(LATE, 0.1, 0.6) + around(0.01, 0.5)},
    "kl_penalty_off": {
        "kl_mean": around(0.02, 0.05) + np.maximum(AT - 100, 0) * 0.01, "kl_coef": np.where(LATE, -0.2, 0.1), "reward_mean": around(0.5, 0.1),
    },
    "response_collapse": {"distinct_responses_frac": np.where(LATE, 1 / 16, 0.95)},
    "kl_volatility_anomaly": {"kl_mean": around(0.05, 0.05) * np.where(LATE & (AT % 2 == 0), 30.0, 1.0)},
    "controller_responsiveness_anomaly": {
        "kl_mean": np.where(LATE, 30.0, 6.0) + around(0.1, 0.5),
        "kl_coef": np.full(ROWS, 0.2) + 1e-6 * AT,
        "target_kl": np.full(ROWS, 6.0),
    },
    "gradient_flow_anomaly": {"grad_norm": around(6.0, 0.1) * np.where(LATE, 7.5, 1.0)},
    "gradient_balance_anomaly": {
        "policy_grad_norm": around(1.0, 0.3),
        "value_grad_norm": around(1.0, 0.3, 1) * np.where(LATE, 25.0, 1.0),
    },
    "gradient_stability_anomaly": {"grad_norm": around(1.0, 0.1) * np.where(LATE, around(1.0, 3.0, 1), 1.0)},
    "ratio_trend_anomaly": {
        "policy_grad_norm": around(1.0, 0.1),
        "value_grad_norm": around(1.0, 0.1, 1) * np.exp(np.clip(AT - 100, 0, 150) * 0.025),
    },
    "advantage_scale_anomaly": {"advantage_std": around(1.5, 0.1) * np.where(LATE, 100.0, 1.0)},
    "advantage_distribution_anomaly": {
        "advantage_min": np.where(LATE, 5.0, -4.0) + around(0.4, 0.1),
        "advantage_max": np.where(LATE, 13.0, 4.0) + around(0.4, 0.1, 1),
    },
    "advantage_normalization_anomaly": {
        "advantage_mean": np.where(LATE, 2.0, 0.0),
        "advantage_std": np.where(LATE, 5.0, 1.0),
        "advantage_normalized": np.ones(ROWS),
    },
    "advantage_trend_anomaly": {
        "advantage_mean": 0.3 * np.log(around(1.0, 0.2)) + np.clip(AT - 100, 0, 150) * 0.02,
        "advantage_std": around(1.5, 0.1, 1),
    },
    "advantage_volatility_anomaly": {
        "advantage_mean": np.log(around(1.0, 0.1)) + np.where(LATE, 2.0 * (-1.0) ** AT, 0.0),
        "advantage_std": around(1.5, 0.1, 1),
    },
    "advantage_skewness_anomaly": {"advantage_skewness": 2.0 + around(0.5, 0.3) + np.where(LATE, 40.0, 0.0)},
    "advantage_kurtosis_anomaly": {"advantage_kurtosis": 8.0 + around(1.0, 0.3) + np.where(LATE, 900.0, 0.0)},
}  # fmt: skip


def sick(kind: type[Detector]) -> list[Event]:
    """A stream on which a detector raises."""
    if kind.type in COLUMNS:
        columns = {name: values.tolist() for name, values in COLUMNS[kind.type].items()}
        info = {"reductions": {"kl_mean": "token"}}
        return [Event(row, {name: column[row] for name, column in columns.items()}, model_info=info) for row in range(ROWS)]
    name = FAULT.get(kind.type, kind.type)
    return faulty(name, seed=1, steps=700, onset=min(FAULTS[name].onset, 200))


def checks() -> Iterator[Any]:
    for kind in DETECTORS:
        for name, _ in yield_detector_checks(kind, []):
            yield pytest.param(kind, name, id=f"{kind.type}-{name}")


@pytest.mark.parametrize(("kind", "name"), list(checks()))
def test_detector(kind: type[Detector], name: str) -> None:
    stream = sick(kind) if "sick" in name else []
    dict(yield_detector_checks(kind, stream))[name]()


@pytest.mark.parametrize("name", [name for name, _ in yield_detector_checks(LIMIT)])
def test_user_limit(name: str) -> None:
    dict(yield_detector_checks(LIMIT))[name]()


def test_what_detectors_look_at_is_in_the_catalogue() -> None:
    unknown = {kind.type: [name for name in kind.all_metrics() if entry_of(name) is None] for kind in DETECTORS}
    assert {kind: names for kind, names in unknown.items() if names} == {}


def test_every_detector_stands_in_the_table_once() -> None:
    assert len(BY_TYPE) == len(DETECTORS)
    assert UserLimit not in DETECTORS, "it needs a limit, which the settings give"


class Good(Detector):
    """A reward above a limit: the least that a detector is.

    What it catches: a reward above the limit.
    Why it matters: it does not.
    When it misfires: where the limit is low.
    What to do: raise the limit.
    References: none.
    """

    __slots__ = ("limit",)
    type: ClassVar[str] = "reward_above"
    tracker: ClassVar[str] = "mine"
    needs: ClassVar = (("reward_mean",),)
    advice: ClassVar[str] = "Raise the limit."
    settings: ClassVar = {"limit": Setting(1e5, "reward above which it raises", least=0.0)}
    limit: float

    def check(self, view: View) -> Finding | None:
        value = view.get("reward_mean").last
        return Finding("warning", value, self.limit, f"Reward is {value:.3g}.") if value > self.limit else None


def with_check(check: Callable[[Any, View], Finding | None], **more: Any) -> type[Detector]:
    """A detector like `Good` but for its check."""
    return type("Bad", (Good,), {"__slots__": (), "__doc__": Good.__doc__, "check": check, **more})


def always(self: Any, view: View, **how: Any) -> Finding:
    return Finding(**{"severity": "warning", "value": 1.0, "threshold": 0.0, "message": "It is so.", **how})


def changes_the_event(self: Any, view: View) -> None:
    view.event.metrics.pop("reward_mean", None)


def divides(self: Any, view: View) -> None:
    _ = 1.0 / view.get("reward_mean").last


def looks_elsewhere(self: Any, view: View) -> None:
    view.get("entropy_mean")


def warns(self: Any, view: View) -> None:
    import numpy as np

    np.float64(view.get("reward_mean").last) * np.float64(10.0)


def by_chance(self: Any, view: View) -> Finding | None:
    return always(self, view) if random.random() < 0.5 else None


def speaks_of_nan(self: Any, view: View) -> Finding:
    return always(self, view, message="The reward is nan times as high.")


def grows(self: Any, view: View) -> None:
    self.seen.append(view.index)


def shares(self: Any, view: View) -> Finding | None:
    SHARED[id(self)] = SHARED.get(id(self), 0) + 1
    return always(self, view) if SHARED[id(self)] % 40 == 0 else None


SHARED: dict[int, int] = {}


class Grows(Good):
    __doc__ = Good.__doc__
    __slots__ = ("seen",)
    seen: list[int]
    check = grows  # type: ignore[assignment]

    def reset(self) -> None:
        super().reset()
        self.seen = []


class Forgets(Good):
    """Its deque is not written to the state as it is.

    What it catches: nothing. Why it matters: it does not.
    """

    __slots__ = ("rows",)
    rows: dict[int, int]

    def reset(self) -> None:
        super().reset()
        self.rows = {0: 0}

    def check(self, view: View) -> Finding | None:
        self.rows[0] += 1
        return always(self, view) if self.rows[0] > 150 else None


class Open(Good):
    __doc__ = Good.__doc__  # no __slots__: what it keeps in its __dict__ is not saved


class TakesAnything(Good):
    __doc__ = Good.__doc__
    __slots__ = ()
    settings: ClassVar = {"limit": Setting(1e5, "", least=0.0)}


class KeepsItsPast(Good):
    __doc__ = Good.__doc__
    __slots__ = ("rows",)
    rows: int

    def __init__(self, **given: Any) -> None:
        self.rows = 0
        super().__init__(**given)

    def check(self, view: View) -> Finding | None:
        self.rows += 1
        return always(self, view) if self.rows == 350 else None


class Repeats(Good):
    __doc__ = Good.__doc__
    __slots__ = ()

    def settle(self, view: View, finding: Finding | None) -> Any:
        return None if finding is None else self._anomaly(view, finding)


BAD = {
    "has_a_name": with_check(Good.check, type="Reward Above"),
    "documentation_is_complete": with_check(Good.check, __doc__="A title.\n\nWhat it catches: little."),
    "settings_are_validated": TakesAnything,
    "keeps_everything_in_slots": Open,
    "declares_what_it_reads": with_check(looks_elsewhere),
    "is_inactive_without_its_metrics": with_check(always, metrics=classmethod(lambda cls: ())),
    "survives_odd_values": with_check(divides),
    "survives_odd_values without a warning": with_check(warns),
    "reports_are_complete": with_check(speaks_of_nan),
    "reports_are_complete, with an advice": with_check(always, advice_for=lambda *_: ""),
    "reports_are_complete, once": with_check(always, settle=Repeats.settle),
    "is_silent_on_healthy_runs": with_check(always),
    "is_deterministic": with_check(by_chance),
    "is_deterministic after reset": KeepsItsPast,
    "does_not_change_events": with_check(changes_the_event),
    "goes_on_from_a_saved_state": Forgets,
    "can_be_pickled_and_copied": with_check(shares),
    "memory_is_bounded": Grows,
}


def test_the_least_detector_passes() -> None:
    for name, check in yield_detector_checks(Good, [Event(step, {"reward_mean": 1e6}) for step in range(20)]):
        check()
        assert name


@pytest.mark.parametrize("name", BAD)
def test_a_bad_detector_is_found_out(name: str) -> None:
    check = dict(yield_detector_checks(BAD[name]))[name.replace(",", " ").split()[0]]
    with pytest.raises(AssertionError):
        check()


def test_a_detector_that_never_raises_is_found_out() -> None:
    check = dict(yield_detector_checks(Good, [Event(0, {"reward_mean": 1.0})]))["raises_on_its_sick_stream"]
    with pytest.raises(AssertionError, match="does not raise"):
        check()


def test_a_setting_that_is_not_whole() -> None:
    with pytest.raises(UsageError, match=r"Expected `reward_above.persist` to be a whole number of at least 1, got 2.5."):
        Good(persist=2.5)
