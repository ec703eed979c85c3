"""Forked processes are like those of a fresh interpreter: arguments, environment, output, exit status, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from warm_processes import Warm, rank_settings, warm  # noqa: E402

SCRIPT = """
import os, sys, threading
print(sys.argv[1:], os.getcwd(), os.environ["NAME"], __name__, flush=True)
print("seen", file=sys.stderr)
threading.Timer(0.1, lambda: print("last")).start()
if sys.argv[1] == "number": sys.exit(3)
if sys.argv[1] == "text": sys.exit("a reason")
if sys.argv[1] == "error": raise ValueError("a mistake")
if sys.argv[1] == "kill": os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["well", "number", "text", "error", "kill"])
def test_a_script_ends_as_with_a_fresh_interpreter(how: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    words, told = [str(script), how], {**os.environ, "NAME": "value"}
    fresh = subprocess.run([sys.executable, *words], cwd=tmp_path, env=told, capture_output=True, text=True, check=False)
    forked = warm().run(words, cwd=tmp_path, env=told)
    assert (forked.returncode, forked.stdout) == (fresh.returncode, fresh.stdout)
    assert forked.stderr.splitlines()[-1] == fresh.stderr.splitlines()[-1]


def test_a_signal_reaches_the_script_and_its_state_is_known(tmp_path: Path) -> None:
    code = "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(7))\nprint('ready', flush=True)\ntime.sleep(60)"
    child = warm().start(["-c", code], tmp_path, os.environ, tmp_path / "said", tmp_path / "said")
    until = time.monotonic() + 60
    while not (tmp_path / "said").exists() or "ready" not in (tmp_path / "said").read_text():
        assert time.monotonic() < until and child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == child.poll() == 7


def test_two_processes_find_each_other_and_one_that_fails_ends_the_other(tmp_path: Path) -> None:
    code = (
        "import os, sys, time, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo'); total = torch.ones(1); dist.all_reduce(total); print(dist.get_rank(), total.item())\n"
        "dist.destroy_process_group()\n"
        "if sys.argv[1:] == ['fails']: sys.exit(5) if os.environ['RANK'] == '1' else time.sleep(60)"
    )
    both = warm().run_ranks(2, ["-c", code], cwd=tmp_path, env=os.environ)
    assert [(done.returncode, done.stdout) for done in both] == [(0, "0 2.0\n"), (0, "1 2.0\n")]
    both = warm().run_ranks(2, ["-c", code, "fails"], cwd=tmp_path, env=os.environ)
    assert [done.returncode for done in both] == [-signal.SIGKILL, 5]


def test_the_settings_of_ranks_are_those_of_torchrun(tmp_path: Path) -> None:
    """The one test that starts `torchrun`: the processes it starts have the settings that `run_ranks` gives to its own."""
    (tmp_path / "script.py").write_text("import json, os; print(json.dumps(dict(os.environ)))")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "--redirects", "1"]
    words = [*launch, "--log_dir", str(tmp_path), str(tmp_path / "script.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    free = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}
    given = [json.loads(path.read_text()) for path in sorted(tmp_path.rglob("stdout.log"))]
    for theirs, ours in zip(given, rank_settings(2), strict=True):
        assert {name: theirs[name] for name in ours.keys() - free} == {name: ours[name] for name in ours.keys() - free}
        assert free <= theirs.keys()


def test_a_script_that_does_not_end_says_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"(?s)did not end within 1 s.*begun.*, line 2 in waits"):
        code = "import time\ndef waits(): time.sleep(60)\nprint('begun', flush=True)\nwaits()"
        warm().run(["-c", code], cwd=tmp_path, env=os.environ, timeout=1.0)


def test_modules_that_start_threads_are_refused(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(1,)).start()\n")
    ready = Warm(["threaded"], PYTHONPATH=str(tmp_path))
    with pytest.raises(RuntimeError, match="the warm process ended with status 1"):
        ready.start(["-c", "pass"], tmp_path, os.environ, os.devnull, os.devnull)
