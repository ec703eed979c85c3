"""Hostile logs of text: JSON lines, documents, consoles, tables and pages that want more time or memory than any log needs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["TEXTS", "Maker", "packed", "written"]

Maker = Callable[[Path, float], Path]
"""Makes an input in a folder, at a share of its full size."""

GIB = 1 << 30


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def packed(path: Path, line: bytes, size: float, head: bytes = b"", end: bytes = b"") -> Path:
    """A small file that unfolds to `size` bytes: the same line again and again."""
    block = line * max(1, (1 << 20) // len(line))
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(max(1, round(size / len(block)))):
            file.write(block)
        file.write(end)
    return path


def _lines(path: Path, lines: Iterable[str]) -> Path:
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def new_key_in_each_row(folder: Path, share: float) -> Path:
    rows = range(int(200_000 * share))
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "loss": 0.5, "key_{n}": {n}}}' for n in rows))


def new_key_in_each_event(folder: Path, share: float) -> Path:
    rows = range(int(200_000 * share))
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "metrics": {{"loss": 0.5, "key_{n}": {n}}}}}' for n in rows))


def new_key_in_each_object(folder: Path, share: float) -> Path:
    rows = range(int(200_000 * share))
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "loss": 0.5, "in": {{"a": 1, "key_{n}": {n}}}}}' for n in rows))


def many_keys_in_a_row(folder: Path, share: float) -> Path:
    row = ",".join(f'"k{n}": {n}' for n in range(int(500_000 * share)))
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "loss": 0.5, {row}}}' for n in range(3)))


def other_keys_in_each_wide_row(folder: Path, share: float) -> Path:
    def rows() -> Iterable[str]:
        for n in range(20):
            keys = ",".join(f'"k{n}_{m}": {m}' for m in range(int(200_000 * share)))
            yield f'{{"step": {n}, "loss": 0.5, {keys}}}'

    return _lines(folder / "log.jsonl", rows())


def gaps_of_every_pattern(folder: Path, share: float) -> Path:
    """Rows with some of a hundred keys, no two alike."""
    rows = range(int(100_000 * share))
    keys = [[m for m in range(100) if (n * 2654435761 >> (m % 31)) + m * n & 1] for n in rows]
    return _lines(folder / "log.jsonl", (
        f'{{"step": {n}, "loss": 0.5, {", ".join(f"{chr(34)}k{m}{chr(34)}: 1" for m in keys[n])}}}' for n in rows
    ))  # fmt: skip


def deep_object(folder: Path, share: float) -> Path:
    depth = int(5_000_000 * share)
    return written(folder / "log.jsonl", '{"step": 1, "loss": 0.5}\n' + '{"a":' * depth + "1" + "}" * depth)


def one_line(folder: Path, share: float) -> Path:
    return packed(folder / "log.jsonl.gz", b"x" * 1000, GIB * share)


def one_line_then_rows(folder: Path, share: float) -> Path:
    rows = b"".join(b'{"step": %d, "loss": 0.5, "reward": 0.1}\n' % n for n in range(50))
    return packed(folder / "log.jsonl.gz", b"x" * 1000, GIB * share, end=b"\n" + rows)


def newlines(folder: Path, share: float) -> Path:
    return packed(folder / "run.log.gz", b"\n", 2 * GIB * share)


def zero_bytes(folder: Path, share: float) -> Path:
    with (folder / "log.jsonl").open("wb") as file:
        file.truncate(int(GIB * share))
    return folder / "log.jsonl"


_ROWS = b"".join(b'{"step": %d, "loss": 0.5}\n' % n for n in range(300))


def zero_lines(folder: Path, share: float) -> Path:
    return packed(folder / "log.jsonl.gz", b"\0\n", GIB * share, head=_ROWS)


def short_lines(folder: Path, share: float) -> Path:
    return packed(folder / "log.jsonl.gz", b"a\n", GIB * share, head=_ROWS)


def broken_rows(folder: Path, share: float) -> Path:
    return packed(folder / "log.jsonl.gz", b'{"step": 1, "loss": }\n', GIB * share, head=_ROWS)


def rows_without_end(folder: Path, share: float) -> Path:
    return packed(folder / "log.jsonl.gz", b'{"step": 1, "loss": 0.5}\n', GIB * share)


def rows_of_every_kind(folder: Path, share: float) -> Path:
    """Rows of which no two that follow each other have the same keys."""
    lines = b"".join(b'{"step": 1, "loss": 0.5, "k%d": 1}\n' % (n % 97) for n in range(30_000))
    return packed(folder / "log.jsonl.gz", lines, GIB * share)


def long_words(folder: Path, share: float) -> Path:
    words = (chr(65 + n % 26) * 1_000_000 for n in range(int(400 * share) + 2))
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "loss": 0.5, "notes": "{word}"}}' for n, word in enumerate(words)))


def words_in_each_row(folder: Path, share: float) -> Path:
    rows = range(int(300_000 * share))
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "loss": 0.5, "notes": "note {n} {"x" * 500}"}}' for n in rows))


def empty_objects(folder: Path, share: float) -> Path:
    return packed(folder / "state.json.gz", b"{},", 120e6 * share, head=b'{"log_history": [', end=b'{"step": 1, "loss": 0.5}]}')


def long_history(folder: Path, share: float) -> Path:
    row = b'{"step": 1, "loss": 0.5, "reward": 0.25},'
    return packed(folder / "trainer_state.json.gz", row, GIB * share, head=b'{"log_history": [', end=b'{"step": 2}]}')


def long_lists(folder: Path, share: float) -> Path:
    count = int(10_000_000 * share)
    steps = ",".join(map(str, range(count)))
    return written(folder / "history.json", f'{{"step": [{steps}], "loss": [{",".join(["0.5"] * count)}]}}')


def lists_in_lists(folder: Path, share: float) -> Path:
    return packed(folder / "a.json.gz", b"[],", 120e6 * share, head=b'{"loss": [', end=b"[]]}")


def deep_document(folder: Path, share: float) -> Path:
    depth = int(20_000_000 * share)
    return written(folder / "a.json", "[" * depth + "]" * depth)


def python_dicts(folder: Path, share: float) -> Path:
    return packed(folder / "run.log.gz", b"{'loss': 0.5, 'reward': 0.1, 'epoch': 0.01}\n", GIB * share)


def held_out_dicts(folder: Path, share: float) -> Path:
    line = b"{'eval_loss': 0.5, 'epoch': 0.01}\r\n 10%|#         | 1/10 [00:01<00:09]\r"
    return packed(folder / "run.log.gz", line, GIB * share, head=b"{'loss': 0.5, 'reward': 0.1, 'epoch': 0.01}\n")


def named_numbers(folder: Path, share: float) -> Path:
    return packed(folder / "run.log.gz", b"step=1 loss=0.5 reward=0.1\n", GIB * share)


def prose(folder: Path, share: float) -> Path:
    """Sentences with numbers of which no two are alike, after a few rows."""
    first = b"".join(b"step=%d loss=0.5 reward=0.1\n" % n for n in range(20))
    words = (f"word{n % 977}x took {n % 13} of {n} ways, chapter {n % 7}{chr(97 + n % 26)}z: it is {n}\n" for n in range(50_000))
    return packed(folder / "run.log.gz", "".join(words).encode(), GIB * share / 4, head=first)


def new_words(folder: Path, share: float) -> Path:
    rows = [f"step={n} loss=0.5 key{chr(97 + n % 26)}{hex(n)[2:].translate(_LETTERS)}=1" for n in range(int(500_000 * share))]
    return _lines(folder / "run.log", rows)


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def wide_text_rows(folder: Path, share: float) -> Path:
    def rows() -> Iterable[str]:
        for n in range(int(1000 * share)):
            key = hex(n)[2:].translate(_LETTERS)
            yield "step=1 loss=0.5 " + " ".join(f"k{key}{chr(97 + m % 26)}=1" for m in range(8000))

    return _lines(folder / "run.log", rows())


def values_without_step(folder: Path, share: float) -> Path:
    head = b"".join(b"loss: 0.5\nreward: 0.1\nstep %d\n" % n for n in range(20))
    return packed(folder / "run.log.gz", b"loss: 0.5\nreward: 0.1\n", GIB * share / 4, head=head)


def progress_bars(folder: Path, share: float) -> Path:
    return packed(folder / "run.log.gz", b" 10%|#         | 1/10 [00:01<00:09,  1.0it/s, loss=0.5]\r", GIB * share)


def verl_lines(folder: Path, share: float) -> Path:
    return packed(folder / "run.log.gz", b"step:1 - actor/pg_loss:0.1 - critic/score/mean:0.5\n", GIB * share)


def console_tables(folder: Path, share: float) -> Path:
    rows = [("rollout/", ""), ("   ep_rew_mean", "21.5"), ("time/", ""), ("   total_timesteps", "2048")]
    lines = ["-" * 37, *(f"| {name:18} | {value:12} |" for name, value in rows), "-" * 37, ""]
    return packed(folder / "run.log.gz", "\n".join(lines).encode(), GIB * share / 2)


def epoch_lines(folder: Path, share: float) -> Path:
    return packed(folder / "run.log.gz", b"Epoch:[1/1](1/500) actor_loss:0.23 reward:1.5 kl:0.1 tokens/s:12345\n", GIB * share)


_TABLE = b"step,loss,note\n1,0.5,a\n2,0.4,b\n"


def table_rows(folder: Path, share: float) -> Path:
    return packed(folder / "m.csv.gz", b"1,0.5,0.1\n", GIB * share, head=b"step,loss,reward\n")


def table_of_words(folder: Path, share: float) -> Path:
    return packed(folder / "m.csv.gz", b"1,a,n/a\n", GIB * share / 2, head=b"step,loss,reward\n1,0.5,0.5\n")


def wide_table(folder: Path, share: float) -> Path:
    names = ",".join(f"c{n}" for n in range(int(1_000_000 * share)))
    row = ",".join(["1"] * int(1_000_000 * share))
    return _lines(folder / "m.csv", [f"step,loss,{names}", *(f"{n},0.5,{row}" for n in range(3))])


def long_cells(folder: Path, share: float) -> Path:
    return packed(folder / "m.csv.gz", b"1,0.5," + b"y" * 10_000_000 + b"\n", GIB * share, head=_TABLE)


def open_quote(folder: Path, share: float) -> Path:
    return packed(folder / "m.csv.gz", b'1,0.5,"a\n', GIB * share / 4, head=_TABLE)


def many_cells_in_a_line(folder: Path, share: float) -> Path:
    return packed(folder / "m.csv.gz", b"12," * 4_000_000 + b"\n", GIB * share, head=_TABLE)


_PAGE = "<th>step</th><th>loss</th>\n| step | loss |\n|---|---|\n| 1 | 0.5 |\n"


def open_cells(folder: Path, share: float) -> Path:
    return written(folder / "page.html", _PAGE + "<table>" + "<tr><td>" * int(4_000_000 * share))


def open_tags(folder: Path, share: float) -> Path:
    return written(folder / "page.html", _PAGE + "<table" * int(4_000_000 * share))


def open_brackets(folder: Path, share: float) -> Path:
    return written(folder / "page.html", _PAGE + "<table><tr><td>" + "<" * int(20_000_000 * share) + "</td></tr></table>")


def blank_page(folder: Path, share: float) -> Path:
    return written(folder / "page.md", "\n" * int(250_000 * share) + "|--\n")


def dashes(folder: Path, share: float) -> Path:
    return written(folder / "page.md", _PAGE + "| a |\n" + " --" * int(10_000_000 * share))


def wide_letters(folder: Path, share: float) -> Path:
    return written(folder / "page.md", _PAGE + "\U0001f600" * int(50_000_000 * share))


def notebook(folder: Path, share: float) -> Path:
    rows = "".join(f"<tr><td>{n}</td><td>0.5</td></tr>" for n in range(int(500_000 * share)))
    page = f"<table><tr><th>Step</th><th>Training Loss</th></tr>{rows}</table>"
    cell = {"cell_type": "code", "outputs": [{"data": {"text/html": page}}]}
    return written(folder / "n.ipynb", json.dumps({"cells": [cell]}))


def endless_aliases(folder: Path, share: float) -> Path:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 20)}]" for n in range(1, 30)]
    _lines(folder / "config.yaml", lines)
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "loss": 0.5}}' for n in range(20)))


def large_settings(folder: Path, share: float) -> Path:
    _lines(folder / "config.yaml", ("a: {" + "b: [1, 2], " * int(90_000 * share) + "c: 1}", ""))
    return _lines(folder / "log.jsonl", (f'{{"step": {n}, "loss": 0.5}}' for n in range(20)))


TEXTS: list[Maker] = [
    new_key_in_each_row, new_key_in_each_event, new_key_in_each_object, many_keys_in_a_row, other_keys_in_each_wide_row,
    gaps_of_every_pattern, deep_object, one_line, one_line_then_rows, newlines, zero_bytes, zero_lines, short_lines, broken_rows,
    rows_without_end, rows_of_every_kind, long_words, words_in_each_row, empty_objects, long_history, long_lists, lists_in_lists,
    deep_document, python_dicts, held_out_dicts, named_numbers, prose, new_words, wide_text_rows, values_without_step,
    progress_bars, verl_lines, console_tables, epoch_lines, table_rows, table_of_words, wide_table, long_cells, open_quote,
    many_cells_in_a_line, open_cells, open_tags, open_brackets, blank_page, dashes, wide_letters, notebook, endless_aliases,
    large_settings,
]  # fmt: skip
