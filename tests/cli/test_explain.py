"""`rldk explain`: the page of a detector or a cause."""

from __future__ import annotations

import json
import re

import pytest

from rldk.cli.main import main
from rldk.detectors.base import SECTIONS
from rldk.detectors.normal import NORMAL
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.judge.incidents.causes import CAUSES

Capture = pytest.CaptureFixture[str]
TYPES = [*(kind.type for kind in DETECTORS), "user_limit_exceeded"]


def explain(capsys: Capture, *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return out


def test_every_page_is_whole(capsys: Capture) -> None:
    for kind in TYPES:
        said = explain(capsys, kind)
        assert said.startswith(f"{kind}  ("), kind
        lines = said.splitlines()
        for section in (*SECTIONS, "Clauses", "Needs", "Settings"):
            assert section in lines and lines[lines.index(section) + 1].strip() not in ("", "–"), f"{kind}: {section}"
        assert "persist = " in said and "clear = " in said, kind


def test_a_page(capsys: Capture) -> None:
    said = explain(capsys, "clip_saturation")
    assert "clip_saturation  (policy)\nA large share of the tokens is clipped" in said
    assert "What it catches\nA third or more of the tokens" in said
    assert "Needs\nclip_frac or clip_range\n" in said
    assert "share = 0.35: share of clipped tokens" in said


def test_clauses_are_told_with_severity_persistence_and_basis(capsys: Capture) -> None:
    for kind in (*DETECTORS, UserLimit):
        said = " ".join(explain(capsys, kind.type).split())
        for name, clause in kind.clauses.items():
            assert f"{name} ({clause.severity}, {kind.wait_in_words(name)}): " in said, kind.type
            assert f"Basis: {clause.basis}." in said, kind.type


def test_how_long_a_clause_must_hold(capsys: Capture) -> None:
    said = explain(capsys, "clip_saturation")
    assert "saturated (warning, after 8 steps (at least 3 rows)): A third of the tokens are clipped." in said
    assert "narrow (note, at once): " in said
    assert "gone (warning, after 30 steps (at least 8 rows)): " in explain(capsys, "vanishing_gradient_anomaly")


def test_what_looks_odd_and_is_normal(capsys: Capture) -> None:
    said = " ".join(explain(capsys, "normal").split())
    listed = json.loads(explain(capsys, "normal", "--json"))["normal"]
    assert [one["name"] for one in listed] == [oddity.name for oddity in NORMAL]
    assert all(" ".join(oddity.seen.split()) in said and " ".join(oddity.why.split()) in said for oddity in NORMAL)


def test_what_is_not_normal_names_detectors_that_there_are() -> None:
    known = {kind.type for kind in DETECTORS}
    for oddity in NORMAL:
        assert any(re.search(rf"\b{kind}\b", oddity.unless) for kind in known), oddity.name
        named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", f"{oddity.unless} {oddity.why}"))
        assert named <= known | {"reward_std"}, oddity.name


def test_needs_are_told_as_groups(capsys: Capture) -> None:
    assert "\nexplained_variance\n" in explain(capsys, "value_unexplained")
    assert "\neos_frac or eos_count or truncated_frac\n" in explain(capsys, "eos_starvation")
    assert "\nadvantage_mean; advantage_std\n" in explain(capsys, "advantage_bias_anomaly")
    assert "\nnothing in particular\n" in explain(capsys, "step_regression")


def test_all_are_listed(capsys: Capture) -> None:
    lines = explain(capsys).splitlines()
    causes = lines.index("")
    assert lines[0].split()[:2] == ["type", "family"] and lines[causes + 1].startswith("cause ")
    assert [line.split()[0] for line in lines[1:causes] if not line.startswith(" ")] == TYPES
    assert [line.split()[0] for line in lines[causes + 2 :] if not line.startswith(" ")] == [cause.name for cause in CAUSES]


def test_json_of_one_and_of_all(capsys: Capture) -> None:
    one = json.loads(explain(capsys, "eos_starvation", "--json"))
    assert one["needs"] == [["eos_frac", "eos_count", "truncated_frac"]]
    stopped = BY_TYPE["eos_starvation"].clauses["stopped"]
    assert one["clauses"]["stopped"] == {
        "says": stopped.says, "severity": stopped.severity, "holds": stopped.persist, "rows": stopped.min_rows,
        "basis": stopped.basis,
    }  # fmt: skip
    assert set(one["documentation"]) == {"title", *SECTIONS}
    assert one["settings"]["clear"]["default"] == 8
    assert one["settings"]["share"] == {
        "default": 0.1, "meaning": one["settings"]["share"]["meaning"], "least": 0.0, "most": 1.0,
    }  # fmt: skip
    assert one["cause"] is None
    listed = json.loads(explain(capsys, "--json"))
    assert [entry["type"] for entry in listed["detectors"]] == TYPES
    assert [entry["name"] for entry in listed["causes"]] == [cause.name for cause in CAUSES]
    assert one in listed["detectors"]


def test_the_page_of_every_cause_says_evidence_and_advice_without_gaps(capsys: Capture) -> None:
    for cause in CAUSES:
        said = explain(capsys, cause.name)
        lines = said.splitlines()
        assert f"{cause.name}  (cause of an incident)" in lines and "{" not in said, cause.name
        strongest = max(cause.signs, key=lambda sign: cause.signs[sign])
        assert lines[lines.index("Evidence for it") + 1].startswith(f"{strongest}: "), cause.name
        assert lines[-1] not in ("", "What to do"), cause.name
        found = json.loads(explain(capsys, cause.name, "--json"))["cause"]
        assert found["title"] == cause.title and found["signs"] == cause.signs and "{" not in found["advice"]


def test_a_cause(capsys: Capture) -> None:
    said = explain(capsys, "kl_penalty_too_weak")
    assert said.startswith("kl_penalty_too_weak  (cause of an incident)\nThe KL penalty is too weak.\n\nEvidence for it\n")
    assert "kl_explosion: The KL from the reference is beyond what any healthy run reaches (weight 2.5)" in said
    assert "Evidence against it\nentropy_explosion: " in said and "What to do\nRaise the KL coefficient three- to tenfold" in said


def test_a_name_that_is_a_detector_and_a_cause_has_both_pages(capsys: Capture) -> None:
    said = explain(capsys, "kl_penalty_too_strong")
    assert said.startswith("kl_penalty_too_strong  (kl_schedule)\n")
    assert "\nkl_penalty_too_strong  (cause of an incident)\n" in said


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("entropy_colapse", "No detector or cause 'entropy_colapse'. Did you mean entropy_collapse"),
        ("penalty_too_weak", "Did you mean kl_penalty_too_weak or "),
        ("zzz", "No detector or cause 'zzz'. `rldk explain` lists both."),
        ("\x1b[31m", "No detector"),
    ],
)
def test_a_type_that_there_is_not(capsys: Capture, word: str, said: str) -> None:
    assert main(["explain", word]) == 2
    out, error = capsys.readouterr()
    assert out == "" and said in error and "\x1b" not in error
