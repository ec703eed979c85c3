"""The event in the JSONL shape of the contract, and the tolerance of its reader."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.core.errors import ReadError
from rldk.core.event import Event

CONTRACT = """
{"step": 10, "wall_time": 100.5,
 "metrics": {"reward_mean": 0.8, "reward_std": 0.2, "kl_mean": 0.05, "entropy_mean": 0.9,
  "clip_frac": 0.1, "grad_norm": 1.0, "lr": 0.001, "loss": 0.5},
 "rng": {"seed": 42}, "data_slice": {"tokens_in": 1000, "tokens_out": 500},
 "model_info": {"run_id": "my_ppo_run", "git_sha": "abc123", "phase": "train"}, "notes": ["High clipping fraction detected"]}
"""

NAMES = st.text(min_size=1, max_size=8)
PLAIN = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8)
NESTED = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6)
OBJECTS = st.dictionaries(NAMES, NESTED, max_size=3)


@st.composite
def events(draw: st.DrawFn) -> Event:
    metrics = draw(st.dictionaries(NAMES, st.floats(), max_size=6))
    nulls = draw(st.lists(NAMES.filter(lambda name: name not in metrics), unique=True, max_size=3))
    extra = draw(st.dictionaries(NAMES.filter(lambda name: not hasattr(Event, name)), NESTED, max_size=3))
    return Event(
        draw(st.integers(-(2**60), 2**60)), metrics, draw(st.none() | st.floats()), draw(OBJECTS), draw(OBJECTS), draw(OBJECTS),
        draw(st.lists(st.text(max_size=8), max_size=3)), tuple(nulls), extra,
    )  # fmt: skip


def text_of(event: Event) -> str:
    """All that an event says, as text, so that NaN is equal to itself; the order of keys does not count."""
    fields = {name: getattr(event, name) for name in event.__slots__}
    return json.dumps({**fields, "nulls": sorted(event.nulls)}, sort_keys=True)


@given(events())
def test_round_trip(event: Event) -> None:
    assert text_of(Event.from_json(event.to_json())) == text_of(event)
    if not any(map(math.isnan, [*event.metrics.values(), event.wall_time or 0.0])):
        back = Event.from_json(event.to_json())
        back.nulls, event.nulls = tuple(sorted(back.nulls)), tuple(sorted(event.nulls))
        assert back == event


def test_the_contract_example_round_trips() -> None:
    event = Event.from_json(CONTRACT.encode())
    assert json.loads(event.to_json()) == json.loads(CONTRACT)
    assert (event.step, event.wall_time, event.run_id, event.phase) == (10, 100.5, "my_ppo_run", "train")
    assert event.metrics["reward_mean"] == 0.8 and len(event.metrics) == 8
    assert event.rng == {"seed": 42} and event.data_slice["tokens_out"] == 500
    assert event.notes == ["High clipping fraction detected"] and event.nulls == () and event.extra == {}


def test_nonfinite_values_in_every_writing_are_kept() -> None:
    event = Event.from_json(b'{"step": 1, "metrics": {"a": NaN, "b": Infinity, "c": "nan", "d": "-inf", "e": -Infinity}}')
    assert math.isnan(event.metrics["a"]) and math.isnan(event.metrics["c"])
    assert (event.metrics["b"], event.metrics["d"], event.metrics["e"]) == (math.inf, -math.inf, -math.inf)
    assert b"null" not in event.to_json()


def test_numbers_as_text_and_whole_floats() -> None:
    event = Event.from_json(b'{"step": "12.0", "wall_time": "3.5", "metrics": {"kl": "0.25", "count": 3, "flag": true}}')
    assert (event.step, event.wall_time) == (12, 3.5)
    assert event.metrics == {"kl": 0.25, "count": 3.0, "flag": 1.0}
    assert all(type(value) is float for value in event.metrics.values())


def test_a_null_is_not_a_value_but_is_remembered() -> None:
    event = Event.from_json(b'{"step": 1, "metrics": {"reward": null, "kl": 0.1}}')
    assert "reward" not in event.metrics and event.nulls == ("reward",)
    assert json.loads(event.to_json())["metrics"] == {"kl": 0.1, "reward": None}


def test_unknown_keys_and_values_are_kept() -> None:
    raw: dict[str, Any] = {
        "step": 1, "metrics": {"kl": 0.1, "histogram": [1, 2], "name": "x"}, "host": "node7", "rng": 42, "deep": {"a": [None]},
        "wall_time": "2024-05-01T10:00:00",
    }  # fmt: skip
    event = Event.from_dict(raw)
    assert event.metrics == {"kl": 0.1} and event.rng == {} and event.wall_time is None
    assert event.to_dict() == raw


def test_notes_in_any_shape_are_a_list_of_text() -> None:
    assert Event.from_dict({"step": 1, "notes": "one"}).notes == ["one"]
    assert Event.from_dict({"step": 1, "notes": ["a", 2, None]}).notes == ["a", "2", "None"]
    assert Event.from_dict({"step": 1, "notes": None}).notes == []


def test_a_run_id_that_is_a_number_is_a_name() -> None:
    assert Event.from_dict({"step": 1, "model_info": {"run_id": 7}}).run_id == "7"
    assert Event(1).run_id is None and Event(1).phase is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "not JSON"),
        (b"[1]", "Expected a JSON object, got list"),
        (b'{"metrics": {}}', "Expected `step` to be a whole number, got None"),
        (b'{"step": 1.5}', "got 1.5"),
        (b'{"step": 1, "metrics": [1]}', r"Expected `metrics` to be an object, got \[1\]"),
        (b'{"step": 1, "x": ' + b"[" * 200_000, "not JSON"),
        (b'{"step": ' + b'"' + b"x" * 10_000 + b'"}', "got 'x{70,80}"),
    ],
)
def test_what_is_no_event_is_said_in_one_sentence(line: bytes, said: str) -> None:
    with pytest.raises(ReadError, match=said) as error:
        Event.from_json(line)
    assert len(str(error.value)) < 300


def test_events_do_not_share_their_parts() -> None:
    first, second = Event(1), Event(2)
    first.metrics["a"] = 1.0
    first.notes.append("x")
    assert second.metrics == {} and second.notes == []


def test_the_given_mapping_is_not_changed() -> None:
    raw = json.loads(CONTRACT)
    event = Event.from_dict(raw)
    event.model_info["run_id"] = "other"
    event.metrics["loss"] = 9.0
    assert raw == json.loads(CONTRACT)
