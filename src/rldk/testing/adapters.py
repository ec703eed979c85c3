"""What every adapter promises, as checks: for each of rldk's adapters, and for yours.

    def write(folder, rows):
        path = folder / "log.txt"
        path.write_text("".join(f"step {n} reward {n / 10}\\n" for n in range(rows)))
        return path

    for name, check in yield_adapter_checks(MyAdapter, write):
        check()

A check raises `AssertionError` with what it found. They take a second or two together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from rldk.ingest.adapter import Adapter
from rldk.testing.checks import adapter_files
from rldk.testing.checks.adapter_files import Writer
from rldk.testing.checks.trial_runs import name_of, quietly

__all__ = ["Writer", "yield_adapter_checks"]

_CHECKS = (
    adapter_files.check_reads_its_sample,
    adapter_files.check_leaves_the_file_as_it_is,
    adapter_files.check_refuses_what_is_no_log,
    adapter_files.check_cut_off_anywhere,
)

_TEXT_CHECKS = (
    adapter_files.check_says_that_the_last_line_is_torn,
    adapter_files.check_takes_either_line_ending,
    adapter_files.check_takes_compressed_text,
    adapter_files.check_takes_lines_in_any_order,
    adapter_files.check_passes_over_garbage,
    adapter_files.check_memory_is_bounded,
)


def yield_adapter_checks(
    kind: type[Adapter], write: Writer, *, others: Iterable[Writer] = (), text: bool = True
) -> Iterator[tuple[str, Callable[[], None]]]:
    """All checks for an adapter, by name.

    Args:
        kind: the adapter's class.
        write: writes a sample of what it reads.
        others: functions that write logs of other adapters, which it must refuse.
        text: whether it reads a text file; some kinds of damage do not exist for binary files and folders.
    """
    for check in (*_CHECKS, *(_TEXT_CHECKS if text else ())):
        yield name_of(check), partial(_in_a_folder, check, kind, write)
    for number, other in enumerate(others):
        name = getattr(other, "__name__", str(number))
        yield f"leaves_to_others-{name}", partial(_in_a_folder, adapter_files.check_leaves_to_others, kind, other)


def _in_a_folder(check: Callable[[type[Adapter], Writer, Path], None], kind: type[Adapter], write: Writer) -> None:
    """Run a check in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        quietly(check, kind, write, Path(folder))
