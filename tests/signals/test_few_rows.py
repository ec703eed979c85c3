"""The first rows of a log, where they may be all there is."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.signals.few_rows import fall_of, noise_of


@pytest.mark.parametrize("seed", range(5))
def test_the_noise_is_that_about_a_smooth_curve(seed):
    rng = np.random.default_rng(seed)
    curve = 5.0 * np.sin(np.linspace(0.0, 2.0, 400))
    assert noise_of(list(curve + rng.normal(0.0, 0.2, 400))) == pytest.approx(0.2, rel=0.2)


@pytest.mark.parametrize(("zero", "factor"), [(0.0, 1.0), (-40.0, 1.0), (100.0, 7.0)])
def test_a_fall_depends_on_neither_zero_nor_scale(zero, factor):
    rows = [0.1, 0.2, 0.5, 0.9, 0.95, 0.9, 0.4, 0.3, 0.35]
    fall = fall_of([zero + factor * value for value in rows])
    assert fall is not None
    assert fall.lost / factor == pytest.approx(0.5) and fall.share == pytest.approx(0.625)
    assert fall.noises == pytest.approx(fall_of(rows).noises)


@pytest.mark.parametrize("rows", [[1.0, 1.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [1.0] * 8])
def test_too_few_rising_or_equal_rows_have_no_fall(rows):
    assert fall_of(rows) is None


def test_chance_does_not_look_like_a_fall():
    rng = np.random.default_rng(0)
    streams = rng.normal(0.0, 1.0, (500, 15))
    falls = [fall_of(list(stream)) for stream in streams]
    assert sum(fall is not None and fall.noises > 3.5 for fall in falls) == 0
