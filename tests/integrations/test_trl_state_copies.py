"""The state of a watched trainer can be pickled and copied: the copy is not watched."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

pytestmark = pytest.mark.full


@pytest.mark.parametrize("how", [copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_a_state_with_a_session_is_copied_without_it(how: Any) -> None:
    pytest.importorskip("trl")
    from transformers import TrainerState

    from rldk.integrations.trl.session import Session

    state = TrainerState(global_step=3)
    session = Session.of(state, object())
    copied = how(state)
    assert copied.global_step == 3 and Session.of(state, object()) is session
    assert Session.of(copied, object()) is not session
