"""The reward carries no signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import LEARNS
from rldk.signals.kl import kl_level
from rldk.signals.reward import SCORES, rounding_of, score_of
from rldk.signals.series import Series

__all__ = ["DeadReward"]

NO_SPREAD = 1e-4  # share of its start below which a spread of rewards is rounding: a constant reward has about 1e-7
DEAD_GROUPS = 0.99
NO_ADVANTAGE = 0.01  # spread of normalised advantages that is rounding: equal rewards give up to 1e-3, any difference about 1
UNSEEN = 8  # rows without any spread, if the gradient is not logged
APART = 3.0  # times the spread within a row by which mean rewards differ from row to row: more than any sample explains
SHRUNK, NEAR = 0.1, 0.1  # share of its start to which a reward has shrunk; KL (nats per token) of a policy that stayed
RANGE = 2.33  # standard deviations between the largest and the smallest of five values, on average


class DeadReward(Detector):
    """The reward carries no signal: it is the same number in every row, or all responses of every group score the same.

    What it catches: a mean reward that is exactly the same number in row after row; a spread between responses that is zero or
        has vanished; groups without any spread; rewards that differ between prompts and hardly between the responses to a
        prompt. It stays silent where the task was solved by training: the reward rose to its best and stayed there.
    Why it matters: without differences in reward there is no gradient: further steps cost time and teach nothing.
    When it misfires: a hard task may score nothing for a while before the first success, which is why it waits for twenty
        updates. A reward printed with two digits may look constant; if a spread is logged as well, the spread decides.
    What to do: score a few responses by hand; check that the answer can be parsed, that responses can end before the
        length limit, and that the reward separates better from worse responses of this model; start with easier prompts.
    References: Yu et al. 2025, DAPO (dynamic sampling drops groups without spread).
    """

    __slots__ = ("groups",)
    type: ClassVar[str] = "dead_reward"
    family: ClassVar[str] = "reward"
    needs: ClassVar = ((*SCORES, "reward_std", "reward_group_std", "reward_zero_std_frac"),)
    panels: ClassVar = ("reward", "reward_spread", "reward_signal")
    reads: ClassVar = ("grad_norm", "advantage_std", "advantage_normalized", "advantage_raw", "entropy_mean", "kl_mean")
    advice: ClassVar[str] = (
        "Score a few responses by hand: can the answer be parsed, can responses end before the length limit, does the reward "
        "separate better from worse responses? Start with easier prompts."
    )
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "constant": Clause(
            "the reward is the same number in every row", "critical",
            "public and own runs: 18 failing runs, 1 healthy run have a reward that is constant for 20 rows or 30 % of the run",
            persist=20, min_rows=8,
        ),
        "constant_of_late": Clause(
            "the reward has become the same number in every row", "critical",
            "a mean over sampled responses repeats to six digits only if all score the same", persist=8, min_rows=4,
        ),
        "no_spread": Clause(
            "all responses score the same", "critical",
            "definition: the advantage is 0; 26 failing runs and no healthy run have a spread below 1e-4 of its start",
            persist=10, min_rows=4,
        ),
        "dead_groups": Clause(
            "no group of responses has a spread", "critical",
            "definition: the advantage is 0; 24 failing runs and no healthy run, over the last fifth of the run",
            persist=15, min_rows=5,
        ),
        "hardly_any_groups": Clause(
            "hardly any group of responses has a spread", "warning",
            "public runs: healthy ones reach 95 % of groups without a spread; the limit is above that", persist=40, min_rows=8,
        ),
        "prompts_decide": Clause(
            "rewards differ between prompts, and not between the responses to a prompt, and the reward does not rise", "critical",
            "as `prompts_differ`, where nothing is learnt", persist=50, min_rows=15,
        ),
        "prompts_differ": Clause(
            "rewards differ between prompts, and hardly between the responses to a prompt", "warning",
            "definition: a mean over responses differs less from row to row than they do, if they are of one distribution; sound "
            "public runs differ by three times as much for up to sixteen rows", persist=25, min_rows=10,
        ),
        "fading": Clause(
            "mean and spread of the rewards have shrunk to a tenth, and the policy is as it was", "warning",
            "definition: responses of the same policy differ as before, so that the scale of the reward has shrunk",
            persist=15, min_rows=5,
        ),
        "full_marks": Clause(
            "every response has had the full score since the first row", "warning",
            "definition: nothing can be learnt from these prompts; no sound run of the corpus, and two that failed", persist=20,
            min_rows=8,
        ),
        "never_any": Clause(
            "no row has had a spread of rewards or a gradient yet", "warning",
            "definition: there was nothing to learn from; a hard task may begin like that, which is worth a look after five "
            "updates, or after eight if the gradient is not logged", persist=3, min_rows=3,
        ),
        "constant_early": Clause(
            "the reward has been the same number since the first row", "warning",
            "a hard task scores nothing at first; after ten updates it is worth a look", persist=10, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "groups": Setting(DEAD_GROUPS, "share of groups without a spread at which no signal is left", min=0.5, max=1.0)
    }
    groups: float

    def find(self, view: View) -> Sequence[Finding]:
        score = score_of(view)
        spread = view.first("reward_std", "reward_group_std")
        groups = view.get("reward_zero_std_frac")
        same = score.same >= 3 and score.nonfinite_run == 0 and (not spread.n or _is_gone(view, spread))
        same = same and (score.same >= score.n or score.sameness < 1e-4)  # a constant from the start, or no chance
        gone = spread.n >= 3 and _is_gone(view, spread)
        dead = groups.n >= 3 and groups.level >= 0.96 and (groups.last >= 0.96 or groups.slow > 0.8)
        equal = _has_no_advantage(view)
        apart = _depends_on_prompts(view, score, spread)
        if not (same or gone or dead or equal or apart):
            return _fading(view, score)
        if _is_solved(view, score):
            return self._full_marks(score) if same and score.same >= score.n else ()
        where = f" at {score.last:.4g}" if score.n else ""
        evidence = {"reward": score.last, "rows": float(score.same)}
        found = []
        if same:
            message = f"The reward has been the same number{where} for {score.same} rows."
            clause = "constant_early" if score.same >= score.n else "constant_of_late"
            found += [Finding("", score.last, 0.0, message, evidence, clause=name) for name in ("constant", clause)]
        if gone:
            also = f"from {spread.first:.3g}" if spread.first > rounding_of(view) else "as"
            message = f"All responses score the same: the spread of rewards is {spread.level:.2g}, {also} in the first row."
            found.append(Finding("", spread.level, NO_SPREAD, message, evidence, clause="no_spread"))
            norm = view.get("grad_norm")
            none = norm.last == 0.0 and norm.same >= norm.n if norm.n else spread.n >= UNSEEN
            if none and spread.same >= spread.n:
                found.append(Finding("", spread.level, NO_SPREAD, message, evidence, clause="never_any"))
        if apart and not gone:
            message = (
                f"The mean reward differs by {score.noise:.2g} from row to row, and the rewards of the responses to a prompt by "
                f"{spread.level:.2g}: they depend on the prompt and not on the response."
            )
            clauses = ("prompts_differ",) if view.reward.improves(score) else ("prompts_differ", "prompts_decide")
            found += [Finding("", spread.level, score.noise / APART, message, evidence, clause=clause) for clause in clauses]
        if equal and not dead:
            level = view.get("advantage_std").level
            message = f"Advantages have a spread of {level:.2g}; about 1 is usual. All responses of a group score the same."
            found.append(Finding("", level, NO_ADVANTAGE, message, evidence, clause="dead_groups"))
        if dead:
            message = f"{groups.level:.0%} of the groups have responses that all score the same."
            none = groups.level >= self.groups and (groups.last >= self.groups or groups.low < self.groups)
            clauses = ("hardly_any_groups", "dead_groups") if none else ("hardly_any_groups",)
            found += [Finding("", groups.level, self.groups, message, evidence, clause=clause) for clause in clauses]
        return found

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause == "full_marks":
            return "Use harder prompts, or a reward that separates good responses from better ones; check that it can be below 1."
        return self.advice

    @staticmethod
    def _full_marks(score: Series) -> Sequence[Finding]:
        """A reward of 1 in every row since the first."""
        message = f"Every response of all {score.n} rows has the full score: there is nothing to learn from these prompts."
        return (Finding("", score.last, 1.0, message, {"rows": float(score.n)}, clause="full_marks"),)


def _fading(view: View, score: Series) -> Sequence[Finding]:
    """Whether the rewards shrink towards zero while the policy stays where it was."""
    spread, entropy, kl = view.get("reward_std"), view.get("entropy_mean"), kl_level(view)
    size = abs(score.first) + spread.first
    if spread.n < 20 or not spread.slow < SHRUNK * spread.first or not abs(score.slow) < SHRUNK * size:
        return ()
    if not entropy.level > 0.9 * entropy.start or not abs(kl.value) < NEAR:
        return ()
    message = f"The spread of rewards has shrunk from {spread.first:.3g} to {spread.slow:.2g}, and the policy is as it was."
    return (Finding("", spread.slow, SHRUNK * spread.first, message, {"spread": spread.slow}, clause="fading"),)


def _has_no_advantage(view: View) -> bool:
    """Whether the advantages of a batch are all equal, except for rounding: then no group has a spread."""
    spread = view.get("advantage_std")
    if not spread.level < NO_ADVANTAGE or not spread.ready:
        return False
    normalised = view.get("advantage_normalized").last == 1.0 and view.get("advantage_raw").last != 1.0
    return max(spread.values()) < (NO_ADVANTAGE if normalised else 1e-6)


def _depends_on_prompts(view: View, score: Series, spread: Series) -> bool:
    """Whether mean rewards differ far more from row to row than rewards within a row, now and for a while."""
    if spread.n < 8 or not score.noise > APART * spread.level > 0.0 or view.reward.was_changed(view.index):
        return False
    rows = score.values()
    trends = view.reward.swing > 2.0 * score.roughness  # five rows apart they differ more than neighbours
    return max(rows) - min(rows) > RANGE * APART * spread.level and not trends


def _is_gone(view: View, spread: Series) -> bool:
    """Whether the last five spreads are rounding, or next to nothing beside the first ones."""
    limit = max(NO_SPREAD * max(spread.first, spread.start if spread.ready else 0.0), rounding_of(view))
    return spread.last <= limit and max(spread.values()) <= limit


def _is_solved(view: View, score: Series) -> bool:
    """Whether the reward rose step by step to its best and stays there, or is 1, the highest possible share."""
    if not score.n:
        return False
    if abs(score.last - 1.0) < 1e-6 and score.level >= score.high:
        return True
    reward = view.reward
    if reward.is_solved(score) and score.first < 0.98:
        return True  # nearly all answers have become right, perhaps within the first rows
    ceiling = score.level >= score.high and score.repeats >= 5 and reward.sure_trend(score) > LEARNS  # groups of few responses
    if not score.ready or not (reward.gain > 3.0 * reward.noise or ceiling):
        return False
    since_jump = 0 <= reward.jump_index >= score.index - score.same - 5  # constant since the reward was changed
    return score.level >= reward.best - max(0.5 * reward.noise, 0.02 * reward.gain) and not since_jump
