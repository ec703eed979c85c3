"""SVG, PNG and Plotly: what is in a panel is in the picture, and text from a log is only text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rldk.core.errors import MissingDependencyError
from rldk.core.event import Event
from rldk.present.palette import DARK, LIGHT, Palette
from rldk.present.plots.build import panels_of
from rldk.present.plots.panel import Curve, Level, Mark, Panel
from rldk.present.plots.plotly_figure import plotly_figure
from rldk.present.plots.scale import Scale, y_scale
from rldk.present.plots.source import RunSource
from rldk.present.plots.svg import line, png, svg
from rldk.runs import Run

HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\x00" + "x" * 100_000


def panel(y: list[float], **given: object) -> Panel:
    x = np.arange(len(y), dtype=float)
    return Panel("k", "G", "Title", "nats", [Curve("one", "kl_mean", x, np.array(y))], **given)  # type: ignore[arg-type]


def shapes(picture: str, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(picture).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def test_every_panel_of_a_run_is_well_formed_and_says_what_it_shows(broken: Run) -> None:
    for one in panels_of(RunSource(broken)):
        picture = svg(one)
        root = ET.fromstring(picture)
        assert root.get("role") == "img" and root.get("aria-label") == one.alt
        assert "nan" not in "".join(element.get("d") or "" for element in root.iter())
        assert "#" not in re.sub(r"&#\w+;", "", picture)  # colours are the page's


def test_a_curve_goes_where_its_values_are_and_breaks_at_gaps() -> None:
    across, up = Scale(0, 4, 0, 40), Scale(0, 10, 100, 0)
    assert line(np.arange(5.0), np.array([0, 10, np.nan, 5, np.inf]), across, up) == "M0.0 100.0h0L10.0 0.0M30.0 50.0h0"


def test_what_is_not_finite_is_marked_and_not_drawn_as_zero() -> None:
    picture = svg(panel([1.0, float("nan"), 2.0, float("inf"), 1.5]))
    assert "not a finite number" in picture
    assert "not a finite number" not in svg(panel([1.0, 2.0]))


def test_marks_and_levels_are_there_and_the_worse_flag_wins_its_place() -> None:
    marks = [Mark(50, "✓", "good"), Mark(51, "1", "critical", "it broke"), Mark(90, "2", "warning")]
    picture = svg(panel(list(range(100)), marks=marks, levels=[Level(40.0, "target")]), palette=LIGHT)
    assert [text.text for text in shapes(picture, "text")][-2:] == ["1", "2"] and "target" in picture and "it broke" in picture
    assert picture.count('class="mark"') == 3


def test_a_logarithmic_axis_puts_zero_on_its_floor() -> None:
    scale = y_scale(panel([0.0, 1.0, 1000.0], log=True), 0.0, 100.0)
    places = scale.at(np.array([0.0, 1.0, 1000.0]))
    assert (
        places[0] == 100.0
        and places[0] > places[1] > places[2]
        and [text for _, text in scale.ticks(5)] == ["1", "10", "100", "1000"]
    )


@pytest.mark.parametrize("values", [[], [3.0], [float("nan")] * 3, [5.0] * 9, [1e308, -1e308], [0.0, 0.0], [1e-300, 1e300]])
def test_odd_values_make_a_picture(values: list[float]) -> None:
    for log in (False, True):
        assert shapes(svg(panel(values, log=log)), "text")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 1e9), (1e-9, 2e-9), (0.1, 0.3), (0, 600)])
def test_ticks_are_round_inside_and_differ(low: float, high: float) -> None:
    ticks = Scale(low, high, 0, 1).ticks(5)
    assert 3 <= len(ticks) <= 10
    assert all(low - 1e-9 <= value <= high * 1.000001 for value, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)


def test_ticks_over_many_powers_are_written_as_people_would() -> None:
    assert [text for _, text in Scale(0.05, 2e5, 0, 1, log=True).ticks(9)] == ["0.1", "1", "10", "100", "1k", "10k", "100k"]
    assert [text for _, text in Scale(0, 20_000, 0, 1).ticks(4)] == ["0", "5k", "10k", "15k", "20k"]


def test_text_of_a_log_is_text_in_svg() -> None:
    curve = Curve("l", "m", np.arange(3.0), np.arange(3.0), run=HOSTILE)
    one = Panel("k", "G", "t", "", [curve, curve], marks=[Mark(1, HOSTILE, "critical", HOSTILE)])
    picture = svg(one)
    ET.fromstring(picture)
    assert "<script" not in picture and "\x1b" not in picture and len(picture) < 20_000


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_told_from_the_paper(palette: Palette) -> None:
    for text in (palette.ink, palette.soft, palette.critical, palette.warning, palette.good):
        assert contrast(text, palette.paper) >= 4.5
    for colour in palette.series:
        assert contrast(colour, palette.paper) >= 3.0
    assert len(set(palette.series)) == len(palette.series) == 32, "so many runs have a colour of their own"


@pytest.mark.full
def test_a_png_is_one_of_twice_the_size(tmp_path: Path, broken: Run) -> None:
    image = pytest.importorskip("PIL.Image")
    target = broken.plot("kl").save(tmp_path / "kl.png")
    with image.open(target) as picture:
        assert picture.size == (1280, 560)
        assert picture.convert("RGB").getpixel((3, 3)) == (255, 255, 255)
        assert len(picture.convert("RGB").getcolors(100_000)) > 20
    assert png(broken.plot("kl").panels[0], dark=True) != target.read_bytes()
    folder = broken.plot("kl", "reward").save(tmp_path / "all")
    assert sorted(path.name for path in folder.iterdir()) == ["kl.png", "reward.png"]


def test_png_without_its_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rldk\[report\]'"):
        png(panel([1.0, 2.0]))


def test_a_notebook_shows_a_run_without_any_extra(broken: Run) -> None:
    page = broken.plot("kl", "reward")._repr_html_()
    assert (
        page.count("<svg") == 2
        and "prefers-color-scheme" in page
        and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    )


@pytest.mark.full
def test_a_plotly_figure_has_the_curves_bands_marks_and_keeps_its_zoom(run_of: Callable[..., Run]) -> None:
    events = [Event(n, {"reward_mean": float("nan") if n == 5 else 0.1 * n, "reward_std": 0.5}) for n in range(20)]
    one = panels_of(RunSource(run_of(events)), marks=[Mark(7, "1", "critical", "it broke")], only={"reward"})[0]
    figure = plotly_figure(one, revision="same")
    data = figure.to_dict()
    assert data["layout"]["uirevision"] == "same" == plotly_figure(one, revision="same").to_dict()["layout"]["uirevision"]
    curve = next(trace for trace in figure.data if trace.name == "mean")
    assert len(curve.x) == 20 and np.isnan(curve.y[5]) and not curve.connectgaps
    assert [trace.get("fill") for trace in data["data"]][1] == "tonexty"
    assert any(trace["name"] == "mean: not finite" for trace in data["data"] if "name" in trace)
    assert any(shape["x0"] == 7 for shape in data["layout"]["shapes"])


@pytest.mark.full
def test_text_of_a_log_is_text_in_plotly() -> None:
    curve = Curve("l", "m", np.arange(3.0), np.arange(3.0), run="<b>x</b><a href='javascript:1'>y</a>")
    data = plotly_figure(Panel("k", "G", "t", "", [curve, curve])).to_dict()
    assert all("<" not in trace["name"] for trace in data["data"])
