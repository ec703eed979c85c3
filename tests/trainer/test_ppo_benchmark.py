"""The benchmark beside TRL gives both trainers the same reward."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")
HERE = Path(__file__).parents[2] / "benchmarks/training"


@pytest.mark.filterwarnings("ignore")
def test_words_and_tokens_score_the_same(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.delitem(sys.modules, "world", raising=False)
    pytest.importorskip("trl")
    import peer_trl
    import world

    torch.manual_seed(0)
    prompt = torch.randint(4, world.VOCABULARY, (6, world.PROMPT_WORDS))
    answer = torch.randint(4, world.VOCABULARY, (6, 9))
    answer[0, 4], answer[0, 5:] = world.EOS, world.PAD  # one that ends early
    hidden = peer_trl.Reward(world.PROMPT_WORDS).model(torch.cat([prompt, answer], 1)).hidden_states[-1][:, -1, 0]
    words = [" ".join(f"w{token - 4}" for token in row.tolist() if token >= 4) for row in answer]
    assert world.reward([""] * 6, words) == pytest.approx(hidden.tolist())
    assert len(set(world.reward([""] * 6, words))) > 2
    assert set(world.GOOD_WORDS) == {f"w{token - 4}" for token in world.GOOD}
