"""Healthy runs: finite, within their ranges, consistent in themselves, and as varied as real ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.catalog import CATALOG
from rldk.core.event import Event
from rldk.testing.streams import PROFILES, healthy, simulate

FRACTIONS = ("clip_frac", "eos_frac", "truncated_frac", "reward_zero_std_frac", "memory_usage", "preference_accuracy")
POSITIVE = ("kl_std", "entropy_mean", "ratio_std", "lr", "kl_coef", "step_time", "tokens_per_second", "gpu_memory_gb")
FULL_PPO = {
    "reward_mean", "reward_std", "reward_min", "reward_max", "kl_mean", "kl_std", "kl_coef", "kl_update",
    "entropy_mean", "clip_frac", "ratio_mean", "ratio_std", "policy_loss", "value_loss", "loss", "policy_grad_norm",
    "value_grad_norm", "grad_norm", "lr", "advantage_mean", "advantage_std", "advantage_min", "advantage_max",
    "value_mean", "value_std", "explained_variance", "rollout_length_mean", "rollout_length_std", "eos_frac",
    "truncated_frac", "tokens_per_second", "step_time", "gpu_memory_gb",
}  # fmt: skip


def column(events: list[Event], name: str) -> npt.NDArray[np.float64]:
    return np.array([event.metrics[name] for event in events if name in event.metrics])


def rows(profile: str, **options: Any) -> list[Event]:
    return healthy(profile, steps=options.pop("steps", 300), **options)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PROFILES)), st.integers(0, 2**32), st.integers(2, 250))
def test_every_value_is_finite_and_in_range(profile: str, seed: int, steps: int) -> None:
    for event in healthy(profile, steps, seed):
        assert all(math.isfinite(value) for value in event.metrics.values())
        assert all(0 <= event.metrics[name] <= 1 for name in FRACTIONS if name in event.metrics)
        assert all(event.metrics[name] > 0 for name in POSITIVE if name in event.metrics)
        assert abs(event.metrics.get("length_reward_corr", 0.0)) <= 1 + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["ppo", "ppo_token"]), st.integers(0, 10**6))
def test_extremes_enclose_the_mean(profile: str, seed: int) -> None:
    for event in healthy(profile, 60, seed):
        metrics = event.metrics
        assert metrics["reward_min"] - 1e-9 <= metrics["reward_mean"] <= metrics["reward_max"] + 1e-9
        assert metrics["advantage_min"] < metrics["advantage_mean"] < metrics["advantage_max"]
        assert metrics["eos_frac"] == pytest.approx(1 - metrics["truncated_frac"])
        assert metrics["grad_norm"] == pytest.approx(math.hypot(metrics["policy_grad_norm"], metrics["value_grad_norm"]))


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_names_are_those_of_the_catalogue(profile: str) -> None:
    for seed in range(20):
        names = set(healthy(profile, 100, seed)[0].metrics)
        assert {name for name in names if name.removeprefix("eval_") not in CATALOG} == set()


@pytest.mark.parametrize("profile", ["ppo", "ppo_token"])
def test_ppo_logs_what_ppo_can_log(profile: str) -> None:
    assert set(rows(profile)[50].metrics) >= FULL_PPO


@pytest.mark.parametrize("seed", range(5))
def test_the_coefficient_obeys_the_controller(seed: int) -> None:
    stream = simulate("ppo", 500, seed)
    coef = stream.traits.kl_coef
    for event in stream.events:
        assert event.metrics["kl_coef"] == pytest.approx(coef, rel=1e-9)
        error = event.metrics["kl_mean"] / event.metrics["target_kl"] - 1
        coef *= 1 + max(-0.2, min(0.2, error)) * stream.traits.controller_rate


def test_a_fixed_coefficient_stays() -> None:
    assert len(set(column(rows("ppo_token"), "kl_coef"))) == 1


def test_the_kl_settles_near_its_target() -> None:
    ends = [column(healthy("ppo", seed=seed), "kl_mean")[-200:].mean() / 6.0 for seed in range(20)]
    assert min(ends) > 0.7 and max(ends) < 1.5


def test_the_reward_is_learnt() -> None:
    for profile in ("ppo", "ppo_token", "grpo"):
        for seed in range(12):
            reward = column(healthy(profile, seed=seed, reward_kind="graded", reward_start=0.3, reward_end=0.8), "reward_mean")
            assert reward[-len(reward) // 4 :].mean() > reward[: max(len(reward) // 20, 2)].mean() + 0.1


def test_wall_time_is_the_sum_of_the_steps() -> None:
    events = rows("ppo", seed=4)
    times = [event.wall_time for event in events]
    steps = column(events, "step_time")
    assert np.diff(np.array(times, dtype=float)) == pytest.approx(steps[1:], rel=1e-4)


def test_binary_rewards_are_whole_answers() -> None:
    stream = simulate("grpo", 200, 1, reward_kind="binary", reward_scale=1.0, reward_offset=0.0, log_every=1, gen_every=1)
    counts = column(stream.events, "reward_mean") * stream.traits.batch
    assert counts == pytest.approx(np.rint(counts), abs=1e-9)


def test_groups_without_spread_are_counted_and_give_no_gradient() -> None:
    stream = simulate("grpo", 400, 2, reward_kind="binary", zero_grads=True, log_every=1, gen_every=1, groups=2, group_size=4)
    assert stream.batch is not None
    flat = np.ptp(stream.batch.grouped, axis=2) == 0
    assert column(stream.events, "reward_zero_std_frac") == pytest.approx(flat.mean(axis=1))
    gradients = column(stream.events, "grad_norm")
    assert ((gradients == 0) == flat[:, -1]).all() and 0.02 < (gradients == 0).mean() < 0.98


def test_sparse_rows_and_generation_metrics_now_and_then() -> None:
    events = healthy("grpo", 1000, 0, log_every=20, gen_every=4)
    assert [event.step for event in events] == list(range(20, 1001, 20))
    assert ["reward_mean" in event.metrics for event in events[:8]] == [True, False, False, False] * 2
    assert all({"loss", "grad_norm", "lr"} <= set(event.metrics) for event in events)


def test_no_kl_where_there_is_no_reference() -> None:
    assert not any("kl_mean" in event.metrics for event in rows("grpo", kl_logged=False))


def test_one_update_a_batch_clips_nothing() -> None:
    assert not column(rows("grpo", updates=1), "clip_frac").any()


def test_all_responses_at_the_cap() -> None:
    stream = simulate("grpo", 100, 3, at_cap=True, log_every=1, gen_every=1)
    assert set(column(stream.events, "rollout_length_mean")) == {float(stream.traits.length_cap)}
    assert set(column(stream.events, "truncated_frac")) == {1.0}
    assert not any("length_reward_corr" in event.metrics for event in stream.events)


def test_whitened_advantages_say_nothing_of_mean_and_spread() -> None:
    events = rows("ppo", whiten=True)
    assert np.abs(column(events, "advantage_mean")).max() < 1e-6
    assert column(events, "advantage_std") == pytest.approx(1.0, abs=2e-3)


def test_dips_are_deep_and_recover() -> None:
    pins = {"reward_kind": "score", "reward_start": 0.0, "reward_end": 2.0, "reward_spread": 1.0, "curve": "early"}
    for seed in range(6):
        calm, dipped = (column(healthy("ppo", seed=seed, dips=dips, **pins), "reward_mean") for dips in (0, 2))
        assert (calm - dipped).max() > 0.2
        assert (calm - dipped > 0.1).mean() < 0.2
        assert (calm == dipped).mean() > 0.3


def test_a_hundred_seeds_cover_the_traits() -> None:
    traits = [simulate("grpo", 2, seed).traits for seed in range(100)]
    assert {trait.reward_kind for trait in traits} == {"binary", "graded", "mixed"}
    assert {1, 5, 10, 20} <= {trait.log_every for trait in traits}
    for shown in (
        [trait.at_cap for trait in traits],
        [trait.zero_grads for trait in traits],
        [not trait.kl_logged for trait in traits],
        [trait.gen_every > 1 for trait in traits],
        [trait.updates == 1 for trait in traits],
        [trait.entropy_start < 0.05 for trait in traits],
        [trait.grad_scale < 0.02 for trait in traits],
        [trait.reward_start == 0.85 for trait in traits],
        [trait.dips > 0 for trait in traits],
        [trait.kl_spikes > 0 for trait in traits],
        [trait.excursions > 0 for trait in traits],
        [trait.length_end < 0.5 * trait.length_start for trait in traits],
    ):
        assert 3 <= sum(shown) <= 90
