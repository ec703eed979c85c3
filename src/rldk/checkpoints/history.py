"""The checkpoints of a run, one after the other: live after each save, or offline over a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from rldk.checkpoints.checkpoint import Checkpoint, Found, find_checkpoints
from rldk.checkpoints.compare import OnBytes, describe, unreadable
from rldk.checkpoints.judge import Judge
from rldk.checkpoints.measure import Meter
from rldk.checkpoints.report import CheckpointReport
from rldk.core.errors import ReadError

__all__ = ["CheckpointHistory", "compare_checkpoints", "scan_checkpoints"]


class CheckpointHistory:
    """Follows a run from checkpoint to checkpoint.

    Call `add` after each save, in the order of the steps. It does not raise an error for a checkpoint that is damaged, cut off or
    gone: the report says so. The files of the first and of the latest checkpoint are held open, so that
    both can be compared with the next one even after the trainer has deleted their folders (`save_total_limit`); their
    space on the disk is free again after `close`.

    `most_bytes` bounds what is read of each checkpoint: of a larger one, every n-th piece of each tensor is measured, and
    the report says so.
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        self.most_bytes = most_bytes
        self._judge = Judge()
        self._start: Checkpoint | None = None
        self._previous: Checkpoint | None = None

    def add(self, path: str | Path, step: int | None = None, on_bytes: OnBytes | None = None) -> CheckpointReport:
        """Compare a checkpoint with the previous and the first one, and judge it."""
        try:
            current = Checkpoint(path, step)
        except (ReadError, OSError) as error:
            return unreadable(Path(path), step, str(error))
        meter = Meter(_stride(current, self.most_bytes))
        try:
            report = describe(current, self._previous, self._start, meter, on_bytes)
        except (ReadError, OSError) as error:
            current.close()
            return unreadable(Path(path), current.step, str(error))
        if meter.stride > 1:
            report.notes.append(f"One piece of {meter.stride} was read of each large tensor; the rest is not known.")
        self._judge.judge(report, lost=len(current.lost))
        self._advance(current)
        return report

    def resume(self, folder: str | Path, step: int) -> None:
        """Continue a run: the next checkpoint is compared with the first and the latest up to `step`, if there are any."""
        before: list[Found] = []
        with suppress(ReadError, OSError):
            before = [found for found in find_checkpoints(folder) if found.step is not None and found.step <= step]
        for found in before[:1] + before[1:][-1:]:
            with suppress(ReadError, OSError):
                self._advance(Checkpoint(found.path, found.step))
                self._judge.start_from(found.step, found.path.name)

    def _advance(self, current: Checkpoint) -> None:
        if self._previous is not None and self._previous is not self._start:
            self._previous.close()
        self._previous = current
        if self._start is None:
            self._start = current

    def close(self) -> None:
        """Close all files."""
        for checkpoint in (self._previous, self._start):
            if checkpoint is not None:
                checkpoint.close()
        self._previous = self._start = None

    def __enter__(self) -> CheckpointHistory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _stride(checkpoint: Checkpoint, most_bytes: int | None) -> int:
    size = checkpoint.size_bytes
    return 1 if not most_bytes or size <= most_bytes else -(-size // most_bytes)


def scan_checkpoints(checkpoints: list[Found], on_bytes: OnBytes | None = None) -> Iterator[CheckpointReport]:
    """Report on checkpoints one by one, each compared with the previous and the first one."""
    with CheckpointHistory() as history:
        for found in checkpoints:
            yield history.add(found.path, found.step, on_bytes)


def compare_checkpoints(before: str | Path, after: str | Path) -> CheckpointReport:
    """What changed from one checkpoint to another; raises `ReadError` if one of them cannot be read."""
    with closing(Checkpoint(before)) as first, closing(Checkpoint(after)) as second:
        report = describe(second, first, first, Meter())
        judge = Judge()
        judge.start_from(first.step, first.path.name)
        judge.judge(report, lost=len(second.lost))
        return report
