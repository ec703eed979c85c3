"""`report_to="rldk"` for every trainer of Hugging Face (TRL, ms-swift, LLaMA-Factory, Unsloth), after one import:

    import rldk.integrations.huggingface
    GRPOConfig(..., report_to="rldk")

The files go to `rldk` in the trainer's output folder. `configure(stop_on="critical", …)` sets options of `RLDKCallback`, or the
environment: `RLDK_OUTPUT_DIR`, `RLDK_RUN_ID`, `RLDK_STOP_ON`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from rldk.core.errors import need
from rldk.integrations.attach import options_from_environment

need("transformers", "transformers", "rldk.integrations.huggingface")

from rldk.integrations.trl.callbacks import RLDKCallback  # noqa: E402  after the message that names what to install

__all__ = ["NAME", "RLDKReporter", "configure"]

NAME = "rldk"
_options: dict[str, Any] = {}


def configure(**options: Any) -> None:
    """Set the options of trainers that are created from now on; raises an error for invalid ones."""
    RLDKCallback(**options)
    _options.clear()
    _options.update(options)


class RLDKReporter(RLDKCallback):
    """The callback of `report_to="rldk"`: `RLDKCallback` with the options of `configure` and of the environment."""

    def __init__(self) -> None:
        given = {**options_from_environment(), **_options}
        self._own_folder = "output_dir" not in given
        super().__init__(**given)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._own_folder and getattr(args, "output_dir", None):
            self.options.output_dir = Path(args.output_dir) / NAME
        super().on_train_begin(args, state, control, **kwargs)


import_module("transformers.integrations.integration_utils").INTEGRATION_TO_CALLBACK[NAME] = RLDKReporter
