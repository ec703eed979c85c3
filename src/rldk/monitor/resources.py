"""What the run uses: processor, memory, accelerator and disk.

Values have the names of the catalogue (`cpu_percent`, `cpu_memory_gb`, `memory_usage`, `gpu_utilization` …). What a machine
does not report is absent, and never 0.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

__all__ = ["ResourceSampler"]

_log = logging.getLogger("rldk")
_GIB = float(1 << 30)
_CGROUP = Path("/sys/fs/cgroup")
Source = Callable[[], dict[str, float]]


class ResourceSampler:
    """Samples the machine every `interval` seconds, on a thread of its own that training never waits for.

    `latest` returns the last sample at once. A source that fails is reported once and disabled; while one hangs (a lost
    network disk), the last values are returned until they are `stale` seconds old. `path` is where checkpoints are saved.
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
        """Start the thread; a second call does nothing."""
        if self._thread is None:
            self._stop.clear()
            given = (weakref.ref(self), self._stop, self.interval)
            self._thread = threading.Thread(target=_sample_until, args=given, name="rldk-resources", daemon=True)
            self._thread.start()
            weakref.finalize(self, self._stop.set)  # the thread ends with the sampler, should nobody stop it
        return self

    def stop(self, timeout: float = 2.0) -> None:
        """End the thread, waiting at most `timeout` seconds: it is a daemon and holds nothing."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def latest(self) -> dict[str, float]:
        """The last sample, by metric; empty before the first one, and when the last is too old."""
        return dict(self._latest) if time.monotonic() - self._looked <= self.stale else {}

    def sample(self) -> dict[str, float]:
        """Sample now, in the calling thread."""
        found: dict[str, float] = {}
        for name, source in list(self._sources.items()):
            try:
                found = {**found, **source()}  # the accelerator's memory counts before the machine's
            except Exception:  # noqa: BLE001  whatever a driver throws, training continues
                _log.warning("rldk can no longer sample the %s; the other resources are still sampled.", name, exc_info=True)
                del self._sources[name]
        self._latest, self._looked = found, time.monotonic()
        return dict(found)


def _sample_until(sampler: weakref.ref[ResourceSampler], stop: threading.Event, interval: float) -> None:
    """Sample until the sampler is stopped, or gone."""
    while True:
        now = sampler()
        if now is None:
            return
        now.sample()
        del now
        if stop.wait(interval):
            return


class _Processor:
    """Processor time of all threads of this process since the last sample."""

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
    machine = psutil.virtual_memory()
    share = 1.0 - machine.available / machine.total
    return {"cpu_memory_gb": psutil.Process().memory_info().rss / _GIB, "memory_usage": max(share, _container())}


def _container() -> float:
    """The share of its limit that a container uses, without cached files; 0 without a limit. psutil does not know cgroups."""
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
    """The device of this process by NVML, and its memory by torch's allocator; nothing without a device."""

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
            with suppress(self._nvml.NVMLError):  # a slice of a device (MIG) reports no utilization
                found["gpu_utilization"] = self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100.0
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            device = _rank() % torch.cuda.device_count()  # the current device of this thread is not the trainer's
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
