"""The peers that rldk's detection is measured beside: packages from PyPI and simple rules, each asked about one run at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from .alarm import Alarm, Peer
from .piped import PeerUnavailableError
from .rldoctor_peer import RldoctorPeer
from .rlwatch_peer import RlwatchPeer
from .rule_peer import FixedLimits, cusum_peer, z_score_peer

__all__ = ["PEERS", "Alarm", "Peer", "open_peers"]

PEERS: dict[str, Callable[[], Peer]] = {
    "rlwatch": RlwatchPeer,
    "rldoctor": RldoctorPeer,
    "z-score": z_score_peer,
    "fixed": FixedLimits,
    "cusum": cusum_peer,
}
"""Every peer by its name."""


def open_peers(names: Iterable[str] | None = None) -> dict[str, Peer]:
    """The peers of these names, or all of them; `close` each when done. One that cannot be installed is left out, with a line
    on the standard error that says why."""
    wanted = list(PEERS if names is None else names)
    if unknown := [name for name in wanted if name not in PEERS]:
        raise ValueError(f"Expected names of peers, {list(PEERS)}, got {unknown}.")
    peers: dict[str, Peer] = {}
    for name in wanted:
        try:
            peers[name] = PEERS[name]()
        except PeerUnavailableError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return peers
