"""Run scripts in processes that are forked from one which has torch and transformers in memory already.

Importing both costs 5 s of processor time, and TRL's trainers 2 s, more than most trainings of the tests. A `Warm` process
imports the modules once, in a single thread, and then forks one child for each script. A child is a process like any other: it
has its own arguments, environment, working directory, output and exit status, and it can be killed. What it does not test is
start-up: every script has a test that starts it with a fresh interpreter. Settings that a module reads while it is imported
must be among the `SETTINGS`.

As a script, this file is that process: it reads one request per line, and answers with the ids of children and their ends.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SETTINGS = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONWARNINGS": "ignore"}
SETTINGS |= {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # no thread of pyarrow's allocator
SETTINGS |= {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Some tests measure memory: what is freed goes back at once."""
SETTINGS |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "WANDB_MODE": "offline"}

MODULES = ("torch", "torch.distributed", "transformers", "transformers.models.llama.modeling_llama", "accelerate", "peft")
TRAINERS = ("trl.trainer.grpo_trainer", "trl.experimental.ppo")


class Child:
    """A script in a process of its own, with the methods of `subprocess.Popen` that tests need."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self.warm, self.pid, self.returncode = warm, pid, None

    def poll(self) -> int | None:
        self.warm.receive(0.0)
        return self.returncode

    def wait(self, timeout: float = 400.0) -> int:
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self.warm.receive(min(0.5, timeout))
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Warm:
    """A process that has imported `modules`, and forks."""

    def __init__(self, modules: Sequence[str], **settings: str) -> None:
        environment, pipe = {**os.environ, **SETTINGS, **settings}, subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, __file__, *modules], stdin=pipe, stdout=pipe, env=environment)
        self.children: dict[int, Child] = {}
        self.rest = b""
        self.started: Child | None = None
        atexit.register(self.close)

    def close(self) -> None:
        for child in [*self.children.values()]:
            child.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def start(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: str | Path, stderr: str | Path) -> Child:
        """A child that runs `words`: a script or `-c` code, and its arguments. Outputs are paths; the same one takes both."""
        request = {"words": [*map(str, words)], "cwd": str(cwd), "env": dict(env), "out": str(stdout), "err": str(stderr)}
        self.started = None
        with contextlib.suppress(BrokenPipeError):  # a process that has ended is found below
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        while self.started is None:
            self.receive(60.0)
        return self.started

    def receive(self, timeout: float) -> None:
        """Take note of what the process says within `timeout`."""
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            return
        read = os.read(self.process.stdout.fileno(), 65536)
        if not read:
            raise RuntimeError(f"the warm process ended with status {self.process.wait()}")
        *lines, self.rest = (self.rest + read).split(b"\n")
        for line in lines:
            kind, pid, status = json.loads(line)
            if kind == "started":
                self.started = self.children[pid] = Child(self, pid)
            else:
                self.children.pop(pid).returncode = status

    def run(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float = 400.0
    ) -> subprocess.CompletedProcess[str]:
        """Run one script to its end, as `subprocess.run` with `capture_output`."""
        return self.run_all([(words, env)], cwd=cwd, timeout=timeout)[0]

    def run_ranks(
        self, count: int, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float = 400.0
    ) -> list[subprocess.CompletedProcess[str]]:
        """Run a script by `count` processes that find each other, as `torchrun` does."""
        return self.run_all([(words, {**env, **told}) for told in rank_settings(count)], cwd=cwd, timeout=timeout)

    def run_all(self, asked: Sequence[tuple[Sequence[str], Mapping[str, str]]], *, cwd: Path, timeout: float) -> list[Any]:
        """Run scripts beside each other. One that fails ends the others, which may wait for it."""
        with tempfile.TemporaryDirectory() as folder:
            files = [(Path(folder, f"out{n}"), Path(folder, f"err{n}")) for n in range(len(asked))]
            started = [self.start(words, cwd, env, *place) for (words, env), place in zip(asked, files, strict=True)]
            try:
                until = time.monotonic() + timeout
                while any(child.poll() is None for child in started) and not any(child.returncode for child in started):
                    if time.monotonic() > until:
                        raise TimeoutError(f"{asked[0][0]} did not end within {timeout:g} s\n{self.stacks(started, files)}")
                    self.receive(0.5)
            finally:
                for child in started:
                    child.kill()
                    child.wait(60)
            return [
                subprocess.CompletedProcess(words, child.returncode, out.read_text(), err.read_text())
                for (words, _), child, (out, err) in zip(asked, started, files, strict=True)
            ]

    def stacks(self, children: Sequence[Child], files: Sequence[tuple[Path, Path]]) -> str:
        """What each child printed, and where it is now."""
        for child in children:
            child.send_signal(signal.SIGUSR1)
        time.sleep(1.0)
        return "\n".join(path.read_text()[-3000:] for places in files for path in places)


STORES: list[Any] = []  # as long as this process: the ranks find each other in them


def rank_settings(count: int) -> list[dict[str, str]]:
    """The environment that `torchrun` gives to each of `count` processes on this machine."""
    from torch.distributed import TCPStore

    STORES[:] = [*STORES[-3:], TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)]
    common = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(STORES[-1].port), "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RUN_ID": "test",
        "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1",
    }  # fmt: skip
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank), "ROLE_RANK": str(rank)} for rank in range(count)]


@cache
def warm() -> Warm:
    """The process of this test session that has torch, transformers and TRL, started when it is first asked for."""
    return Warm((*MODULES, *(TRAINERS if find_spec("trl") else ())))


def serve(modules: Sequence[str]) -> None:
    """Fork a child for each line of the standard input, until it ends."""
    import gc
    import importlib

    answers = os.dup(1)
    os.dup2(2, 1)  # some modules print while they are imported
    for name in modules:
        importlib.import_module(name)
    threads = [*Path("/proc/self/task").iterdir()]
    assert len(threads) == 1, f"{len(threads)} threads run after the imports; a forked child would not have them"
    gc.collect()
    gc.freeze()  # no child looks at the modules for garbage again
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    asked = sys.stdin.buffer
    while True:
        ready = select.select([asked, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            report_ends(answers)
        if asked in ready:
            line = asked.readline()
            if not line:
                return  # nobody is left to wait for a child: those that still run end by themselves
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                be(**json.loads(line))
            tell(answers, "started", pid, 0)


def report_ends(answers: int) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        tell(answers, "ended", pid, os.waitstatus_to_exitcode(status))


def tell(answers: int, kind: str, pid: int, status: int) -> None:
    os.write(answers, json.dumps([kind, pid, status]).encode() + b"\n")


def be(words: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """Turn this forked process into that of a script, and end with its status."""
    status = 1
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        for number, place, how in ((0, os.devnull, os.O_RDONLY), (1, out, append), (2, err, append)):
            file = os.open(place, how, 0o644)
            os.dup2(file, number)
            os.close(file)
        faulthandler.register(signal.SIGUSR1)  # prints where all threads are
        status = run_script(words, env)
    finally:
        import threading

        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_script(words: list[str], env: dict[str, str]) -> int:
    """What the interpreter does with `words`; the exit status."""
    import random
    import runpy
    import traceback

    import numpy

    random.seed()
    numpy.random.seed()
    more = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = words if words[0] != "-c" else ["-c", *words[2:]]
    sys.path[:] = [str(Path.cwd()) if words[0] == "-c" else str(Path(words[0]).parent), *more, *sys.path[1:]]
    try:
        if words[0] == "-c":
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(sys.argv[1:])
