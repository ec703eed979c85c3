"""The step of rows that count in their own way: by step, by epoch, by both, or not at all, over several launches."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Counter"]


@dataclass(slots=True)
class Counter:
    """Turns what a row counts by into a step that grows within a launch.

    - A step that starts over when the epoch grows is counted on.
    - An epoch alone is the step; one that starts over (an inner loop over each batch) is counted on, and one that comes
      again in a row of the same form cannot be the step, so that from there on rows are numbered.
    - Where there is neither, rows are numbered.
    """

    step: int = 0
    by: str = ""
    restarts: int = 0
    _offset: int = 0
    _last: int = -1
    _epoch: float = -1.0
    _forms: frozenset[int] = frozenset()

    def next(self, step: int | None, total: int | None, epoch: float | None, form: int) -> int:
        """The step of the next row; `form` tells rows apart that are printed for the same step."""
        if step is not None:
            self._by_step(step, total, epoch)
        elif epoch is not None and epoch == int(epoch) and self.by in ("", "epoch"):
            self._by_epoch(int(epoch), form)
        else:
            self.by = "number"
            self.step += 1
        self._epoch = self._epoch if epoch is None else epoch
        return self.step

    def launch(self) -> None:
        """Begin anew: the program was started again."""
        restarts = self.restarts + 1
        self.__init__()  # type: ignore[misc]
        self.restarts = restarts

    def _by_step(self, step: int, total: int | None, epoch: float | None) -> None:
        if epoch is not None and epoch > self._epoch >= 0 and step <= self._last:
            self._offset += max(total or 0, self._last)
        elif epoch is not None and epoch < self._epoch:
            self._offset = 0
        self.by, self._last = "step", step
        self.step = self._offset + step

    def _by_epoch(self, epoch: int, form: int) -> None:
        self.by = "epoch"
        if epoch == self._last and form in self._forms:
            self.by = "number"
            self.step += 1
            return
        if epoch < self._last:
            self._offset = self.step
        if epoch != self._last:
            self._forms = frozenset()
        self._forms |= {form}
        self._last = epoch
        self.step = self._offset + epoch
