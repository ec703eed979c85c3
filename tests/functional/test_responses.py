"""How varied responses are, beside a plain loop over the same tokens."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.functional.responses import describe_responses, distinct_endings, sample_responses


def plain(responses: list[list[int]]) -> dict[str, float]:
    """The same metrics by the plainest means."""
    few = [response[:256] for response in responses[:32] if len(response) >= 4]
    shares = []
    for response in few:
        pairs = [(response[place], response[place + 1]) for place in range(len(response) - 1)]
        shares.append(1.0 - len(set(pairs)) / len(pairs))
    counted = responses[:64]
    found = {"distinct_responses_frac": len({tuple(response) for response in counted}) / len(counted)}
    return found | ({"repetition_frac": sum(shares) / len(shares)} if shares else {})


def padded(responses: list[list[int]], filling: int = 0, kind: str = "int64") -> tuple[np.ndarray, list[int]]:
    width = max(map(len, responses))
    rows = [response + [filling] * (width - len(response)) for response in responses]
    return np.array(rows, dtype=kind).reshape(len(rows), width), [len(response) for response in responses]


def found(responses: list[list[int]], **how: object) -> dict[str, float]:
    return describe_responses([sample_responses(*padded(responses, **how))])  # type: ignore[arg-type]


def test_known_responses_have_known_shares() -> None:
    text, loud = list(range(10, 20)), [7] * 10
    assert found([text, text[::-1], text[:9]]) == {"distinct_responses_frac": 1.0, "repetition_frac": 0.0}
    assert found([loud] * 8) == pytest.approx({"distinct_responses_frac": 1 / 8, "repetition_frac": 1 - 1 / 9})
    assert found([[1, 2, 1, 2, 1]]) == pytest.approx({"distinct_responses_frac": 1.0, "repetition_frac": 0.5})


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("filling", [0, 3, -100])
@pytest.mark.parametrize("words", [2, 5, 150_000])
def test_any_responses_are_described_as_by_a_plain_loop(words: int, filling: int, kind: str) -> None:
    chance = np.random.default_rng(words)
    for count, longest in ((1, 4), (7, 3), (16, 20), (80, 6), (40, 400)):
        responses = [chance.integers(0, words, chance.integers(0, longest + 1)).tolist() for _ in range(count)]
        responses[0] = responses[0] or [0]
        assert found(responses, filling=filling, kind=kind) == pytest.approx(plain(responses)), (count, longest)


def test_what_is_written_after_the_end_does_not_count() -> None:
    tokens = np.array([[5, 6, 7, 8, 1, 2], [5, 6, 7, 8, 1, 1], [5, 6, 7, 8, 1, 9]])
    assert describe_responses([sample_responses(tokens, [5, 5, 5])])["distinct_responses_frac"] == pytest.approx(1 / 3)


def test_a_token_of_number_0_is_not_padding() -> None:
    assert found([[5, 0, 0, 0], [5, 0, 0], [5]])["distinct_responses_frac"] == 1.0


def test_short_responses_have_no_repetition_and_none_have_nothing() -> None:
    assert found([[7, 7, 7], [7, 7, 7]]) == {"distinct_responses_frac": 0.5}
    assert describe_responses([]) == describe_responses([([], [])]) == {}


def test_processes_are_counted_together_each_with_its_share() -> None:
    one, other = [[[number] * 4 for number in range(start, start + 50)] for start in (0, 25)]
    both = [sample_responses(*padded(part)) for part in (one, other)]
    shared = describe_responses(both)
    assert shared == describe_responses([([], []), *both])
    assert shared["distinct_responses_frac"] == pytest.approx(57 / 64)  # 0 to 31 and 25 to 56
    assert shared["repetition_frac"] == pytest.approx(2 / 3)


def test_the_tokens_are_left_as_they_are() -> None:
    tokens, lengths = padded([[5, 6, 7, 8], [5, 6]])
    before = tokens.copy()
    sample_responses(tokens, lengths)
    assert (tokens == before).all()


def test_endings_are_counted_by_their_last_tokens() -> None:
    fixed = [7, 8, 9, 2]
    beginnings = [[n, n + 1, n + 2] for n in range(10, 20)]
    alike = [[*start, *fixed] for start in beginnings]
    assert distinct_endings(*padded(alike), size=4) == 1 / 10
    assert distinct_endings(*padded(alike, filling=99), size=5) == 1.0  # one token further back they differ
    assert distinct_endings(*padded([[2], [3, 2], [3, 2], [1, 3, 2]]), size=5) == 3 / 4  # shorter ones count whole
