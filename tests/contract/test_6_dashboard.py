"""Section 6: a script of three lines that starts the dashboard keeps serving until it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
SCRIPT = """
from rldk.integrations.trl import RLDKDashboard
dashboard = RLDKDashboard(output_dir={folder!r}, port=0)
print(dashboard.start_dashboard(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a signal")
def test_three_lines_keep_serving_until_they_are_stopped(tmp_path: Path) -> None:
    pytest.importorskip("streamlit")
    command = [sys.executable, "-c", SCRIPT.format(folder=str(tmp_path))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None and script.stderr is not None
        url = script.stdout.readline().strip()
        assert "Stop it with Ctrl-C" in script.stdout.readline()  # the script is at its end
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert answer.status == 200
        assert script.poll() is None
        script.send_signal(signal.SIGINT)
        script.wait(30)
        assert "Traceback" not in script.stderr.read()
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=5)


def test_a_script_that_fails_ends(tmp_path: Path) -> None:
    pytest.importorskip("streamlit")
    failing = SCRIPT.format(folder=str(tmp_path)) + "raise RuntimeError('the training failed')\n"
    done = subprocess.run([sys.executable, "-c", failing], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "the training failed" in done.stderr
