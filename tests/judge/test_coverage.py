"""Coverage says how much a "healthy" means, and which one metric would help most."""

from __future__ import annotations

import json
from pathlib import Path

import rldk
from rldk.core.event import Event
from rldk.judge.config import ScanConfig
from rldk.judge.coverage import CheckCoverage
from rldk.judge.result import Result
from rldk.testing.streams import healthy


def judged(events: list[Event]) -> Result:
    judge = ScanConfig().judge()
    for event in events:
        judge.take(event)
    return judge.result()


def test_the_metric_that_enables_most_by_itself_is_named() -> None:
    lacking = [("a", ["kl"]), ("b", ["entropy|entropy_sum"]), ("c", ["entropy"]), ("d", ["kl", "entropy"])]
    found = CheckCoverage({}, ["e"], lacking)
    assert found.best_missing == ("entropy", 2), "what needs two metrics is enabled by neither"
    assert found.sentence == "1 of 5 checks could run; logging entropy would enable 2 more"
    assert CheckCoverage({}, ["e"], [("d", ["kl", "entropy"])]).best_missing is None


def test_the_named_metric_does_enable_as_many_checks_as_it_says() -> None:
    events = [Event(step, {"reward_mean": 0.5 + 0.01 * (step % 3), "kl_mean": 0.1}) for step in range(40)]
    before = judged(events).coverage
    assert before.best_missing is not None
    metric, enables = before.best_missing
    for event in events:
        event.metrics[metric] = 1.0 + 0.01 * (event.step % 7)
    assert judged(events).coverage.active == before.active + enables


def test_levels() -> None:
    def level(active: int, outcome: bool = True) -> str:
        rest = [(f"x{number}", ["m"]) for number in range(30 - active)]
        return CheckCoverage({}, [f"a{number}" for number in range(active)], rest, outcome).level

    assert [level(active) for active in (9, 10, 19, 20)] == ["weak", "partial", "partial", "full"]
    assert level(29, outcome=False) == "weak", "without a check of the reward or of preferences healthy means little"


def test_healthy_with_weak_coverage_says_so() -> None:
    found = judged([Event(step, {"kl_mean": 0.1 + 0.001 * (step % 5)}) for step in range(40)])
    assert (found.verdict, found.coverage.level) == ("healthy", "weak")
    assert found.reason == f"nothing found, but coverage is weak: {found.coverage.counted}"


def test_checks_of_rollouts_are_not_held_against_training_on_preferences() -> None:
    found = judged(healthy("dpo", 100, seed=0))
    assert found.coverage.level in ("partial", "full")
    assert "controller_overshoot_anomaly" in dict(found.coverage.inactive)
    assert found.coverage.total < judged(healthy("ppo", 100, seed=0)).coverage.total


def test_checks_of_preferences_are_not_held_against_training_on_rollouts() -> None:
    found = judged(healthy("ppo", 60, 1)).coverage
    assert {"preference_unlearnt", "preference_degenerate"} <= {name for name, _ in found.inactive} & found.foreign
    assert found.best_missing is None or not found.best_missing[0].startswith("preference_")


def test_a_log_of_supervised_training_gets_no_advice_on_what_to_log(tmp_path: Path) -> None:
    log = tmp_path / "sft.jsonl"
    log.write_text("".join(json.dumps({"step": n, "loss": 2.0 - 0.01 * n, "learning_rate": 1e-5}) + "\n" for n in range(60)))
    (result,) = rldk.scan(log)
    assert any("supervised training" in note for note in result.notes)
    assert "would enable" not in result.coverage.sentence and result.coverage.to_dict()["best_missing"] is None


def test_the_times_of_hugging_face_trainers_are_not_unrecognised(tmp_path: Path) -> None:
    log, times = tmp_path / "run.jsonl", ("runtime", "samples_per_second", "steps_per_second")
    rest = {f"{phase}_{name}": 1.5 for phase in ("eval", "eval_math", "train") for name in times}
    rows = [{"step": n, "loss": 0.5, "reward": 0.1 * n, "own_number": 1.0, **({} if n % 5 else rest)} for n in range(20)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (result,) = rldk.scan(log)
    assert list(result.coverage.unmapped) == ["own_number"]
