"""Runs inside a peer's environment: answers the requests on the standard input, one line each.

Only the standard library is imported here, since the peer's environment holds nothing of this project.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any


def serve(version: str, answer: Callable[..., Any]) -> None:
    """Say the version, then answer every request. What the package itself prints goes nowhere."""
    replies = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    print(json.dumps(version), file=replies, flush=True)
    for line in sys.stdin:
        try:
            reply = {"answer": answer(**json.loads(line))}
        except Exception as error:  # noqa: BLE001
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)
