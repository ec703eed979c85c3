"""One run in canonical terms: a table for frames, a stream of events for the detectors, and an account of where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import compress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rldk.core.catalog import entry_of
from rldk.core.catalog.axes import LABEL_KEYS
from rldk.core.errors import UnknownRunError
from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.core.text import counted, known_names
from rldk.runs.table import ABSENT, NULL, NUMBER, Column

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Coverage", "Run", "Runs", "by_number_or_id", "frame_of"]

Item = TypeVar("Item")
_RL_GROUPS = frozenset({"kl", "reward", "advantage", "value", "mismatch"})
_AT_ONCE = 4096  # rows that are made into events together: as objects they take many times the memory of the arrays


@dataclass(slots=True)
class Coverage:
    """Which canonical metric came from which key, over what it was reduced, and which keys were not recognised.

    `not_judged` are keys that the framework is known to log and that carry no judgement, and `guessed` are those whose metric was
    guessed by the parts of their name.
    """

    metrics: dict[str, str] = field(default_factory=dict)
    reductions: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    unmapped: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class Run:
    """One run. `columns` holds the canonical metrics, and, under their raw keys, those that the catalogue does not know.

    `config` is what the run was started with, as far as the log or a file beside it says.
    """

    run_id: str
    path: Path
    adapter: str
    framework: str | None
    steps: npt.NDArray[np.int64]
    wall_time: npt.NDArray[np.float64]
    columns: dict[str, Column]
    coverage: Coverage
    labels: dict[str, Column] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    config: RunConfig = field(default_factory=RunConfig)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        span = f", steps {self.steps[0]}–{self.steps[-1]}" if len(self) else ""
        read = f"read as {self.framework or self.adapter}"
        return f"<Run {self.run_id}: {counted(len(self), 'event')}{span}, {counted(len(self.columns), 'metric')}, {read}>"

    def whole(self) -> Run:
        """The run with all its rows: itself, unless only its head was kept."""
        return self

    def beginning_marks(self) -> frozenset[int]:
        """A number for the first two steps, and one for the first two values of each metric, the same in every process.

        A longer run that begins with this one has all of these marks: only runs that share them need to be compared.
        """
        if len(self) < 2:
            return frozenset()
        pairs = [("", self.steps[:2].tolist()), *((name, column.values[:2].tolist()) for name, column in self.columns.items())]
        texts = (f"{name} {first + 0.0!r} {second + 0.0!r}" for name, (first, second) in pairs)
        return frozenset(crc32(text.encode("utf-8", "surrogatepass")) for text in texts)

    @property
    def kind(self) -> str:
        """`rl`, `preference`, `supervised` or, where nothing was recognised, `unknown`; by the metrics it has."""
        known = {name: entry for name in self.columns if not name.startswith("eval_") and (entry := entry_of(name))}
        groups = {entry.group for entry in known.values()}
        if any(name.startswith(("preference_", "chosen_", "rejected_", "dpo_")) for name in known):
            return "preference"
        if groups & _RL_GROUPS or any(name.startswith(("clip_", "ratio_", "rollout_length")) for name in known):
            return "rl"
        return "supervised" if "loss" in groups else "unknown"

    def phases(self) -> npt.NDArray[np.object_]:
        """The phase of each row: what the log says, else `eval` for rows that hold nothing but held-out metrics."""
        if "phase" in self.labels:
            texts = self.labels["phase"].texts()
            texts[texts == None] = "train"  # noqa: E711  an array is compared cell by cell
            return texts
        only = np.zeros(len(self), dtype=bool)
        for name, column in self.columns.items():
            if name.startswith("eval_"):
                only |= column.state != ABSENT
        if only.any():
            for name, column in self.columns.items():
                if not name.startswith("eval_"):
                    only &= column.state == ABSENT
        return np.array(["train", "eval"], dtype=object)[only.astype(np.intp)]

    def numbers(self, metric: str, until: float = inf) -> npt.NDArray[np.float64]:
        """The values of a metric where it was logged as a number, up to a step; none where it was not."""
        column = self.columns.get(metric)
        return np.zeros(0) if column is None else column.values[(column.state == NUMBER) & (self.steps <= until)]

    def last(self, metric: str) -> float | None:
        """The last finite value of a metric."""
        values = self.numbers(metric)
        values = values[np.isfinite(values)]
        return float(values[-1]) if len(values) else None

    def share_after(self, row: int) -> float:
        """The share of the run that came after a row, counted from 0."""
        return 1.0 - (row + 1) / len(self)

    def events(self) -> Iterator[Event]:
        """The run as events, in order; a metric that was not logged is not in them."""
        info = {"run_id": self.run_id}
        if reductions := {name: per for name, per in self.coverage.reductions.items() if name == "kl_mean"}:
            info["reductions"] = reductions  # type: ignore[assignment]
        phases = self.phases()
        named = [(LABEL_KEYS[name][0], column) for name, column in self.labels.items() if name in LABEL_KEYS]
        for begin in range(0, len(self), _AT_ONCE):
            rows = slice(begin, begin + _AT_ONCE)
            times, said = self.wall_time[rows].tolist(), phases[rows].tolist()
            labels = [(key, column.take(rows).cells()) for key, column in named]
            for row, (step, (metrics, nulls)) in enumerate(zip(self.steps[rows].tolist(), self._cells(rows), strict=True)):
                event = Event(step, metrics, None if times[row] != times[row] else times[row], nulls=nulls)
                event.model_info = {**info, "phase": said[row]}
                if begin + row == 0 and self.config:
                    event.model_info["config"] = self.config.to_dict()
                for key, cells in labels:
                    if (cell := cells[row]) is not None:
                        _put(event, key, cell)
                yield event

    def _cells(self, rows: slice) -> Iterator[tuple[dict[str, float], tuple[str, ...]]]:
        """Row by row the metrics that were logged, and the names of those logged as null.

        Most rows of a log hold the same metrics: which ones is worked out once for all rows that are alike.
        """
        names, count = tuple(self.columns), len(self.columns)
        if not count:
            yield from (({}, ()) for _ in self.steps[rows])
            return
        states = np.stack([column.state[rows] for column in self.columns.values()], axis=1).astype(np.uint8).tobytes()
        shapes: dict[bytes, tuple[tuple[str, ...], list[bool], tuple[str, ...]]] = {}
        for row, values in enumerate(zip(*(column.values[rows].tolist() for column in self.columns.values()), strict=True)):
            state = states[row * count : (row + 1) * count]
            if (shape := shapes.get(state)) is None:
                given = [cell == NUMBER for cell in state]
                nulls = tuple(name for name, cell in zip(names, state, strict=True) if cell == NULL)
                shape = shapes[state] = (tuple(compress(names, given)), given, nulls)
            present, given, nulls = shape
            yield dict(zip(present, values if len(present) == count else compress(values, given), strict=True)), nulls

    def frame(self) -> pd.DataFrame:
        """The run as a frame: step, wall_time, the metrics, run_id, phase, and what else the log says of its rows."""
        import pandas as pd

        data: dict[str, Any] = {"step": self.steps, "wall_time": self.wall_time}
        data.update((name, column.values) for name, column in self.columns.items() if (column.state == NUMBER).any())
        data["run_id"] = self.run_id
        said = self.labels.get("phase")
        one = None if said is None else said.only_word()
        data["phase"] = _one_or_all(self.phases()) if one is None else one
        for name, column in self.labels.items():
            if name != "phase":
                data[name] = _plain_or_all(column)
        frame: pd.DataFrame = pd.DataFrame(data, index=range(len(self)), copy=False)
        return frame

    def plot(self, *names: str, **options: Any) -> Any:
        """The run's plots for a notebook, as a `rldk.plots.Picture`: all standard panels, or those named, with incidents marked.

        `run.plot("kl", "reward")` is short for `rldk.plots.plot(run, "kl", "reward")`, and takes the same options. Plots judge
        the run, and so stand above it in the layers: they are looked up when they are asked for.
        """
        return import_module("rldk.plots").plot(self, *names, **options)


def by_number_or_id(items: list[Item], ids: Sequence[str], which: int | str | slice) -> Item | list[Item]:
    """The item of a number or of a run id, or those of a slice; an error names the runs that there are."""
    if not isinstance(which, str):
        return items[which]
    if which in ids:
        return items[ids.index(which)]
    raise UnknownRunError(f"No run {which!r}.{known_names(which, ids)}")


@dataclass(slots=True, repr=False)
class Runs(Sequence[Run]):
    """The runs of a path, by number or by run id; `frame` and `plot` take all of them."""

    runs: list[Run]

    @overload
    def __getitem__(self, which: int | str) -> Run: ...
    @overload
    def __getitem__(self, which: slice) -> list[Run]: ...
    def __getitem__(self, which: int | str | slice) -> Run | list[Run]:
        return by_number_or_id(self.runs, [run.run_id for run in self.runs], which)

    def __len__(self) -> int:
        return len(self.runs)

    def frame(self) -> pd.DataFrame:
        """All runs in one frame; `run_id` says which is which."""
        return frame_of(self.runs)

    def plot(self, *names: str, **options: Any) -> Any:
        """The plots of the runs, as a `rldk.plots.Picture`: one run with its incidents marked, several drawn over each other.

        `group_by="config.lr"` draws one curve per value of a setting: the mean of its runs, with a band between them.
        """
        return import_module("rldk.plots").plot(self.runs, *names, **options)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.runs))


def _put(event: Event, key: str, value: float | str) -> None:
    """Put a label where an event holds it: `rng/seed` is `seed` of its `rng`, and notes are a list."""
    part, _, name = key.partition("/")
    if name:
        getattr(event, part)[name] = int(value) if isinstance(value, float) and value.is_integer() else value
    else:
        event.notes = [str(value)]


def _one_or_all(texts: npt.NDArray[np.object_]) -> Any:
    """The text of all rows, where it is the same in each, or else all of them."""
    return texts[0] if len(texts) and (texts == texts[0]).all() else texts


def _plain_or_all(column: Column) -> Any:
    """A label's values; a single one where all rows have the same, which is quicker to lay out."""
    import pandas as pd

    if not column.words or column.codes is None:
        return column.values
    if (one := column.only_word()) is not None:
        return one
    if ((column.state == NUMBER) & (column.codes < 0)).any():
        return np.array(column.cells(), dtype=object)
    return pd.Series(column.words).array.take(column.codes, allow_fill=True)


def frame_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Several runs as one frame with a column `run_id`; the columns are in the order of those of one run."""
    import pandas as pd

    frames = [run.frame() for run in runs]
    if len(frames) == 1:
        return frames[0]
    labels = dict.fromkeys(name for run in runs for name in run.labels if name != "phase")
    metrics = dict.fromkeys(name for run in runs for name in run.columns)
    joined: pd.DataFrame = pd.concat(frames, ignore_index=True)
    order = [name for name in ("step", "wall_time", *metrics, "run_id", "phase", *labels) if name in joined.columns]
    ordered: pd.DataFrame = joined[order]
    return ordered
