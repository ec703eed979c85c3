"""Resources: true numbers, by names of the catalogue, from a thread that nothing waits for."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from rldk.core.catalog import CATALOG
from rldk.monitor import resources
from rldk.monitor.resources import ResourceSampler


def until(condition: object, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_names_are_those_of_the_catalogue_and_values_those_of_psutil(tmp_path: Path) -> None:
    sampler = ResourceSampler(path=tmp_path / "not/made/yet")
    time.sleep(0.02)
    found = sampler.sample()
    assert set(found) >= {"cpu_percent", "cpu_memory_gb", "memory_usage", "disk_free_gb"}
    assert all(name in CATALOG for name in found)
    assert found["cpu_memory_gb"] == pytest.approx(psutil.Process().memory_info().rss / 2**30, rel=0.05)
    assert found["disk_free_gb"] == pytest.approx(psutil.disk_usage(str(tmp_path)).free / 2**30, rel=0.2)
    machine = psutil.virtual_memory()
    assert found["memory_usage"] >= 1 - machine.available / machine.total - 0.05 and 0 < found["memory_usage"] <= 1


def test_memory_follows_what_the_process_takes() -> None:
    sampler = ResourceSampler()
    before = sampler.sample()["cpu_memory_gb"]
    held = np.ones(32 << 20)  # a quarter of a gibibyte
    assert sampler.sample()["cpu_memory_gb"] - before == pytest.approx(0.25, abs=0.03)
    del held


def test_a_busy_core_is_about_100_percent() -> None:
    sampler = ResourceSampler()
    sampler.sample()
    end = time.process_time() + 0.2
    began = time.monotonic()
    while time.process_time() < end:
        pass
    expected = 100 * 0.2 / (time.monotonic() - began)  # less where others share the core
    assert sampler.sample()["cpu_percent"] == pytest.approx(expected, rel=0.3)


def test_the_thread_looks_again_and_again_and_stops() -> None:
    sampler = ResourceSampler(interval=0.01)
    assert sampler.latest() == {}
    sampler.start()
    until(lambda: "cpu_percent" in sampler.latest())
    looked = sampler._looked
    until(lambda: sampler._looked > looked)
    thread = sampler._thread
    assert thread is not None and thread.daemon and sampler.start()._thread is thread
    sampler.stop()
    assert not thread.is_alive()
    looked = sampler._looked
    time.sleep(0.05)
    assert sampler._looked == looked
    sampler.stop()


def test_a_source_that_hangs_blocks_nobody() -> None:
    sampler, hold = ResourceSampler(interval=0.01, stale=0.0), threading.Event()
    sampler._sources["disk"] = lambda: {"disk_free_gb": float(hold.wait(30))}
    began = time.monotonic()
    sampler.start()
    assert sampler.latest() == {}
    sampler.stop(timeout=0.05)
    assert time.monotonic() - began < 1.0
    hold.set()


def test_old_values_are_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = ResourceSampler(interval=1.0, stale=60.0)
    assert sampler.sample() and sampler.latest()
    now = time.monotonic()
    monkeypatch.setattr(resources.time, "monotonic", lambda: now + 61.0)
    assert sampler.latest() == {}


def test_a_source_that_fails_is_told_once_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> dict[str, float]:
        raise OSError("gone")

    sampler = ResourceSampler()
    sampler._sources["accelerator"] = broken
    with caplog.at_level(logging.WARNING, "rldk"):
        for _ in range(3):
            assert "cpu_memory_gb" in sampler.sample()
    assert [record.getMessage() for record in caplog.records] == [
        "rldk can no longer sample the accelerator; the other resources are still sampled."
    ]
    assert caplog.records[0].exc_info is not None


def test_a_process_with_a_sampler_ends_by_itself() -> None:
    code = "from rldk.monitor.resources import ResourceSampler as R; r = R(interval=100).start(); r.sample()"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Nvml:
    """What NVML tells of two devices; the only accelerator that a machine without one can be tested with."""

    class NVMLError(Exception):
        pass

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetHandleByUUID(self, name: str) -> int:
        return int(name[-1])

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=(30 + handle) << 30, total=80 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        if handle == 0:
            raise self.NVMLError("a slice")
        return SimpleNamespace(gpu=55)


@pytest.mark.parametrize(("visible", "rank", "device"), [(None, "1", 1), ("1,0", "0", 1), ("GPU-0,GPU-1", "1", 1), ("1", "5", 1)])
def test_the_accelerator_of_this_process(monkeypatch: pytest.MonkeyPatch, visible: str | None, rank: str, device: int) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = ResourceSampler().sample()
    assert (found["gpu_memory_gb"], found["memory_usage"], found["gpu_utilization"]) == (30 + device, (30 + device) / 80, 0.55)


def test_a_slice_of_an_accelerator_has_no_use_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    found = ResourceSampler().sample()
    assert found["gpu_memory_gb"] == 30 and "gpu_utilization" not in found


def test_without_an_accelerator_nothing_is_said_of_one() -> None:
    if os.path.exists("/dev/nvidia0"):  # noqa: PTH110
        pytest.skip("this machine has one")
    assert not {"gpu_memory_gb", "gpu_memory_reserved_gb", "gpu_utilization"} & set(ResourceSampler().sample())


def test_a_container_close_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("max", "1000"), ("current", "990"), ("stat", "anon 5\ninactive_file 15\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(resources, "_CGROUP", tmp_path)
    assert ResourceSampler().sample()["memory_usage"] == 0.975
    (tmp_path / "memory.max").write_text("max\n")
    assert ResourceSampler().sample()["memory_usage"] < 0.97


def test_the_thread_ends_with_a_sampler_that_nobody_stopped():
    sampler = ResourceSampler(interval=0.01).start()
    thread = sampler._thread
    assert thread is not None and thread.is_alive()
    del sampler
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()
