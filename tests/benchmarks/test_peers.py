"""The simple peers of the detection benchmark: where they fire, and where they stay silent. No package is installed here."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from peers import open_peers
from peers.cusum import cusum
from peers.metric_names import kl_is_by_sequence, per_token_kl, rows_of
from rldk.core.event import Event

FRAMEWORK = "trl-grpo"


def events_of(name: str, values: Sequence[float | None]) -> list[Event]:
    """One event per value; `None` is a metric that was not logged."""
    return [Event(step, {} if value is None else {name: value}) for step, value in enumerate(values)]


def noise(count: int, seed: int = 0) -> list[float]:
    """Noise around 1 that repeats itself every 25 rows, so that its first rows tell its mean and spread without an error."""
    draw = random.Random(seed)
    block = [1.0 + 0.1 * draw.uniform(-1.0, 1.0) for _ in range(25)]
    return [block[row % 25] for row in range(count)]


def alarms(peer: str, name: str, values: Sequence[float | None], framework: str = FRAMEWORK) -> list[tuple[int, str, str]]:
    return open_peers([peer])[peer].ask(events_of(name, values), framework)


@pytest.mark.parametrize("peer", ["z-score", "fixed", "cusum"])
@pytest.mark.parametrize("name", ["reward_mean", "grad_norm", "entropy_mean"])
def test_silent_on_a_constant_with_noise(peer: str, name: str) -> None:
    assert alarms(peer, name, noise(200)) == []


@pytest.mark.parametrize("peer", ["z-score", "cusum"])
def test_a_jump_is_seen_at_its_row_and_again_after_the_pause(peer: str) -> None:
    values = [*noise(60), *(value + 5.0 for value in noise(60, seed=1))]
    found = alarms(peer, "reward_mean", values)
    assert found[0] == (60, "warning", "reward_mean")
    assert found[1:] == ([] if peer == "z-score" else [(110, "warning", "reward_mean")])


def test_the_z_score_begins_after_25_values() -> None:
    assert alarms("z-score", "loss", [*noise(24), 9.0, *noise(10)]) == []
    assert alarms("z-score", "loss", [*noise(25), 9.0, *noise(10)]) == [(25, "warning", "loss")]


def test_missing_and_nonfinite_values_are_passed_over() -> None:
    values: list[float | None] = [*noise(30), None, math.nan, math.inf, None, 9.0]
    for peer in ("z-score", "cusum"):
        assert alarms(peer, "loss", values) == [(34, "warning", "loss")]


def test_huge_values_are_no_error() -> None:
    for peer in ("z-score", "cusum", "fixed"):
        assert alarms(peer, "loss", [*noise(30), *[1e200] * 3])[0][2] == "loss"
        assert alarms(peer, "loss", [1e300] * 40) is not None


def test_fixed_limits_need_three_rows_outside() -> None:
    assert alarms("fixed", "grad_norm", [1.0, 20.0, 20.0, 1.0, 20.0, 20.0]) == []
    assert alarms("fixed", "grad_norm", [1.0, 20.0, math.nan, 20.0, 20.0]) == [(3, "warning", "grad_norm")]


def test_the_fixed_limit_of_kl_depends_on_its_unit() -> None:
    (peer,) = open_peers(["fixed"]).values()
    events = events_of("kl_mean", [5.0] * 4)
    assert peer.ask(events, "trl-grpo") == [(2, "warning", "kl_mean")]
    assert peer.ask(events, "trl-ppo") == []
    assert peer.ask(events, "trl-ppo", {"kl_mean": "token"}) == [(2, "warning", "kl_mean")]
    events[0].model_info["reductions"] = {"kl_mean": "sequence"}
    assert peer.ask(events, "trl-grpo") == []


def test_preference_training_has_main_metrics_of_its_own() -> None:
    values = [*noise(40), 9.0]
    assert alarms("z-score", "preference_margin", values, "trl-dpo") == [(40, "warning", "preference_margin")]
    assert alarms("z-score", "preference_margin", values) == []


def plain_cusum(values: Sequence[float]) -> list[int]:
    """The rows of the alarms, by the recursion as the textbook writes it."""
    baseline, slack, limit, pause = 25, 0.5, 5.0, 50
    first = values[:baseline]
    mean = math.fsum(first) / baseline
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in first) / (baseline - 1))
    up = down = 0.0
    signals: list[int] = []
    for row in range(baseline, len(values)):
        if signals and row < signals[-1] + pause:
            continue
        z = (values[row] - mean) / spread
        up, down = max(0.0, up + z - slack), max(0.0, down - z - slack)
        if max(up, down) > limit:
            signals.append(row)
            up = down = 0.0
    return signals


@pytest.mark.parametrize("seed", range(20))
def test_cusum_agrees_with_a_plain_loop(seed: int) -> None:
    draw = random.Random(seed)
    values = [draw.gauss(0.0, 1.0) + draw.choice((0.0, 0.002, -0.01)) * row for row in range(300)]
    assert [row for row, _, _ in cusum(events_of("loss", values))] == plain_cusum(values)


def test_a_peers_name_takes_one_metric_for_the_whole_run() -> None:
    events = [Event(1, {"policy_loss": 2.0}), Event(2, {"loss": 3.0, "policy_loss": 4.0}), Event(3, {"entropy_mean": 1.0})]
    names = {"loss": ("loss", "policy_loss"), "kl": ("kl_mean",)}
    assert rows_of(events, names) == [(1, {}), (2, {"loss": 3.0}), (3, {})]


def test_kl_per_token() -> None:
    assert per_token_kl(Event(1, {"kl_mean": 6.0, "rollout_length_mean": 20.0})) == 0.3
    assert per_token_kl(Event(1, {"kl_mean": 6.0, "rollout_length_mean": 20.0, "kl_mean_per_token": 0.2})) == 0.2
    assert per_token_kl(Event(1, {"kl_mean": 6.0})) is None
    assert kl_is_by_sequence([], "trl-ppo", None) and not kl_is_by_sequence([], "trl-grpo", None)


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected names of peers, .* got \['nagios'\]"):
        open_peers(["nagios"])
