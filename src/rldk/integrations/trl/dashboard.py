"""The dashboard over the files of a run."""

from __future__ import annotations

from rldk.dashboard.server import Dashboard

__all__ = ["RLDKDashboard"]


class RLDKDashboard(Dashboard):
    """A page that follows the runs of a folder while they train.

        RLDKDashboard(output_dir="./rldk_logs", port=8501, auto_refresh=True).start_dashboard()

    It runs in a separate process, on this machine's own address. A script that ends after `start_dashboard` waits until the
    dashboard is stopped, with Ctrl-C or from elsewhere; an exception, `stop_dashboard` or `with` end it at once. Without
    Streamlit `start_dashboard` raises `ImportError` with what to install.
    """

    serves_on = True
