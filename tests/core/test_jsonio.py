"""JSON as logs hold it: strict where it can be, tolerant where it must, and no number lost."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.core.jsonio import dumps, loads, to_number, to_step
from rldk.core.text import writable

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


def same(left: Any, right: Any) -> bool:
    """Equal, with NaN equal to itself and whole floats equal to integers."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    text = dumps(value)
    assert b"\n" not in text
    assert same(loads(text), value)


def test_nonfinite_tokens_are_numbers() -> None:
    read = loads(b'{"a": NaN, "b": Infinity, "c": -Infinity}')
    assert math.isnan(read["a"])
    assert (read["b"], read["c"]) == (math.inf, -math.inf)


def test_a_nonfinite_number_is_never_written_as_null() -> None:
    assert dumps({"a": math.nan, "b": None, "c": -math.inf}) == b'{"a": NaN, "b": null, "c": -Infinity}'


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert loads(b'{"a": "x\xffy", "b": 2}') == {"a": "x�y", "b": 2}


@pytest.mark.parametrize("text", [b"", b"{", b"nan", b"{'a': 1}", b'{"a": 1} x', b"[" * 100_000, b'{"a":' * 50_000, b"\x00\x01"])
def test_what_is_not_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        loads(text)


@given(st.binary(max_size=60))
def test_loads_raises_nothing_but_value_errors(text: bytes) -> None:
    try:
        loads(text)
    except ValueError:
        return
    json.loads(text.decode("utf-8", "replace"))  # what was taken is JSON


def test_numpy_and_odd_keys_are_written() -> None:
    value = {1: np.float32(0.5), None: np.int64(3), "array": np.arange(3), (1, 2): {3.5}, "nan": np.float64("nan")}
    read = loads(dumps(value))
    assert read["1"] == 0.5 and read["null" if "null" in read else "None"] == 3 and read["array"] == [0, 1, 2]
    assert read["(1, 2)"] == "{3.5}" and math.isnan(read["nan"])


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0), (2.5, 2.5), (True, 1.0), ("0.5", 0.5), (" 3 ", 3.0), ("1e-3", 0.001), ("-Infinity", -math.inf),
        ("inf", math.inf),
        (np.float32(0.25), 0.25), (np.int8(-3), -3.0), (Decimal("1.5"), 1.5), (10**400, math.inf), (-(10**400), -math.inf),
    ],
)  # fmt: skip
def test_what_stands_for_a_number(value: object, number: float) -> None:
    assert to_number(value) == number


@pytest.mark.parametrize("value", ["nan", "NaN", float("nan"), np.float64("nan")])
def test_nan_in_any_writing_is_a_number(value: object) -> None:
    number = to_number(value)
    assert number is not None and math.isnan(number)


@pytest.mark.parametrize("value", [None, "", "x", "1_000", "1,5", "0x10", [1], (1,), {"a": 1}, object(), np.zeros(2), 1j])
def test_what_stands_for_none(value: object) -> None:
    assert to_number(value) is None


class Tensor:
    """What torch does with a tensor of several elements."""

    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


def test_a_tensor_of_several_elements_is_no_number() -> None:
    assert to_number(Tensor()) is None


@pytest.mark.parametrize(
    ("value", "step"),
    [(10, 10), (10.0, 10), ("10", 10), ("10.0", 10), (0, 0), (-1, -1), (2**63 - 1, 2**63 - 1), (np.int32(4), 4)],
)
def test_whole_numbers_are_steps(value: object, step: int) -> None:
    assert to_step(value) == step


@pytest.mark.parametrize(
    "value", [None, True, 1.5, "1.5", "ten", math.nan, math.inf, "10/547", [], {}, 2**63, -(2**63) - 1, 10**400, 1e30, 1j]
)
def test_what_is_no_whole_number_is_no_step(value: object) -> None:
    assert to_step(value) is None


@given(st.text() | st.text(alphabet=st.characters(categories=["Cs", "L"])))
def test_writable_text_can_be_written_and_is_otherwise_the_same(text: str) -> None:
    made = writable(text)
    made.encode("utf-8")
    assert len(made) == len(text)
    assert all(one == other or other == "?" for one, other in zip(text, made, strict=True))
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert made == text
