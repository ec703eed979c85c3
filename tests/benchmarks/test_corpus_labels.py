"""The rules of labelling: what a policy must come to for a run to be FAILING, DEGRADED or HARMLESS, and from when on."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.full


def outcome(rewards: list[float], *, injected: int = 0, ended_with: str = "", **channels: list[float]) -> dict[str, Any]:
    """A run measured every ten updates; channels that are not given stay as in a healthy run."""
    usual = {"ended": 1.0, "distinct": 0.95, "kl": 0.3, "entropy": 1.0, "moved": 0.02}
    rows = [
        {
            "update": 10 * place, "finite": reward == reward, "reward": reward,
            **{name: channels[name][place] if name in channels else value for name, value in usual.items()},
        }
        for place, reward in enumerate(rewards)
    ]  # fmt: skip
    return {"rows": rows, "injected": injected, "ended": ended_with, "updates": 10 * (len(rewards) - 1)}


RISING = [0.0, 0.2, 0.5, 0.8, 0.9, 0.95, 1.0, 1.0, 1.0, 1.0, 1.0]
TWIN = outcome(RISING)
SEEDS = [TWIN["rows"], outcome([value * 0.98 for value in RISING])["rows"], outcome([value * 1.02 for value in RISING])["rows"]]


def judged(run: dict[str, Any]) -> Any:
    from corpus.label import judge_outcome

    return judge_outcome(run, TWIN, SEEDS)


def test_a_run_like_its_twin_is_harmless() -> None:
    assert judged(outcome([value - 0.03 for value in RISING])).verdict == "HARMLESS"


@pytest.mark.parametrize(
    ("end", "verdict"), [(0.95, "HARMLESS"), (0.7, "DEGRADED"), (0.3, "FAILING"), (-0.5, "FAILING")]
)  # fmt: skip
def test_the_reward_that_is_missing_at_the_end_decides(end: float, verdict: str) -> None:
    found = judged(outcome([*RISING[:6], *[end] * 5], injected=55))
    assert found.verdict == verdict
    assert ("reward" in found.channels) == (verdict != "HARMLESS")


def test_a_run_that_recovered_was_degraded() -> None:
    fallen = [*RISING[:3], 0.0, 0.0, 0.0, 0.0, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0]
    twin = outcome([*RISING, 1.0, 1.0])
    from corpus.label import judge_outcome

    assert judge_outcome(outcome(fallen, injected=25), twin, [twin["rows"]]).verdict == "DEGRADED"


def test_responses_that_stop_ending_fail_a_run_whose_reward_is_fine() -> None:
    found = judged(outcome(RISING, ended=[1.0] * 5 + [0.1] * 6, injected=45))
    assert (found.verdict, found.channels, found.onset) == ("FAILING", ["ended"], 50)


def test_one_sentence_for_every_prompt_is_failing() -> None:
    assert judged(outcome(RISING, distinct=[0.95] * 4 + [0.02] * 7)).verdict == "FAILING"


def test_a_correct_answer_to_each_question_is_no_collapse() -> None:
    """Twelve questions: one sentence each makes 12 of 96."""
    assert judged(outcome(RISING, distinct=[0.95] * 4 + [0.125] * 7)).verdict == "DEGRADED"


def test_weights_that_stand_still_while_the_twin_moves_on_are_told() -> None:
    found = judged(outcome(RISING, moved=[0.02] * 5 + [1e-6] * 6, injected=45))
    assert (found.verdict, found.channels) == ("DEGRADED", ["weights"])


def test_a_loss_that_never_leaves_the_range_of_the_seeds_is_harmless() -> None:
    """Curves of different seeds are furthest apart where they are steep: what no single update shows is no damage."""
    from corpus.label import judge_outcome

    steep = [0.0, 0.1, 0.2, 0.35, 0.6, 0.85, 1.0, 1.0, 1.0, 1.0, 1.0]
    seeds = [TWIN["rows"], outcome(steep)["rows"]]
    assert judge_outcome(outcome(steep), TWIN, seeds).verdict == "HARMLESS"


def test_a_verdict_that_moved_limits_would_change_is_borderline() -> None:
    from corpus.label import BORDER, Limits, judge_outcome

    near = outcome([*RISING[:6], *[0.53] * 5])
    assert judged(near).verdict == "DEGRADED"
    assert judge_outcome(near, TWIN, SEEDS, Limits().scaled(BORDER[0])).verdict == "FAILING"


def test_a_run_that_broke_before_it_crashed_has_the_onset_of_the_break() -> None:
    broken = outcome([*RISING[:3], -1.0, -1.0, -1.0, float("nan")], injected=25)
    broken["updates"] = 100
    assert judged(broken).onset == 30


def test_weights_that_are_not_finite_fail_from_the_first_bad_measurement() -> None:
    found = judged(outcome([*RISING[:5], float("nan"), float("nan")], injected=42))
    assert (found.verdict, found.channels, found.onset) == ("FAILING", ["finite"], 50)


def test_the_onset_is_where_two_measurements_in_a_row_leave_the_range_of_the_twin() -> None:
    lone = [*RISING[:5], 0.3, *RISING[6:]]
    assert judged(outcome(lone)).verdict == "HARMLESS"
    lasting = [*RISING[:5], 0.3, 0.2, 0.1, 0.0, 0.0, 0.0]
    assert judged(outcome(lasting, injected=35)).onset == 50


def test_a_setting_whose_seeds_differ_much_needs_a_larger_loss() -> None:
    from corpus.label import judge_outcome

    run = outcome([*RISING[:6], *[0.75] * 5])
    wide = [TWIN["rows"], outcome([0.6 * value for value in RISING])["rows"], outcome([1.4 * value for value in RISING])["rows"]]
    assert judged(run).verdict == "DEGRADED"
    assert judge_outcome(run, TWIN, wide).verdict == "HARMLESS"
