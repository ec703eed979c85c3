"""What callers of the simulator rely on: the same seed, the same run; a twin that is one; errors that help."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.event import Event
from rldk.testing.streams import FAULTS, PROFILES, faulty, healthy, simulate, twin

CASES = [(name, profile) for name, fault in FAULTS.items() for profile in fault.profiles]


def content(event: Event) -> tuple[int, float | None, str]:
    """All of an event but the name of its run; as text, so that `NaN` equals `NaN`."""
    return event.step, event.wall_time, repr(event.metrics)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_the_same_seed_gives_the_same_run(profile: str) -> None:
    first, second = healthy(profile, 120, seed=9), healthy(profile, 120, seed=9)
    assert [event.to_json() for event in first] == [event.to_json() for event in second]
    assert repr(first[5].metrics) != repr(healthy(profile, 120, seed=10)[5].metrics)


def test_a_fault_is_repeatable() -> None:
    assert [content(event) for event in faulty("loss_explosion", seed=3)] == [
        content(event) for event in faulty("loss_explosion", seed=3)
    ]


@pytest.mark.parametrize(("name", "profile"), CASES)
def test_a_sick_run_is_its_twin_until_the_onset(name: str, profile: str) -> None:
    onset, seed = 61, 11
    sick, well = faulty(name, profile, 100, onset, seed), twin(name, profile, 100, seed)
    before = [event for event in well if event.step < onset]
    assert [content(event) for event in sick[: len(before)]] == [content(event) for event in before]
    assert [content(event) for event in sick] != [content(event) for event in well]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(CASES), st.integers(0, 10**6), st.integers(1, 90), st.floats(0.5, 2.0))
def test_no_seed_onset_or_severity_breaks_the_past(case: tuple[str, str], seed: int, onset: int, severity: float) -> None:
    name, profile = case
    sick, well = faulty(name, profile, 80, onset, seed, severity), twin(name, profile, 80, seed)
    before = [event for event in well if event.step < onset]
    assert [content(event) for event in sick[: len(before)]] == [content(event) for event in before]
    assert len(sick) == len(well)


def test_without_pinned_traits_the_twin_is_the_plain_run() -> None:
    assert [content(event) for event in twin("throughput_drop", seed=2)] == [content(event) for event in healthy("ppo", seed=2)]


def test_pinning_a_trait_changes_no_other() -> None:
    free, pinned = simulate("grpo", 5, 8).traits, simulate("grpo", 5, 8, log_every=5, kl_level=0.5).traits
    differing = [name for name in type(free).__slots__ if getattr(free, name) != getattr(pinned, name)]
    assert set(differing) <= {"log_every", "kl_level"}


def test_events_survive_the_log() -> None:
    for event in faulty("nonfinite_metric", seed=1)[::50]:
        assert content(Event.from_json(event.to_json())) == content(event)


def test_events_share_nothing_that_can_be_changed() -> None:
    first, second = healthy(steps=2)
    first.metrics["loss"] = first.model_info["phase"] = 7.0
    assert second.metrics["loss"] != 7.0 and second.phase == "train"


@pytest.mark.parametrize(("profile", "reduction"), [("ppo", "sequence"), ("ppo_token", "token"), ("grpo", "token")])
def test_events_say_over_what_the_kl_was_reduced(profile: str, reduction: str) -> None:
    assert healthy(profile, 30)[0].model_info["reductions"] == {"kl_mean": reduction}


def test_responses_behind_an_event() -> None:
    stream = simulate("ppo", 20, 1)
    records = stream.response_data(7)
    assert sum(record["reward"] for record in records) / len(records) == pytest.approx(stream.events[6].metrics["reward_mean"])
    assert sum(record["length"] for record in records) / len(records) == pytest.approx(
        stream.events[6].metrics["rollout_length_mean"]
    )
    assert simulate("dpo", 20, 1).response_data(7) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: healthy("pppo"), "Expected `profile` to be one of ['dpo', 'grpo', 'ppo', 'ppo_token'], got 'pppo'."),
        (lambda: healthy(colour=3), "got 'colour'."),
        (lambda: healthy(steps=1), "Expected `steps` to be at least 2, got 1."),
        (lambda: faulty("gremlins"), "got 'gremlins'."),
        (lambda: twin("gremlins"), "got 'gremlins'."),
        (
            lambda: faulty("value_divergence", "grpo"),
            "Expected `profile` of fault 'value_divergence' to be one of ['ppo', 'ppo_token'], got 'grpo'.",
        ),
    ],
)
def test_errors_say_what_was_expected(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
