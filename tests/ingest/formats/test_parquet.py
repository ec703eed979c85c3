"""Parquet tables, written by pyarrow and by pandas."""

from __future__ import annotations

import datetime
import decimal
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rldk.core.errors import MissingDependencyError, ReadError
from rldk.ingest.choose import choose

pytestmark = pytest.mark.full
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def logged(run: Any, name: str) -> dict[int, float]:
    """The values of a metric by step, without the cells that are empty."""
    column = run.columns[name]
    return {int(step): float(value) for step, value, state in zip(run.steps, column.values, column.state, strict=True) if state}


def test_an_empty_cell_is_missing_and_a_nan_is_a_value(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.parquet", {"step": [1, 2, 3, 4], "loss": [0.5, None, math.nan, math.inf], "kl": [None, None, 1, None]}
    )
    adapter = choose(path)
    (run,) = adapter.runs()
    assert (adapter.name, run.steps.tolist()) == ("parquet", [1, 3, 4])
    found = logged(run, "loss")
    assert math.isnan(found.pop(3))
    assert found == {1: 0.5, 4: math.inf}
    assert logged(run, "kl_mean") == {3: 1.0}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (pa.array([1, 2, None], pa.int8()), {0: 1, 1: 2}),
        (pa.array([1, 2, 2**63], pa.uint64()), {0: 1, 1: 2, 2: 2.0**63}),
        (pa.array([True, False, None]), {0: 1, 1: 0}),
        (pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-2.50")]), {0: 1.25, 2: -2.5}),
        (pa.array(np.array([0.5, 1.0, 1.5], dtype=np.float16)), {0: 0.5, 1: 1.0, 2: 1.5}),
        (pa.array(["0.5", None, "nan?"]), {0: 0.5}),
        (pa.array(["0.5", "1.5", "0.5"]).dictionary_encode(), {0: 0.5, 1: 1.5, 2: 0.5}),
        (pa.array([datetime.timedelta(seconds=2), None, datetime.timedelta(milliseconds=5)]), {0: 2.0, 2: 0.005}),
    ],
    ids=["int8", "uint64", "bool", "decimal", "half", "words", "dictionary", "duration"],
)
def test_columns_of_any_type(tmp_path: Path, cells: Any, expected: dict[int, float]) -> None:
    path = write(tmp_path / "t.parquet", {"step": [0, 1, 2], "loss": [1.0, 1.0, 1.0], "value": cells})
    (run,) = choose(path).runs()
    assert logged(run, "value") == expected


def test_structures_are_unfolded(tmp_path: Path) -> None:
    inner = [{"loss": 0.5, "deep": {"kl": 1}}, None, {"loss": None, "deep": {"kl": 3}}]
    (run,) = choose(write(tmp_path / "t.parquet", {"step": [0, 1, 2], "train": inner, "lr": [1.0, 1.0, 1.0]})).runs()
    assert logged(run, "loss") == {0: 0.5}
    assert logged(run, "train/deep/kl") == {0: 1.0, 2: 3.0}


@pytest.mark.parametrize("as_text", [False, True])
def test_times_are_seconds(tmp_path: Path, as_text: bool) -> None:
    moments = [datetime.datetime(2026, 1, 1, 0, 0, second, 500_000) for second in range(3)]
    cells = [moment.isoformat() for moment in moments] if as_text else moments
    (run,) = choose(write(tmp_path / "t.parquet", {"step": [0, 1, 2], "timestamp": cells, "loss": [1.0] * 3})).runs()
    assert run.wall_time.tolist() == [1_767_225_600.5, 1_767_225_601.5, 1_767_225_602.5]


def test_runs_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    columns = {"run_id": ["a", "b"] * 3, "step": [0, 0, 1, 1, 2, 2], "loss": [float(value) for value in range(6)]}
    runs = choose(write(tmp_path / "t.parquet", columns)).runs()
    assert {run.run_id: run.columns["loss"].values.tolist() for run in runs} == {"a": [0, 2, 4], "b": [1, 3, 5]}


def test_what_holds_no_numbers_is_left_out_and_said(tmp_path: Path) -> None:
    columns = {"step": [0, 1], "loss": [1.0, 2.0], "completion": ["so", "it goes"], "tokens": [[1], [2, 3]], "raw": [b"x", b"y"]}
    (run,) = choose(write(tmp_path / "t.parquet", columns)).runs()
    assert list(run.columns) == ["loss"]
    assert "3 column(s) of words, lists or bytes left out" in run.notes


def test_many_row_groups_in_bounded_batches(tmp_path: Path) -> None:
    steps = np.arange(30_000)
    path = write(
        tmp_path / "t.parquet", {"step": steps, "loss": steps / 7, "kl": steps * 2.0}, row_group_size=1_000, compression="zstd"
    )
    told: list[tuple[int, int]] = []
    (run,) = choose(path, progress=lambda done, total: told.append((done, total))).runs()
    assert np.array_equal(run.steps, steps) and np.array_equal(run.columns["loss"].values, steps / 7)
    assert len(told) == 30 and told[-1] == (path.stat().st_size,) * 2


def test_a_frame_of_pandas_with_its_index(tmp_path: Path) -> None:
    frame = pd.DataFrame({"loss": [0.5, 0.25, math.nan]}, index=pd.Index([5, 6, 7], name="step"))
    frame.to_parquet(tmp_path / "t.parquet")
    (run,) = choose(tmp_path / "t.parquet").runs()
    assert logged(run, "loss") == {5: 0.5, 6: 0.25}, "pandas writes its NaN as an empty cell"


def test_cut_off_anywhere(tmp_path: Path) -> None:
    whole = write(tmp_path / "t.parquet", {"step": [1, 2, 3], "loss": [0.5, 0.25, 0.125]}).read_bytes()
    path = tmp_path / "cut.parquet"
    for size in range(4, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(ReadError, match="may be cut off"):
            choose(path).runs()


def test_damage_costs_a_row_group_and_is_said(tmp_path: Path) -> None:
    steps = np.arange(4_000)
    path = write(
        tmp_path / "t.parquet",
        {"step": steps, "loss": steps / 7},
        row_group_size=1_000,
        write_page_checksum=True,
        compression="zstd",
    )
    start = pq.ParquetFile(path).metadata.row_group(2).column(1).data_page_offset
    data = bytearray(path.read_bytes())
    data[start + 40 : start + 400] = bytes(360)
    path.write_bytes(data)
    adapter = choose(path)
    (run,) = adapter.runs()
    assert set(range(2_000)) <= set(run.steps.tolist()) and 3_999 in run.steps
    assert np.array_equal(run.columns["loss"].values, run.steps / 7)
    assert "row group 3 is damaged" in adapter.problems.summary()


def test_nothing_is_changed(tmp_path: Path, snapshot: Callable[[Path], Any]) -> None:
    path = write(tmp_path / "t.parquet", {"step": [1], "loss": [0.5]})
    before = snapshot(tmp_path)
    choose(path).runs()
    assert snapshot(tmp_path) == before


def test_without_pyarrow_the_message_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.parquet", {"step": [1], "loss": [0.5]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rldk\[parquet\]'"):
        choose(path).runs()
