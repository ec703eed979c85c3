"""Batches that are trained on too often."""

from __future__ import annotations

import numpy as np

from rldk.detectors.policy.batch_overused import BatchOverused
from rldk.detectors.run.learning_rate_too_high import LearningRateTooHigh

AT = np.arange(60)


def stream(passes: float, update: float, **more: np.ndarray) -> dict[str, np.ndarray]:
    return {"num_iterations": np.full(60, passes), "kl_update": np.full(60, update), **more}


def test_large_updates_by_many_passes_are_those_of_the_batch(told):
    assert told(BatchOverused(), stream(20.0, 0.3)) == [(9, "warning", "overused")]
    assert told(LearningRateTooHigh(), stream(20.0, 0.3)) == []


def test_large_updates_by_few_passes_are_those_of_the_learning_rate(told):
    assert told(BatchOverused(), stream(4.0, 0.3)) == []
    assert told(LearningRateTooHigh(), stream(4.0, 0.3)) == [(9, "warning", "large_updates")]


def test_many_passes_with_small_updates_are_fine(told):
    assert told(BatchOverused(), stream(10.0, 0.05)) == []


def test_damage_to_another_channel_makes_it_critical(told):
    entropy = np.where(AT < 30, 1.5, 0.001)
    found = told(BatchOverused(), stream(20.0, 0.3, entropy_mean=entropy))
    assert [said for _, *said in found] == [["warning", "overused"], ["critical", "overused_with_damage"]]
    assert 30 < found[1][0] < 40


def test_large_updates_are_a_note_while_the_reward_thrives(told):
    found = told(BatchOverused(), stream(20.0, 0.3, reward_mean=0.1 * AT))
    assert [severity for _, severity, _ in found][-1] == "note"


def test_many_passes_over_a_language_model_need_no_further_evidence_where_none_is_logged(told):
    passes = {"num_iterations": np.full(60, 10.0), "reward_mean": np.full(60, 0.5)}
    assert told(BatchOverused(), {**passes, "max_response_length": np.full(60, 64.0)}) == [(2, "warning", "many_passes")]
    assert told(BatchOverused(), passes) == []  # a control task
    assert told(BatchOverused(), {**passes, "max_response_length": np.full(60, 64.0), "kl_update": np.full(60, 0.01)}) == []
