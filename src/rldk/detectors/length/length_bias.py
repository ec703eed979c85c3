"""The reward favours length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import ending_share

__all__ = ["LengthBias"]

DOUBT = 0.3  # of the change from row to row; the mean over about twenty rows errs by half of that
PRECISE = 0.1  # change from row to row below which a median of five rows errs by a twentieth
GROWN, LONGER = 2.0, 1.25  # times the length of the first rows
SETTLED = 1.1  # times its mean over some twenty rows below which the length no longer grows
DETERMINES = 0.85  # correlation from which length alone orders the responses


class LengthBias(Detector):
    """Longer responses get higher rewards, whatever they say.

    What it catches: a rank correlation of response length with reward, beyond its noise, that is so high that length nearly
        determines the reward; or one above the threshold that lasts, or that comes with responses that have doubled in length
        or stop ending. It is measured over the latest responses if they are passed to the forensics (`response_data`), or
        taken from the log (`length_reward_corr`).
    Why it matters: the policy learns what is rewarded; if the reward grows with length, it learns to write more long before
        anything else.
    When it misfires: where a right answer takes more words than a wrong one, the correlation is justified: healthy runs of
        the corpus reach 0.7 for a while, without growing lengths. A lasting one is a note while responses no longer grow and
        end as they did. A negative correlation is not reported: wrong answers that ramble until they are cut off are common
        in healthy runs.
    What to do: control the reward for length or normalise it by length, penalise over-long responses, and read the
        longest ones that score well.
    References: Singhal et al. 2023, A Long Way to Go: Investigating Length Correlations in RLHF.
    """

    __slots__ = ("alone", "threshold")
    type: ClassVar[str] = "length_bias"
    family: ClassVar[str] = "length"
    needs: ClassVar = (("length_reward_corr",),)
    panels: ClassVar = ("length_bias", "length")
    reads: ClassVar = ("rollout_length_mean", "truncated_frac", "eos_frac", "eos_count")
    advice: ClassVar[str] = (
        "Control or normalise the reward for length; penalise over-long responses; read the longest ones that score well."
    )
    clauses: ClassVar = {
        "pays_and_grows": Clause(
            "length nearly determines the reward, and responses grow or stop ending", "critical",
            "corpus: rewards for length reach 0.85 and more as responses grow, sound runs 0.6", persist=5, min_rows=2,
        ),
        "decides": Clause(
            "length nearly determines the reward", "warning",
            "corpus: healthy runs reach 0.7, rewards for length reach 0.88 and more", persist=5, min_rows=3,
        ),
        "lasting": Clause(
            "longer responses get higher rewards, over many steps", "warning",
            "Singhal et al. 2023; a judgement: sound runs of the corpus are too short to tell", persist=70, min_rows=20,
        ),
        "grows": Clause(
            "longer responses get higher rewards, and lengths have doubled or responses stop ending", "warning",
            "Singhal et al. 2023; the corpus has healthy correlations of 0.6 without growth", persist=5, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "threshold": Setting(0.35, "rank correlation that is reported if responses grow", min=0.0, max=1.0),
        "alone": Setting(0.75, "rank correlation that is reported without growth", min=0.0, max=1.0),
    }
    threshold: float
    alone: float

    def find(self, view: View) -> Sequence[Finding]:
        correlation = view.get("length_reward_corr")
        if not correlation.ready:
            return ()
        lasting = correlation.level if correlation.roughness < PRECISE else correlation.slow - DOUBT * correlation.roughness
        value = min(correlation.level, lasting)
        if not value >= min(self.threshold, self.alone):
            return ()
        length = view.get("rollout_length_mean")
        now, best = ending_share(view)
        unending = best > 0.5 and now < 0.6 * best
        settled = length.ready and length.level < SETTLED * length.slow and now > 0.9 * best
        longer = length.ready and length.level > LONGER * length.start
        grown = length.ready and length.level > GROWN * length.start
        message = f"Length and reward have a rank correlation of {correlation.level:.2f}: longer responses get higher rewards"
        evidence = {"length_reward_corr": correlation.level, "correlation_start": correlation.start}
        if length.ready:
            evidence |= {"length_start": length.start, "length": length.level}
        ending = f"the share of responses that emit the end token fell to {now:.0%}" if unending else "they grow"
        found = []
        if value >= max(self.alone, self.threshold):
            found.append(Finding("", correlation.level, self.alone, f"{message}.", evidence, clause="decides"))
            if unending or (longer and value >= DETERMINES):
                also = f"{message}, and {ending}."
                found.append(Finding("", correlation.level, self.alone, also, evidence, clause="pays_and_grows"))
        if value >= self.threshold:
            severity = NOTE if settled else ""
            found.append(Finding(severity, correlation.level, self.threshold, f"{message}.", evidence, clause="lasting"))
        if value >= self.threshold and (grown or unending):
            also = f"{message}, and {ending}."
            found.append(Finding("", correlation.level, self.threshold, also, evidence, clause="grows"))
        return found
