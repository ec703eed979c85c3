"""OpenMP's wait policy, to be imported before torch: its threads sleep while they wait, instead of burning a core.

Threads that spin cost a small model more than they bring, and on a shared machine many times as much. OpenMP reads its
settings once, when torch is loaded; what the user has set stays. How many threads there are is for machine.py.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")  # the same for Intel's OpenMP
