"""Text for people: harmless, short numbers, durations, names in words."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.core.text import ago, clean, counted, duration, first_line, in_words, listed, near_names, sentence, short_number


@pytest.mark.parametrize(
    ("error", "line"), [(ValueError(), "ValueError"), (OSError("\n"), "OSError"), (OSError("No route.\nTry again."), "No route")]
)
def test_the_first_line_of_an_error(error: Exception, line: str) -> None:
    assert first_line(error) == line


@given(st.text(alphabet=st.characters(codec=None), max_size=300), st.integers(1, 50))
def test_clean_text_holds_nothing_a_terminal_obeys(text: str, most: int) -> None:
    shown = clean(text, most)
    assert len(shown) <= most
    assert not any(unicodedata.category(letter) in ("Cc", "Cs") and letter != "\t" for letter in shown)
    assert not any(
        unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") for letter in shown
    )
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\x1b[1;31mred\x1b[0m", "red"), ("a\nb", "a b"), ("a\x07b", "ab"), ("\x1b]0;t\x07x", "]0;tx"), ("é→", "é→"),
    ("\ud800", "?"), (3, "3"), ("\u202ea", "a")],
)  # fmt: skip
def test_clean(text: object, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (1234.0, "1234"), (0.0123, "0.0123"), (1.2345e-5, "1.23e-05"), (2.5e7, "2.5e+07"), (-0.5, "-0.5"),
    (-12_000_000.0, "-1.2e+07"), (0.98765, "0.9877"), (math.nan, "nan"), (-math.inf, "-inf"), (None, "–")],
)  # fmt: skip
def test_short_number(value: float | None, shown: str) -> None:
    assert short_number(value) == shown


def test_counts() -> None:
    assert [counted(number, "event") for number in (0, 1, 1234)] == ["0 events", "1 event", "1,234 events"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.25, "250 ms"), (3.14, "3.1 s"), (45.0, "45 s"), (90.0, "2 min"), (3600.0, "60 min"), (5400.0, "1.5 h"),
    (172_800.0, "2.0 d"), (math.nan, ""), (math.inf, "")],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_ages() -> None:
    assert [ago(seconds) for seconds in (0.0, 1.4, 30.0, 7200.0)] == ["just now", "just now", "30 s ago", "2.0 h ago"]


def test_parts_of_a_sentence_are_listed_with_one_and() -> None:
    assert [listed(["a", "b", "c"][:count]) for count in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_a_near_name_that_shares_more_parts_comes_before_its_opposite() -> None:
    known = ["kl_penalty_off", "kl_penalty_too_strong", "kl_penalty_too_weak", "reward_mean"]
    assert near_names("penalty_too_weak", known)[0] == "kl_penalty_too_weak"
    assert near_names("kl_penalty_weak", known, most=1) == ["kl_penalty_too_weak"]
    assert near_names("reward_meen", known) == ["reward_mean"] and near_names("zzz", known) == [] == near_names("a", [])


def test_identifiers_in_words() -> None:
    assert in_words("kl_trend_anomaly") == "KL trend" and in_words("eos_starvation") == "EOS starvation"
    assert sentence("the reward fell") == "The reward fell" and sentence("") == ""
