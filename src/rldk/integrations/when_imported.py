"""Calls back at the end of the import of a module that is not imported yet."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import logging
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import ModuleType

__all__ = ["when_imported"]

_log = logging.getLogger("rldk")


def when_imported(module: str, call: Callable[[], None]) -> Callable[[], None]:
    """Call now if a module is imported, otherwise as soon as it is; returns what takes that back."""
    known = sys.modules.get(module)
    if known is not None and not getattr(getattr(known, "__spec__", None), "_initializing", False):
        call()
        return lambda: None
    finder = _AfterImport(module, call)
    sys.meta_path.insert(0, finder)
    return finder.remove


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds a module as usual, and calls back when it has been executed."""

    def __init__(self, module: str, call: Callable[[], None]) -> None:
        self._module, self._call, self._searching = module, call, False

    def remove(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._module or self._searching:
            return None
        self._searching = True
        try:
            spec = find_spec(name)
        finally:
            self._searching = False
        if spec is None or spec.loader is None:
            return None
        self.remove()
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            try:
                self._call()
            except Exception as error:  # noqa: BLE001  in the middle of somebody's import: nothing of ours may break it
                _log.warning("rldk could not attach to %s; training continues: %s", name, error, exc_info=error)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
