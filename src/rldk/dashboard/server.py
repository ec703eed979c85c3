"""Start and stop the dashboard: a process of its own, which ends with the one that started it."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import IO

from rldk.core.errors import MissingDependencyError, RLDKError, UsageError
from rldk.dashboard.ports import check_address, free_port, is_free, shown_host

__all__ = ["Dashboard"]

logger = logging.getLogger("rldk")

_PATIENCE = 60.0
_GRACE = 5.0
_ATTEMPTS = 3


class Dashboard:
    """A page that follows the runs of a folder, served to this machine's browsers.

        with Dashboard("./logs") as dashboard:
            print(dashboard.url)

    Args:
        output_dir: the folder; nothing outside of it can be read through the page. It need not exist yet.
        port: the port that is asked for; where it is taken another is used, and said. 0 takes any.
        auto_refresh: follow the runs; otherwise the page shows what there is until it is told to look again.
        host: the address to listen on. The page asks nobody for a password: leave it at this machine's own unless the
            network is trusted.
        refresh_seconds: how often the page looks for something new.

    Attributes:
        port: the port that it was asked for, and once it runs the one that it has.
        note: what had to be decided otherwise than asked, such as another port; empty where nothing had.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./logs",
        port: int = 8501,
        auto_refresh: bool = True,
        *,
        host: str = "127.0.0.1",
        refresh_seconds: float = 1.0,
    ) -> None:
        check_address(host, port)
        if not 0.2 <= refresh_seconds <= 3600:
            raise UsageError(f"Expected `refresh_seconds` to be from 0.2 to 3600, got {refresh_seconds!r}.")
        self.folder = Path(output_dir).expanduser().absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"Expected `output_dir` to be a folder, got the file {self.folder}.")
        self.port, self.host, self.auto_refresh, self.refresh_seconds = port, host, auto_refresh, refresh_seconds
        self.note = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._owner = os.getpid()

    @property
    def url(self) -> str:
        """Where the page is."""
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
        """Start the server and wait until it answers; its address. One that runs already is left as it is."""
        if self.is_running:
            return self.url
        for package in ("streamlit", "plotly"):
            if importlib.util.find_spec(package) is None:
                raise MissingDependencyError(f"The dashboard needs {package}: pip install 'rldk[dashboard]'")
        asked = self.port
        for attempt in range(_ATTEMPTS):
            if self.port == 0 or not is_free(self.host, self.port):
                self.port = free_port(self.host)
            self._launch()
            if self._answers():
                break
            told = self._told()
            taken = not is_free(self.host, self.port)  # somebody was quicker
            self.stop_dashboard()
            if not taken or attempt == _ATTEMPTS - 1:
                raise RLDKError(f"The dashboard did not start. {told or 'It said nothing.'}")
        if asked not in (0, self.port):
            self.note = f"Port {asked} is taken; the dashboard is at {self.url} instead."
            logger.warning(self.note)
        atexit.register(self.stop_dashboard)
        return self.url

    def stop_dashboard(self) -> None:
        """Stop the server; nothing of it is left. Does nothing where none runs."""
        process, self._process = self._process, None
        if process is None or os.getpid() != self._owner:
            return
        atexit.unregister(self.stop_dashboard)
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._said is not None:
            self._said.close()
            self._said = None

    def wait(self) -> int:
        """Wait until the server ends; its exit status."""
        return self._process.wait() if self._process is not None else 0

    def __enter__(self) -> Dashboard:
        self.start_dashboard()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_dashboard()

    def _launch(self) -> None:
        command = [sys.executable, "-m", "rldk.dashboard.serve", str(self.folder), self.host, str(self.port)]
        command += [str(self.refresh_seconds if self.auto_refresh else 0)]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  it is open as long as the server
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._said, stderr=subprocess.STDOUT, start_new_session=os.name == "posix"
        )

    def _answers(self) -> bool:
        """Whether the server answers, as soon as it does; false if it has ended or takes too long."""
        open_directly = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        until = time.monotonic() + _PATIENCE
        while self.is_running and time.monotonic() < until:
            try:
                with open_directly(f"{self.url}/_stcore/health", timeout=2) as answer:
                    if answer.status == 200 and self.is_running:
                        return True
            except OSError:
                time.sleep(0.05)
        return False

    def _told(self) -> str:
        """The last lines that the server wrote."""
        if self._said is None:
            return ""
        self._said.seek(0)
        return " ".join(self._said.read().decode("utf-8", "replace").split("\n")[-6:]).strip()
