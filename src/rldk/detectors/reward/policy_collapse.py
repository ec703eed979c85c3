"""The reward has fallen and stays down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, ailing, damage
from rldk.signals.few_rows import fall_of
from rldk.signals.reward import SCORES, SLOW_NOISE, score_of
from rldk.signals.series import EARLY, RECENT

__all__ = ["PolicyCollapse"]

SPREADS = 4.0  # early spreads that count as the gain where the reward rose by less
FROM_START = 9.0  # times its noise by which a reward that never rose must fall to be critical by itself
BELOW = 2.5  # times the gain: a loss this large is far below the untrained level, where no dip goes
FEW = 15.0  # the noise is raised by this over the number of rows, since few rows underestimate it
TREND = -8.0  # t of a linear trend that is no chance
TREND_WITH_SIGNS = -4.0  # the same if two other channels are on their way out of their range
WITH_DAMAGE = 0.4  # share of the gain that must be lost if another channel has left its range
LASTING = 2.0  # times its noise by which it must have fallen if it stays down for thirty updates
SOON = 2.5  # times its noise: what fell further need not stay down for as long
BELOW_START, BELOW_FIRST = 0.5, 1.5  # times the spread between responses, and how much more below a single first row
SURELY_BELOW = 2.5  # times the noise of a row by which a median of five is below another, beyond chance
OF_A_ROW = 0.7  # times the spread between responses: the noise of a mean over two of them
IN_FEW_ROWS, SHARE_IN_FEW_ROWS = 3.5, 0.55  # times the noise, and share of the gain, by which few rows must have fallen
CORROBORATED = 3.0  # times its noise by which it must have fallen if another channel has left its range


class PolicyCollapse(Detector):
    """The reward has lost most of its gain and does not recover.

    What it catches: the median of five rewards has lost a large share of the gain (or of four early spreads, if that is more),
        by several times the noise of a row, and stays low; a fall of twice the noise is enough if it lasts. Where single rows
        are too noisy for that, the mean of about twenty rows is used. If another channel (entropy, KL, endings, held-out
        quality) has left its range, a smaller fall is enough. Also a reward that declines steadily from the start, beyond
        chance, or that stays below its first rows by half of the spread between responses. Of the first twenty rows,
        which may be all that a log has, the last five are compared with the best two, or the last three if a row stands for
        several updates.
    Why it matters: a collapsed policy seldom recovers, because it learns from its own samples.
    When it misfires: deep dips that recover within a few rows are normal, hence the wait. A change of the data (a curriculum)
        may lower the reward permanently. A change of the reward function is not a fall: if the reward jumps within one row
        while KL, entropy and length stay, its best and start are shifted along.
    What to do: stop, go back to the checkpoint before the fall, lower the learning rate or raise the KL penalty, and read
        samples from both sides of the fall.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = ("_fall", "noises", "share")
    type: ClassVar[str] = "policy_collapse"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (SCORES,)
    panels: ClassVar = ("reward", "entropy")
    reads: ClassVar = CHANNEL_METRICS
    advice: ClassVar[str] = (
        "Go back to the checkpoint before the fall; lower the learning rate or raise the KL penalty; read samples."
    )
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "lost": Clause(
            "the reward has lost 60 % of its gain, by seven times its noise", "critical",
            "public and own runs: 15 failing and 2 healthy runs (both an offset of the reward, which is now recognised)",
            persist=8, min_rows=3,
        ),
        "lost_on_average": Clause(
            "the mean over twenty rows has lost 60 % of its gain, beyond its noise", "critical",
            "as `lost`, for rewards whose rows are single questions", persist=20, min_rows=8,
        ),
        "lost_with_damage": Clause(
            "the reward has lost 40 % of its gain while another channel left its range", "critical",
            "corroboration by an independent channel; none of the healthy runs of the corpus", persist=4, min_rows=3,
        ),
        "declines_far": Clause(
            "the reward falls from the start, far beyond chance", "critical",
            "a linear trend over all rows with t below -14, and a loss of six times the noise of a row; random walks with steps "
            "of a tenth of the noise lose four", persist=10, min_rows=4,
        ),
        "declines_with_others": Clause(
            "the reward falls from the start, beyond chance, while two other channels leave their range", "critical",
            "a linear trend over all rows with t below -4, corroborated by two independent channels; no sound run of the corpus",
            persist=6, min_rows=3,
        ),
        "declines": Clause(
            "the reward falls from the start, beyond chance", "warning",
            "a linear trend over all rows with t below -8, and a loss of twice the noise of a row", persist=10, min_rows=4,
        ),
        "few_rows_with_damage": Clause(
            "the last of few rows have lost more than half of the gain, while another channel left its range", "critical",
            "as `few_rows`, with an independent channel",
        ),
        "few_rows": Clause(
            "the last of few rows have lost more than half of the gain, by 3.5 times the noise of a row", "warning",
            "248 healthy runs, own and public, averaged to 8, 12 and 18 rows: none; of 352 sound ones only those whose reward "
            "itself was changed", min_rows=1,
        ),
        "below_start_with_damage": Clause(
            "the reward stays below its first rows by half of the spread between responses, and another channel leaves its range",
            "critical", "as `below_start`, with an independent channel", persist=8, min_rows=4,
        ),
        "below_start": Clause(
            "the reward stays below its first rows by half of the spread between responses, or below the first by three quarters",
            "warning", "a mean over responses scatters by far less than they do; of 790 runs, own and public, 52 are below that: "
            "43 that failed or were degraded, 8 whose reward was changed, and one with four responses per row", persist=8,
            min_rows=4,
        ),
        "slipping_on_average": Clause(
            "the mean over twenty rows has lost half of its gain, beyond its noise", "warning",
            "as `lost_on_average`; the mean over twenty rows errs by a sixth of the spread of a row", persist=30, min_rows=8,
        ),
        "slipping": Clause(
            "the reward has lost 45 % of its gain, by five times its noise", "warning",
            "a judgement: most dips recover within ten updates. Seven times if it never rose: noise that is correlated "
            "over ten rows falls by five from its best", persist=12, min_rows=4,
        ),
        "stays_down": Clause(
            "the reward has lost 45 % of its gain for thirty updates, or for fourteen if it fell far beyond its noise", "warning",
            "as `slipping`: a fall that lasts need not be as deep beside the noise of a row", persist=30, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.6, "share of the gain that must be lost", min=0.1, max=1.0),
        "noises": Setting(7.0, "times the noise of a row by which it must have fallen", min=1.0),
    }
    share: float
    noises: float
    _fall: list[float]  # best, level, loss and gain of a fall in few rows, while it stands; empty if there is none

    def reset(self) -> None:
        super().reset()
        self._fall = []

    def find(self, view: View) -> Sequence[Finding]:
        series, reward = score_of(view), view.reward
        if series.n < RECENT + 1:
            return ()
        found = self._few_rows(view) if series.n <= EARLY or self._fall else []
        found += self._below_start(view)
        if series.n < RECENT + 2:
            return found
        lost, slow, least = reward.lost(series), reward.lost_slow(series), LASTING * series.noise
        fallen = lost > least and lost > min(WITH_DAMAGE, self.share) * reward.gain  # each rule asks for more: most rows end here
        if fallen:
            found += self._fallen(view)
        if slow > least and slow > 0.5 * (reward.best_slow - reward.start):
            found += self._fallen_slowly(view)
        if reward.trend < TREND_WITH_SIGNS:
            found += self._declining(view)
        if fallen:
            found += self._stays_down(view)
        return found

    def _few_rows(self, view: View) -> list[Finding]:
        """A fall within the first twenty rows, until half of it is made up for."""
        series = score_of(view)
        last = 3 if view.steps_per_row > 1.0 else RECENT  # dips of a few updates are common
        fall = fall_of(series.early, last) if series.n <= EARLY and not view.reward.was_changed(view.index) else None
        if fall is not None and fall.noises > IN_FEW_ROWS and fall.share > SHARE_IN_FEW_ROWS:
            self._fall = [fall.best, fall.now, fall.lost, fall.gain]
        elif self._fall and series.level > self._fall[0] - 0.5 * self._fall[2]:
            self._fall = []
        if not self._fall:
            return []
        best, now, lost, gain = self._fall
        strong = [sign.words for sign in damage(view) if sign.strong]
        also = f", while {listed(strong)}" if strong else ""
        message = f"The reward fell from {best:.3g} to at most {now:.3g} in the last {last} rows{also}."
        evidence = {"best": best, "reward": now, "lost": lost}
        clauses = ("few_rows", "few_rows_with_damage") if strong else ("few_rows",)
        limit = best - SHARE_IN_FEW_ROWS * gain
        return [Finding("", series.last, limit, message, evidence, clause=clause) for clause in clauses]

    @staticmethod
    def _below_start(view: View) -> list[Finding]:
        """A reward that is below its first rows, in units of the spread between responses."""
        series, spread, reward = score_of(view), view.get("reward_std"), view.reward
        first = series.first + reward.shift
        if not spread.ready or not series.level < max(first, reward.start) or reward.was_changed(view.index):
            return []
        apart, noise = max(spread.first, spread.start, spread.level), reward.noise_of(series)
        least = max(BELOW_START * apart, SURELY_BELOW * noise)
        if first - series.level > BELOW_FIRST * least:
            before, rows = first, "row"
        elif reward.start - series.level > least:
            before, rows = reward.start, "rows"
        else:
            return []
        if noise > OF_A_ROW * apart:
            return []  # rows differ by more than responses do: by their prompts
        best = max(before, reward.best)
        fell = f"fell from {best:.4g} to {series.level:.4g}" if best > before else f"is {series.level:.4g}"
        signs = ailing(view)
        also = f", while {listed(signs)}" if signs else ""
        message = f"The reward {fell}, below its first {rows} ({before:.4g}), at a spread of {apart:.2g} between responses{also}."
        evidence = {"best": best, "reward": series.level, "spread": apart}
        clauses = ("below_start", "below_start_with_damage") if signs else ("below_start",)
        return [Finding("", series.level, before - least, message, evidence, clause=clause) for clause in clauses]

    def _fallen(self, view: View) -> list[Finding]:
        series, reward = score_of(view), view.reward
        lost = reward.lost(series)
        noise = reward.row_noise(series) * (1.0 + FEW / series.n)
        if not lost > CORROBORATED * noise:
            return []
        risen = reward.gain > SPREADS * noise
        whole = max(reward.gain, SPREADS * min(series.scale, 2.5 * noise))
        if not lost > min(WITH_DAMAGE, self.share) * whole:
            return []
        evidence = {"best": reward.best, "reward": series.level, "lost": lost}
        fell = f"The reward fell from {reward.best:.4g} to {series.level:.4g}"
        strong = [sign.words for sign in damage(view) if sign.strong]
        found = []
        if strong and lost > WITH_DAMAGE * whole:
            message, limit = f"{fell}, while {listed(strong)}.", reward.best - WITH_DAMAGE * whole
            found.append(Finding("", series.level, limit, message, evidence, clause="lost_with_damage"))
        limit = self.noises if risen else FROM_START
        if lost > self.share * whole and lost > max(limit * noise, 1.3 * reward.dip):
            text = f"{fell} and stays down."
            patience = 0.0 if risen and lost > BELOW * whole else self._patience(series.n * view.steps_per_row)
            limit = reward.best - self.share * whole
            found.append(Finding("", series.level, limit, text, evidence, clause="lost", persist=patience))
        if lost > 0.45 * whole and lost > max((5.0 if risen else 7.0) * noise, 1.1 * reward.dip):
            text = f"{fell} and stays down."
            limit, patience = reward.best - 0.45 * whole, max(self._patience(series.n * view.steps_per_row), 12.0)
            found.append(Finding("", series.level, limit, text, evidence, clause="slipping", persist=patience))
        return found

    def _stays_down(self, view: View) -> list[Finding]:
        """A fall that lasts: beside the noise of rows as they are now, since that at the best may contain the fall."""
        series, reward = score_of(view), view.reward
        lost, noise = reward.lost(series), series.noise * (1.0 + FEW / series.n)
        part = 0.45 * max(reward.gain, SPREADS * min(series.scale, 2.5 * noise))
        if not lost > max(part, LASTING * noise, 1.1 * reward.dip):
            return []
        message = f"The reward fell from {reward.best:.4g} to {series.level:.4g} and has stayed down."
        evidence = {"best": reward.best, "reward": series.level, "lost": lost}
        soon = SOON * noise / lost if reward.gain > LASTING * reward.row_noise(series) else 1.0
        patience = max(30.0 * min(soon, 1.0), 14.0, self._patience(series.n * view.steps_per_row))
        return [Finding("", series.level, reward.best - part, message, evidence, clause="stays_down", persist=patience)]

    @staticmethod
    def _patience(steps: float) -> float:
        """How long to wait when the reward alone has fallen: a tenth of the run so far, since dips of long runs are longer."""
        return min(max(8.0, 0.1 * steps), 30.0)

    def _fallen_slowly(self, view: View) -> list[Finding]:
        series, reward = score_of(view), view.reward
        lost, spread = reward.lost_slow(series), max(reward.noise_slow / SLOW_NOISE, 1.2 * series.noise)
        gain = reward.best_slow - reward.start
        if series.n < 30 or not lost > max(0.5 * gain, 2.0 * spread) or not spread > 0.0:
            return []
        sure = lost > (2.5 if any(sign.strong for sign in damage(view)) else 5.0) * spread
        clauses = ["slipping_on_average", *(["lost_on_average"] if lost > self.share * gain and sure else [])]
        message = f"The mean reward fell from {reward.best_slow:.4g} to {series.slow:.4g} and stays down."
        evidence = {"best": reward.best_slow, "reward": series.slow, "lost": lost}
        limit = reward.best_slow - self.share * gain
        return [Finding("", series.slow, limit, message, evidence, clause=clause) for clause in clauses]

    def _declining(self, view: View) -> list[Finding]:
        """A steady decline, which neither the best nor a jump shows."""
        series, reward = score_of(view), view.reward
        if series.n < view.rows(30, 12) or not reward.settled:
            return []
        t, lost = reward.sure_trend(series), reward.start - series.slow
        signs = ailing(view) if TREND <= t < TREND_WITH_SIGNS else []
        if not (t < TREND or len(signs) > 1) or not lost > 2.0 * series.noise:
            return []
        also = f", while {listed(signs)}" if signs else ""
        message = f"The reward falls: from {reward.start:.4g} at the start to {series.slow:.4g} (t = {t:.3g}){also}."
        evidence = {"best": reward.start, "reward": series.slow, "t": t}
        if signs:
            return [Finding("", series.slow, TREND_WITH_SIGNS, message, evidence, clause="declines_with_others")]
        clauses = ("declines", "declines_far") if t < -14.0 and lost > 6.0 * series.noise else ("declines",)
        return [Finding("", series.slow, TREND, message, evidence, clause=clause) for clause in clauses]
