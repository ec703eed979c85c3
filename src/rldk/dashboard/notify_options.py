"""How the dashboard's processes are told which notifications are wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rldk.core.jsonio import loads

__all__ = ["VARIABLE", "options_of", "packed_options"]

VARIABLE = "RLDK_DASHBOARD_NOTIFY"
"""The environment variable with what to notify: an address may be a secret, which a command line would show to everybody."""

def packed_options(notify: Sequence[str], severity: str) -> str:
    """Notifications and severity, for the environment of the process."""
    return json.dumps({"notify": list(notify), "on": severity})


def options_of(environment: Mapping[str, str]) -> tuple[list[str], str]:
    """What `packed_options` wrote; nothing to notify where it did not."""
    try:
        given = loads((environment.get(VARIABLE) or "{}").encode("utf-8", "replace"))
        return [str(name) for name in given.get("notify", ())], str(given.get("on", "critical"))
    except (ValueError, TypeError, AttributeError):
        return [], "critical"
