"""The gallery shows what it says: each simulated failure is found by its detector, and its pictures are small files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from rldk.detectors.table import BY_TYPE

ROOT = Path(__file__).parents[2]


def load() -> Any:
    sys.path.insert(0, str(ROOT / "docs"))  # where its entries are
    spec = importlib.util.spec_from_file_location("docs_gallery", ROOT / "docs/gallery.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks up its annotations
    spec.loader.exec_module(module)
    return module


GALLERY = load()


def test_every_detector_has_its_place_once() -> None:
    """Except one: when a log is read, a step that goes back begins another run, and only a live run shows it."""
    shown = [failure.detector for failure in GALLERY.FAILURES]
    assert len(shown) == len(set(shown)) and set(shown) == set(BY_TYPE) - {"step_regression"}


@pytest.mark.parametrize("failure", GALLERY.FAILURES, ids=lambda failure: failure.detector)
def test_a_failure_is_found_and_its_neighbours_exist(failure: Any) -> None:
    found = failure.judged()
    assert failure.detector in {anomaly.type for result in found for anomaly in (*result.anomalies, *result.machine)}
    assert [len(found.plot(panel)) for panel in failure.panels] == [1] * len(failure.panels)
    assert failure.neighbours and set(failure.neighbours) <= set(BY_TYPE) - {failure.detector}
    assert set(failure.normal) <= set(GALLERY.WHY_NORMAL)


@pytest.mark.parametrize("one", GALLERY.HEALTHY, ids=lambda one: one.oddity)
def test_a_healthy_run_that_looks_odd_is_judged_healthy(one: Any) -> None:
    found = one.judged()
    assert found.verdict == "healthy" and one.oddity in GALLERY.WHY_NORMAL
    assert len(found.plot(one.panel)) == 1


def test_the_pictures_are_those_of_the_page() -> None:
    named = {failure.picture(panel) for failure in GALLERY.FAILURES for panel in failure.panels}
    named |= {one.picture for one in GALLERY.HEALTHY}
    drawn = {path.name: path.stat().st_size for path in GALLERY.FOLDER.glob("*")}
    assert set(drawn) == named
    assert max(drawn.values()) < 25_000
