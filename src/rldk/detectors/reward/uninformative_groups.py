"""Groups in which all responses score the same: too hard, or too easy."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["UninformativeGroups"]

STEPS = 100
FEW = 0.25  # share of rollouts without a signal below which nothing is said


class UninformativeGroups(Detector):
    """Most rollouts carry no signal, because all responses of a group score the same.

    What it catches: nine of ten groups that fail entirely, for fifty steps, without becoming fewer. That nine of ten groups are
        solved entirely is a note. At the end it says how many rollouts of the last hundred steps carried no signal, and
        whether groups were too easy or too hard, where the log distinguishes them.
    Why it matters: a group without spread has no gradient. Its rollouts cost as much as the others.
    When it misfires: hard data may take long before the first successes; as soon as they become more frequent the detector is
        silent. Half of the groups without spread is usual in healthy runs.
    What to do: too hard: easier prompts, more responses per prompt, partial credit. Too easy: harder prompts, or drop those that
        are always solved. Dynamic sampling does both.
    References: Yu et al. 2025, DAPO (dynamic sampling); half of the healthy public runs end with 80 % of groups without spread.
    """

    __slots__ = ("_easy", "_hard", "_idle", "_steps", "share")
    type: ClassVar[str] = "uninformative_groups"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (("groups_all_bad_frac", "groups_all_good_frac", "reward_zero_std_frac"),)
    panels: ClassVar = ("reward_signal", "reward")
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Start with prompts that the model solves sometimes, sample more responses per prompt, or give partial credit; drop "
        "prompts that are always solved."
    )
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "too_hard": Clause(
            "nine of ten groups fail entirely, and they do not become fewer", "warning",
            "definition: a group without spread has no gradient; healthy runs have such shares only where tasks are solved; a "
            "share that is 0.05 below its start is becoming smaller",
            persist=50, min_rows=15,
        ),
        "too_easy": Clause(
            "nine of ten groups are solved entirely", NOTE, "definition: nothing is left to learn from them",
            persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {"share": Setting(0.9, "share of groups without spread that is too much", min=0.5, max=1.0)}
    share: float
    _idle: deque[float]
    _easy: deque[float]
    _hard: deque[float]
    _steps: deque[int]

    def reset(self) -> None:
        super().reset()
        self._idle, self._easy, self._hard = deque(maxlen=STEPS), deque(maxlen=STEPS), deque(maxlen=STEPS)
        self._steps = deque(maxlen=STEPS)

    def find(self, view: View) -> Sequence[Finding]:
        self._remember(view)
        hard, easy = view.get("groups_all_bad_frac"), view.get("groups_all_good_frac")
        if hard.ready and hard.level >= self.share and hard.level >= hard.start - 0.05:
            message = f"In {hard.level:.0%} of the groups every response fails; at the start it was {hard.start:.0%}."
            evidence = {"too_hard": hard.level, "start": hard.start}
            return (Finding("", hard.level, self.share, message, evidence, clause="too_hard"),)
        if easy.ready and easy.level >= self.share:
            message = f"In {easy.level:.0%} of the groups every response gets the full score."
            return (Finding("", easy.level, self.share, message, {"too_easy": easy.level}, clause="too_easy"),)
        return ()

    def _remember(self, view: View) -> None:
        metrics = view.event.metrics
        easy, hard = metrics.get("groups_all_good_frac"), metrics.get("groups_all_bad_frac")
        both = easy + hard if easy is not None and hard is not None else None
        idle = metrics.get("reward_zero_std_frac", both)
        if idle is None or not 0.0 <= idle <= 1.0:
            return
        self._idle.append(idle)
        self._steps.append(view.step)
        if both is not None:
            self._easy.append(easy or 0.0)
            self._hard.append(hard or 0.0)

    def closing(self) -> str | None:
        """What the rollouts without a signal cost: `62 % of the rollouts of the last 100 steps carried no signal`."""
        kept = [number for number, step in enumerate(self._steps) if step > self._steps[-1] - STEPS]
        if len(kept) < 8:
            return None
        idle = [self._idle[number] for number in kept]
        share = sum(idle) / len(idle)
        if share < FEW:
            return None
        span = self._steps[-1] - self._steps[kept[0]] + 1
        said = f"{share:.0%} of the rollouts of the last {span} steps carried no signal: their groups scored the same"
        if len(self._easy) == len(self._steps):
            easy, hard = (sum(kind[number] for number in kept) / len(kept) for kind in (self._easy, self._hard))
            said += f" ({easy:.0%} of the groups were too easy, {hard:.0%} too hard)"
        return said
