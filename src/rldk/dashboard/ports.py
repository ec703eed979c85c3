"""A port that can be listened on."""

from __future__ import annotations

import socket

from rldk.core.errors import UsageError

__all__ = ["check_address", "free_port", "is_free", "shown_host"]


def check_address(host: str, port: int) -> None:
    """Refuse a port or an address that cannot be one."""
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
        raise UsageError(f"Expected `port` to be a whole number from 0 to 65535, got {port!r}.")
    try:
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"Expected `host` to be an address of this machine, got {host!r:.80}: {error}.") from None


def is_free(host: str, port: int) -> bool:
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


def free_port(host: str) -> int:
    """A port that nobody listens on, as the system gives it."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as trial:
        try:
            trial.bind(address)
        except OSError as error:
            raise UsageError(f"Expected `host` to be an address of this machine, got {host!r:.80}: {error.strerror}.") from None
        return int(trial.getsockname()[1])


def shown_host(host: str) -> str:
    """What to write into a browser on this machine; a server that listens everywhere also listens on localhost."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
