"""The gallery: failures with their plots. `docs/generate.py` writes the page; this script draws the pictures again.

    python docs/gallery.py [DETECTOR ...]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from failures import GROUPS, Failure
from failures.failure import RECORDED, STEPS, judged

import rldk
from rldk.core.text import in_words
from rldk.detectors.normal import NORMAL
from rldk.detectors.table import BY_TYPE
from rldk.judge.results import Results
from rldk.testing.streams import healthy

FOLDER = Path(__file__).parent / "images/gallery"
BUCKETS = 100  # of a curve: small files
WHY_NORMAL = {oddity.name: oddity for oddity in NORMAL}
FAILURES = [failure for group in GROUPS.values() for failure in group]


@dataclass(frozen=True, slots=True)
class Healthy:
    """A healthy run that looks odd: what is seen is described in `rldk.detectors.normal`.

    It is a simulated run of that profile and seed, or a recording of the corpus.
    """

    oddity: str
    panel: str
    profile: str = ""
    seed: int = 0
    recorded: str = ""

    def judged(self) -> Results:
        if self.recorded:
            return rldk.scan(RECORDED / self.recorded / "events.jsonl.zst")
        return judged(healthy(self.profile, steps=STEPS, seed=self.seed))

    @property
    def picture(self) -> str:
        return f"normal-{self.oddity}.svg"


HEALTHY = (
    Healthy("loss_near_zero", "losses", "grpo", 3),
    Healthy("noisy_reward", "reward", "ppo", 6),
    Healthy("reward_spread_falls", "reward_spread", "grpo", 3),
    Healthy("shorter_responses", "length", "ppo", 5),
)
"""Healthy runs that people ask about."""


def page() -> str:
    lines = [
        "# My run looks like this",
        "",
        "Failures as they look in the curves, one for each [detector](detectors/index.md): what is seen, how its neighbours",
        "differ, and what looks like it but is normal. The curves are those of real trainings of the [benchmark](benchmark.md)",
        "or of simulated runs, judged and drawn by rldk; the mark is the step at which the incident began. `rldk scan` reports",
        "them by the names below, and `rldk explain NAME` says what to do.",
        "",
    ]
    for title, failures in GROUPS.items():
        lines += [f"**{title}**", "", *(f"- [{failure.title}](#{failure.detector})" for failure in failures), ""]
    lines += ["**[Healthy, though it looks odd](#healthy-though-it-looks-odd)**"]
    for title, failures in GROUPS.items():
        lines += ["", f"## {title}"]
        for failure in failures:
            lines += ["", *_section(failure)]
    lines += ["", "## Healthy, though it looks odd", "", "`rldk scan` is silent on these runs. [The whole list](normal.md)."]
    for one in HEALTHY:
        oddity = WHY_NORMAL[one.oddity]
        lines += ["", f"### {oddity.seen.removesuffix('.')}", "", f"![{oddity.seen}](images/gallery/{one.picture})"]
        lines += ["", oddity.why, "", f"*Not normal:* {oddity.unless}"]
    return "\n".join([*lines, ""])


def _section(failure: Failure) -> list[str]:
    lines = [f'<a id="{failure.detector}"></a>', "", f"### {failure.title}", "", failure.seen]
    lines += [f"It is reported as {_link(failure.detector)}. The plot is of {failure.origin}.", ""]
    lines += [f"![{failure.title}: {in_words(panel)}](images/gallery/{failure.picture(panel)})" for panel in failure.panels]
    lines += ["", "Neighbours, and how they differ:", ""]
    lines += [f"- {_link(other)}: {how}" for other, how in failure.neighbours.items()]
    if failure.normal:
        lines += ["", "Looks odd, but is normal:", ""]
        lines += [f"- {WHY_NORMAL[name].seen} {WHY_NORMAL[name].why}" for name in failure.normal]
    return lines


def _link(detector: str) -> str:
    return f"[{BY_TYPE[detector].type}](detectors/{detector}.md)"


def draw(failure: Failure) -> None:
    found = failure.judged()
    for panel in failure.panels:
        found.plot(panel, buckets=BUCKETS).save(FOLDER / failure.picture(panel))
    worst = found.worst_run.worst
    print(f"{failure.detector}: {found.verdict}, {worst.title if worst else 'nothing'} at step {worst.step if worst else '-'}")


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for failure in FAILURES:
        if not names or failure.detector in names:
            draw(failure)
    for one in HEALTHY:
        if not names or one.oddity in names:
            one.judged().plot(one.panel, buckets=BUCKETS).save(FOLDER / one.picture)
    known = {failure.picture(panel) for failure in FAILURES for panel in failure.panels} | {one.picture for one in HEALTHY}
    for path in FOLDER.glob("*"):
        if path.name not in known:
            path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
