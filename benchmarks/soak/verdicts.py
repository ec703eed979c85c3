"""What the soak promises, and whether the counts of one run or of many keep it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["PROMISES", "Promise", "table", "total_of"]


@dataclass(frozen=True)
class Promise:
    """A count with the most or the least that it may be."""

    what: str
    count: str
    most: float | None = None
    least: int | None = None

    def verdict(self, total: dict[str, Any]) -> str:
        """`holds`, `broken`, or that more runs are needed to know."""
        value = total.get(self.count)
        if self.least is not None:
            return "holds" if (value or 0) >= self.least else "needs more runs"
        if value is None:
            return "not measured"
        return "holds" if self.most is None or value <= self.most else "broken"

    def needed(self) -> str:
        return f"≥ {self.least:,}" if self.least is not None else f"≤ {self.most:g}" if self.most else "0"


PROMISES = (
    Promise("exceptions into training", "exceptions_into_training", most=0),
    Promise("acknowledged events lost", "events_lost", most=0),
    Promise("threads, processes and files left over", "leftovers", most=0),
    Promise("trainings with other weights than without rldk", "trainings_with_other_weights", most=0),
    Promise("growth of a monitor's memory after ten minutes", "max_monitor_growth", most=0.05),
    Promise("growth of a training's memory after ten minutes", "max_training_growth", most=0.05),
    Promise("hostile files beyond 10 s or 1 GB, or that crash", "files_beyond_the_limits", most=0),
    Promise("kills of a plain writer", "writers_killed", least=500),
    Promise("kills of real trainings", "trainings_killed", least=20),
    Promise("faults raised in rldk during a training", "faults_raised", least=500),
    Promise("hostile files", "hostile_files", least=1000),
)


def total_of(runs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Counts add up, lists grow, and of what is a maximum (`max_…`) the largest counts."""
    total: dict[str, Any] = {"broken": []}
    for run in runs:
        for name, value in run.items():
            if isinstance(value, list):
                total[name] = [*total.get(name, []), *value]
            elif isinstance(value, str) or name == "seed":
                continue
            else:
                total[name] = max(total.get(name, 0), value) if name.startswith("max_") else total.get(name, 0) + value
    return total


def table(total: dict[str, Any]) -> Iterator[str]:
    """The promises with their verdicts, the other counts, and what was broken."""
    yield f"\n{'promise':50} {'needed':>8} {'found':>10}  verdict"
    for one in PROMISES:
        yield f"{one.what:50} {one.needed():>8} {_shown(total.get(one.count, '–')):>10}  {one.verdict(total)}"
    yield ""
    known = {one.count for one in PROMISES}
    for name, value in sorted(total.items()):
        if name not in known and not isinstance(value, list):
            yield f"{name.replace('_', ' '):50} {'':8} {_shown(value):>10}"
    yield f"{'promises broken':50} {'':8} {len(total['broken']):>10}"
    for what in total["broken"]:
        yield f"  {what}"


def _shown(value: Any) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
