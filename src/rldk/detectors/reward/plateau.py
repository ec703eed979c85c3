"""Nothing was learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import updates_are_undersized, weights_stayed
from rldk.signals.few_rows import noise_of
from rldk.signals.kl import kl_level
from rldk.signals.optimizer import RATES, with_rate
from rldk.signals.reward import COMPONENT, score_of

__all__ = ["Plateau"]

WANDERS, AWAY, MOVED, FAR = 0.12, 0.25, 0.3, 0.6
"""KL (nats per token) from which the policy has moved, three degrees of it, and has moved far. Healthy runs of the corpus that
moved that far had a reward whose trend was beyond chance (t above 2): of 203 recorded runs all but three by the fortieth
update, and all but one by the fiftieth."""
STILL = 5e-4
"""KL (nats per token) after 45 updates, or earlier if updates change nothing, below which the policy has not moved."""
SMALL = 0.15
"""Rise of the reward over a whole run, as a share of the spread between responses, that still counts as nothing learnt."""
PREDICTED = 0.85
"""Share of the variance of returns from which the values count as predicting them. A judgement, above the 0.8 that
single rows of sound runs of the corpus reach."""
FALLEN = 3.0  # times its noise by which the reward is below its start if it has fallen
AT_ONCE = 4.0  # times its noise by which the reward is above its first row if that is what was learnt
NOT_EARLY, NO_RISE, ROSE = 200, 0.5, 3.0
"""Updates after which a reward should have risen, the t value of a trend that has not begun, and that of one that was clear."""
SURELY, LATE, QUITE_LATE = 1.5, 2.25, 3.0
"""Times the updates before it is judged at all: after which it may be critical, after which a policy should have moved, and after
which it should have learnt."""
SURE = 5.0  # t value from which a rise is not questioned, however small
RULED_OUT, FALL = 0.33, 2.0
"""Shares of the spread between responses: a rise that would be worth having, and a fall that is more than standing still."""
MAIN_PART = 0.7
"""Share of the reward's noise from which one reward function sets the responses apart."""
LOST, SURELY_LOST = 2.0, 4.0
"""Times its noise by which a reward without a trend rose before it fell: two degrees of having learnt something and lost it."""
OF_MEANS = (1.0 / 5.0 + 1.0 / 20.0) ** 0.5
"""Standard error of the difference between a mean of five rows and one of twenty, as a share of a row's noise."""
SMALL_BATCH = 16  # responses per row, if their spread is not logged: a row's noise is the spread divided by the root of that
MOVES = ("drifts", "drifts_far", "wanders", "wanders_on", "gains_nothing", "predictable", "part_stuck")
"""The clauses of a policy that moves, so that a higher learning rate would not help."""
NO_UPDATE = 1e-7
"""KL of an update with several optimizer steps below which nothing changed; healthy updates have 1e-4 to 0.02."""


class Plateau(Detector):
    """The reward is where it started: nothing was learnt.

    What it catches: a linear trend over all rewards that rises no more than chance explains (t below 2): after twenty updates
        if the policy has left its reference (it moves, but not towards the reward), after 45 if it has not moved at all, after
        sixty if a rise worth having can be ruled out, after two hundred if the reward has not risen at all (t below 0.5), and
        after four hundred in any case. It is critical if the policy is far away, if it has moved and a rise worth having can be
        ruled out, if it has hardly risen after 45 updates, or if the weights have hardly moved. A trend beyond chance that is
        next to nothing counts as none. A reward that rises by its smaller parts alone, while the reward function that sets the
        responses apart is where it started, is a warning.
    Why it matters: a run that changes nothing wastes its compute.
    When it misfires: a reward that is high from the start has little to gain and is not judged. Slow tasks learn late: the
        anomaly is withdrawn as soon as the reward rises.
    What to do: if the policy has hardly moved, raise the learning rate, lower the KL penalty, and check that gradients
        reach the weights (frozen layers, an adapter that is not trained). If it has moved, check that the reward separates
        better from worse responses, that each reward goes to its own response, and that it is not mostly noise.
    References: none.
    """

    __slots__ = ("_rose", "lasting", "rows", "t")
    type: ClassVar[str] = "plateau"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",),)
    panels: ClassVar = ("reward", "losses")
    reads: ClassVar = (
        *RATES, "kl_mean", "rollout_length_mean", "kl_update", "kl_coef", "target_kl", "reward_std",
        "explained_variance", "entropy_sequence", "entropy_mean", "weight_change",
    )
    advice: ClassVar[str] = (
        "Raise the learning rate or lower the KL penalty; check that gradients reach the weights and that the reward "
        "separates better from worse responses."
    )
    clear: ClassVar[int] = 20
    passing: ClassVar[bool] = True
    clauses: ClassVar = {
        "drifts_far": Clause(
            "the policy is far from its reference, and the reward has not improved", "critical",
            "corpus: random and shuffled rewards; no healthy run that moved 0.6 nats per token had a flat reward",
            persist=10, min_rows=4,
        ),
        "drifts": Clause(
            "the policy moves away from its reference, and the reward has not improved", "warning",
            "corpus: as above, at 0.3 nats per token", persist=6, min_rows=3,
        ),
        "frozen": Clause(
            "updates change nothing, and the reward has no trend", "critical",
            "corpus: learning rates a thousand times too low; healthy updates move the policy by 1e-4 to 0.02 nats",
            persist=8, min_rows=4,
        ),
        "wanders": Clause(
            "the policy has moved, and the reward has not improved", "warning",
            "corpus: random and shuffled rewards at 0.12 nats per token; of 678 sound runs 16 show no trend for a "
            "while, and four of them never",
            persist=8, min_rows=4,
        ),
        "wanders_on": Clause(
            "after 45 updates the policy has moved, and the reward has risen by less than a seventh of the rewards' spread",
            "critical", "corpus: as above; all healthy runs that moved that far show a trend by then",
            persist=10, min_rows=4,
        ),
        "gains_nothing": Clause(
            "the policy has moved, and a rise of a third of the rewards' spread can be ruled out", "critical",
            "two standard errors of the trend; corpus: random, noisy and shuffled rewards, and no sound run",
            persist=8, min_rows=4,
        ),
        "no_gain": Clause(
            "after sixty updates of a run that logs the KL, a rise of a third of the rewards' spread can be ruled out", "warning",
            "as `gains_nothing`, however far the policy has moved; of 268 sound runs, own and public, none keeps it",
            persist=10, min_rows=4,
        ),
        "hardly_moves": Clause(
            "the weights have moved by less than a thousandth, or far less than the learning rate implies, and the reward has no "
            "trend", "critical",
            "corpus: 0.0004 in 120 updates at a thousandth of the learning rate; sound runs move their weights by 0.03 or more",
            persist=8, min_rows=4,
        ),
        "predictable": Clause(
            "the values predict the returns, and the reward has no trend: responses make no difference", "warning",
            "definition: a return that can be predicted before the response does not depend on the response",
            persist=10, min_rows=4,
        ),
        "still": Clause(
            "after 45 updates neither the policy nor the reward has moved", "warning",
            "corpus: learning rates a thousand times too low", persist=10, min_rows=4,
        ),
        "part_stuck": Clause(
            "the reward function that sets the responses apart is where it started; the reward rises by the others", "warning",
            "as `gains_nothing`, for the function that varies most", persist=10, min_rows=4,
        ),
        "no_trend": Clause(
            "the reward has no trend, and the log does not say whether the policy moves", NOTE,
            "as `wanders`; without a KL it may be a slow start as well", persist=10, min_rows=4,
        ),
        "no_rise": Clause(
            "after two hundred updates the reward has not risen at all", "warning",
            "recorded and public runs of more than a hundred updates: after the hundredth it holds for ten updates in 24 of 134 "
            "failing and none of 156 sound ones; twice that is waited for; a reward that had a clear trend before is left out",
            persist=10, min_rows=4,
        ),
        "flat": Clause(
            "after hundreds of updates the reward has no trend", "warning",
            "public runs: healthy ones show a trend (t above 2) after 300 updates", persist=5, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "rows": Setting(20, "updates with a reward before it is judged; a critical takes half as many more", min=10),
        "lasting": Setting(400, "updates after which a reward without a trend is reported in any case", min=100),
        "t": Setting(2.0, "t value below which there is no trend: reached by chance once in forty", min=0.0),
    }
    rows: float
    lasting: float
    t: float
    _rose: bool

    def reset(self) -> None:
        super().reset()
        self._rose = False

    def find(self, view: View) -> Sequence[Finding]:
        series = score_of(view)
        if series.n < view.rows(self.rows, 10):
            return ()
        trend = view.reward.trend
        self._rose = self._rose or trend > ROSE
        if self._is_high(view) or series.noise == 0.0:
            return ()
        if not (trend < self.t + 0.5 or self._has_hardly_risen(view, series.n)) or self._learnt_at_once(view):
            return self._of_parts(view)
        clauses = self._clauses(view, series.n)
        if not clauses or series.level - series.first > AT_ONCE * noise_of(series.early):
            return ()
        kl = kl_level(view)
        moved = f"KL from the reference is {kl.words}" if kl.value == kl.value else "the KL is not logged"
        course = "falls" if trend < -ROSE else "has not risen beyond chance"
        message = f"After {series.n} rows the reward {course} (t = {trend:.2g}), and {moved}."
        return [Finding("", trend, self.t, message, {"t": trend}, clause=clause) for clause in clauses]

    def _clauses(self, view: View, rows: int) -> list[str]:
        """Which clauses hold for a reward without a trend, depending on how the policy has moved."""
        found = []
        height = self._height(view)
        lost = height > LOST  # rose and fell again: no trend over all rows, and no plateau
        moved = 0.0 if self._rose and height > SURELY_LOST else self._moved(view)
        if moved > MOVED and view.reward.trend < self.t:
            far = moved > FAR and view.reward.trend < 1.5 and rows >= view.rows(SURELY * self.rows, 15)
            found += ["drifts", *(["drifts_far"] if far else [])]
        rise = view.reward.rise / self._spread(view)
        if moved > WANDERS and rows >= view.rows(self.rows, 10) and rise > -FALL:
            series = view.get("kl_mean")
            left = moved * (1.0 - max(series.start, 0.0) / series.later)  # what was there in the first rows is not movement
            lasts = rows >= view.rows(LATE * self.rows, 10) and rise < SMALL
            found += ["wanders", *(["wanders_on"] if left > WANDERS and lasts else [])]
            if moved > AWAY and rows >= view.rows(SURELY * self.rows, 10) and self._is_ruled_out(view):
                found.append("gains_nothing")
        trained = view.get("kl_mean").n or view.get("reward_std").n  # and not a table of rewards alone
        late = rows >= view.rows(QUITE_LATE * self.rows, 25) and not (lost or self._rose) and trained
        if late and rise > -FALL and view.reward.trend < self.t and self._is_ruled_out(view):
            found.append("no_gain")
        explained = view.get("explained_variance")
        if explained.n >= 20 and explained.slow > PREDICTED:
            found.append("predictable")
        kl, update = kl_level(view), view.get("kl_update")
        if kl.unit and abs(kl.value) < STILL:
            idle = update.ready and 0.0 <= update.level < NO_UPDATE
            if idle and rows >= view.rows(LATE * self.rows, 10):
                found.append("frozen")
            if idle or rows >= view.rows(LATE * self.rows, 10):
                found.append("still")
        if weights_stayed(view) or updates_are_undersized(view):
            found.append("hardly_moves")
        if rows >= view.rows(NOT_EARLY, 24) and view.reward.trend < NO_RISE and not (lost or self._rose or _has_fallen(view)):
            found.append("no_rise")
        if self._is_long(view, rows) and not lost:
            found.append("flat")
        elif rows >= view.rows(LATE * self.rows, 10) and not view.get("kl_mean").n and view.reward.trend < self.t:
            found.append("no_trend")
        return found

    def _has_hardly_risen(self, view: View, rows: int) -> bool:
        """Whether a trend beyond chance is next to nothing: over hundreds of rows, or while the policy has moved."""
        if self._is_long(view, rows) and abs(view.reward.rise) < SMALL * view.get("reward_std").level:
            return True
        if view.reward.trend > SURE or rows < view.rows(QUITE_LATE * self.rows, 25):
            return False
        return self._moved(view) > WANDERS and self._is_ruled_out(view)

    def _is_ruled_out(self, view: View) -> bool:
        """Whether the reward has not risen by a third of the spread between responses: two standard errors above the trend."""
        sure = view.reward.sure_trend(score_of(view))
        return sure != 0.0 and view.reward.rise / self._spread(view) * (1.0 + 2.0 / sure) < RULED_OUT

    def _of_parts(self, view: View) -> Sequence[Finding]:
        """Whether the reward rises while its main part, the function with the largest spread, has learnt nothing."""
        if len(view.components) < 2 or self._moved(view) < WANDERS:
            return ()
        main = max(view.components, key=lambda name: view.series[name].noise)
        part, whole, spread = view.series[main], score_of(view), self._spread(view)
        if not part.noise >= MAIN_PART * whole.noise or part.n < view.rows(LATE * self.rows, 20):
            return ()
        if whole.slow - whole.start > spread or (0.7 < part.start <= 1.0 and part.high <= 1.0 + 1e-6):
            return ()  # the other parts were worth learning, or little was left to gain
        rise = part.slow - part.start
        if rise + 2.0 * OF_MEANS * part.noise > RULED_OUT * spread:
            return ()
        name = main.removeprefix(COMPONENT)
        message = (
            f"The reward rises, but not by its main part: `{name}` was {part.start:.3g} in the first rows and is "
            f"{part.slow:.3g}, at a spread of {spread:.2g} between responses."
        )
        return (Finding("", rise, RULED_OUT * spread, message, {"rise": rise, "spread": spread}, clause="part_stuck"),)

    def _is_long(self, view: View, rows: int) -> bool:
        """Whether the run is long enough for a trend to show; a reward that is not in every row needs sixty rows of its own."""
        return (rows if rows < 60 else view.index + 1) >= view.rows(self.lasting, 30)

    @staticmethod
    def _spread(view: View) -> float:
        """The spread between the rewards of a row, or what the noise of the rows says about it."""
        std = view.get("reward_std")
        return std.slow if std.ready and std.slow > 0.0 else SMALL_BATCH**0.5 * score_of(view).noise

    @staticmethod
    def _moved(view: View) -> float:
        """How far the policy has gone, in nats per token: the mean KL of some twenty rows."""
        kl, series = kl_level(view), view.get("kl_mean")
        level = kl.value if kl.unit == "token" else kl.strain  # of 50 nats per response, or 10 where the unit is not known
        return level * series.later / series.level if series.level > 0.0 else 0.0

    @staticmethod
    def _is_high(view: View) -> bool:
        """Whether most answers were right from the start, so that little is left to gain."""
        series, spread = score_of(view), view.get("reward_std")
        return 0.7 < series.base <= 1.0 and series.high <= 1.0 + 1e-6 and not spread.level > 0.5

    @staticmethod
    def _learnt_at_once(view: View) -> bool:
        """Whether everything was learnt in the first rows, so that a trend over the rest shows little of it."""
        series = score_of(view)
        return series.slow - series.start > 2.0 * series.noise

    @staticmethod
    def _height(view: View) -> float:
        """How far the best is above the first rows, in times the noise of a row."""
        series = score_of(view)
        return (view.reward.best_slow - max(series.start, series.base)) / series.noise

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause in MOVES:
            return (
                "Check that each reward goes to its own response, that it separates better from worse responses, and that it "
                "is not mostly noise: score the same responses twice."
            )
        return with_rate(self.advice, view)


def _has_fallen(view: View) -> bool:
    """Whether the reward is below its start by more than its noise, which is more than standing still."""
    series = score_of(view)
    return series.start - series.level > FALLEN * view.reward.noise_of(series)
