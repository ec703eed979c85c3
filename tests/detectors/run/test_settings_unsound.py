"""Settings with which training cannot work, told at the first row."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.detectors.run.settings_unsound import SettingsUnsound
from rldk.judge.engine import Engine

ROWS = {"reward_mean": np.full(5, 0.5)}


@pytest.mark.parametrize(
    ("settings", "severity", "clause"),
    [
        ({"gamma": 0.5, "response_length": 100}, "warning", "discounted"),
        ({"gamma": 0.0, "response_length": 24}, "warning", "discounted"),
        ({"gamma": 0.99, "max_new_tokens": 2048}, "warning", "discounted"),
        ({"learning_rate": 1e-3, "weight_decay": 10.0}, "warning", "weights_shrink"),
        ({"warmup_steps": 500, "max_steps": 100}, "warning", "never_warm"),
        ({"warmup_ratio": 1.0}, "warning", "never_warm"),
        ({"adam_epsilon": 1.0}, "warning", "epsilon_large"),
        ({"max_grad_norm": 1e-6}, "note", "gradients_cut"),
        ({"label_smoothing": 0.5}, "warning", "labels_smoothed"),
        ({"reward_weights": [1.0, -0.5]}, "warning", "reward_weight"),
        ({"reward_weights": [0.0, 1.0]}, "note", "weightless"),
        ({"gamma": 1.3}, "warning", "grows"),
        ({"top_entropy_quantile": 0.01}, "warning", "few_tokens"),
        ({"peft_config": {"r": 8, "lora_alpha": 0.01}}, "warning", "adapter_scale"),
        ({"lora_rank": 8, "lora_alpha": 600}, "warning", "adapter_scale"),
        ({"sync_ref_model": True, "ref_model_sync_steps": 1, "ref_model_mixup_alpha": 1.0}, "warning", "reference_follows"),
        ({"entropy_coef": 0.5, "response_length": 64}, "warning", "entropy_bonus"),
    ],
)
def test_a_setting_that_cannot_work_is_told_in_the_first_row(told, settings, severity, clause):
    assert told(SettingsUnsound(), ROWS, None, settings) == [(0, severity, clause)]


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 1.0, "response_length": 1000},
        {"gamma": 0.99, "response_length": 100},
        {"gamma": 0.9},  # a control task: nothing is known of a response
        {"learning_rate": 1e-6, "weight_decay": 0.1},
        {"warmup_steps": 10, "max_steps": 100},
        {"warmup_steps": 500, "max_steps": -1},
        {"warmup_steps": 500, "num_steps": 128, "total_timesteps": 1_000_000},
        {"warmup_ratio": 0.1},
        {"adam_epsilon": 1e-8},
        {"max_grad_norm": 1.0},
        {"max_grad_norm": 0.0},
        {"label_smoothing": 0.1},
        {"reward_weights": [1.0, 0.5]},
        {"reward_weights": [0.0]},
        {"top_entropy_quantile": 0.2},
        {"peft_config": {"r": 16, "lora_alpha": 32}},
        {"lora_rank": 0, "lora_alpha": 16},
        {"sync_ref_model": True, "ref_model_sync_steps": 512},
        {"sync_ref_model": False, "ref_model_sync_steps": 1},
        {"entropy_coef": 0.01, "response_length": 64},
        {"ent_coef": 0.2},
        {"gamma": 0.0, "response_length": -1},
        {"adam_epsilon": float("nan"), "max_grad_norm": -(10**400), "lora_alpha": float("inf"), "lora_rank": float("nan")},
        {"reward_weights": "1.0,-1.0"},
        {"gamma": "none", "adam_epsilon": None},
        {},
    ],
)
def test_what_recipes_use_and_what_cannot_be_read_is_silent(told, settings):
    assert told(SettingsUnsound(), ROWS, None, settings) == []


def test_the_message_names_the_setting_as_the_user_wrote_it():
    engine = Engine([SettingsUnsound()])
    (anomaly,) = engine.observe(Event(1, {"reward_mean": 0.5}, model_info={"config": {"optim": {"adam_eps": 0.5}}}))
    assert anomaly.message.startswith("`optim.adam_eps` is 0.5: ")
    assert anomaly.message.endswith("Recipes use 1e-8.")


def test_settings_survive_saving_and_loading():
    first, second = Engine([SettingsUnsound()]), Engine([SettingsUnsound()])
    first.take_settings({"gamma": 0.5, "response_length": 100})
    for step in range(3):
        first.observe(Event(step, {"reward_mean": 0.5}))
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.view.setting("gamma") == 0.5
    for step in range(3, 20):
        assert second.observe(Event(step, {"reward_mean": 0.5})) == []
    assert [anomaly.cleared_index for anomaly in second.anomalies] == [None]


def test_settings_that_are_known_are_not_replaced():
    engine = Engine([])
    engine.take_settings(RunConfig.of({"gamma": 1.0}))
    engine.observe(Event(0, {"reward_mean": 0.5}, model_info={"config": {"gamma": 0.1}}))
    assert engine.view.setting("gamma") == 1.0
    assert np.isnan(engine.view.setting("lam"))


def test_without_settings_it_is_inactive(inactive):
    assert inactive(SettingsUnsound(), ROWS) == [("settings_unsound", ["config"])]


@pytest.mark.parametrize(
    ("limits", "found"), [([-0.1, 0.05], [(2, "warning", "reward_clipped")]), ([-5.0, 5.0], []), ([1.0], [])]
)
def test_rewards_that_are_clipped_to_less_than_their_spread(told, limits, found):
    rows = {"reward_mean": np.full(5, 0.5), "reward_std": np.full(5, 1.0)}
    assert told(SettingsUnsound(), rows, None, {"reward_clip_range": limits}) == found
