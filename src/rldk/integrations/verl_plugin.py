"""Attaches to verl when it is imported: `VERL_USE_EXTERNAL_MODULES=rldk.integrations.verl_plugin`.

Options come from the environment (`RLDK_OUTPUT_DIR`, `RLDK_RUN_ID`, `RLDK_STOP_ON`), since Ray passes that on.
"""

from __future__ import annotations

from rldk.integrations.attach import attach_from_environment

attach_from_environment("verl")
