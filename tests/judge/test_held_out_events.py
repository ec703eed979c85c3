"""An event of held-out data never passes for one of training."""

from __future__ import annotations

from rldk.core.event import Event
from rldk.forensics import ComprehensivePPOForensics
from rldk.judge.engine import Engine
from rldk.runs.canonical import prefix_held_out


def event(step: int, reward: float, phase: str) -> Event:
    return Event(step, {"reward_mean": reward, "kl_mean": 0.01}, model_info={"phase": phase}, nulls=("entropy_mean",))


def test_its_metrics_are_named_as_held_out() -> None:
    given = event(3, 0.1, "Eval")
    assert prefix_held_out(given).metrics == {"eval_reward_mean": 0.1, "eval_kl_mean": 0.01}
    assert prefix_held_out(given).nulls == ("eval_entropy_mean",)
    assert given.metrics == {"reward_mean": 0.1, "kl_mean": 0.01}
    assert prefix_held_out(prefix_held_out(given)).metrics == prefix_held_out(given).metrics
    assert prefix_held_out(event(3, 0.1, "warmup")).metrics == {"reward_mean": 0.1, "kl_mean": 0.01}


def test_training_is_judged_without_it() -> None:
    engine, forensics = Engine(), ComprehensivePPOForensics(kl_target=None)
    for step in range(100):
        for judge in (engine.observe, forensics.take):
            judge(event(step, 0.7 + 0.02 * (step % 7), "train"))
            judge(event(step, 0.01 * (step % 5), "eval"))
    for judged in (engine, forensics.engine):
        assert judged.series["reward_mean"].n == judged.series["eval_reward_mean"].n == 100
        assert judged.series["reward_mean"].low >= 0.7
        assert judged.anomalies == []
    assert forensics.trackers.kl is not None and forensics.trackers.kl.metrics().step == 99
