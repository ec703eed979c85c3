"""`rldk catalog`: the table of metrics, whole or one line of it."""

from __future__ import annotations

import json

import pytest

from rldk.cli.main import main
from rldk.core.catalog import CATALOG, FRAMEWORKS


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["catalog", *arguments]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return out


def test_all_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys)
    assert all(name[:12] in said for name in CATALOG)


def test_all_metrics_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    account = json.loads(shown(capsys, "--json"))
    assert [entry["name"] for entry in account["metrics"]] == list(CATALOG)
    assert account["frameworks"] == {name: framework.title for name, framework in FRAMEWORKS.items()}
    assert set(account["metrics"][0]) == {
        "name",
        "group",
        "meaning",
        "unit",
        "reduction",
        "estimator",
        "trouble",
        "complements",
        "aliases",
        "keys",
    }


def test_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    account = json.loads(shown(capsys, "--group", "kl", "--json"))
    names = {entry["name"] for entry in account["metrics"]}
    assert {"kl_mean", "kl_coef"} <= names and "loss" not in names
    assert "kl_mean" in shown(capsys, "--group", "kl") and "clip_frac" not in shown(capsys, "--group", "kl")


@pytest.mark.parametrize(
    ("asked", "name"),
    [("kl_mean", "kl_mean"), ("objective/kl", "kl_mean"), ("KL Ref", "kl_mean"), ("rewards/acc/mean", "reward_function_mean/*"),
    ("learning_rate", "lr")],
)
def test_one_metric_by_its_name_or_a_key_of_any_framework(asked: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(shown(capsys, asked, "--json"))["name"] == name
    assert shown(capsys, asked).splitlines()[0] == name


def test_a_metric_shows_how_its_keys_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    entry = json.loads(shown(capsys, "entropy_mean", "--json"))
    assert {"key": "train/entropy_loss", "transform": "negate"}.items() <= entry["keys"]["sb3"][0].items()
    said = shown(capsys, "kl_mean")
    assert "per sequence" in said and "objective/kl" in said and "too high" in said
    assert "negate" in shown(capsys, "entropy_mean") and "too high or too low" in shown(capsys, "entropy_mean")


def test_what_is_not_there_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "kl_meann"]) == 2
    assert "Did you mean kl_mean" in capsys.readouterr().err
    assert main(["catalog", "zzz"]) == 2
    assert "`rldk catalog` lists them" in capsys.readouterr().err
