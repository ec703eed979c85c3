"""Every fault moves what it says it moves, on every profile, compared with its healthy twin."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from rldk.core.catalog import CATALOG
from rldk.core.event import Event
from rldk.testing.streams import FAULTS, PROFILES, faulty, twin

SEEDS = range(3)
MOVES = [(name, profile) for name, fault in FAULTS.items() if fault.moves for profile in fault.profiles]


def late(events: list[Event], name: str, after: int = 800) -> npt.NDArray[np.float64]:
    return np.array([event.metrics[name] for event in events if event.step > after and name in event.metrics])


def between(events: list[Event], name: str, first: int, last: int) -> npt.NDArray[np.float64]:
    return np.array([event.metrics[name] for event in events if first <= event.step <= last and name in event.metrics])


@pytest.mark.parametrize(("name", "profile", "seed"), [(*case, number % 3) for number, case in enumerate(MOVES)])
def test_a_fault_moves_what_it_says(name: str, profile: str, seed: int) -> None:
    sick, well = faulty(name, profile, seed=seed), twin(name, profile, seed=seed)
    for metric, way in FAULTS[name].moves.items():
        usual, found = late(well, metric), late(sick, metric)
        shift = found.mean() - usual.mean() if way == "up" else usual.mean() - found.mean()
        noise = 1.4826 * float(np.median(np.abs(usual - np.median(usual))))
        assert shift > 4 * noise / math.sqrt(len(usual)), metric
        assert shift > 0.2 * abs(float(np.median(usual))), metric


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_the_table_is_in_order(fault: object) -> None:
    entry = FAULTS[fault.name]  # type: ignore[attr-defined]
    assert entry.description.endswith(".") and "\n" not in entry.description
    assert entry.profiles and set(entry.profiles) <= set(PROFILES)
    assert entry.expects and entry.onset in (1, 400)
    assert set(entry.moves) <= set(CATALOG) and set(entry.moves.values()) <= {"up", "down"}


def test_the_failures_that_kill_runs_are_there() -> None:
    wanted = {
        "policy_collapse", "entropy_collapse", "entropy_explosion", "reward_hacking", "reward_saturation",
        "dead_reward", "plateau", "length_runaway", "length_collapse", "eos_starvation", "kl_explosion", "kl_spike",
        "clip_saturation", "ratio_explosion", "value_divergence", "loss_explosion", "exploding_gradients",
        "vanishing_gradients", "nonfinite_metric", "learning_rate_too_high", "controller_stuck",
        "controller_oscillation", "throughput_drop", "memory_pressure", "train_inference_mismatch", "length_bias",
        "preference_degenerate",
    }  # fmt: skip
    assert wanted <= set(FAULTS)


@pytest.mark.parametrize("profile", FAULTS["kl_spike"].profiles)
def test_a_kl_spike_lasts_and_passes(profile: str) -> None:
    for seed in SEEDS:
        events = faulty("kl_spike", profile, seed=seed, kl_spikes=0.0, schedule="constant")
        usual = np.median(between(events, "kl_mean", 300, 399))
        assert np.median(between(events, "kl_mean", 405, 420)) > 4 * usual
        assert np.median(between(events, "kl_mean", 700, 1000)) < 3 * usual


@pytest.mark.parametrize("profile", FAULTS["nonfinite_metric"].profiles)
def test_the_gradient_norm_tells_of_numbers_that_are_none(profile: str) -> None:
    hidden = set()
    for seed in range(8):
        events = faulty("nonfinite_metric", profile, seed=seed)
        norms = [event.metrics["grad_norm"] for event in events]
        first = next(index for index, norm in enumerate(norms) if math.isnan(norm))
        assert 400 < events[first].step <= 440
        assert all(math.isnan(norm) for norm in norms[first:])
        hidden.add(events[-1].metrics["loss"] == 0.0)
    assert hidden == {True, False}


def test_biased_advantages_lean_by_more_than_half_their_spread() -> None:
    for seed in SEEDS:
        events = faulty("advantage_bias", seed=seed)
        assert abs(float(np.median(late(events, "advantage_mean") / late(events, "advantage_std")))) > 0.5


def test_an_oscillating_controller_swings_around_the_target() -> None:
    for seed in SEEDS:
        sick, well = faulty("controller_oscillation", seed=seed), twin("controller_oscillation", seed=seed)
        swing, usual = (float(np.std(np.diff(np.log(late(events, "kl_coef"))))) for events in (sick, well))
        assert swing > 3 * usual
        smooth = np.convolve(late(sick, "kl_mean", 500), np.ones(5) / 5, "valid") > 6.0
        assert 4 <= int(np.abs(np.diff(smooth.astype(int))).sum()) <= 150


def test_a_stuck_controller_does_not_answer() -> None:
    events = faulty("controller_stuck", seed=2)
    assert len(set(late(events, "kl_coef", 400))) == 1
    assert len(set(between(events, "kl_coef", 1, 399))) > 300


def test_a_regression_of_the_counter_happens_once() -> None:
    steps = np.array([event.step for event in faulty("step_regression", seed=1)])
    assert (np.diff(steps) < 0).sum() == 1
    assert steps[399] < 400 and steps[398] == 399


def test_a_learning_rate_too_high_ends_calm() -> None:
    for seed in SEEDS:
        events = faulty("learning_rate_too_high", seed=seed)
        assert between(events, "kl_update", 2, 15).max() > 0.05
        assert between(events, "clip_frac", 2, 15).max() > 0.2
        assert late(events, "kl_update").max() < 1e-3


def test_a_dead_reward_has_no_spread_and_no_useful_group() -> None:
    events = faulty("dead_reward", "grpo", seed=0)
    assert late(events, "reward_std", 0).max() < 1e-9
    assert set(late(events, "reward_zero_std_frac", 0)) == {1.0}


def test_the_held_out_reward_tells_hacking_from_learning() -> None:
    for seed in SEEDS:
        sick, well = faulty("reward_hacking", seed=seed), twin("reward_hacking", seed=seed)
        assert late(sick, "eval_reward_mean").mean() < late(well, "eval_reward_mean").mean()
        assert late(sick, "reward_mean").mean() > late(well, "reward_mean").mean()


def test_responses_show_the_length_bias() -> None:
    for profile in FAULTS["length_bias"].profiles:
        corr = late(faulty("length_bias", profile, seed=1, reward_kind="graded"), "length_reward_corr")
        assert corr.mean() > 0.5


@pytest.mark.parametrize(
    ("name", "metric"), [("kl_explosion", "kl_mean"), ("throughput_drop", "step_time"), ("exploding_gradients", "grad_norm")]
)
def test_severity_scales_the_damage(name: str, metric: str) -> None:
    mild, usual, grave = (late(faulty(name, seed=4, severity=severity), metric).mean() for severity in (0.5, 1.0, 1.5))
    assert mild < usual < grave


def test_most_faults_take_their_time() -> None:
    """Ten steps after the onset none of the slow ones has gone half its way."""
    for name, metric in (("kl_explosion", "kl_mean"), ("value_divergence", "value_loss"), ("memory_pressure", "gpu_memory_gb")):
        events = faulty(name, seed=5)
        start, soon, end = (
            float(np.median(part))
            for part in (between(events, metric, 380, 399), between(events, metric, 400, 410), late(events, metric))
        )
        assert soon - start < 0.5 * (end - start)
