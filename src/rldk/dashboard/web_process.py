"""The process that serves the page: Streamlit, with settings that keep the runs on this machine."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rldk.core.errors import RLDKError
from rldk.dashboard.client import notifier_of, reader_of, workbench_of
from rldk.dashboard.http_front import HttpFront
from rldk.dashboard.processes import end_with_parent
from rldk.dashboard.server import shown_host
from rldk.present.palette import DARK, LIGHT, Palette

__all__ = ["main", "settings"]

APP = Path(__file__).with_name("app.py")
_MAX_SEARCHES = 20
_CHECK_SECONDS = 5.0
_WIDGETS = ("Html", "BidiComponent", "ButtonGroup", "Selectbox", "Multiselect", "Slider", "Checkbox", "Button")
_TABLE_WIDGETS = ("DataFrame", "arrowFormatUtils", "TextInput")  # which the page of one run does not have
_LOCAL = ("127.0.0.1", "localhost", "::1")
_UPGRADE = "pip install --upgrade 'rldk[dashboard]'"


def settings(host: str, port: int) -> dict[str, Any]:
    """Streamlit's options: no telemetry, no other hosts, and nothing served but the page."""
    return {
        "browser.gatherUsageStats": False,
        "browser.serverAddress": shown_host(host),
        "client.showErrorDetails": "none",
        "client.showErrorLinks": False,
        "client.toolbarMode": "minimal",
        "global.developmentMode": False,
        "logger.hideWelcomeMessage": True,
        "runner.magicEnabled": False,
        "server.address": host,
        "server.allowedHosts": ["127.0.0.1", "localhost", "[::1]"] if host in _LOCAL else ["*"],
        "server.enableCORS": True,
        "server.enableStaticServing": False,
        "server.enableXsrfProtection": True,
        "server.fileWatcherType": "none",
        "server.headless": True,
        "server.maxUploadSize": 1,
        "server.port": port,
        "server.enableAgentApi": False,
        "server.runOnSave": False,
        **_colours("light", LIGHT, "#f5f7f9", "#e9edf2"),
        **_colours("dark", DARK, "#0e1116", "#232a34"),
    }


def _colours(name: str, palette: Palette, aside: str, field: str) -> dict[str, str]:
    """Streamlit's own widgets in the colours of the plots; red is kept for what is critical."""
    return {
        f"theme.{name}.primaryColor": palette.series[0],
        f"theme.{name}.backgroundColor": palette.paper,
        f"theme.{name}.secondaryBackgroundColor": field,
        f"theme.{name}.textColor": palette.ink,
        f"theme.{name}.sidebar.backgroundColor": aside,
        f"theme.{name}.sidebar.secondaryBackgroundColor": field,
    }


def main(argv: list[str]) -> None:
    """Serve the page: folder, host, port, seconds between two refreshes (0: only on request)."""
    folder, host, port, seconds = argv
    end_with_parent(sys.stdin.buffer, lambda: os._exit(0))
    for name in [name for name in os.environ if name.startswith("STREAMLIT_")]:
        del os.environ[name]  # settings meant for another app must not apply here
    os.chdir(APP.parent)  # nor a settings file in the current folder
    for work in (_read_table, _read_newest, _keep_notifying):
        threading.Thread(target=work, args=(folder,), daemon=True).start()
    from streamlit import config

    known = config.get_config_options()
    options = {name: value for name, value in settings(host, int(port)).items() if name in known}
    sys.argv = [str(APP), folder, seconds]
    application = _application(folder, host)
    threading.Thread(target=_load_page, daemon=True).start()
    application.run(config=options)


def _read_table(folder: str) -> None:
    """Start the process of the table and let it read the index before a page asks for it."""
    with contextlib.suppress(RLDKError):
        workbench_of(folder).ask("table")


def _read_newest(folder: str) -> None:
    """Start the reader and let it read the newest run before a page asks for it."""
    client = reader_of(folder)
    with contextlib.suppress(RLDKError):
        for _ in range(_MAX_SEARCHES):
            listing = client.ask("list")
            if not listing["not_listed"]:  # a large folder takes several calls, and the newest run may come last
                break
        for key, *_ in listing["files"][:1]:
            client.ask("state", key=key)


def _load_page() -> None:
    """Load what the first page needs, while nobody waits for it: the page's modules, and what Streamlit draws an icon with."""
    for name in ("rldk.dashboard.page.main", "PIL.Image", "numpy.ma"):
        import_module(name)


def _keep_notifying(folder: str) -> None:
    """Start the process that sends notifications, where they are wanted, and start it again should it end."""
    client = notifier_of(folder)
    while client is not None:
        with contextlib.suppress(RLDKError):
            client.ask("status")
        time.sleep(_CHECK_SECONDS)


def _application(folder: str, host: str) -> Any:
    """The page, behind the front that puts the first picture into it."""
    import streamlit
    from starlette.middleware import Middleware
    from streamlit import starlette

    from rldk.dashboard.page.first_answer import first_answer

    if not hasattr(starlette.App, "run"):
        raise SystemExit(f"The dashboard needs Streamlit 1.60 or newer; {streamlit.__version__} is installed: {_UPGRADE}")
    spec = find_spec("plotly")
    assert spec is not None and spec.origin is not None
    script = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    hosts = _LOCAL if host in _LOCAL else ("*",)
    static = Path(streamlit.__file__).parent / "static"
    draw = partial(first_answer, reader_of(folder), workbench_of(folder), _parts(static, _TABLE_WIDGETS))
    front = Middleware(HttpFront, draw=draw, hosts=hosts, script=script, parts=_parts(static, _WIDGETS))
    return starlette.App(APP, middleware=[front])


def _parts(static: Path, widgets: Sequence[str]) -> list[str]:
    """The scripts of widgets: Streamlit's page asks for each only when it is to be shown."""
    found = [path for name in widgets for path in (static / "static" / "js").glob(f"{name}.*.js")]
    return [path.relative_to(static).as_posix() for path in found]


if __name__ == "__main__":
    main(sys.argv[1:])
