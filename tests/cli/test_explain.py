"""`rldk explain`: a detector's page."""

from __future__ import annotations

import json

import pytest

from rldk.cli.main import main
from rldk.detectors.base import SECTIONS
from rldk.detectors.table import DETECTORS

Capture = pytest.CaptureFixture[str]
TYPES = [*(kind.type for kind in DETECTORS), "user_limit_exceeded"]


def explain(capsys: Capture, *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return out


@pytest.mark.parametrize("kind", TYPES)
def test_every_page_is_whole(capsys: Capture, kind: str) -> None:
    said = explain(capsys, kind)
    assert said.startswith(f"{kind}  (")
    lines = said.splitlines()
    for section in (*SECTIONS, "Needs", "Settings"):
        assert lines[lines.index(section) + 1].strip() not in ("", "–"), section
    assert "persist = " in said and "clear = " in said


def test_a_page(capsys: Capture) -> None:
    said = explain(capsys, "clip_saturation")
    assert "clip_saturation  (policy)\nMost tokens of an update are clipped" in said
    assert "What it catches\nHalf of the tokens or more" in said
    assert "Needs\nclip_frac\n" in said
    assert "share = 0.5: share of clipped tokens" in said
    assert "persist = 8: checks in a row" in said, "its own, not the common one"


def test_needs_are_told_as_groups(capsys: Capture) -> None:
    assert "\neos_frac or eos_count or truncated_frac; reward_mean\n" in explain(capsys, "eos_starvation")
    assert "\nnothing in particular\n" in explain(capsys, "step_regression")


def test_all_are_listed(capsys: Capture) -> None:
    lines = explain(capsys).splitlines()
    assert lines[0].split()[:2] == ["type", "tracker"]
    assert [line.split()[0] for line in lines[1:] if not line.startswith(" ")] == TYPES


def test_json_of_one_and_of_all(capsys: Capture) -> None:
    one = json.loads(explain(capsys, "eos_starvation", "--json"))
    assert one["needs"] == [["eos_frac", "eos_count", "truncated_frac"], ["reward_mean"]]
    assert set(one["documentation"]) == {"title", *SECTIONS}
    assert one["settings"]["persist"]["default"] == 30
    assert one["settings"]["share"] == {
        "default": 0.02, "meaning": one["settings"]["share"]["meaning"], "least": 0.0, "most": 1.0,
    }  # fmt: skip
    every = json.loads(explain(capsys, "--json"))["detectors"]
    assert [entry["type"] for entry in every] == TYPES
    assert one in every


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("entropy_colapse", "No detector 'entropy_colapse'. Did you mean entropy_collapse"),
        ("zzz", "No detector 'zzz'. `rldk explain` lists them."),
        ("\x1b[31m", "No detector"),
    ],
)
def test_a_type_that_there_is_not(capsys: Capture, word: str, said: str) -> None:
    assert main(["explain", word]) == 2
    out, error = capsys.readouterr()
    assert out == "" and said in error and "\x1b" not in error
