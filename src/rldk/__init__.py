"""rldk, the RL debug kit: what is going wrong in a reinforcement-learning fine-tuning run, since when, why, and what to do."""

from __future__ import annotations

from rldk._version import __version__

__all__ = ["__version__"]
