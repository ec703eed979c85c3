"""The tests of trainers share a tiny world that lies beside them; the scripts of other environments import it too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
