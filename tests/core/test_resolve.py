"""From a logged row to canonical metrics: units kept apart, rows told apart, and nothing invented."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.catalog import CATALOG, FRAMEWORKS, Resolution, check_field_map, plan_for, resolve
from rldk.core.errors import UsageError
from rldk.core.jsonio import to_number
from rldk.runs.build import build_runs
from rldk.runs.table import TableBuilder

KNOWN = sorted(
    {
        part.removeprefix("-")
        for one in FRAMEWORKS.values() for keys in one.keys.values() for key in keys for part in key.parts if "*" not in part
    }
    | {name for name in CATALOG if "*" not in name}
    | {alias for entry in CATALOG.values() for alias in entry.aliases}
)
KEYS = st.one_of(
    st.sampled_from(KNOWN),
    st.sampled_from(KNOWN).map("train/{}".format),
    st.sampled_from(KNOWN).map("eval_{}".format),
    st.sampled_from(["step", "rewards/a/mean", "rewards/*", "train_runtime", "val-core/x/acc/mean@4", "mean ", "train/", "/avg"]),
    st.text(max_size=12),
)
NUMBERS = st.floats() | st.integers(-(2**60), 2**60)
VALUES = st.one_of(
    NUMBERS, st.none(), st.booleans(), st.text(max_size=6), st.sampled_from(["nan", "0.5", "-inf"]),
    st.lists(NUMBERS, max_size=2),
    st.dictionaries(st.text(max_size=3), NUMBERS, max_size=2), st.binary(max_size=3),
)  # fmt: skip
ROWS = st.dictionaries(KEYS, VALUES, max_size=12)


# Units


def test_the_kl_of_a_sequence_and_that_of_a_token_are_two_metrics() -> None:
    result = resolve({"objective/kl": 8.0, "actor/kl_loss": 0.002})
    by_unit = {name: result.reductions[name] for name in result.metrics}
    assert sorted(by_unit.values()) == ["sequence", "token"]
    first = "kl_mean"
    other = "kl_mean_per_token" if by_unit[first] == "sequence" else "kl_mean_per_sequence"
    assert {result.metrics[first], result.metrics[other]} == {8.0, 0.002}


def test_a_kl_of_unstated_reduction_is_not_filled_up_with_one_of_either() -> None:
    plan = plan_for(("kl_mean", "objective/kl", "actor/kl_loss"), None)
    assert [route.parts for route in plan.routes["kl_mean"]] == [("kl_mean",)]
    assert {name: route[0].parts for name, route in plan.routes.items() if name != "kl_mean"} == {
        "kl_mean_per_token": ("actor/kl_loss",), "kl_mean_per_sequence": ("objective/kl",),
    }  # fmt: skip


def test_held_out_kls_of_two_units_are_apart_too() -> None:
    result = resolve({"eval_objective/kl": 8.0, "eval_actor/kl_loss": 0.002})
    assert len(result.metrics) == 2 and {result.metrics[name] for name in result.metrics} == {8.0, 0.002}
    assert all(name.startswith("eval_kl_mean") for name in result.metrics)


@pytest.mark.parametrize(("framework", "key", "per"), [
    ("trl_ppo", "objective/kl", "sequence"), ("trl_old", "objective/kl", "sequence"), ("trl_grpo", "kl", "token"),
    ("verl", "actor/kl_loss", "token"),
    ("openrlhf", "kl", "token"), ("slime", "kl_loss", "token"), (None, "kl", "unstated"), (None, "my_kl_mean", None),
    (None, "kl_divergence", "unstated"),
    ("rldk", "kl_mean", "unstated"), ("rldk", "kl", "unstated"),
])  # fmt: skip
def test_over_what_a_kl_is_reduced(framework: str | None, key: str, per: str | None) -> None:
    assert resolve({key: 1.0}, framework=framework).reductions.get("kl_mean") == per


def test_the_sign_of_an_entropy_loss_depends_on_whose_it_is() -> None:
    assert resolve({"train/entropy_loss": -0.7}, framework="sb3").metrics == {"entropy_mean": 0.7}
    assert resolve({"train/entropy_loss": 0.7}, framework="slime").metrics == {"entropy_mean": 0.7}
    assert resolve({"entropy_loss": 0.7}, framework="openrlhf").metrics == {"entropy_mean": 0.7}
    assert resolve({"train/entropy_loss": -0.7, "time/fps": 80, "rollout/ep_rew_mean": 1}).metrics["entropy_mean"] == 0.7
    assert resolve({"train/entropy_loss": 0.7, "train/pg_loss": 1, "rollout/raw_reward": 1}).metrics["entropy_mean"] == 0.7
    assert resolve({"entropy_loss": -0.7}).metrics == resolve({"entropy_loss": 0.7}).metrics == {"entropy_mean": 0.7}


def test_the_summed_entropy_of_trl_is_not_the_entropy() -> None:
    result = resolve({"objective/entropy": 130.0, "policy/entropy_avg": 1.3}, framework="trl_ppo")
    assert result.metrics == {"entropy_sequence": 130.0, "entropy_mean": 1.3}


def test_the_two_policy_losses_of_the_contract_are_two() -> None:
    result = resolve({"ppo/policy/policy_loss": 0.1, "ppo/val/policy_loss": 0.2})
    assert result.metrics == {"policy_loss": 0.1, "value_policy_loss": 0.2}


def test_rewards_before_and_after_the_kl_penalty_are_two() -> None:
    both = {"reward_mean": 1.0, "reward_after_kl": 0.8}
    assert resolve({"objective/scores": 1.0, "objective/rlhf_reward": 0.8}).metrics == both
    assert resolve({"critic/score/mean": 1.0, "critic/rewards/mean": 0.8}).metrics == both


@pytest.mark.parametrize("framework", [None, "minimind", "trainer"])
@pytest.mark.parametrize("prefix", ["", "train/"])
def test_beside_kl_ref_a_bare_kl_is_that_of_the_update(framework: str | None, prefix: str) -> None:
    result = resolve({f"{prefix}kl": 0.001, f"{prefix}kl_ref": 0.05}, framework=framework)
    assert result.metrics == {"kl_update": 0.001, "kl_mean": 0.05}


@pytest.mark.parametrize(("raw", "metrics"), [
    ({"kl": 0.1}, {"kl_mean": 0.1}), ({"grad_norm_policy": 1.0}, {"policy_grad_norm": 1.0}),
    ({"grad_norm_value": 2.0}, {"value_grad_norm": 2.0}),
    ({"entropy": 0.9}, {"entropy_mean": 0.9}), ({"learning_rate": 0.1}, {"lr": 0.1}),
])  # fmt: skip
def test_aliases_of_the_contract(raw: dict[str, float], metrics: dict[str, float]) -> None:
    assert resolve(raw).metrics == metrics


# Prefixes, held-out data, kinds of rows


def test_the_prefix_of_trackers_is_taken_off() -> None:
    raw = {"train/reward": 0.5, "train/kl": 0.01, "train/frac_reward_zero_std": 0.0, "train/completions/mean_length": 9.0}
    result = resolve(raw)
    assert result.metrics == {"reward_mean": 0.5, "kl_mean": 0.01, "reward_zero_std_frac": 0.0, "rollout_length_mean": 9.0}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("eval_loss", "eval_loss"), ("eval/reward", "eval_reward_mean"),
        ("eval_rewards/acc/mean", "eval_reward_function_mean/acc"),
        ("validation/accuracy", "eval_accuracy"), ("val-core/gsm8k/acc/mean@8", "eval_accuracy"),
        ("eval/mean_reward", "eval_reward_mean"),
        ("eval/episodic_return", "eval_reward_mean"), ("train/eval_loss", "eval_loss"),
        ("gold_reward", "eval_reward_mean"), ("gold", "eval_reward_mean"), ("true_reward", "eval_reward_mean"),
        ("quality", "eval_reward_mean"), ("gold/accuracy", "eval_accuracy"),
    ],
)  # fmt: skip
def test_held_out_metrics_have_their_own_names(key: str, name: str) -> None:
    result = resolve({key: 0.25, "epoch": 1.0})
    assert result.metrics[name] == 0.25 and result.kind == "eval"
    assert not any(measured in result.metrics for measured in ("loss", "reward_mean", "accuracy"))


def test_the_value_keys_of_trl_are_not_of_validation() -> None:
    result = resolve({"val/ratio": 1.0, "val/clipfrac_avg": 0.1, "val/num_eos_tokens": 3.0})
    assert result.metrics == {"ratio_mean": 1.0, "value_clip_frac": 0.1, "eos_count": 3.0}
    assert result.kind == "train"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({"loss": 1.0, "learning_rate": 1e-5}, "train"), ({"eval_loss": 1.0, "eval_runtime": 3.0, "epoch": 1.0}, "eval"),
        ({"train_runtime": 9.0, "train_loss": 0.5, "total_flos": 1e9, "epoch": 1.0}, "summary"),
        ({"reward": 0.5, "train_runtime": 9.0}, "train"), ({"loss": 1.0, "eval_loss": 2.0}, "train"), ({"foo": 1.0}, "other"),
        ({}, "other"),
        ({"learning_rate": 1e-5}, "train"),
    ],
)  # fmt: skip
def test_the_kind_of_a_row(raw: dict[str, float], kind: str) -> None:
    assert resolve(raw).kind == kind


@pytest.mark.parametrize(("prefix", "held_out"), [("", ""), ("train/", ""), ("eval_", "eval_")])
def test_a_reward_model_in_training_has_pairs_and_no_reward(prefix: str, held_out: str) -> None:
    names = ("loss", "accuracy", "margin", "mean_reward", "min_reward", "max_reward")
    result = resolve({f"{prefix}{name}": 0.25 for name in names}, framework="trl_dpo")
    assert set(result.metrics) == {f"{held_out}{name}" for name in ("loss", "preference_accuracy", "preference_margin")}
    assert result.kind == ("eval" if held_out else "train")
    assert resolve({"accuracy": 0.5, "mean_reward": 0.5}).metrics == {"accuracy": 0.5, "reward_mean": 0.5}


# Sums, nulls, duplicates, what has no place


def test_sums_need_all_their_parts() -> None:
    parts = {"baseline_reward/pct_0": 20.0, "baseline_reward/pct_1": 30.0}
    both = resolve(parts, framework="nemo_rl")
    assert both.metrics == {"reward_zero_std_frac": 0.5, "groups_all_bad_frac": 0.2, "groups_all_good_frac": 0.3}
    assert both.sources["reward_zero_std_frac"] == "baseline_reward/pct_0 + baseline_reward/pct_1" and both.unmapped == []
    one = resolve({"baseline_reward/pct_0": 20.0}, framework="nemo_rl")
    assert one.metrics == {"groups_all_bad_frac": 0.2} and one.unmapped == []
    solved = resolve({"solved_none": 0.25, "solved_all": 0.5}, framework="prime_rl").metrics
    assert solved == {"reward_zero_std_frac": 0.75, "groups_all_bad_frac": 0.25, "groups_all_good_frac": 0.5}
    missing = resolve({**parts, "baseline_reward/pct_1": None}, framework="nemo_rl")
    assert missing.nulls == ["groups_all_good_frac", "reward_zero_std_frac"]


def test_a_difference_is_taken_where_both_parts_are_there() -> None:
    row = {"ppo_actor/seq_len/avg": 300.0, "ppo_actor/prompt_len/avg": 100.0}
    result = resolve(row, framework="areal")
    assert result.metrics == {"rollout_length_mean": 200.0, "prompt_length_mean": 100.0}
    assert result.sources["rollout_length_mean"] == "ppo_actor/seq_len/avg - ppo_actor/prompt_len/avg"
    assert resolve({"ppo_actor/seq_len/avg": 300.0}, framework="areal").metrics == {"rollout_length_mean": 300.0}
    steps = {"training_client/step": 9, "sampling_client/step_mean": 7.5}
    assert resolve(steps, framework="tinker").metrics == {"staleness_mean": 1.5}


def test_known_keys_are_kept_and_not_reported_as_unrecognised() -> None:
    result = resolve({"timing_s/reshard": 2.0, "actor/lr": 1e-6, "my_key": 1.0}, framework="verl")
    assert result.not_judged == ["timing_s/reshard"] and result.unmapped == ["my_key"]
    assert resolve({"timing_s/reshard": 2.0}).unmapped == ["timing_s/reshard"]  # nobody says that it is verl


def test_a_null_is_no_value_and_is_said() -> None:
    result = resolve({"reward": None, "kl": 0.1, "foo": None})
    assert result.metrics == {"kl_mean": 0.1} and result.nulls == ["reward_mean"] and result.unmapped == []


def test_a_null_gives_way_to_another_key_of_the_metric() -> None:
    result = resolve({"ppo/rewards/mean": None, "ppo/mean_scores": 0.5}, framework="trl_old")
    assert result.metrics == {"reward_mean": 0.5} and result.sources == {"reward_mean": "ppo/mean_scores"} and result.nulls == []


def test_of_two_keys_of_a_metric_the_better_wins_and_the_other_is_said() -> None:
    result = resolve({"env/reward_mean": 0.4, "ppo/mean_scores": 0.5}, framework="trl_old")
    assert result.metrics == {"reward_mean": 0.5} and result.sources == {"reward_mean": "ppo/mean_scores"}


def test_what_the_catalogue_does_not_know_is_unmapped() -> None:
    result = resolve({"foo": 1.0, "bar": "text", "baz": [1], "step": 3, "run_id": "x", "kl": 0.1})
    assert result.unmapped == ["foo"] and result.metrics == {"kl_mean": 0.1}


def test_a_canonical_family_name_is_known_as_it_is() -> None:
    assert resolve({"reward_function_mean/acc": 0.5}).metrics == {"reward_function_mean/acc": 0.5}
    assert resolve({"reward_function_mean/": 0.5}).unmapped == ["reward_function_mean/"]


# Field maps


def test_a_field_map_wins_over_the_catalogue() -> None:
    plan = plan_for(("my_kl", "kl"), None, (("my_kl", "kl_mean"),))
    assert [(way.source, way.per) for way in plan.routes["kl_mean"]] == [("my_kl", "unstated"), ("kl", "unstated")]
    assert plan.values({"my_kl": 0.3, "kl": 0.1}, {}) == ({"kl_mean": 0.3}, [])


def test_a_field_map_may_name_an_axis_a_family_or_held_out_data() -> None:
    given = {"t": "step", "when": "wall_time", "who": "run_id", "a": "reward_function_mean/a", "b": "eval_reward_mean"}
    check_field_map(given)
    plan = plan_for(("t", "a", "b"), None, tuple(given.items()))
    assert plan.values({"t": 1, "a": 2.0, "b": 3.0}, {})[0] == {"reward_function_mean/a": 2.0, "eval_reward_mean": 3.0}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("kl_men", "Did you mean kl_mean"),
        ("reward_function_mean/*", "no canonical metric"),
        ("zzzzzz", "`rldk catalog` lists them"),
        ("", "no canonical"),
    ],
)
def test_a_field_map_to_no_metric_is_refused(target: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        check_field_map({"x": target})
    assert repr(target) in str(error.value)


def test_a_framework_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Expected `framework` to be one of .*'verl'.* got 'verll'"):
        resolve({"a": 1.0}, framework="verll")


# Properties


def possible(raw: dict[str, Any]) -> list[float]:
    """Every number that a row's values, or the sum of two of them, can become."""
    numbers = [number for value in raw.values() if (number := to_number(value)) is not None]
    sums = [left + sign * right for left in numbers for right in numbers for sign in (1.0, -1.0)]
    made = []
    for number in [*numbers, *sums]:
        root = math.sqrt(number) if number >= 0 else math.nan
        made += [number, -number, abs(number), number / 100.0, 1.0 - number, root, number / 1e3, number / 1e4]
    return made


@settings(max_examples=300, deadline=None)
@given(ROWS, st.none() | st.sampled_from(sorted(FRAMEWORKS)))
def test_resolve_never_raises_and_never_invents(raw: dict[str, Any], framework: str | None) -> None:
    before = dict(raw)
    result = resolve(raw, framework=framework)
    assert list(raw) == list(before)
    made = possible(raw)
    for name, value in result.metrics.items():
        assert type(value) is float
        assert math.isnan(value) or value in made
        assert set(result.sources[name].replace(" - ", " + ").split(" + ")) <= set(raw) or result.sources[name] in raw
        assert result.reductions[name]
    assert not set(result.nulls) & set(result.metrics)
    assert all(to_number(raw[key]) is not None for key in result.unmapped)


@settings(max_examples=150, deadline=None)
@given(st.lists(KEYS, unique=True, min_size=1, max_size=8), st.sampled_from(sorted(FRAMEWORKS)), st.data())
def test_columns_become_what_rows_become(keys: list[str], framework: str, data: st.DataObject) -> None:
    cells = st.lists(NUMBERS | st.none() | st.sampled_from(["0.5", "nan", "x"]), min_size=len(keys), max_size=len(keys))
    rows = [dict(zip(keys, data.draw(cells), strict=True)) for _ in range(3)]
    builder = TableBuilder()
    builder.add_all({**row, "step": number} for number, row in enumerate(rows) if "step" not in row)
    runs = build_runs(builder.finish(), path=Path("x"), adapter="test", framework=framework)
    singles: list[Resolution] = [resolve({**row, "step": 0}, framework=framework) for row in rows]
    if not runs or len(runs[0]) != 3 or "phase" in keys:
        return
    names = ["entropy_mean", *(["kl_mean", "kl_penalty_reward"] if "penalty" in " ".join(keys).lower() else [])]
    by_sign = {prefix + name for prefix in ("", "eval_") for name in names}
    for row, single in enumerate(singles):
        for name, value in single.metrics.items():
            if name in by_sign or (name in runs[0].columns and "percent" in " ".join(runs[0].notes)):
                continue  # signs and percentages are recognised by the whole course
            np.testing.assert_equal(runs[0].columns[name].values[row], value)
            assert runs[0].columns[name].state[row] == 1
        for name in set(single.nulls).difference(by_sign):
            assert runs[0].columns[name].state[row] == 2
        missing = set(runs[0].columns) - set(single.metrics) - set(single.nulls) - set(single.unmapped) - set(keys)
        known = runs[0].coverage
        missing -= {name for name, key in known.metrics.items() if key in known.guessed}  # only whole tables are guessed
        assert all(runs[0].columns[name].state[row] != 1 for name in missing)
