"""The errors a user of rldk may meet. Each message says what is wrong, with which value, and what to do."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

__all__ = [
    "LogLockedError", "LogWriteError", "MissingDependencyError", "RLDKError", "ReadError", "UnknownRunError", "UsageError",
    "is_installed", "need", "require",
]  # fmt: skip


class RLDKError(Exception):
    """Base of all errors that rldk raises on purpose; the command line prints it in one sentence and exits with 2."""


class UsageError(RLDKError, ValueError):
    """An argument, option or configuration value that cannot be used."""


class UnknownRunError(UsageError, KeyError):
    """A run id that none of the runs has."""

    __str__ = RLDKError.__str__  # a KeyError would show its message in quotes


class ReadError(RLDKError):
    """A file or folder that cannot be read as a run."""


class LogWriteError(RLDKError, OSError):
    """An event log that cannot be opened for writing."""


class LogLockedError(LogWriteError):
    """An event log that another writer holds."""


class MissingDependencyError(RLDKError, ImportError):
    """An optional dependency that is not installed; the message names the `pip install` to run."""


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency, or say which extra of rldk brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        if error.name is not None and error.name.split(".")[0] != package:
            raise  # the package is there, and something inside it is broken: its own message says more
        raise MissingDependencyError(f"{purpose} needs {package}: pip install 'rldk[{extra}]'") from error


def need(package: str, pip: str, purpose: str) -> None:
    """Raise with the command to run if a package (of `a|b`, both) is not installed; nothing is imported."""
    names = package.split("|")
    if not any(map(is_installed, names)):
        raise MissingDependencyError(f"{purpose} needs {' or '.join(names)}: pip install {pip}")


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
