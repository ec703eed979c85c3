"""What the run takes: processor, memory, accelerator, disk, and where the time of a step goes.

Values come by the names of the catalogue (`cpu_percent`, `cpu_memory_gb`, `memory_usage`, `gpu_utilization` …). What a
machine does not tell is not there, and never 0.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["ResourceSampler", "StepTimer"]

_log = logging.getLogger("rldk")
_GIB = float(1 << 30)
_CGROUP = Path("/sys/fs/cgroup")
Source = Callable[[], dict[str, float]]


class ResourceSampler:
    """Looks at the machine every `interval` seconds, on a thread of its own that training never waits for.

    `latest` gives the last look at once. A source that fails is reported once and left out; one that hangs (a disk that is
    gone) leaves the last values standing, until they are `stale` seconds old. `path` is where checkpoints go.
    """

    def __init__(self, interval: float = 5.0, path: str | os.PathLike[str] | None = None, stale: float = 60.0) -> None:
        self.interval, self.stale = interval, max(stale, 3 * interval)
        self._latest: dict[str, float] = {}
        self._looked = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._sources: dict[str, Source] = {"processor": _Processor(), "memory": _memory}
        self._sources["accelerator"] = _Accelerator()
        if path is not None:
            where = os.fspath(path)
            self._sources["disk"] = lambda: _disk(where)

    def start(self) -> ResourceSampler:
        """Begin to look; once is enough."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name="rldk-resources", daemon=True)
            self._thread.start()
        return self

    def stop(self, timeout: float = 2.0) -> None:
        """End the thread, and do not wait for it beyond `timeout` seconds: it is a daemon and holds nothing."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def latest(self) -> dict[str, float]:
        """The last look, by metric; empty before the first one, and when the last is too old to be true."""
        return dict(self._latest) if time.monotonic() - self._looked <= self.stale else {}

    def sample(self) -> dict[str, float]:
        """Look now, on the caller's own time."""
        found: dict[str, float] = {}
        for name, source in list(self._sources.items()):
            try:
                found = {**found, **source()}  # the accelerator's memory counts before the machine's
            except Exception:  # noqa: BLE001  whatever a driver throws, training goes on
                _log.warning("rldk cannot look at the %s any more; the rest goes on.", name, exc_info=True)
                del self._sources[name]
        self._latest, self._looked = found, time.monotonic()
        return dict(found)

    def _run(self) -> None:
        while True:
            self.sample()
            if self._stop.wait(self.interval):
                return

    def __enter__(self) -> ResourceSampler:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Processor:
    """Processor time of all threads of this process since the last look; nothing at the first."""

    def __init__(self) -> None:
        self._last = (time.monotonic(), time.process_time())

    def __call__(self) -> dict[str, float]:
        (before, used), now = self._last, (time.monotonic(), time.process_time())
        if now[0] - before < 0.01:
            return {}
        self._last = now
        return {"cpu_percent": 100.0 * (now[1] - used) / (now[0] - before)}


def _memory() -> dict[str, float]:
    """Main memory of the process, and the share of the machine's (or of the container's) that is in use."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
        rows = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        machine = {row[0].rstrip(":"): 1024.0 * int(row[1]) for row in rows if row[0] in ("MemTotal:", "MemAvailable:")}
        share = 1.0 - machine["MemAvailable"] / machine["MemTotal"]
        return {"cpu_memory_gb": pages * os.sysconf("SC_PAGE_SIZE") / _GIB, "memory_usage": max(share, _container())}
    with suppress(ImportError):
        import psutil  # type: ignore[import-untyped, unused-ignore]

        return {"cpu_memory_gb": psutil.Process().memory_info().rss / _GIB, "memory_usage": psutil.virtual_memory().percent / 100}
    return {}


def _container() -> float:
    """The share of its limit that a container uses, without files that it could let go; 0 where there is no limit."""
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return max(used - int(stat.get("inactive_file", 0)), 0) / limit
    except (OSError, ValueError, ZeroDivisionError):
        return 0.0  # no limit ("max"), or an older kernel: the machine's share counts


def _disk(path: str) -> dict[str, float]:
    place = Path(path).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return {"disk_free_gb": shutil.disk_usage(place).free / _GIB}


class _Accelerator:
    """What NVML says of this process's device, and torch's allocator of its own memory; nothing where there is none."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        with suppress(ImportError):
            import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

            with suppress(pynvml.NVMLError):
                pynvml.nvmlInit()
                self._nvml, self._handle = pynvml, _device(pynvml)

    def __call__(self) -> dict[str, float]:
        found: dict[str, float] = {}
        if self._handle is not None:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
            found = {"gpu_memory_gb": memory.used / _GIB, "memory_usage": memory.used / memory.total}
            with suppress(self._nvml.NVMLError):  # a slice of a device (MIG) has no use of its own
                found["gpu_utilization"] = self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100.0
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            device = _rank() % torch.cuda.device_count()  # the current device of a thread is another one than the trainer's
            allocated, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
            found |= {"gpu_memory_gb": allocated / _GIB, "gpu_memory_reserved_gb": reserved / _GIB}
            found.setdefault("memory_usage", reserved / torch.cuda.get_device_properties(device).total_memory)
        return found


def _rank() -> int:
    """The number of this process on its machine."""
    rank = os.environ.get("LOCAL_RANK", "")
    return int(rank) if rank.isdigit() else 0


def _device(nvml: Any) -> Any:
    """The device of this process: that of its local rank among those it may see."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    name = visible[_rank() % len(visible)] if visible else str(_rank() % max(nvml.nvmlDeviceGetCount(), 1))
    return nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else nvml.nvmlDeviceGetHandleByUUID(name)


class StepTimer:
    """Where the time of a step goes.

    `with timer.span("generation_time"):` adds to a part, and `end_step(tokens)` gives the step's metrics and begins the next.
    The first step is left out, unless `begin` was called: it holds what happens once. `synchronize` (such as
    `torch.cuda.synchronize`) is called where a span begins and ends, so that work under way counts where it belongs.
    """

    def __init__(self, synchronize: Callable[[], object] | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._synchronize, self._clock = synchronize or (lambda: None), clock
        self._began: float | None = None
        self._parts: dict[str, float] = {}

    def begin(self) -> None:
        """A step begins here."""
        self._synchronize()
        self._began, self._parts = self._clock(), {}

    @contextmanager
    def span(self, part: str) -> Iterator[None]:
        """Count what is inside under this name; several of one name are added up."""
        self._synchronize()
        began = self._clock()
        try:
            yield
        finally:
            self._synchronize()
            self._parts[part] = self._parts.get(part, 0.0) + self._clock() - began

    def end_step(self, tokens: float | None = None, samples: float | None = None) -> dict[str, float]:
        """The metrics of the step that ends here; empty for one whose beginning is not known."""
        self._synchronize()
        began, parts, now = self._began, self._parts, self._clock()
        self._began, self._parts = now, {}
        if began is None or now <= began:
            return {}
        taken = now - began
        found = {**parts, "step_time": taken, "steps_per_second": 1.0 / taken}
        if tokens is not None:
            found |= {"tokens_per_second": tokens / taken, "step_tokens": float(tokens)}
        if samples is not None:
            found["samples_per_second"] = samples / taken
        return found
