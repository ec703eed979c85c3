"""Rows into columns: the same cells as a plain dictionary of lists has, by the general way and by the fast one."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.catalog.axes import is_axis
from rldk.core.jsonio import to_number
from rldk.ingest.formats.json_blocks import FastRows
from rldk.ingest.formats.json_lines import EventLogAdapter, event_in_line, row_in_line
from rldk.ingest.source import Source
from rldk.log import blocks
from rldk.log.problems import LineProblems
from rldk.runs.table import ABSENT, NULL, NUMBER, TEXT, Column, Table, TableBuilder

Cell = tuple[int, float | None, str | None]
NAMES = st.sampled_from(["loss", "kl", "step", "run_id", "notes", "metrics", "a", "b", "model_info"])
LEAVES = st.sampled_from(
    [1.5, -0.0, math.nan, math.inf, 3, 2**70, 10**400, -(10**400), True, None, "x", "nan", "0.5", "y", "1_0", [], [[1]], ["a", 2]]
)
CELLS = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=4)
ROWS = st.lists(st.dictionaries(NAMES, CELLS, max_size=4), max_size=8)


def flat(row: Mapping[str, Any], lift: str | None) -> dict[str, Any]:
    """A row with its objects unfolded; a key of the row itself wins over one in the lifted object."""
    found: dict[str, Any] = {}

    def unfold(cell: Any, name: str, depth: int) -> None:
        if not isinstance(cell, dict):
            if cell_of(name, cell)[0] != ABSENT:
                found[name] = cell
        elif depth < 9:
            for key, inner in cell.items():
                unfold(inner, f"{name}/{key}", depth + 1)

    lifted = row.get(lift) if lift else None
    if isinstance(lifted, dict):
        for key, inner in lifted.items():
            unfold(inner, key, 2)
    for key, cell in row.items():
        if not (key == lift and isinstance(cell, dict)):
            unfold(cell, key, 1)
    return found


def cell_of(name: str, value: Any) -> Cell:
    if isinstance(value, list):
        return (TEXT, None, "; ".join(map(str, value))) if is_axis(name) and value else (ABSENT, None, None)
    if value is None:
        return NULL, None, None
    number = to_number(value)
    words = value if is_axis(name) and isinstance(value, str) else None
    return (NUMBER, number, words) if number is not None else (TEXT, None, words)


def cells(column: Column) -> list[Cell]:
    texts = column.texts().tolist()
    assert np.isnan(column.values[column.state != NUMBER]).all()
    return [
        (int(state), float(value) if state == NUMBER else None, text)
        for state, value, text in zip(column.state, column.values, texts, strict=True)
    ]


def expected(rows: list[dict[str, Any]], lift: str | None) -> dict[str, list[Cell]]:
    flats = [flat(row, lift) for row in rows]
    names = dict.fromkeys(name for row in flats for name in row)
    return {name: [cell_of(name, row[name]) if name in row else (ABSENT, None, None) for row in flats] for name in names}


def assert_same(table: Table, columns: dict[str, list[Cell]]) -> None:
    assert set(table.names) == {name for name, found in columns.items() if any(cell[0] != ABSENT for cell in found)}
    for name in table.names:
        for mine, theirs in zip(cells(table.column(name)), columns[name], strict=True):
            assert repr(mine) == repr(theirs), name


@settings(max_examples=120, deadline=None)
@given(ROWS, st.sampled_from([None, "metrics"]))
def test_cells_are_those_of_a_plain_dictionary(rows: list[dict[str, Any]], lift: str | None) -> None:
    builder = TableBuilder(lift=lift)
    builder.add_all(rows)
    table = builder.finish()
    assert table.rows == len(rows) == len(table.shapes)
    assert_same(table, expected(rows, lift))


@settings(max_examples=50)
@given(ROWS)
def test_rows_with_the_same_keys_have_the_same_shape(rows: list[dict[str, Any]]) -> None:
    builder = TableBuilder()
    builder.add_all(rows)
    shapes = builder.finish().shapes.tolist()
    for one, first in zip(rows, shapes, strict=True):
        for other, second in zip(rows, shapes, strict=True):
            assert (one.keys() == other.keys()) == (first == second)


def test_many_rows_are_flushed_without_loss() -> None:
    builder = TableBuilder()
    builder.add_all({"step": n, "loss": n / 2, **({"kl": float(n)} if n % 3 == 0 else {})} for n in range(5000))
    table = builder.finish()
    assert table.column("loss").values.tolist() == [n / 2 for n in range(5000)]
    assert np.flatnonzero(table.column("kl").state == NUMBER).tolist() == list(range(0, 5000, 3))
    assert set(table.shapes.tolist()) == {0, 1}


def test_a_number_beside_a_list_or_an_object_under_the_same_key_is_kept() -> None:
    builder = TableBuilder()
    builder.add_all([{"loss": 1.0}, {"loss": [1, 2]}, {"loss": {"total": 3.0}}, {"loss": 4.0}])
    table = builder.finish()
    assert [cell[1] for cell in cells(table.column("loss"))] == [1.0, None, None, 4.0]
    assert [cell[1] for cell in cells(table.column("loss/total"))] == [None, None, 3.0, None]


def test_past_the_most_columns_new_keys_are_counted_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.runs.table.MAX_COLUMNS", 3)
    builder = TableBuilder()
    builder.add_all([{"a": 1, "b": 2}, {"c": 3, "d": 4}, {"e": 5, "a": 6, "step": 7}])
    table = builder.finish()
    assert table.names == ("a", "b", "c", "step") and table.dropped_columns == 2
    assert [cell[1] for cell in cells(table.column("a"))] == [1.0, None, 6.0]
    assert [cell[1] for cell in cells(table.column("step"))] == [None, None, 7.0]


def test_nesting_beyond_reason_is_left_out() -> None:
    deep: Any = 1.0
    for _ in range(20):
        deep = {"x": deep}
    builder = TableBuilder()
    builder.add_all([{"a": deep, "loss": 1.0}])
    assert builder.finish().names == ("loss",)


def test_words_are_kept_where_asked_for() -> None:
    builder = TableBuilder(words=["mine"])
    builder.add_all([{"mine": "a", "other": "b"}, {"mine": "c", "other": "d"}])
    table = builder.finish()
    assert table.column("mine").words == ("a", "c") and table.column("other").words == ()
    assert table.column("other").state.tolist() == [TEXT, TEXT]


def test_columns_are_taken_as_they_are() -> None:
    builder = TableBuilder()
    masked = np.ma.masked_array([1.0, math.nan, 3.0], mask=[False, False, True])
    builder.add_columns({"a": np.array([1.0, math.nan, 3.0]), "b": masked, "run_id": ["x", None, "y"], "c": [1, None, 2.5]}, 3)
    table = builder.finish()
    assert table.column("a").state.tolist() == [NUMBER, ABSENT, NUMBER]
    assert table.column("b").state.tolist() == [NUMBER, NUMBER, ABSENT]
    assert table.column("run_id").texts().tolist() == ["x", None, "y"]
    assert table.column("c").state.tolist() == [NUMBER, NULL, NUMBER]


def test_names_and_words_can_be_written_to_a_file() -> None:
    builder = TableBuilder()
    builder.add_all([json.loads('{"\\ud800x": 1, "run_id": "\\udc00y"}')])
    table = builder.finish()
    assert table.names == ("?x", "run_id") and table.column("run_id").words == ("?y",)


# The fast way against the general way


def event(step: int, **more: Any) -> dict[str, Any]:
    metrics = {"loss": 1.0 / (step + 1), "kl": step, **more}
    return {"step": step, "wall_time": 0.5 * step, "metrics": metrics, "notes": [], "model_info": {"run_id": "r"}}


def as_lines(rows: Iterable[Any]) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


def assert_ways_agree(path: Path) -> Table:
    """Read a file as events and as rows of any keys, each by both ways; the table of events is given back."""
    adapter = EventLogAdapter(path)
    quick = TableBuilder(lift="metrics")
    adapter.fill(quick)
    table = assert_equal(quick.finish(), *by_the_general_way(path, event_in_line), adapter.problems)
    problems = LineProblems(most=1_000_000)
    quick = TableBuilder(lift="metrics")
    FastRows(quick, problems, row_in_line).fill(Source(path))
    assert_equal(quick.finish(), *by_the_general_way(path, row_in_line), problems)
    return table


def by_the_general_way(path: Path, parse: Callable[[int, bytes, LineProblems], Any]) -> tuple[Table, LineProblems]:
    slow, problems = TableBuilder(lift="metrics"), LineProblems(most=1_000_000)
    rows = (parse(number, line, problems) for number, line in Source(path).lines(problems))
    slow.add_all(row for row in rows if row is not None)
    return slow.finish(), problems


def assert_equal(quick: Table, slow: Table, *problems: LineProblems) -> Table:
    assert quick.rows == slow.rows
    assert set(quick.names) == set(slow.names)
    for name in slow.names:
        assert repr(cells(quick.column(name))) == repr(cells(slow.column(name))), name
    assert quick.shapes.tolist() == slow.shapes.tolist()
    assert problems[0].total == problems[1].total
    if problems[0].total <= problems[0].limit:  # beyond it, which were met first depends on who looks ahead how far
        assert problems[0] == problems[1]
    return quick


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in blocks of 4 KiB, so that a small one has many."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)


PLAIN = [event(step) for step in range(300)]
ODD = {
    "a fraction of a step": [*PLAIN, {**event(300), "step": 1.5}, *map(event, range(301, 500))],
    "a step in words": [*PLAIN, {**event(300), "step": "many"}, *map(event, range(301, 500))],
    "steps as text": [{**event(step), "step": str(step)} for step in range(300)],
    "nan tokens": [event(step, reward=float("nan") if step % 97 == 0 else 0.5) for step in range(500)],
    "nulls": [event(step, reward=None if step % 97 == 0 else 0.5) for step in range(500)],
    "numbers as text": [event(step, reward="0.5" if step % 97 == 0 else 0.5) for step in range(500)],
    "alternating shapes": [event(step, **({"eval_loss": 0.5} if step % 2 else {})) for step in range(500)],
    "shapes in turn": [event(step, **({"eval_loss": 0.5} if step // 50 % 2 else {})) for step in range(500)],
    "keys in another order": [dict(reversed(event(step).items())) if step % 3 else event(step) for step in range(500)],
    "the same key inside and out": [{"metrics": {"loss": 2.0}, "step": step, "loss": 1.0} for step in range(500)],
    "words inside and a number out": [{"step": step, "metrics": {"step": "x", "loss": 1.5}} for step in range(500)],
    "an object in the metrics": [{"step": step, "loss": 1.5, "metrics": {"loss": {"loss": 1.5}}} for step in range(500)],
    "a number inside and nothing out": [{"step": step, "metrics": {"loss": 1.5}, "loss": {}} for step in range(500)],
    "the same key out and inside": [{"loss": 1.0, "metrics": {"loss": 2.0, "step": -1}, "step": step} for step in range(500)],
    "blank lines": [line for row in PLAIN for line in (row, b"", b"  ")],
    "two rows in a line": [*PLAIN, 2 * json.dumps(event(300)).encode(), *map(event, range(302, 500))],
    "as many rows as lines by chance": [
        *PLAIN,
        json.dumps(event(300)).encode() + json.dumps(event(301)).encode(),
        json.dumps(event(302)).encode().replace(b'"metrics": ', b'"metrics":\n'),
        *map(event, range(303, 500)),
    ],
    "words for a number": [event(step, reward="bad" if step == 450 else 0.5) for step in range(500)],
    "words": [event(step, phase="abc"[step % 3]) for step in range(500)],
    "notes now and then": [{**event(step), "notes": ["odd"] if step % 50 == 0 else []} for step in range(500)],
    "notes that differ": [{**event(step), "notes": [f"note {step}"]} for step in range(500)],
    "an object where a list was": [{**event(step), "notes": {"a": step} if step % 7 == 0 else ["x"]} for step in range(500)],
    "a number where a list was": [{**event(step), "notes": 11 if step > 250 else ["x"]} for step in range(500)],
    "numbers that read alike": [{**event(step), "notes": (11, 1, 111)[step % 3] if step > 3 else []} for step in range(500)],
    "huge whole numbers": [event(step, tokens=10**25 + step) for step in range(300)],
    "numbers beyond floats": [event(step, tokens=10**400 if step == 250 else 1) for step in range(300)],
    "floats beyond floats": [*PLAIN, json.dumps(event(300, x=7)).encode().replace(b"7", b"1e999"), *map(event, range(301, 500))],
    "garbage": [*PLAIN, b"{torn", b"\xff\xfe", b"[1, 2]", b"null", *map(event, range(300, 500))],
    "a bad escape": [*PLAIN, json.dumps(event(300)).encode().replace(b"[]", b'["\\q"]'), *map(event, range(301, 500))],
    "not utf-8": [*PLAIN, json.dumps(event(300)).encode().replace(b"[]", b'["\xff"]'), *map(event, range(301, 500))],
    "half a surrogate in a key": [json.dumps(event(step)).encode().replace(b'"kl"', b'"\\ud800"') for step in range(500)],
    "keys that no field has": [event(step, **{'say "no"': 1.0, "back\\slash": 2.0, "bell\a": 3.0}) for step in range(500)],
    "a key twice": [json.dumps(event(step)).encode().replace(b'"kl"', b'"loss"') for step in range(500)],
    "no metrics": [event(step) if step % 100 else {"step": step} for step in range(500)],
    "empty metrics": [{"step": step, "metrics": {}, "loss": 0.5} for step in range(500)],
    "deep nests": [{**event(step), "rng": {"a": {"b": {"c": step % 2}}}} for step in range(500)],
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_both_ways_give_the_same_table(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(as_lines(ODD[kind]))
    assert_ways_agree(path)


@pytest.mark.parametrize(("before", "after"), [(b"\n", b"\r\n"), (b"}\n", b"} \n"), (b"\n{", b"\n {")])
def test_line_ends_and_spaces_do_not_matter(before: bytes, after: bytes, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(as_lines(PLAIN).replace(before, after))
    assert assert_ways_agree(path).rows == 300


@pytest.mark.parametrize("cut", [1, 2, 30, 100])
def test_a_torn_last_line_is_counted(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(as_lines(PLAIN)[:-cut])
    table = assert_ways_agree(path)
    assert table.rows == (300 if cut == 1 else 299)


def test_the_fast_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(as_lines(PLAIN))
    taken: list[int] = []
    add_block = TableBuilder.add_block

    def count(self: TableBuilder, shape: Any, columns: Any, rows: int) -> None:
        taken.append(rows)
        add_block(self, shape, columns, rows)

    monkeypatch.setattr(TableBuilder, "add_block", count)
    assert_ways_agree(path)
    assert sum(taken) > 2 * 200  # once as events, once as rows


LINES = st.one_of(
    st.sampled_from(PLAIN[:50]), st.dictionaries(NAMES, CELLS, max_size=4).map(lambda row: {"step": 1, **row}),
    st.sampled_from([b"", b"{", b"\xff", b'{"step": 1, "metrics": {"loss": NaN}}', b"\x00", b'{"step": 1} {"step": 2}']),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(LINES, st.integers(1, 40)), min_size=1, max_size=8))
def test_both_ways_agree_on_anything(repeated: list[tuple[Any, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.jsonl")
        path.write_bytes(as_lines([row for row, times in repeated for _ in range(times)]))
        assert_ways_agree(path)
