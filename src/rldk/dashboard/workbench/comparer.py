"""The comparison of selected runs, as `rldk compare` makes it, in a thread: the page asks again until it is there."""

from __future__ import annotations

import logging
import threading
from typing import Any

from rldk.comparison.compare import Comparison, compare_results
from rldk.core.errors import ReadError, RLDKError, UsageError
from rldk.core.text import clean, counted
from rldk.dashboard.workbench.run_table import RunTable
from rldk.ingest.read import LogFile, read_log
from rldk.judge.result import Result
from rldk.judge.results import judge_report
from rldk.present.comparison import comparison_pieces

__all__ = ["Comparer"]

logger = logging.getLogger("rldk")

_MAX_RUNS = 40
_MAX_BYTES = 1 << 30
_MAX_KEPT = 4

Wanted = tuple[str, ...]


class Comparer:
    """Compares runs with the first of them. The last few comparisons are kept until a log of theirs changes."""

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._made: dict[Wanted, tuple[Any, dict[str, Any]]] = {}
        self._busy: tuple[Wanted, threading.Thread, dict[str, int]] | None = None

    def compare(self, runs: list[str]) -> dict[str, Any]:
        """The comparison, or how far it is: `{"pending": True, "done": 3, "of": 5}`."""
        found = self._table.found(runs)
        if len(found) < 2:
            raise UsageError(f"Expected at least two runs to compare, got {counted(len(found), 'run')}.")
        if len(found) > _MAX_RUNS:
            raise UsageError(f"Select at most {_MAX_RUNS} runs to compare; `rldk compare` takes more.")
        if sum(log.stamp[0] for _, _, log, _ in found) > _MAX_BYTES:
            raise UsageError("These logs are larger than 1 GB together: compare them with `rldk compare` in a terminal.")
        wanted = tuple(one for one, *_ in found)
        stamps = [log.stamp for _, _, log, _ in found]
        known = self._made.get(wanted)
        if known is not None and known[0] == stamps:
            return known[1]
        if self._busy is None or not self._busy[1].is_alive():
            logs = [(self._table.path_of(key), row["number"]) for _, key, _, row in found]
            progress = {"done": 0, "of": len(logs)}
            thread = threading.Thread(target=self._run, args=(wanted, stamps, logs, progress), daemon=True)
            self._busy = (wanted, thread, progress)
            thread.start()
        if known is not None:  # of logs that have grown since: shown until the new one is there
            return known[1]
        return {"pending": True, **self._busy[2]}

    def _run(self, wanted: Wanted, stamps: Any, logs: list[tuple[Any, int]], progress: dict[str, int]) -> None:
        try:
            results = []
            for path, number in logs:
                results.append(_judged(path, number))
                progress["done"] += 1
            answer = _answer(compare_results(results))
        except RLDKError as error:
            answer = {"problem": clean(error, 1000)}
        except Exception as error:
            logger.exception("The runs could not be compared")
            answer = {"problem": f"The runs cannot be compared ({type(error).__name__}). See the terminal of the dashboard."}
        while len(self._made) >= _MAX_KEPT:
            self._made.pop(next(iter(self._made)))
        self._made[wanted] = (stamps, answer)


def _judged(path: Any, number: int) -> Result:
    report = read_log(LogFile(path))
    results = judge_report(report, None)
    if number >= len(results):
        raise ReadError(f"{path.name} has {counted(len(results), 'run')}; it has changed since.")
    return results[number]


def _answer(found: Comparison) -> dict[str, Any]:
    verdicts = [
        {
            "name": clean(group.name, 120), "verdict": group.verdict, "last_step": group.last_step, "runs": len(group.results),
            "reason": clean(next((one.worst.title if one.worst else one.reason for one in group.results), ""), 300),
        }
        for group in found.groups
    ]  # fmt: skip
    return {"html": str(comparison_pieces(found)), "groups": verdicts, "unknown_settings": list(found.unknown_settings)}
