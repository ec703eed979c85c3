"""The trainer is a folder of scripts, not a package: its tests import from it as the scripts do from each other."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "trainer"))
