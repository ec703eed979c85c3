"""The process behind the page: Streamlit with the settings that a page about somebody's runs should have."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rldk.dashboard.parent import end_with_parent
from rldk.dashboard.ports import shown_host

__all__ = ["main", "settings"]

APP = Path(__file__).with_name("app.py")


def settings(host: str, port: int) -> dict[str, object]:
    """Streamlit's options: local, silent to others, and nothing served but the page."""
    local = host in ("127.0.0.1", "localhost", "::1")
    return {
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": shown_host(host),
        "client.showErrorDetails": "none",
        "client.showErrorLinks": "false",
        "client.toolbarMode": "minimal",
        "global.developmentMode": "false",
        "logger.hideWelcomeMessage": "true",
        "runner.magicEnabled": "false",
        "server.address": host,
        "server.allowedHosts": ("127.0.0.1", "localhost", "[::1]") if local else ("*",),
        "server.enableCORS": "true",
        "server.enableStaticServing": "false",
        "server.enableXsrfProtection": "true",
        "server.fileWatcherType": "none",
        "server.headless": "true",
        "server.maxUploadSize": "1",
        "server.port": port,
        "server.runOnSave": "false",
    }


def main(argv: list[str]) -> None:
    """Serve the page: folder, host, port, seconds between two looks (0: only when asked)."""
    folder, host, port, seconds = argv
    end_with_parent(sys.stdin.buffer, lambda: os._exit(0))
    for name in [name for name in os.environ if name.startswith("STREAMLIT_")]:
        del os.environ[name]  # a user's own settings for another app must not open this one
    os.chdir(APP.parent)  # nor those in the folder where the user happens to be
    from streamlit import config
    from streamlit.web import cli

    known = config.get_config_options()
    options = [
        f"--{name}={value}"
        for name, given in settings(host, int(port)).items()
        if name in known
        for value in (given if isinstance(given, tuple) else (given,))
    ]
    sys.argv = ["streamlit", "run", str(APP), *options, "--", folder, seconds]
    cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main(sys.argv[1:])
