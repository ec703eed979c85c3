"""The probable causes of incidents: the evidence for each, and what to do about it."""

from __future__ import annotations

from rldk.judge.incidents.causes.cause import Cause
from rldk.judge.incidents.causes.policy import POLICY
from rldk.judge.incidents.causes.reward import REWARD
from rldk.judge.incidents.causes.settings import SETTINGS
from rldk.judge.incidents.causes.surroundings import SURROUNDINGS

__all__ = ["CAUSES", "TITLES", "Cause"]

CAUSES: tuple[Cause, ...] = (*SETTINGS, *REWARD, *POLICY, *SURROUNDINGS)
"""Every cause that rldk names, the most specific first: of two with the same weight the first is used."""

TITLES = {cause.name: cause.title for cause in CAUSES}
"""The title of each cause."""
