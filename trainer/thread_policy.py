"""OpenMP's wait policy, to be imported before torch: its threads sleep while they wait, instead of burning a core.

Threads that spin cost a small model more than they gain, especially on a shared machine. OpenMP reads its
settings once, when torch is loaded; settings of the user are kept. machine.py sets the number of threads.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")  # the same for Intel's OpenMP
