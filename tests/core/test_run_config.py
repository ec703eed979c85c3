"""Settings of a run: knobs under one name, whoever they are from, and nothing secret written down."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pytest

from rldk.core.knobs import KNOBS
from rldk.core.run_config import RunConfig, clean_settings

TRL_GRPO = {"learning_rate": 1e-6, "beta": 0.04, "epsilon": 0.2, "num_generations": 8, "max_completion_length": 256, "bf16": True}
TRL_PPO = {"learning_rate": 3e-6, "kl_coef": 0.05, "cliprange": 0.2, "num_ppo_epochs": 4, "response_length": 53, "vf_coef": 0.1}
VERL = {
    "actor_rollout_ref": {
        "actor": {"optim": {"lr": 1e-6}, "kl_loss_coef": 0.001, "clip_ratio": 0.2, "ppo_epochs": 1},
        "rollout": {"n": 5, "temperature": 1.0},
        "ref": {"temperature": 9.0},
    },
    "critic": {"optim": {"lr": 1e-5}},
    "data": {"train_batch_size": 1024, "max_response_length": 512},
}
WANDB = {
    "learning_rate": {"value": 1e-5, "desc": None},
    "init_kl_coef": {"value": 0.2},
    "_wandb": {"value": {"cli_version": "0.1"}},
}
MLFLOW = {"learning_rate": "1e-06", "batch_size": "64", "bf16": "True", "model_name": "tiny"}


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (TRL_GRPO, {"learning_rate": 1e-6, "kl_coef": 0.04, "clip_range": 0.2, "num_generations": 8, "max_response_length": 256,
                    "bf16": True}),
        (TRL_PPO, {"kl_coef": 0.05, "clip_range": 0.2, "num_iterations": 4, "max_response_length": 53, "value_coef": 0.1}),
        (VERL, {"learning_rate": 1e-6, "value_learning_rate": 1e-5, "kl_coef": 0.001, "num_generations": 5, "temperature": 1.0,
                "batch_size": 1024, "num_iterations": 1}),
        (WANDB, {"learning_rate": 1e-5, "kl_coef": 0.2}),
        (MLFLOW, {"learning_rate": 1e-6, "batch_size": 64, "bf16": True, "model": "tiny"}),
        ({"trainer": {"beta": -0.2}, "lr": 3e-4}, {"kl_coef": -0.2, "learning_rate": 3e-4}),
    ],
)  # fmt: skip
def test_every_framework_s_knobs_have_one_name(raw: dict[str, Any], wanted: dict[str, Any]) -> None:
    config = RunConfig.of(raw)
    assert {knob: config.get(knob) for knob in wanted} == wanted
    assert type(config.get("bf16", True)) is bool


def test_a_knob_is_also_known_by_the_name_that_the_user_gave_it() -> None:
    config = RunConfig.of({**TRL_GRPO, "arguments": "GRPOConfig"})
    assert (config.owner, config.key_of("kl_coef"), config.key_of("gamma")) == ("GRPOConfig", "beta", None)
    assert RunConfig.of(VERL).key_of("learning_rate") == "actor_rollout_ref.actor.optim.lr"


def test_a_setting_of_another_model_is_not_the_policy_s() -> None:
    assert "learning_rate" not in RunConfig.of({"critic": {"lr": 1e-5}})
    assert "learning_rate" not in RunConfig.of({"reward_model": {"learning_rate": 1e-5}})


def test_no_name_stands_for_two_knobs() -> None:
    names = [name for every in KNOBS.values() for name in every]
    assert sorted(names) == sorted(set(names))


SECRETS = {
    "hub_token": "hf_abcdefghijklmnopqrstuvwx", "push_to_hub_token": "<PUSH_TO_HUB_TOKEN>", "wandb_api_key": "0123456789abcdef",
    "WANDB_API_KEY": "x", "password": "hunter2", "db_passwd": 12345, "aws_secret_access_key": "x", "apiKey": "x", "api-key": "x",
    "openai": {"key": "sk-12"}, "auth": "me:you", "slack_webhook": "https://hooks.slack.com/services/T0/B0/x",
    "tracking_uri": "https://me:secret@mlflow.example.com", "note": "run with sk-abcdefghijklmnopqrstu please",
    "command": "train.py --api_key=abcdef123456 --lr 1", "credentials": {"user": "me"}, "private_key": "x", "authToken": "x",
    "header": "Bearer abcdefghijk", "parts": ["fine", "ghp_abcdefghijklmnopqrstuv"], "tokens": "abc",
}  # fmt: skip
HARMLESS = {
    "pad_token": "<pad>", "eos_token_id": 1, "max_new_tokens": 64, "stop_token": "eos", "include_num_input_tokens_seen": "no",
    "tokenizer_name": "gpt2", "average_tokens_across_devices": True, "num_key_value_heads": 4, "remove_unused_columns": False,
    "author": "me", "monkey": "see", "max_tokens": 12, "keys_to_keep": 3, "parts": ["fine"], "authority": 1,
}  # fmt: skip


def test_secrets_are_not_written_and_what_only_sounds_like_one_is() -> None:
    assert clean_settings({**SECRETS, **HARMLESS}) == HARMLESS
    assert clean_settings({"inner": {"deeper": {**SECRETS, **HARMLESS}}}) == {"inner": {"deeper": HARMLESS}}
    found = clean_settings(SECRETS)
    assert found == {"parts": ["fine"]}


def test_a_secret_inside_an_object_of_somebody_s_own_is_not_written_either() -> None:
    class Tracker:
        def __repr__(self) -> str:
            return "Tracker(url='https://x', token='abcdefgh')"

    assert clean_settings({"tracker": Tracker(), "lr": 1}) == {"lr": 1}


def test_long_and_deep_settings_are_bounded_and_plain() -> None:
    class Kind(Enum):
        COSINE = "cosine"

    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(50):
        inner["next"] = {"value_here": 1}
        inner = inner["next"]
    wide = {f"k{n}": n for n in range(2000)}
    found = clean_settings(
        {
            "text": "x" * 5000,
            "list": list(range(100)),
            "kind": Kind.COSINE,
            "none": None,
            "empty": {},
            "path": object,
            "deep": deep,
            "wide": wide,
        }
    )
    assert len(found["text"]) == 200 and found["text"].endswith("…")
    assert found["list"][:2] == [0, 1] and found["list"][-1] == "… 100 in all" and len(found["list"]) == 21
    assert found["kind"] == "cosine" and "none" not in found and "empty" not in found
    assert len(found["wide"]) == 500
    assert len(json.dumps(found)) < 20_000


def test_what_rldk_was_told_is_kept_apart_and_fits_a_scan() -> None:
    told = {
        "limits": {"kl_mean": {"max": 0.2}},
        "kl_target": 6.0,
        "min_scores": {"overall_health": 0.5},
        "per": {"kl_mean": "sequence"},
    }
    config = RunConfig.of({"learning_rate": 1e-5, "rldk": told})
    assert config.rldk == told and "rldk" not in config.raw
    assert config.scan_settings() == {"limits": {"kl_mean": {"max": 0.2}}, "kl_target": 6.0}
    assert RunConfig.of(config.to_dict()) == config
    assert RunConfig().scan_settings() == {}


def test_what_one_place_does_not_say_another_may() -> None:
    events, beside = RunConfig.of({"beta": 0.1}, "the log"), RunConfig.of({"beta": 0.9, "learning_rate": 1.0}, "config.json")
    both = events.with_defaults(beside)
    assert dict(both) == {"kl_coef": 0.1, "learning_rate": 1.0} and both.source == "the log, config.json"
    assert RunConfig().with_defaults(beside) is beside and beside.with_defaults(RunConfig()) is beside


def test_an_empty_config_says_nothing() -> None:
    assert not RunConfig() and len(RunConfig()) == 0 and RunConfig().get("kl_coef") is None
    assert RunConfig.of({"strange": 1}) and not len(RunConfig.of({"strange": 1}))


def test_settings_that_hold_themselves_or_unfold_without_end_are_cut() -> None:
    circle: list[object] = [1]
    circle.append(circle)
    fold: list[object] = ["x"]
    for _ in range(12):
        fold = [fold] * 9  # 9 to the power of 12 in all
    wide: dict[str, object] = {"x": 1}
    for _ in range(6):
        wide = {f"k{n}": wide for n in range(100)}
    config = RunConfig.of({"learning_rate": 1e-5, "circle": circle, "fold": fold, "wide": wide, "beta": 0.1, "size": 10**400})
    assert config.raw["size"] == float("inf")  # as any number that is too large
    assert dict(config) == {"learning_rate": 1e-5, "kl_coef": 0.1}
    assert config.raw["circle"][0] == 1 and len(str(config.raw)) < 10_000_000
