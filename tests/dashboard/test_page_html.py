"""Pieces of the page, without a browser."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.present.plots.panel import Band, Curve, Panel

pytestmark = pytest.mark.full


def test_text_from_a_log_is_cut_and_escaped() -> None:
    pytest.importorskip("streamlit")
    from rldk.dashboard.page.html import lines, piece
    from rldk.dashboard.page.sidebar import file_size

    assert lines("a\n<b>\x1b[31m\"'&\x00") == "a\n&lt;b&gt;&#34;&#39;&amp;"
    assert len(lines("x" * 10_000)) == 4000
    shown = piece("measures", [("<i>name</i>", "\x1b<b>", "", "", "")])
    assert "&lt;i&gt;name&lt;/i&gt;" in shown and "&lt;b&gt;" in shown and "\x1b" not in shown
    assert file_size(1_382_756_196) == "1.4 GB"


def test_a_smooth_curve_lies_over_the_faint_one_and_keeps_gaps() -> None:
    pytest.importorskip("streamlit")
    from rldk.dashboard.page.panels import smoothed

    y = np.array([1.0, 3.0, np.nan, 3.0])
    curve = Curve("mean", "reward_mean", np.arange(4.0), y, (Band(y - 1, y + 1, "spread"),))
    faint, smooth = smoothed(Panel("k", "G", "t", "", [curve]), 0.5).curves
    assert faint.style == "faint" and faint.y is y and not faint.bands
    assert smooth.y[:2].tolist() == [1.0, pytest.approx((0.25 * 1.0 + 0.5 * 3.0) / 0.75)]
    assert np.isnan(smooth.y[2]) and 2.0 < smooth.y[3] < 3.0
    panel = Panel("k", "G", "t", "", [curve])
    assert smoothed(panel, 0.0) is panel
