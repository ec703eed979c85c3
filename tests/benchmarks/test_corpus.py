"""What the recorded corpus promises: counts, twins, splits, frozen labels, and a size that a repository can hold."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full
SIGNALS = ("reward_mean", "kl_mean", "entropy_mean", "loss", "grad_norm", "policy_loss", "value_loss", "preference_margin")
CORPUS = Path(__file__).parents[2] / "benchmarks" / "corpus"


@pytest.fixture(scope="module")
def labels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CORPUS / "labels.json").read_text())
    return found


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    from corpus import label

    return label.read_outcomes()


def test_the_corpus_has_all_that_it_must_have(labels: list[dict[str, Any]]) -> None:
    from corpus.counts import missing

    assert missing(labels) == []


def test_what_is_missing_is_named(labels: list[dict[str, Any]]) -> None:
    from corpus.counts import AT_LEAST, missing

    healthy = [one for one in labels if one["verdict"] == "HEALTHY"][: AT_LEAST["HEALTHY"] - 1]
    faulty = [one for one in labels if one["kind"] not in ("", "lr_1e6")]
    assert missing([*healthy, *faulty]) == ["HEALTHY: 119, at least 120", "no run with learning rate 1e6"]


def test_a_setting_a_kind_and_a_run_that_are_added_leave_all_others_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from corpus import settings

    before = [(one, settings.split_of(one), one.sister_seeds()) for one in settings.all_runs()]
    monkeypatch.setitem(settings.SETTINGS, "ppo-new", replace(settings.SETTINGS["ppo-dense"], name="ppo-new"))
    monkeypatch.setitem(settings.FAULTS, "new", replace(settings.FAULTS["lr_zero"], later=True))
    monkeypatch.setattr(settings, "ADDED", [("ppo-new", 100, "new", None), ("ppo-dense", 101, "", settings.ROUND)])
    after = settings.all_runs()
    assert [(one, settings.split_of(one), one.sister_seeds()) for one in after if one in {spec for spec, *_ in before}] == before
    new = {one.id: settings.split_of(one) for one in after if one not in {spec for spec, *_ in before}}
    assert new == {"ppo-new--s100": "tune", "ppo-new--s100--new": "tune", "ppo-dense--s101": "judge"}


def test_every_faulty_run_has_its_twin_in_the_same_split(labels: list[dict[str, Any]]) -> None:
    from corpus.settings import all_runs, split_of

    specs, known = {one.id: one for one in all_runs()}, {one["run"] for one in labels}
    assert known == set(specs)
    for one in labels:
        assert specs[one["run"]].twin.id in known and split_of(specs[one["run"]].twin) == split_of(specs[one["run"]])


def test_in_the_first_round_ten_kinds_ten_causes_and_some_settings_were_in_judge_only(
    labels: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from corpus import settings

    monkeypatch.setattr(settings, "ROUND", 0)
    splits = {one.id: settings.split_of(one) for one in settings.all_runs()}
    first = [one for one in labels if one["run"] in splits]
    names = {"kind": lambda one: one["kind"], "cause": lambda one: one["cause"], "setting": lambda one: one["run"].split("--")[0]}
    for about, least in {"kind": 10, "cause": 10, "setting": 8}.items():
        tune, judge = ({names[about](one) for one in first if splits[one["run"]] == part} for part in ("tune", "judge"))
        assert len(judge - tune) >= least, about


def test_the_present_judge_split_has_seeds_that_no_run_of_tune_has(labels: list[dict[str, Any]]) -> None:
    from corpus.settings import all_runs, split_of

    seeds = {part: {(one.setting, one.seed) for one in all_runs() if split_of(one) == part} for part in ("tune", "judge")}
    assert not seeds["tune"] & seeds["judge"] and len(seeds["judge"]) >= 60


def test_a_reveal_moves_the_runs_of_judge_to_tune_and_plans_new_seeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from corpus import settings

    before = {one.id: settings.split_of(one) for one in settings.all_runs()}
    monkeypatch.setattr(settings, "ROUND_FILE", tmp_path / "round.json")
    assert "make corpus" in settings.reveal_judge()
    monkeypatch.setattr(settings, "ROUND", json.loads((tmp_path / "round.json").read_text())["round"])
    after = {one.id: settings.split_of(one) for one in settings.all_runs()}
    assert set(before) < set(after)
    assert {after[name] for name in before} == {"tune"}
    new = set(after) - set(before)
    assert {after[name] for name in new} == {"judge"}
    assert len(new) >= sum(split == "judge" for split in before.values())  # none of the new ones is left out yet


def test_every_fault_changes_the_run_it_is_in(labels: list[dict[str, Any]]) -> None:
    """A fault that does nothing at all would be a healthy run counted twice."""
    from corpus.store import EVENTS, RECORDED, read_text

    @cache  # a twin has many faulty runs
    def rows(name: str) -> list[Any]:
        events = [json.loads(line) for line in read_text(RECORDED / name / EVENTS).splitlines()]
        return [{key: value for key, value in event["metrics"].items() if key in SIGNALS} for event in events]

    same = [one["run"] for one in labels if one["kind"] and rows(one["run"]) == rows("--".join(one["run"].split("--")[:2]))]
    assert same == []


def test_no_log_gives_its_fault_away(labels: list[dict[str, Any]]) -> None:
    from corpus.store import EVENTS, RECORDED, read_text

    assert not any("injected" in read_text(RECORDED / one["run"] / EVENTS) for one in labels if "ours" in one["run"])


def test_labels_are_the_frozen_ones_and_follow_from_the_outcomes(outcomes: dict[str, dict[str, Any]]) -> None:
    from corpus import label

    assert label.frozen()
    fresh = {one.id: label.label(one, outcomes) for one in label.all_runs() if one.id in outcomes and one.twin.id in outcomes}
    stored = {one["run"]: one for one in json.loads(label.LABELS.read_text())}
    assert [name for name, one in stored.items() if json.loads(json.dumps(fresh.get(name))) != one] == []


def test_no_run_without_a_fault_is_sick_by_its_outcome(outcomes: dict[str, dict[str, Any]]) -> None:
    from corpus import label

    assert label.sick_twins(outcomes) == []


def test_causes_and_families_are_of_the_vocabulary(labels: list[dict[str, Any]]) -> None:
    from corpus.vocabulary import CAUSES, FAMILIES, NAMES

    assert len(CAUSES) >= 25
    assert {one["cause"] for one in labels} - {""} <= set(CAUSES)
    assert {family for one in labels for family in one["families"]} <= set(FAMILIES)
    assert {name for names in NAMES.values() for name in names} <= set(CAUSES)
    assert all(one["channels"] or one["verdict"] in ("HEALTHY", "HARMLESS") for one in labels)


def test_families_are_the_folders_of_the_detectors() -> None:
    from corpus.vocabulary import FAMILIES
    from rldk.detectors.table import DETECTORS

    assert {detector.__module__.split(".")[2] for detector in DETECTORS} == set(FAMILIES)


def test_a_run_is_its_twin_until_the_fault_is_injected(
    labels: list[dict[str, Any]], outcomes: dict[str, dict[str, Any]]
) -> None:
    """The same seed and setting: everything before a fault that comes in the middle is the same, to the last digit."""
    late = [one for one in labels if one["injected"]]
    assert len(late) >= 100
    for one in late:
        run, twin = (outcomes[name] for name in (one["run"], "--".join(one["run"].split("--")[:2])))
        before = [row for row in run["rows"] if row["update"] < one["injected"]]
        assert before == twin["rows"][: len(before)] and before, one["run"]


def test_two_recordings_are_compared_without_times_and_paths(tmp_path: Path) -> None:
    from corpus.compare import differences
    from corpus.store import write_run

    def record(name: str, reward: float, seconds: float) -> Path:
        events = tmp_path / f"{name}.jsonl"
        events.write_text(
            json.dumps({"step": 1, "wall_time": seconds, "metrics": {"reward_mean": reward, "step_time": seconds}}) + "\n"
        )
        write_run(
            tmp_path / name, events, {"log_history": [{"reward": reward, "nan": float("nan")}]}, {"rows": [{"reward": reward}]}
        )
        return tmp_path / name

    one, same, other = record("one", 0.5, 1.0), record("same", 0.5, 2.0), record("other", 0.6, 1.0)
    assert differences(one, same) == []
    assert differences(one, other) == [
        "events.jsonl.zst[0].metrics.reward_mean",
        "plain.json.zst.log_history[0].reward",
        "outcome.json.zst.rows[0].reward",
    ]
