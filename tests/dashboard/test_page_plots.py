"""What the browser gets of a panel."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.full


def unpacked(given: dict[str, str]) -> Any:
    return np.frombuffer(base64.b64decode(given["bdata"]), dtype=f"<{given['dtype']}")


@pytest.mark.parametrize(
    ("values", "exact", "kind"),
    [
        ([0, 1, 2, 2**31 - 1], True, "i4"),
        ([0, 2.0**31], True, "f8"),
        ([0.5, 1.0], True, "f8"),
        ([0.1, np.nan, -3.3], False, "f4"),
        ([1e38, 2.5], False, "f8"),
        ([np.nan, np.nan], False, "f4"),
        ([3.0, np.nan], True, "f8"),
        ([], True, "i4"),
    ],
)
def test_numbers_come_through_in_as_few_bytes_as_they_need(values: list[float], exact: bool, kind: str) -> None:
    pytest.importorskip("streamlit")
    from rldk.dashboard.page.plots import packed

    found = packed(np.array(values, dtype=np.float64), exact=exact)
    assert found["dtype"] == kind
    np.testing.assert_allclose(unpacked(found).astype(np.float64), values, rtol=0 if kind != "f4" else 1e-7)


def test_a_panel_of_a_run_is_sent_whole_and_known_by_what_is_in_it() -> None:
    pytest.importorskip("streamlit")
    import msgspec

    from rldk.dashboard.client import Client
    from rldk.dashboard.page.panels import RunView
    from rldk.dashboard.page.plots import figure_of
    from rldk.present.plots.panel import Curve, Panel

    def figure(last: float) -> Any:
        x, y = np.arange(3.0), np.array([1.0, np.inf, last])
        panel = Panel("kl", "Policy", "KL", "nats", [Curve("kl", "kl_mean", x, y)])
        view = RunView(Client("."), "k", {"run_id": "<b>run</b>"}, span=(0.0, 9.0))
        return msgspec.json.decode(msgspec.json.encode(figure_of(view, panel)))

    made = figure(2.5)
    line, broken = made["spec"]["data"]
    assert unpacked(line["x"]).tolist() == [0, 1, 2] and np.isnan(unpacked(line["y"])[1]) and unpacked(line["y"])[2] == 2.5
    assert unpacked(broken["x"]).tolist() == [1]
    layout = made["spec"]["layout"]
    assert layout["xaxis"]["range"] == [0.0, 9.0] and layout["uirevision"] == "k|None|step|0.0|9.0"
    assert "<" not in made["spec"]["config"]["toImageButtonOptions"]["filename"]
    assert made["stamp"] == figure(2.5)["stamp"] != figure(2.6)["stamp"]
