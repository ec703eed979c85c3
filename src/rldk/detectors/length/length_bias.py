"""The reward pays for length."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View

__all__ = ["LengthBias"]

DOUBT = 0.3  # of the step from row to row; the mean over some twenty rows errs by half of that
PRECISE = 0.1  # change from row to row below which a median of five rows errs by a twentieth


class LengthBias(Detector):
    """Longer responses are rewarded more, whatever they say.

    What it catches: the rank correlation of response length with reward has been at or above the threshold for some ten
        updates, or five where it hardly varies, by more than its noise (that of a batch of eight errs by 0.4). It is
        measured over the latest responses where they are given to the forensics (`response_data`), or as the run logs it
        (`length_reward_corr`).
    Why it matters: what the reward pays for is what the policy will learn; a reward that grows with length is gamed by
        writing more long before anything else is learnt.
    When it misfires: where a right answer takes more words than a wrong one, the correlation is earned; it is therefore a
        warning only. A negative one is not reported: wrong answers that ramble until they are cut off are common in
        healthy runs.
    What to do: control the reward for length or normalise it by length, penalise over-long responses, and read the
        longest ones that score well.
    References: Singhal et al. 2023, A Long Way to Go: Investigating Length Correlations in RLHF.
    """

    __slots__ = ("threshold",)
    type: ClassVar[str] = "length_bias"
    tracker: ClassVar[str] = "length"
    needs: ClassVar = (("length_reward_corr",),)
    reads: ClassVar = ("rollout_length_mean",)
    advice: ClassVar[str] = (
        "Control the reward for length, or normalise it by it; penalise over-long responses; read the longest that score well."
    )
    persist: ClassVar[int] = 5
    settings: ClassVar = {
        "threshold": Setting(0.35, "rank correlation of length and reward", least=0.0, most=1.0),
    }
    threshold: float

    def check(self, view: View) -> Finding | None:
        correlation = view.get("length_reward_corr")
        lasting = correlation.level if correlation.roughness < PRECISE else correlation.slow - DOUBT * correlation.roughness
        if not min(correlation.level, lasting) >= self.threshold or not correlation.ready:
            return None
        length = view.get("rollout_length_mean")
        message = f"Length and reward have a rank correlation of {correlation.level:.2f}: longer responses are rewarded more."
        evidence = {"length_reward_corr": correlation.level, "correlation_start": correlation.start}
        if length.ready:
            evidence |= {"length_start": length.start, "length": length.level}
        return Finding("warning", correlation.level, self.threshold, message, evidence)
