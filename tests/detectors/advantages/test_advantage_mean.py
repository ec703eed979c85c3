"""What the mean of the advantages tells: bias, trend and volatility; and where it tells nothing."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.advantages.advantage_bias_anomaly import AdvantageBias
from rldk.detectors.advantages.advantage_normalization_anomaly import AdvantageNormalization
from rldk.detectors.advantages.advantage_trend_anomaly import AdvantageTrend
from rldk.detectors.advantages.advantage_volatility_anomaly import AdvantageVolatility

KINDS = (AdvantageBias, AdvantageTrend, AdvantageVolatility)
ROWS = 400
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def stream(mean: np.ndarray, std: float = 1.5, **more: np.ndarray) -> dict[str, np.ndarray]:
    return {"advantage_mean": mean, "advantage_std": std * np.exp(noise(0.1, 1)), **more}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_mean_near_zero_is_silent(where, kind, seed):
    assert where(kind(), stream(noise(0.3, seed))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_function_that_starts_from_nothing_is_silent(where, kind):
    assert where(kind(), stream(4.0 * np.exp(-AT / 30.0) + noise(0.1))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_reward_itself_as_the_mean_is_silent(where, kind):
    reward = np.clip(AT / 200.0, 0.05, 1.0) + noise(0.02)
    assert where(kind(), stream(reward, 0.3, reward_mean=reward)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stated", [True, False])
def test_whitened_advantages_are_not_judged(where, kind, stated):
    mean = noise(0.001) + np.where(AT < 200, 0.0, np.clip((AT - 200) / 100.0, 0.0, 2.0))
    whitened = {"advantage_mean": mean, "advantage_std": np.ones(ROWS)}
    if stated:
        whitened["advantage_normalized"] = np.ones(ROWS)
    assert where(kind(), whitened) == []


def test_raw_advantages_are_judged_though_they_are_whitened_for_use(where):
    raw = {"advantage_normalized": np.ones(ROWS), "advantage_raw": np.ones(ROWS)}
    shifted = noise(0.2) + np.where((AT >= 200) & (AT < 300), 3.0, 0.0)
    assert where(AdvantageBias(), stream(shifted, **raw)) == [(221, "warning")]
    assert where(AdvantageNormalization(), stream(shifted, **raw)) == []


def test_bias(judge):
    mean = noise(0.2) + np.where((AT >= 200) & (AT < 300), 3.0, 0.0)
    (anomaly,) = judge(AdvantageBias(), stream(mean))
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (221, "warning", 202, 306)
    assert anomaly.family == "advantage_statistics"


def test_a_bias_there_from_the_start_must_grow(where):
    assert where(AdvantageBias(), stream(noise(0.2) + 3.0)) == []
    assert where(AdvantageBias(), stream(noise(0.2) + np.where(AT < 200, 2.0, 9.0))) == [(221, "warning")]


def test_trend(judge):
    mean = noise(0.05) + np.clip(AT - 150, 0, 150) * 0.01
    (anomaly,) = judge(AdvantageTrend(), stream(mean))
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (249, "warning", 349)
    assert "in one direction" in anomaly.message


def test_a_jump_is_no_trend(where):
    assert where(AdvantageTrend(), stream(noise(0.05) + np.where(AT < 200, 0.0, 1.2))) == []


def test_volatility(judge):
    mean = noise(0.1) + np.where((AT >= 200) & (AT < 300), 2.0 * (-1.0) ** AT, 0.0)
    (anomaly,) = judge(AdvantageVolatility(), stream(mean))
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (216, "warning", 321)


def test_a_batch_that_is_noisy_from_the_start_is_silent(where):
    assert where(AdvantageVolatility(), stream(noise(1.5))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_without_a_spread_is_not_judged(inactive, kind):
    assert inactive(kind(), {"advantage_mean": noise(1.0)}) == [(kind.type, ["advantage_std"])]


ON_POLICY = {"steps_per_generation": 4, "gradient_accumulation_steps": 4}


@pytest.mark.parametrize(
    ("loss", "passes", "found"), [(-0.8, 1.0, ["loss_off_centre"]), (0.05, 1.0, []), (-0.8, 2.0, [])]
)
def test_the_loss_of_centred_advantages_is_zero_while_the_ratio_is_one(told, loss, passes, found):
    rows = {"loss": loss, "advantage_std": 1.0, "advantage_mean": 0.0, "num_generations": 8.0, "num_iterations": passes}
    rows |= {"kl_mean": 0.3, "kl_coef": 0.1, "advantage_normalized": 1.0}
    columns = {name: np.full(60, value) for name, value in rows.items()}
    assert [clause for *_, clause in told(AdvantageBias(), columns, None, ON_POLICY)] == found
    assert told(AdvantageBias(), columns) == []  # nothing is known of the settings


def test_a_penalty_in_the_loss_is_no_advantage(told):
    rows = {"loss": 0.6, "advantage_std": 1.0, "advantage_mean": 0.0, "num_generations": 8.0, "num_iterations": 1.0}
    columns = {name: np.full(60, value) for name, value in {**rows, "kl_mean": 6.0, "kl_coef": 0.1}.items()}
    assert told(AdvantageBias(), columns, None, ON_POLICY) == []
