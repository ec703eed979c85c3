"""Follow the runs of a folder in the browser, as they are written.

The server listens on this machine only, unless --host says otherwise, and shows nothing outside of the folder. With --notify,
incidents of the runs that are being written are reported, whether a page is open or not.
"""

from __future__ import annotations

import argparse
import sys
import webbrowser

from rldk.cli.options import add_notify
from rldk.core.errors import UsageError
from rldk.core.text import clean

EXAMPLES = """
rldk dashboard out/demo
rldk dashboard rldk_logs --notify slack --notify email
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder in which the runs are written")
    parser.add_argument("--port", type=int, default=8501, help="the port; if it is taken, another one is used (default: 8501)")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--refresh", type=float, default=1.0, metavar="SECONDS", help="how often to read new events (default: 1)")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page, only print its address")
    add_notify(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.dashboard import Dashboard
    from rldk.storage.copies import local_copies

    folder = local_copies(args.folder)
    if not folder.is_dir():
        raise UsageError(f"Expected DIR to be a folder, got {args.folder!r:.200}, which is not one.")
    dashboard = Dashboard(folder, args.port, host=args.host, refresh_seconds=args.refresh, notify=args.notify, notify_on=args.on)
    url = dashboard.start_dashboard()
    try:
        _say(f"The dashboard of {clean(dashboard.folder)} is at {url}")
        if args.host not in ("127.0.0.1", "localhost", "::1"):
            _say("It has no password: everybody who can reach this machine on that port can read the runs.")
        _say("Stop it with Ctrl-C.")
        if not args.no_browser:
            webbrowser.open(url)
        return min(dashboard.wait(), 1)
    finally:
        dashboard.stop_dashboard()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
