"""Sampler and trainer disagree more than numerical precision explains, from the first row on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["SamplerMismatch"]

LIMITS = {"mismatch_kl": "kl", "mismatch_ratio": "ratio", "mismatch_logp_diff": "logp"}
WORDS = {
    "mismatch_kl": "The KL between sampler and trainer is {:.3g} nats per token",
    "mismatch_ratio": "The probabilities of sampler and trainer differ by a factor of {:.3g}",
    "mismatch_logp_diff": "The log-probabilities of sampler and trainer differ by {:.3g} nats per token",
}


class SamplerMismatch(Detector):
    """Sampler and trainer give the same tokens different probabilities beyond what precision explains.

    What it catches: a KL above 0.1 nats per token, a difference of log-probabilities above 0.3 nats, a factor between the
        probabilities above 1.05, or a correlation of the probabilities below 0.9, that lasts. No growth is needed: a run that
        starts like this is found after ten rows. Growth from a small start is `train_inference_mismatch`.
    Why it matters: the gradient belongs to another policy than the one that wrote the text. Such runs often learn for a while
        and then collapse suddenly.
    When it misfires: asynchronous training with old weights has a gap by design; the same limits were published for it. Single
        spikes occur and are ignored.
    What to do: compare precision, temperature, top-p, chat template and quantisation of both sides; sync weights each step;
        correct with truncated importance weights. With experts, replay the sampler's routing.
    References: verl's guide to rollout correction (|KL| > 0.1); NeMo-RL's documentation (`token_mult_prob_error` > 1.05);
        Tinker's cookbook (`kl_sample_train` < 0.01 in healthy runs).
    """

    __slots__ = ("corr", "kl", "logp", "ratio")
    type: ClassVar[str] = "sampler_mismatch"
    family: ClassVar[str] = "policy"
    needs: ClassVar = ((*LIMITS, "mismatch_prob_corr"),)
    panels: ClassVar = ("mismatch",)
    reads: ClassVar = ("staleness_mean",)
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Compare precision, temperature, top-p and chat template of sampler and trainer, sync weights each step, and correct "
        "with truncated importance weights."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "apart": Clause(
            "sampler and trainer disagree beyond the published limits", "warning",
            "verl's guide: |KL| > 0.1 nats, which is a typical difference of 0.3 to 0.45 nats; NeMo-RL: a factor above 1.05",
            persist=10, min_rows=5,
        ),
        "unlike": Clause(
            "the probabilities of sampler and trainer are weakly correlated", "warning",
            "definition: below 0.9 a fifth of the variance is unexplained; engines that agree reach 0.99", persist=10, min_rows=5,
        ),
        "above_usual": Clause(
            "the KL between sampler and trainer is above that of healthy runs", NOTE, "Tinker's cookbook: healthy below 0.01",
            persist=10, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "kl": Setting(0.1, "KL per token between sampler and trainer", min=0.0),
        "logp": Setting(0.3, "mean difference of log-probabilities", min=0.0),
        "ratio": Setting(1.05, "mean factor between the probabilities", min=1.0),
        "corr": Setting(0.9, "lowest correlation of the probabilities", min=-1.0, max=1.0),
    }
    kl: float
    logp: float
    ratio: float
    corr: float

    def find(self, view: View) -> Sequence[Finding]:
        stale = view.get("staleness_mean")
        lag = f" (responses are {stale.level:.2g} updates old)" if stale.ready and stale.level >= 1.0 else ""
        for name, setting in LIMITS.items():
            gap = view.get(name)
            level, limit = abs(gap.level), getattr(self, setting)
            if gap.ready and level > limit:
                return (Finding("", level, limit, WORDS[name].format(level) + lag + ".", {name: level}, clause="apart"),)
        alike = view.get("mismatch_prob_corr")
        if alike.ready and alike.level < self.corr:
            message = f"The probabilities of sampler and trainer have a correlation of {alike.level:.3g}{lag}."
            return (Finding("", alike.level, self.corr, message, {"correlation": alike.level}, clause="unlike"),)
        gap = view.get("mismatch_kl")
        if gap.ready and abs(gap.level) > 0.1 * self.kl:
            message = WORDS["mismatch_kl"].format(abs(gap.level)) + lag + "; healthy runs stay below 0.01."
            return (Finding("", abs(gap.level), 0.1 * self.kl, message, {"mismatch_kl": gap.level}, clause="above_usual"),)
        return ()
