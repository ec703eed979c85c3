"""Attaches to the method through which a framework logs: it is called as before, and its arguments are passed on."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rldk.integrations.rows import RowLog, run_name
from rldk.integrations.when_imported import when_imported
from rldk.monitor import TrainingStopped

__all__ = ["Attachment", "Hook", "Row", "Target", "logged"]

_log = logging.getLogger("rldk")

Row = tuple[Mapping[str, Any], Any]
"""What was logged, and its step."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A method to attach to.

    Args:
        module: where its class is.
        place: the class and the method, such as `Tracking.log`.
        rows: what a call logs, from its arguments by name.
        name: the name of the run that the object logs, from the object; part of the run id.
        run: the run that a call logs to, where several objects log to one.
        ends: the call ends the run of its object.
    """

    module: str
    place: str
    rows: Callable[[Mapping[str, Any]], Iterable[Row]] = lambda _: ()
    name: Callable[[Any], object] = lambda _: ""
    run: Callable[[Mapping[str, Any]], str] | None = None
    ends: bool = False


def logged(metrics: str, step: str) -> Callable[[Mapping[str, Any]], Iterator[Row]]:
    """The rows of a method that takes one row: its metrics and its step are in the arguments of these names."""

    def rows(call: Mapping[str, Any]) -> Iterator[Row]:
        yield call[metrics], call[step]

    return rows


@dataclass(frozen=True, slots=True)
class Target:
    """What can be attached to.

    Args:
        package: the package it needs; of `a|b` one is enough.
        pip: how pip installs that.
        hooks: the methods to attach to, in each of their modules as soon as that is imported.
        framework: whose keys the rows have; `None`: recognised by the keys.
        whole_rows: a call has all of a step.
        refresh: called after methods were attached or restored.
    """

    package: str
    pip: str
    hooks: Sequence[Hook]
    framework: str | None = None
    whole_rows: bool = False
    refresh: Callable[[], None] = lambda: None


class Attachment:
    """Rows of a framework or tracker, watched from the moment of attaching. `detach` restores everything.

    Each object that logs (a run of W&B, a writer of TensorBoard) is a run of its own, with its own files.

    Attributes:
        is_attached: whether it still watches.
        logs: the runs that have been seen, in the order in which they began.
    """

    def __init__(self, kind: str, target: Target, options: Mapping[str, Any]) -> None:
        self.kind, self.options = kind, dict(options)
        self._target = target
        self.logs: list[RowLog] = []
        self._log_by_source: dict[int | str, RowLog] = {}
        self._undo: list[Callable[[], None]] = []
        self._depth = threading.local()
        RowLog(target.framework, **{**self.options, "terminal": False}).close()  # refuses wrong options before the training
        self.is_attached = True
        for module in dict.fromkeys(hook.module for hook in target.hooks):
            self._undo.append(when_imported(module, partial(self._patch, module)))

    def detach(self) -> None:
        """Restore the methods, judge what is waiting, and complete the files. A second call does nothing."""
        self.is_attached = False
        while self._undo:
            self._undo.pop()()
        self._target.refresh()
        for log in self.logs:
            log.close()

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def _patch(self, module: str) -> None:
        """Wrap the methods of a module that is imported by now."""
        for hook in self._target.hooks:
            if hook.module == module:
                self._wrap(hook)
        self._target.refresh()

    def _wrap(self, hook: Hook) -> None:
        owner: Any = sys.modules[hook.module]
        *path, method = hook.place.split(".")
        for part in path:
            owner = getattr(owner, part)
        original = owner.__dict__[method] if isinstance(owner, type) and method in owner.__dict__ else getattr(owner, method)
        signature = inspect.signature(original)
        if inspect.iscoroutinefunction(original):

            @functools.wraps(original)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = await original(*args, **kwargs)
                self._passed(hook, signature, args, kwargs)
                return result
        else:

            @functools.wraps(original)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                self._depth.value = getattr(self._depth, "value", 0) + 1
                try:
                    result = original(*args, **kwargs)
                finally:
                    self._depth.value -= 1
                if not self._depth.value:  # a call inside another attached method belongs to the outer one
                    self._passed(hook, signature, args, kwargs)
                return result

        setattr(owner, method, wrapper)
        self._undo.append(lambda: _restore(owner, method, wrapper, original))

    def _passed(self, hook: Hook, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Pass on what a call has logged. Only `TrainingStopped` gets out, and only if a stop was asked for."""
        if not self.is_attached:
            return  # detached, but somebody still holds our wrapper
        try:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            source = args[0] if args else None
            if hook.ends:
                self._end(id(source))
                return
            run = hook.run(bound.arguments) if hook.run is not None else None
            for metrics, step in hook.rows(bound.arguments):
                self._log_of(hook, source, run).log(metrics, step)
        except TrainingStopped:
            raise
        except Exception as error:  # noqa: BLE001  whatever goes wrong in monitoring stays here
            _log.warning("rldk: a row of %s could not be used; training continues: %s", self.kind, error, exc_info=error)

    def _log_of(self, hook: Hook, source: Any, run: str | None) -> RowLog:
        key = id(source) if run is None else run
        if key not in self._log_by_source:
            number = "" if not self.logs else str(len(self.logs) + 1)
            options = dict(self.options)
            if (given := options.pop("run_id", None)) is not None:
                options["run_id"] = run_name(given, number)
            elif name := run or hook.name(source):
                options["run_id"] = run_name(self.kind, name, number)
            log = RowLog(self._target.framework, whole_rows=self._target.whole_rows, **options)
            self._log_by_source[key] = log
            self.logs.append(log)
            if run is None and source is not None:
                weakref.finalize(source, self._end, key).atexit = False
        return self._log_by_source[key]

    def _end(self, key: int | str) -> None:
        """The run of an object is over; another object may get its id."""
        log = self._log_by_source.pop(key, None)
        if log is not None:
            log.close()


def _restore(owner: Any, method: str, wrapper: Any, original: Any) -> None:
    """Restore a method. If somebody has wrapped ours since, it stays and only passes calls on."""
    if inspect.getattr_static(owner, method, None) is wrapper:
        setattr(owner, method, original)
