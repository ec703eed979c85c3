"""A sample of raw advantages in a few numbers, by the one formula for it."""

from __future__ import annotations

from rldk.functional.sample import describe

__all__ = ["describe"]
