"""Start and stop the dashboard: a separate process, which ends with the one that started it."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import IO, ClassVar

from rldk.core.errors import RLDKError, UsageError, need
from rldk.dashboard.processes import VARIABLE, packed_options

__all__ = ["Dashboard", "shown_host"]

logger = logging.getLogger("rldk")

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_ATTEMPTS = 3


class Dashboard:
    """A page that follows the runs of a folder, served to this machine's browsers.

        with Dashboard("./rldk_logs") as dashboard:
            print(dashboard.url)

    Args:
        output_dir: the folder; nothing outside of it can be read through the page. It need not exist yet.
        port: the port to use; if it is taken another one is used, and reported. 0 takes any free port.
        auto_refresh: follow the runs; otherwise the page changes only when "Refresh" is pressed.
        host: the address to listen on. The page has no password: keep the default, this machine only, unless the network
            is trusted.
        refresh_seconds: how often the page is refreshed.
        notify: where to report incidents of the runs that are being written, whether a page is open or not: `slack`, `email` and
            others, or web addresses, as `rldk watch --notify` takes them. By default nowhere.
        notify_on: how severe an incident must be to be reported: `critical` or `warning`.

    Attributes:
        serves_on: whether a script that comes to its end waits until the dashboard is stopped, and does not stop it.
        port: the port that was asked for; once the server runs, the port that it has.
        note: what differs from what was asked for, such as another port; empty where nothing does.
    """

    serves_on: ClassVar[bool] = False

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./rldk_logs",
        port: int = 8501,
        auto_refresh: bool = True,
        *,
        host: str = "127.0.0.1",
        refresh_seconds: float = 1.0,
        notify: str | Iterable[str] = (),
        notify_on: str = "critical",
    ) -> None:
        _check_address(host, port)
        if not 0.2 <= refresh_seconds <= 3600:
            raise UsageError(f"Expected `refresh_seconds` to be from 0.2 to 3600, got {refresh_seconds!r}.")
        self.folder = Path(output_dir).expanduser().absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"Expected `output_dir` to be a folder, got the file {self.folder}.")
        self._notify, self._notify_on = [notify] if isinstance(notify, str) else list(notify), notify_on
        if self._notify:
            from rldk.monitor.outputs.services import notifications

            notifications(self._notify, notify_on)  # a wrong name, or a variable that is not set, is refused now
        self.port, self.host, self.auto_refresh, self.refresh_seconds = port, host, auto_refresh, refresh_seconds
        self.note = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._owner = os.getpid()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{shown_host(self.host)}:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process that serves the page."""
        return self._process.pid if self._process is not None else None

    def start_dashboard(self) -> str:
        """Start the server and wait until it answers; returns its address. If it runs already, nothing happens."""
        if self.is_running:
            return self.url
        for package in ("streamlit", "plotly"):
            need(package, "'rldk[dashboard]'", "The dashboard")
        asked = self.port
        for attempt in range(_ATTEMPTS):
            if self.port == 0 or not _is_free(self.host, self.port):
                self.port = _free_port(self.host)
            self._launch()
            if self._answers():
                break
            output = self._last_output()
            taken = not _is_free(self.host, self.port)  # by another process, since it was tried
            self.stop_dashboard()
            if not taken or attempt == _ATTEMPTS - 1:
                raise RLDKError(f"The dashboard did not start. {output or 'It printed nothing.'}")
        if asked not in (0, self.port):
            self.note = f"Port {asked} is taken; the dashboard is at {self.url} instead."
            logger.warning(self.note)
        atexit.register(self._at_exit)
        return self.url

    def _at_exit(self) -> None:
        """The script has come to its end: stop, or first wait until somebody else stops the server."""
        failed, interactive = getattr(sys, "last_value", None) is not None, hasattr(sys, "ps1")
        if self.serves_on and self.is_running and os.getpid() == self._owner and not failed and not interactive:
            sys.stdout.write(f"The dashboard of {self.folder} is at {self.url}. Stop it with Ctrl-C.\n")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                self.wait()
        self.stop_dashboard()

    def stop_dashboard(self) -> None:
        """Stop the server and all its processes. If it does not run, nothing happens."""
        process, self._process = self._process, None
        if process is None or os.getpid() != self._owner:
            return
        atexit.unregister(self._at_exit)
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._output is not None:
            self._output.close()
            self._output = None

    def wait(self) -> int:
        """Wait until the server ends; returns its exit status."""
        return self._process.wait() if self._process is not None else 0

    def __enter__(self) -> Dashboard:
        self.start_dashboard()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_dashboard()

    def _launch(self) -> None:
        command = [sys.executable, "-m", "rldk.dashboard.web_process", str(self.folder), self.host, str(self.port)]
        command += [str(self.refresh_seconds if self.auto_refresh else 0)]
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  it is open as long as the server
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        if self._notify:
            environment[VARIABLE] = packed_options(self._notify, self._notify_on)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._output, stderr=subprocess.STDOUT, env=environment,
            start_new_session=os.name == "posix",
        )  # fmt: skip

    def _answers(self) -> bool:
        """Wait until the server answers; false if it has ended or takes too long."""
        open_directly = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        until = time.monotonic() + _START_SECONDS
        while self.is_running and time.monotonic() < until:
            try:
                with open_directly(f"{self.url}/_stcore/health", timeout=2) as answer:
                    if answer.status == 200 and self.is_running:
                        return True
            except OSError:
                time.sleep(0.05)
        return False

    def _last_output(self) -> str:
        """The last lines that the server wrote."""
        if self._output is None:
            return ""
        self._output.seek(0)
        return " ".join(self._output.read().decode("utf-8", "replace").split("\n")[-6:]).strip()


def _check_address(host: str, port: int) -> None:
    """Refuse a value that cannot be a port, or an address of this machine."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
        raise UsageError(f"Expected `port` to be a whole number from 0 to 65535, got {port!r}.")
    try:
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"Expected `host` to be an address of this machine, got {host!r:.80}: {error}.") from None


def _is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
            trial.listen(1)
        except OSError:
            return False
    return True


def _free_port(host: str) -> int:
    """A port that nobody listens on."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as trial:
        try:
            trial.bind(address)
        except OSError as error:
            raise UsageError(f"Expected `host` to be an address of this machine, got {host!r:.80}: {error.strerror}.") from None
        return int(trial.getsockname()[1])


def shown_host(host: str) -> str:
    """The host to open in a browser on this machine; a server that listens everywhere also listens on localhost."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
