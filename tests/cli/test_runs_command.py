"""`rldk runs`: what its table shows."""

from __future__ import annotations

import pytest

from rldk.cli.commands.runs import _show


def test_a_setting_that_is_false_is_shown_and_one_that_is_not_known_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    row = dict.fromkeys(("reward", "reward_curve", "kl", "onset_step", "cause_title"))
    values = (True, False, None)
    _show([{**row, "verdict": "healthy", "name": "run", "events": 9, "config.whiten_advantages": value} for value in values])
    shown = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:4]]
    assert shown == ["True", "False", "–"]
