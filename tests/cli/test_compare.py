"""`rldk compare`: text and JSON, settings, groups of seeds, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import rldk
from rldk.cli.main import main
from rldk.testing.streams import faulty, healthy


def write(path: Path, lr: float, seed: int, broken: bool = False) -> str:
    events = faulty("entropy_explosion", seed=1, steps=160, onset=80) if broken else healthy("ppo", 160, seed=1)
    for event in events:
        event.model_info["run_id"] = path.stem
        event.metrics["reward_mean"] += 0.001 * seed
    events[0].model_info["config"] = {"learning_rate": lr, "seed": seed, "output_dir": str(path), "kl_coef": 0.1}
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return str(path)


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    settings = [("a", 1e-5, 1, False), ("b", 1e-5, 2, False), ("c", 5e-4, 1, True), ("d", 5e-4, 2, True)]
    return [write(tmp_path / f"{name}.jsonl", lr, seed, broken) for name, lr, seed, broken in settings]


def test_two_runs(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", runs[0], runs[2]]) == 0
    said = capsys.readouterr().out
    assert "c diverges from a at step" in said and "% sure" in said and "output_dir" not in said
    assert "learning_rate" in said and "1e-05  0.0005" in " ".join(said.split()).replace(" ", "  ")
    assert "kl_coef" not in said.split("Settings that differ")[1].split("Where each")[0]
    assert "reward_mean" in said and "critical" in said and "healthy" in said


def test_json(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs[:3], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [group["name"] for group in found["groups"]] == ["a", "b", "c"]
    assert found["divergences"]["b"] == [] and 75 <= found["divergences"]["c"][0]["certain_step"] <= 105
    assert found["settings"]["learning_rate"] == [1e-5, 1e-5, 5e-4] and found["settings"]["seed"] == [1, 2, 1]
    assert [end["spread"] for end in found["ends"]["reward_mean"]] == [None, None, None]


def test_groups_of_seeds(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs, "--group-by", "config.lr"]) == 0
    said = capsys.readouterr().out
    assert "learning_rate" in said and "lr=0.0005 diverges from lr=1e-05" in said and "(2 runs)" in said and " ± " in said


def test_the_json_of_groups_has_their_mean_and_band_over_the_steps(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs[:3], "--group-by", "config.lr", "--json"]) == 0
    pair, alone = json.loads(capsys.readouterr().out)["groups"]
    curve = pair["curves"]["reward_mean"]
    assert {name: len(values) for name, values in curve.items()} == dict.fromkeys(("step", "mean", "low", "high"), 96)
    assert curve["step"][0] >= 0 and curve["step"][-1] <= pair["last_step"] and curve["step"] == sorted(curve["step"])
    halves = [(high - low) / 2 for low, high in zip(curve["low"], curve["high"], strict=True)]
    assert halves == pytest.approx([0.0005] * 96, rel=0.05)  # two runs 0.001 apart, and the band stays between them
    assert "curves" not in alone


def test_another_baseline(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs[:3], "--baseline", "c"]) == 0
    assert "a diverges from c at step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "at least two runs"),
        (["--group-by", "config.seed"], "at least two values of config.seed"),
        (["--group-by", "config.sed"], "Did you mean seed"),
    ],
)
def test_what_cannot_be_compared(runs: list[str], options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", runs[0], *options]) == 2
    assert said in capsys.readouterr().err


def test_a_log_without_settings_says_so(make_log: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", make_log("healthy"), make_log("critical")]) == 0
    assert "not in the log of healthy, critical" in capsys.readouterr().out


def test_from_python(runs: list[str]) -> None:
    found = rldk.compare(runs[0], rldk.load(runs[2])[0])
    assert found.first("c") is not None and found.first("c") == rldk.compare(rldk.scan(runs[:3:2])).first("c")
    assert "c diverges from a" in repr(found) and "Settings that differ" in found._repr_html_() and len(found.plot()) > 0


def test_an_unknown_baseline_is_refused_with_the_names_that_exist(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs[:3], "--baseline", "zz"]) == 2
    said = capsys.readouterr().err
    assert "No run 'zz'. Known are a, b and c." in said and "unexpected" not in said
