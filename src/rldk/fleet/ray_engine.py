"""Judge many files on a Ray cluster that exists already: each file is one task, and what dies with a worker is tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rldk.core.errors import RLDKError, UsageError, require
from rldk.fleet.pool import ATTEMPTS, WorkError, answer_of

__all__ = ["on_ray"]

_PER_CORE = 4  # tasks under way, so that no core waits for the next one
_ERRORS = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError", "RayTaskError", "RaySystemError")


def on_ray(address: str | None = None) -> Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[tuple[int, Any]]]:
    """Work on the cluster at an address (`RAY_ADDRESS` or the one of this machine by default).

    The files must be visible to all machines under the same path, and rldk must be installed on them.
    """
    ray = require("ray", extra="ray", purpose="--engine ray")
    if not ray.is_initialized():
        try:
            ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            said, where = str(error).strip().split("\n")[0], address or "this machine"
            raise UsageError(f"No Ray cluster at {where} ({said}): start one with `ray start --head`.") from None
    return lambda work, tasks: _run(ray, work, tasks)


def _run(ray: Any, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    remote = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(answer_of)
    function = ray.put(work)
    coming = enumerate(tasks)
    under_way: dict[Any, int] = {}
    most = max(2, int(ray.cluster_resources().get("CPU", 1)) * _PER_CORE)
    while True:
        while len(under_way) < most and (task := next(coming, None)) is not None:
            under_way[remote.remote(function, task[1])] = task[0]
        if not under_way:
            return
        ready, _ = ray.wait(list(under_way), num_returns=1)
        for reference in ready:
            yield under_way.pop(reference), _answer(ray, reference)


def _answer(ray: Any, reference: Any) -> Any | RLDKError:
    try:
        return ray.get(reference)
    except Exception as error:  # reported for this file; the others go on
        if type(error).__name__ not in _ERRORS and not isinstance(error, ray.exceptions.RayError):
            raise
        said = str(error).strip().split("\n")[0][:200]
        return WorkError(f"could not be judged: its worker on the cluster died {ATTEMPTS} times ({type(error).__name__}: {said})")
