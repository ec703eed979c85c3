"""The adapter of last resort says what it guessed, what it could not place, and how to place it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import ADAPTERS, choose
from rldk.ingest.unmapped_keys import suggest


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_what_was_guessed_and_what_was_not_placed_is_said(text_log: Any) -> None:
    text = lines(*({"step": n, "avg_reward": 0.5, "kl_div": 0.1, "rewrd_std": 0.2, "my thing": 3.0} for n in (1, 2)))
    run = text_log.run(text, "flexible")
    (guessed,) = [note for note in run.notes if note.startswith("guessed")]
    assert "avg_reward as reward_mean" in guessed and "kl_div as kl_mean" in guessed
    (lost,) = [note for note in run.notes if note.startswith("unrecognised keys")]
    assert "--field-map rewrd_std=reward_std" in lost
    assert "--field-map 'my thing=<metric>'" in lost


def test_the_field_map_it_suggests_places_the_key(text_log: Any) -> None:
    text = lines(*({"step": n, "avg_reward": 0.5, "rewrd_std": 0.25} for n in (1, 2)))
    run = text_log.run(text, "flexible", field_map={"rewrd_std": "reward_std"})
    assert text_log.values(run, "reward_std") == [0.25, 0.25]
    assert not [note for note in run.notes if note.startswith("unrecognised keys")]


def test_nothing_known_is_refused_with_a_suggestion(text_log: Any) -> None:
    with pytest.raises(ReadError, match="--field-map rewrd_std=reward_std"):
        choose(text_log.write(lines({"step": 1, "rewrd_std": 0.25}, {"step": 2, "rewrd_std": 0.5})))


def test_supervised_training_is_read_and_said_to_be(text_log: Any) -> None:
    run = text_log.run(lines(*({"step": n, "loss": 0.5, "tokens": 100} for n in (1, 2))), "flexible")
    assert run.kind == "supervised"
    assert "no RL metrics: this is a log of supervised training" in run.notes


@pytest.mark.parametrize(("key", "metric"), [("rewrd_std", "reward_std"), ("train/policy_los", "policy_loss"), ("zzz", None)])
def test_suggestions(key: str, metric: str | None) -> None:
    assert suggest(key) == metric


def test_it_reads_tables_and_documents_as_their_own_adapters_do(text_log: Any) -> None:
    table = text_log.run('step,reward,accuracy\n1,"1,234",50%\n2,"2,345",75%\n', "flexible", hint="flexible")
    assert text_log.values(table, "reward_mean") == [1234.0, 2345.0] and text_log.values(table, "accuracy") == [0.5, 0.75]
    rows = [{"step": n, "reward": 0.5, "kl": 0.1} for n in (1, 2)]
    document = text_log.run(json.dumps({"config": {"beta": 0.04}, "history": rows}), "flexible", hint="flexible")
    assert len(document) == 2 and document.config["kl_coef"] == 0.04


def test_it_is_tried_last() -> None:
    assert ADAPTERS[-1].name == "flexible"


@pytest.mark.parametrize(
    "text", [b"", b"\n\n\n", b"\0" * 100, b"\xff\xfe\xfd" * 50, b"x" * 100_000, b"{" * 5000, b"[" * 5000, b",\n" * 500]
)
def test_odd_files_give_a_read_error_and_nothing_else(text_log: Any, text: bytes) -> None:
    path = text_log.write(text)
    for kind in [None, *(adapter.name for adapter in ADAPTERS)]:
        try:
            choose(path, hint=kind).runs()
        except ReadError:
            continue


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("rewrd_std", "reward_std"), ("rewardmean", "reward_mean"), ("grad_nrom", "grad_norm"), ("x/entropyy", "entropy_mean"),
        ("ts", None), ("n_updated", None), ("reward/median", None), ("my_loss", None), ("a_kl", None), ("", None),
    ],
)  # fmt: skip
def test_only_slips_of_the_pen_are_suggested(key: str, metric: str | None) -> None:
    assert suggest(key) == metric
