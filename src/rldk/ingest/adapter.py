"""What an adapter is: a name, `can_handle()` and `read()`; the rest is the same for all."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.catalog import AXIS_TARGETS, check_field_map
from rldk.core.errors import ReadError
from rldk.core.run_config import RunConfig
from rldk.ingest.run_settings import settings_beside
from rldk.ingest.source import Source
from rldk.ingest.unmapped_keys import guesses_of
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems, TooManyProblems
from rldk.runs.build import build_runs
from rldk.runs.run import Run, frame_of
from rldk.runs.table import MAX_ROWS, TableBuilder, TableFull

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Adapter"]

logger = logging.getLogger("rldk")

_MAX_SKIPPED = 1_000_000


class Adapter(ABC):
    """Reads one kind of log.

    A subclass says its `name` and `title`, the `framework` whose keys it reads (`None`: recognised by the keys),
    whether it `can_handle` what it was given, judged by the content, and how to `read` it: flat rows of raw keys, in
    the order of the file. One that has columns rather than rows overrides `fill` and needs no `read`.

    It reports what it could not read to `self.problems`, sets `self.why` to the reason for its answer in `can_handle`, and may
    add to `self.notes` what a user should know, and to `self.settings` what the log says of how a run was started, by the run's
    name in the rows (`None` for all runs). After `runs()`, `rows` counts the rows that were read.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    framework: str | None = None
    folders: ClassVar[bool] = False
    """Whether it reads a folder as one log (a TensorBoard folder, an MLflow store) and not the files in it."""
    max_rows: ClassVar[int] = MAX_ROWS
    """How many rows are read; of a longer log the first ones are judged, which a note says."""

    def __init__(
        self,
        path: str | os.PathLike[str] | Source,
        *,
        field_map: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.source = path if isinstance(path, Source) else Source(path)
        self.field_map = dict(field_map or {})
        check_field_map(self.field_map)
        self.progress = progress
        self.problems = LineProblems(most=_MAX_SKIPPED)
        self.notes: list[str] = []
        self.settings: dict[str | None, Mapping[str, Any]] = {}
        self.why = ""
        self.rows = 0

    @abstractmethod
    def can_handle(self) -> bool:
        """Whether this is a log that the adapter reads, by a look at its beginning."""

    def read(self) -> Iterator[Mapping[str, Any]]:
        """Give the rows in raw terms; they may be nested, and must not be changed afterwards."""
        raise NotImplementedError(f"{type(self).__name__} has neither `read` nor `fill`.")

    def fill(self, builder: TableBuilder) -> None:
        """Put all that is read into a table."""
        builder.add_all(self.read())

    def runs(self) -> list[Run]:
        """The runs in canonical terms."""
        words = [key for key, target in self.field_map.items() if target in AXIS_TARGETS]
        builder = TableBuilder(lift="metrics", words=words, max_rows=self.max_rows)
        try:
            self.fill(builder)
        except TableFull:
            self.notes.append(f"the log is too large to be read as a whole: its first {builder.rows:,} rows are judged")
        except TooManyProblems:
            self.notes.append(f"more than {_MAX_SKIPPED:,} lines cannot be used: the rest was not read, the others are judged")
        table = builder.finish()
        self.rows = table.rows
        runs = build_runs(
            table,
            path=self.source.path,
            adapter=self.name,
            framework=self.framework,
            field_map=self.field_map,
        )
        if table.dropped_columns:
            self.notes.append(f"the log has more than {len(table.names):,} keys; at least {table.dropped_columns:,} were ignored")
        if absent := [key for key in self.field_map if key not in table.names]:
            self.notes.append(f"the field map names {', '.join(map(repr, absent))}, which no row has")
        beside = RunConfig() if self.source.is_folder else settings_beside(self.source.path)
        for run in runs:
            run.config = run.config.with_defaults(self._config_of(run.run_id)).with_defaults(beside)
            run.notes[:0] = [*_each_once(self.notes), *guesses_of(run)]
            if run.kind == "supervised":
                run.notes.append("no RL metrics: this is a log of supervised training")
        return runs

    def _config_of(self, run_id: str) -> RunConfig:
        names: tuple[str | None, ...] = (run_id, run_id.rpartition("#")[0], None)
        return next((RunConfig.of(self.settings[name], "the log") for name in names if name in self.settings), RunConfig())

    def load(self) -> pd.DataFrame:
        """The runs as one frame: step, wall_time, the canonical metrics, run_id, phase, and what else there is.

        Lines that were skipped are reported through the logger `rldk`, and are in `problems`.
        """
        runs = self.runs()
        said = self.problems.summary()
        if not runs:
            raise ReadError(f"No row with a metric in {self.source.path}. {said}".rstrip())
        if said:
            logger.warning("%s: %s", self.source.path, said)
        return frame_of(runs)


def _each_once(notes: list[str]) -> list[str]:
    """Notes without repetition: one that was added several times says how often."""
    return [note if times == 1 else f"{note} ({times} times)" for note, times in Counter(notes).items()]
