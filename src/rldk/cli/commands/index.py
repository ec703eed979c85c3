"""Keep a table of the verdicts of many runs up to date: only logs that are new or have changed are judged.

The table is written to .rldk/index.parquet in the folder; `rldk runs`, `rldk fleet` and the dashboard read it.
Exit status: 0 the index is up to date, 2 wrong usage.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rldk.cli.options import add_jobs, add_json, add_reading, chosen_engine, reading_of
from rldk.cli.output import console, print_json
from rldk.cli.progress import copy_bar, count_bar
from rldk.core.text import clean, counted, duration
from rldk.core.verdicts import counts_of

if TYPE_CHECKING:
    from rldk.fleet.index import Index, Update


EXAMPLES = """
rldk index runs/
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="STORE", help="the folder with the logs of the runs, here or in object storage")
    parser.add_argument("--index", metavar="FILE", help="where the table is (default: STORE/.rldk/index.parquet)")
    add_json(parser, "what was done")
    add_reading(parser)
    add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.fleet.index import index_path, update_index
    from rldk.storage.copies import local_copies

    reading = reading_of(args)
    with copy_bar() as on_bytes:
        store = local_copies(args.store, on_bytes)
    with count_bar() as advance:
        target = index_path(store, args.index)
        index, update = update_index(
            store, reading, path=target, jobs=args.jobs, engine=chosen_engine(args),
            on_log=lambda path, _size, _rows: advance(path.name),
        )  # fmt: skip
    columns = (index.table[name].to_pylist() for name in ("verdict", "error", "part_of"))
    verdicts = counts_of(verdict for verdict, error, part in zip(*columns, strict=True) if error is None and part is None)
    if args.json:
        print_json(_as_dict(index, update, verdicts))
    else:
        _show(index, update, verdicts)
    return 0


def _as_dict(index: Index, update: Update, verdicts: dict[str, int]) -> dict[str, Any]:
    return {
        "index": str(index.path), "runs": sum(verdicts.values()), "verdicts": verdicts, "judged": update.judged,
        "unchanged": update.unchanged, "gone": update.gone, "seconds": round(update.seconds, 3),
        "passed_over": [{"path": path, "reason": reason} for path, reason in update.unread],
    }  # fmt: skip


def _show(index: Index, update: Update, verdicts: dict[str, int]) -> None:
    from rldk.present.verdicts import counts_in_words

    out = console()
    counts = counts_in_words(verdicts, ", ")
    out.print(f"{counted(sum(verdicts.values()), 'run')}{': ' + counts if counts else ''}")
    rest = f"{update.unchanged:,} unchanged, {update.gone:,} gone, in {duration(update.seconds)}"
    out.print(f"{counted(update.judged, 'log')} judged, {rest}", style="dim")
    for path, reason in update.unread[:5]:
        out.print(f"· not judged: {clean(path)}: {clean(reason)}", style="dim")
    if len(update.unread) > 5:
        out.print(f"· and {counted(len(update.unread) - 5, 'more file')} not judged (--json lists them)", style="dim")
    out.print(clean(index.path), style="dim")
