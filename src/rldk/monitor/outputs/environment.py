"""Addresses and tokens of services, which come from environment variables only."""

from __future__ import annotations

import os

from rldk.core.errors import UsageError
from rldk.monitor.outputs.web_requests import is_address

__all__ = ["address", "optional", "secret"]


def optional(name: str) -> str:
    """The value of an environment variable; empty where it is not set."""
    return os.environ.get(name, "").strip()


def secret(name: str, what: str) -> str:
    """The value of an environment variable that must be set."""
    value = optional(name)
    if not value:
        raise UsageError(f"Set the environment variable {name} to {what}.")
    return value


def address(name: str, what: str) -> str:
    """A web address from the environment."""
    url = secret(name, what)
    if not is_address(url):
        raise UsageError(f"Expected the address in {name} to begin with http:// or https://.")
    return url
