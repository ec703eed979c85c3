"""Attaches in every worker of a Ray job, for frameworks whose trainer is a Ray actor:

    ray.init(runtime_env={"worker_process_setup_hook": "rldk.integrations.ray_worker.setup",
                          "env_vars": {"RLDK_ATTACH": "verl", "RLDK_OUTPUT_DIR": "/shared/rldk_logs"}})

The same JSON works for `ray job submit --runtime-env-json`. Only a process that logs writes files.
"""

from __future__ import annotations

import os

from rldk.integrations.attach import attach_from_environment

__all__ = ["setup"]


def setup() -> None:
    """Attach to what `RLDK_ATTACH` names, separated by commas, as soon as a worker imports it."""
    for name in filter(None, os.environ.get("RLDK_ATTACH", "").replace(" ", "").split(",")):
        attach_from_environment(name)
