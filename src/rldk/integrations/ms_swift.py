"""ms-swift: a plugin file, which registers the callback `rldk`:

    swift rlhf … --external_plugins "$(python -m rldk.integrations.ms_swift)" --callbacks rldk

`report_to="rldk"` (`rldk.integrations.huggingface`) is equivalent if you start the training from Python.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from rldk.core.errors import need

__all__ = ["register"]


def register() -> None:
    """Add `rldk` to the callbacks that `--callbacks` takes."""
    need("swift", "ms-swift", "rldk.integrations.ms_swift")
    from rldk.integrations.huggingface import NAME, RLDKReporter

    class SwiftReporter(RLDKReporter):
        """ms-swift passes its arguments and its trainer, which are not needed here."""

        def __init__(self, args: Any, trainer: Any) -> None:
            super().__init__()

    import_module("swift.callbacks").callbacks_map[NAME] = SwiftReporter


if __name__ == "__main__":
    sys.stdout.write(__file__ + "\n")
else:
    register()
