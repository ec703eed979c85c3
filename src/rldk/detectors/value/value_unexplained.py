"""The value function has learnt nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.optimizer import VALUE_RATES, rate_in_brackets

__all__ = ["ValueUnexplained"]

EVERY = 50
EARLY = 30  # rows in which an untrained value head may be wrong by any amount
FAR = -1.0
FIRST, FAR_AT_FIRST = 8, -5.0  # rows in which a fresh value head finds the scale of the returns, unless it is far too large
NEARLY = 0.03  # share of the variance by which the mean may be above the limit
FINDS_IT = 0.6  # times the median of five rows: a last row above that shows that the values approach the returns


class ValueUnexplained(Detector):
    """Long after the start the values still do not predict the returns.

    What it catches: an explained variance whose mean over some twenty rows is about zero or less for fifty rows, after the first
        150, and has not risen by 0.05 in the last fifty to hundred rows. Fewer rows if a row stands for several
        steps. Also one that stays below -1 after the first thirty rows, or below -5 after the first eight while it does not
        rise quickly.
    Why it matters: at zero the values are no better than a constant, below zero they are worse: the advantages are as noisy
        as without a value function, or noisier, and its memory and time are wasted.
    When it misfires: the first hundred or so updates of an untrained value head are often below zero. A reward
        without any spread has no variance to explain; that is `dead_reward`. Where a task is solved, returns hardly differ, and
        small errors are large beside them: a value loss below that of the first row is not reported as far off.
    What to do: raise the value function's learning rate or its epochs, start it from the reward model, widen its clip
        range, normalise returns; or use a group baseline (GRPO, RLOO) instead.
    References: Huang et al. 2022, The 37 Implementation Details of Proximal Policy Optimization.
    """

    __slots__ = ("_before", "_earlier", "limit", "rise", "start_rows")
    type: ClassVar[str] = "value_unexplained"
    family: ClassVar[str] = "value"
    needs: ClassVar = (("explained_variance",),)
    panels: ClassVar = ("explained_variance", "value", "value_loss")
    reads: ClassVar = ("value_loss", *VALUE_RATES)
    advice: ClassVar[str] = (
        "Raise the value function's learning rate or epochs, start it from the reward model, or use a group baseline."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "nothing_explained": Clause(
            "the values explain no more of the returns than a constant", "warning",
            "definition: a constant has an explained variance of 0", persist=50,
        ),
        "far_worse": Clause(
            "the values are wrong by more than twice the variance of the returns", "warning",
            "definition: an explained variance below -1; corpus: no sound run has one for eight rows after its first ones",
            persist=20, min_rows=6,
        ),
        "far_off_at_first": Clause(
            "after the first updates the values are still wrong by many times the variance of the returns", "warning",
            "corpus: 162 sound runs with values are above -0.5 by then; a value head 300 times too large is below -5. The first "
            "rows alone say nothing: a fresh head of a large model may start at -70", persist=4, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "limit": Setting(0.0, "share of the variance at or below which nothing is explained", max=1.0),
        "start_rows": Setting(150, "rows after which the value function must have learnt", min=0),
        "rise": Setting(0.05, "rise in the last rows that shows that it is still learning", min=0.0),
    }
    limit: float
    start_rows: float
    rise: float
    _before: float
    _earlier: float

    def reset(self) -> None:
        super().reset()
        self._before = self._earlier = 1.0

    def find(self, view: View) -> Sequence[Finding]:
        explained = view.get("explained_variance")
        every = EVERY if view.steps_per_row == 1.0 else round(view.rows(EVERY, 10))
        if explained.n % every == 0 and explained.level == explained.level:
            self._earlier, self._before = self._before, explained.level
        near = explained.slow <= self.limit + NEARLY and explained.level <= self.limit + 0.1  # and not by a few rows far below
        none = explained.level <= self.limit or (near and explained.same < explained.n)  # what is measured varies
        if not none:
            return ()
        evidence = {"explained_variance": explained.level}
        if explained.n <= view.rows(EARLY, 10):
            if explained.n <= FIRST or explained.level > FAR_AT_FIRST or explained.last > FINDS_IT * explained.level:
                return ()
            still = f"the explained variance is still {explained.level:.3g}"
            message = f"After {explained.n} rows {still}; a constant prediction has 0."
            return (Finding("", explained.level, FAR_AT_FIRST, message, evidence, clause="far_off_at_first"),)
        found = []
        loss = view.get("value_loss")
        if explained.level < FAR and explained.slow < FAR and not loss.level < loss.first:
            message = f"The explained variance is {explained.level:.3g}; a constant prediction has 0."
            found.append(Finding("", explained.level, FAR, message, evidence, clause="far_worse"))
        if near and explained.n > view.rows(self.start_rows, 15) and explained.slow <= self._earlier + self.rise:
            message = f"After {explained.n} rows the explained variance is {explained.slow:.3g}; a constant prediction has 0."
            found.append(Finding("", explained.slow, self.limit, message, evidence, clause="nothing_explained"))
        return found

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause == "far_off_at_first":
            return (
                "Initialise the last layer of the value head with small weights or zeros, normalise returns, or train the "
                "values alone for some updates before the policy."
            )
        rate = rate_in_brackets(view.first(*VALUE_RATES))
        return self.advice.replace("learning rate", f"learning rate{rate}")
