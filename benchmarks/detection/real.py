"""Recorded real runs with labels, where that folder is at hand: `rldk scan` scored by the folder's own script.

    python benchmarks/detection/real.py

The folder is that of `RLDK_REALRUNS`, or `../shared/realruns` beside the project. Nothing of it is copied.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    folder = Path(os.environ.get("RLDK_REALRUNS") or ROOT.parent / "shared" / "realruns")
    script = folder / "score.py"
    if not script.exists():
        print(f"Real runs: left out, there is no {script}")
        return 0
    command = f"{sys.executable} -m rldk"
    done = subprocess.run([sys.executable, str(script), "--command", command], capture_output=True, text=True)
    print(f"Real runs of {folder}")
    print((done.stdout or done.stderr).rstrip().rpartition("\n\n")[2])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
