"""What a probable cause of an incident is: the anomalies that speak for it, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Cause"]


@dataclass(frozen=True, slots=True)
class Cause:
    """A probable cause.

    `signs` gives the weight of each anomaly for or against it; the first to appear counts more. (A policy that has become
    noise is far from the reference whatever the penalty.) A sign is a type (`kl_explosion`) or one clause of it
    (`kl_penalty_off.negative`), which then replaces the weight of the type. `needs` names signs of which at least one must
    be there. `advice_after` has other advice where an anomaly of this type came first, and `in_control` is the advice for control
    tasks, if it differs by more than words: those have episodes in place of prompts and responses.

    `advice` may name settings, which are replaced by their names in the user's framework, with their values: `{lr}`, `{value_lr}`,
    `{kl_coef}`, `{epochs}`, `{clip}`, `{grad_clip}`, `{temperature}`, `{length}`, `{batch}`; and `{back}`, which is where to go
    back to.
    """

    name: str
    title: str
    signs: Mapping[str, float]
    advice: str
    needs: tuple[str, ...] = ()
    advice_after: Mapping[str, str] = field(default_factory=dict)
    in_control: str = ""
