"""Where runs part: noise and seeds do not count, lasting differences do, at the step at which they begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldk.comparison.aligned import align
from rldk.comparison.divergence import CERTAIN, Divergence, chance_of, distances, divergences
from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.judge.result import Result
from rldk.judge.scan import judge_run
from rldk.testing.streams import faulty, healthy


@pytest.fixture
def judged(tmp_path: Path) -> Any:
    def make(events: list[Event], name: str) -> Result:
        path = tmp_path / f"{name}.jsonl"
        for event in events:
            event.model_info["run_id"] = name
        path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
        return judge_run(read_runs(path).runs[0])

    return make


def noisy(rows: int = 80, seed: int = 0, every: int = 1, **change: Any) -> list[Event]:
    """A run with a rising reward and noise; `change` gives metrics that are changed from step 40 on."""
    rng = np.random.default_rng(seed)
    events = []
    for step in range(every, rows + 1, every):
        metrics = {
            "reward_mean": 0.01 * step + 0.05 * rng.normal(), "kl_mean": 0.05 * np.exp(0.1 * rng.normal()),
            "entropy_mean": 1.5 + 0.05 * rng.normal(), "lr": 1e-5,
        }  # fmt: skip
        for name, act in change.items():
            metrics[name] = act(metrics[name]) if step >= 40 else metrics[name]
        events.append(Event(step, {name: float(value) for name, value in metrics.items()}))
    return events


def first(judged: Any, one: list[Event], other: list[Event]) -> Divergence | None:
    found = divergences([judged(one, "one")], [judged(other, "other")])
    return found[0] if found else None


def test_seeds_do_not_diverge(judged: Any) -> None:
    runs = [judged(noisy(seed=seed), f"seed{seed}") for seed in range(6)]
    assert not [divergences([one], [other]) for one in runs for other in runs if divergences([one], [other])]


@pytest.mark.parametrize(
    ("name", "act"),
    [("reward_mean", lambda was: was - 0.9), ("entropy_mean", lambda was: 0.2 * was), ("kl_mean", lambda was: 20 * was)],
)
def test_a_lasting_change_is_found_soon_after_it(judged: Any, name: str, act: Any) -> None:
    found = first(judged, noisy(seed=1), noisy(seed=2, **{name: act}))
    assert found is not None and found.metric == name and 40 <= found.certain_step <= 48 and found.step <= found.certain_step
    assert found.confidence > 1 - CERTAIN


def drifting(curves: dict[str, Any], seed: int, correlation: float = 0.0, rows: int = 150) -> list[Event]:
    """A run with the given curves (a function of the share of the run that is over, and the noise)."""
    rng = np.random.default_rng(seed)
    noise = dict.fromkeys(curves, 0.0)
    events = []
    for step in range(rows):
        for name in noise:
            noise[name] = correlation * noise[name] + (1 - correlation**2) ** 0.5 * rng.normal()
        events.append(Event(step, {name: curve(step / rows) + size * noise[name] for name, (curve, size) in curves.items()}))
    return events


STEADY = {"reward_mean": (lambda p: 0.3 + 0.2 * p, 0.02), "entropy_mean": (lambda p: 1.2 - 0.2 * p, 0.02)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "curve", "begins"),
    [
        ("reward_mean", lambda p: 0.3, 0),
        ("entropy_mean", lambda p: 1.2 * np.exp(-6 * max(0.0, p - 0.4)), 60),
        ("entropy_mean", lambda p: 1.2 - 1.1 * p, 0),
    ],
)
def test_a_slow_drift_is_found_with_the_step_from_which_it_is_beyond_the_noise(
    judged: Any, name: str, curve: Any, begins: int, seed: int
) -> None:
    found = first(judged, drifting(STEADY, seed), drifting({**STEADY, name: (curve, 0.02)}, seed + 100))
    assert found is not None and found.metric == name and found.left > found.right
    assert begins + 10 <= found.step <= begins + 100 and found.step + 20 <= found.certain_step <= begins + 130


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
def test_noise_is_not_a_drift_even_if_it_is_autocorrelated(judged: Any, correlation: float) -> None:
    runs = [judged(drifting(STEADY, seed, correlation), f"seed{seed}") for seed in range(8)]
    assert [found for one in runs for other in runs if (found := divergences([one], [other]))] == []


def test_the_zero_and_the_scale_of_the_reward_change_no_distance(judged: Any) -> None:
    def moved(events: list[Event]) -> list[Event]:
        for event in events:
            event.metrics["reward_mean"] = 50.0 + 7.0 * event.metrics["reward_mean"]
        return events

    fall = {"reward_mean": lambda value: value - 0.9}
    pairs = [(noisy(seed=1), noisy(seed=2, **fall)), (moved(noisy(seed=1)), moved(noisy(seed=2, **fall)))]
    far = []
    for one, other in pairs:
        aligned = align("reward_mean", [judged(one, "one").run], [judged(other, "other").run])
        assert aligned is not None
        far.append(distances(aligned)[1])
    assert far[0].max() > 9 and np.allclose(*far)


def test_one_odd_row_is_not_a_divergence(judged: Any) -> None:
    odd = noisy(seed=2)
    odd[50].metrics["entropy_mean"] = 4.0
    assert first(judged, noisy(seed=1), odd) is None


def test_what_is_not_finite_in_one_run_is_a_divergence_at_once(judged: Any) -> None:
    broken = noisy(seed=2)
    broken[30].metrics["reward_mean"] = float("nan")
    found = first(judged, noisy(seed=1), broken)
    assert found is not None and found.certain_step == 31 and found.confidence >= 0.99


def test_a_setting_that_changes_in_one_run_needs_no_statistics(judged: Any) -> None:
    found = first(judged, noisy(seed=1), noisy(seed=2, lr=lambda value: 3 * value))
    assert found is not None and (found.metric, found.step, found.certain_step) == ("lr", 40, 40)


def test_runs_that_log_at_other_intervals(judged: Any) -> None:
    assert first(judged, noisy(seed=1), noisy(seed=2, every=3)) is None
    found = first(judged, noisy(seed=1, rows=160), noisy(seed=2, rows=160, every=3, entropy_mean=lambda value: 0.2 * value))
    assert found is not None and found.metric == "entropy_mean" and 40 <= found.certain_step <= 66


def test_groups_of_seeds_are_told_apart_by_less(judged: Any) -> None:
    small = {"entropy_mean": lambda value: 0.6 * value}
    plain = [judged(noisy(seed=seed), f"a{seed}") for seed in range(4)]
    lower = [judged(noisy(seed=seed + 10, **small), f"b{seed}") for seed in range(4)]
    assert divergences(plain[:2], plain[2:]) == []
    (found,) = divergences(plain, lower)
    assert found.metric == "entropy_mean" and found.left > found.right


def test_a_finding_that_only_one_run_has(judged: Any) -> None:
    bad = judged(faulty("entropy_explosion", seed=1, steps=200, onset=80), "bad")
    good = judged(healthy("ppo", 200, seed=1), "good")
    found = divergences([good], [bad])
    assert any(one.finding and one.found_in == "right" for one in found) and min(one.certain_step for one in found) >= 80
    assert any(one.found_in == "left" for one in divergences([bad], [good]) if one.finding)


def test_chances_fall_with_the_distance_and_rise_with_the_number_of_windows() -> None:
    assert chance_of(0.0, 100) == 1.0 and chance_of(float("inf"), 100) == 0.0
    chances = [chance_of(distance, 100) for distance in (1.0, 2.9, 7.0, 10.0, 20.0)]
    assert chances == sorted(chances, reverse=True) and chances[1] == pytest.approx(0.5, abs=0.05) and chances[-2] < CERTAIN
    assert chance_of(10.0, 100_000) > CERTAIN
