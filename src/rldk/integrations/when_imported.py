"""Attaches to modules that are not imported yet: the hooks are set at the end of the import."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import logging
import os
import sys
from collections.abc import Callable, Sequence, Set
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from rldk.core.errors import MissingDependencyError, UsageError
from rldk.integrations.attach import TARGETS, attach

__all__ = ["attach_when_imported", "options_from_environment"]

_log = logging.getLogger("rldk")
_OPTIONS = {"RLDK_OUTPUT_DIR": "output_dir", "RLDK_RUN_ID": "run_id", "RLDK_STOP_ON": "stop_on"}


def options_from_environment() -> dict[str, Any]:
    """Options from the environment, for processes that can be configured in no other way."""
    return {option: value for name, option in _OPTIONS.items() if (value := os.environ.get(name))}


def attach_when_imported(name: str) -> None:
    """Attach now if the logger is imported, otherwise as soon as it is; if it never is, nothing happens."""
    if name not in TARGETS:
        raise UsageError(f"Expected one of {sorted(TARGETS)}, got {name!r}.")
    try:
        modules = {hook.module for hook in import_module(f"rldk.integrations.{name}").hooks()}
    except MissingDependencyError:
        return
    if any(map(_is_imported, modules)):
        _attach(name)
    else:
        sys.meta_path.insert(0, _AfterImport(modules, lambda: _attach(name)))


def _is_imported(module: str) -> bool:
    return module in sys.modules and not getattr(getattr(sys.modules[module], "__spec__", None), "_initializing", False)


def _attach(name: str) -> None:
    try:
        attach(name, **options_from_environment())
    except Exception as error:  # noqa: BLE001  in the middle of somebody's import: nothing of ours may break it
        _log.warning("rldk could not attach to %s; training continues: %s", name, error, exc_info=error)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds the first of some modules that is imported as usual, and calls back when it has been executed."""

    def __init__(self, modules: Set[str], call: Callable[[], None]) -> None:
        self._modules, self._call, self._searching = modules, call, False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._modules or self._searching:
            return None
        self._searching = True
        try:
            spec = find_spec(name)
        finally:
            self._searching = False
        if spec is None or spec.loader is None:
            return None
        sys.meta_path.remove(self)
        load, call = spec.loader.exec_module, self._call

        def exec_module(module: ModuleType) -> None:
            load(module)
            call()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
