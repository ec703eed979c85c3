"""The data has very few distinct prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import LN2

__all__ = ["TooFewPrompts"]

HANDFUL = 10  # distinct prompts in a data set that is twenty times as large
ONE_OR_TWO = 2.5
ROWS = 10  # rows after which the number of prompts is judged
REPEATED = 0.05  # share of the records with distinct prompts: each prompt is there twenty times
LEARNT, LEFT = 0.99, 0.1  # accuracy of pairs that are all in order, and the share of an untrained pair's loss that they have left
MIN_RECORDS, MAX_RECORDS = 20, 1024  # records of a data set that is more than a handful, and that was looked at as a whole


class TooFewPrompts(Detector):
    """The policy sees the same few prompts over and over.

    What it catches: no more than four distinct prompts, in ten rows or in the whole data set; or no more than
        ten in a data set of at least 200 records. Critical where there are one or two and training continues. Where less than a
        twentieth of the records have distinct prompts, a note, and a warning once all pairs of such a data set are in order
        with hardly any loss left.
    Why it matters: the policy memorises these answers, the reward rises, and nothing transfers to other prompts.
    When it misfires: a test of the set-up on a single prompt does this on purpose.
    What to do: check how the data set is built and shuffled, and that the right column is used as prompt.
    References: none.
    """

    __slots__ = ("few",)
    type: ClassVar[str] = "too_few_prompts"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("distinct_prompts", "distinct_prompts_frac"),)
    panels: ClassVar = ("reward",)
    reads: ClassVar = ("dataset_size", "preference_accuracy", "loss")
    advice: ClassVar[str] = "Check how the data set is built and shuffled, and that the right column is used as prompt."
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "few": Clause(
            "there are no more than four distinct prompts", "warning", "definition: there is nothing to generalise from",
        ),
        "one_or_two": Clause(
            "training continues with one or two prompts", "critical",
            "corpus: all eight runs with two prompts ended worse than the same run with all of them", persist=20, min_rows=5,
        ),
        "handful": Clause(
            "a data set of many records has no more than ten distinct prompts", "warning",
            "definition: each of them is seen over and over, and memorised", min_rows=1,
        ),
        "by_heart": Clause(
            "pairs of a data set that repeats its prompts twenty times or more are all in order, with hardly any loss left",
            "warning", "definition: what has been seen twenty times within an epoch is memorised first", persist=10,
        ),
        "repeated": Clause(
            "less than a twentieth of the records have distinct prompts", NOTE,
            "repeated prompts are common, but seldom intended to this extent",
        ),
    }  # fmt: skip
    settings: ClassVar = {"few": Setting(4, "number of distinct prompts that is too few", min=1)}
    few: float

    def find(self, view: View) -> Sequence[Finding]:
        prompts, share = view.get("distinct_prompts"), view.get("distinct_prompts_frac").last
        if prompts.n >= ROWS and prompts.last <= self.few:
            return self._few(prompts.last, f"The run has seen {prompts.last:.0f} distinct prompts in {prompts.n} rows.")
        size = view.get("dataset_size").last
        if MIN_RECORDS <= size <= MAX_RECORDS and share * size <= self.few + 0.5:
            return self._few(share * size, f"The data set has {share * size:.0f} distinct prompts in {size:.0f} records.")
        if MIN_RECORDS * HANDFUL <= size <= MAX_RECORDS and share * size <= HANDFUL + 0.5:
            message = f"The data set has {share * size:.0f} distinct prompts in {size:.0f} records."
            return (Finding("", share * size, HANDFUL, message, clause="handful"),)
        if share < REPEATED and size >= MIN_RECORDS:
            return self._repeated(view, share)
        return ()

    @staticmethod
    def _repeated(view: View, share: float) -> Sequence[Finding]:
        accuracy, loss = view.get("preference_accuracy"), view.get("loss")
        message = f"{share:.1%} of the records of the data set have distinct prompts"
        found = [Finding("", share, REPEATED, f"{message}.", clause="repeated")]
        if accuracy.ready and loss.ready and accuracy.level > LEARNT and loss.level < LEFT * LN2:
            message += f", and all pairs are in order at a loss of {loss.level:.2g}: they are memorised."
            found.append(Finding("", share, REPEATED, message, clause="by_heart"))
        return found

    def _few(self, prompts: float, message: str) -> Sequence[Finding]:
        clauses = ("few", "one_or_two") if prompts < ONE_OR_TWO else ("few",)
        return [Finding("", prompts, self.few, message, clause=clause) for clause in clauses]
