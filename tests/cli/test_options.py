"""What several commands take alike."""

from __future__ import annotations

import argparse
import importlib

import pytest

from rldk.cli.main import COMMANDS
from rldk.cli.options import FAILING, add_fail_on, exit_status, parse_field_map
from rldk.core.errors import UsageError


def test_field_maps_are_parsed_at_the_last_equals_sign() -> None:
    assert parse_field_map(["a=kl_mean", "x=y=lr", " b = loss "]) == {"a": "kl_mean", "x=y": "lr", "b": "loss"}
    assert parse_field_map([]) == {}


@pytest.mark.parametrize("pair", ["nothing", "=kl_mean", "a=", "="])
def test_a_field_map_that_is_none(pair: str) -> None:
    with pytest.raises(UsageError, match="Expected --field-map KEY=METRIC, got"):
        parse_field_map([pair])


@pytest.mark.parametrize(
    ("verdicts", "fail_on", "status"),
    [
        (["healthy", "critical"], "critical", 1), (["warning"], "critical", 0), (["warning", "no_data"], "warning", 1),
        (["critical"], "warning", 1), (["critical"], "never", 0), ([], "warning", 0), (["no_data"], "warning", 0),
    ],
)  # fmt: skip
def test_the_exit_status_is_that_of_the_worst_verdict(verdicts: list[str], fail_on: str, status: int) -> None:
    assert exit_status(iter(verdicts), fail_on) == status


@pytest.mark.parametrize("default", list(FAILING))
def test_the_default_is_the_one_that_the_help_names(default: str) -> None:
    parser = argparse.ArgumentParser()
    add_fail_on(parser, default)
    assert parser.parse_args([]).fail_on == default
    assert f"(default: {default})" in " ".join(parser.format_help().split())


@pytest.mark.parametrize("name", ["scan", "replay", "report", "watch", "ingest"])
def test_commands_that_read_runs_take_the_same_options(name: str) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"rldk.cli.commands.{name}").configure(parser)
    assert name in COMMANDS
    given = vars(parser.parse_args(["x", "--adapter", "trl", "--field-map", "a=lr", "--field-map", "b=kl_mean"]))
    assert (given["adapter"], given["field_map"]) == ("trl", ["a=lr", "b=kl_mean"])
    assert ("config" in given) == (name != "ingest")
