"""The benchmark of hostile inputs runs, on small ones, and says what each scan took."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_hostile_inputs_are_scanned_and_measured() -> None:
    script = ROOT / "benchmarks" / "hostile" / "run.py"
    command = [sys.executable, str(script), "new_key_in_each_row", "long_cells", "--share", "0.001"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, second = [line for line in said.splitlines() if "MB)" in line]
    assert "new key in each row" in first and "status 0, 200 events" in first
    assert "long cells" in second and "status 0" in second and " s, " in second
