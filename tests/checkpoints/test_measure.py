"""What is measured agrees with numpy on whole arrays in float64, whatever the sizes and values."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rldk.checkpoints import measure
from rldk.checkpoints.checkpoint import Checkpoint
from rldk.checkpoints.measure import Meter, TensorMeasure
from rldk.testing.checkpoints import write_safetensors


def measured(folder: Path, *arrays: np.ndarray, stride: int = 1) -> TensorMeasure:
    """The first array beside the others."""
    files = [write_safetensors(folder / f"{n}.safetensors", {"w": array}) for n, array in enumerate(arrays)]
    first, *others = (Checkpoint(file) for file in files)
    try:
        return Meter(stride).measure("w", first, others)
    finally:
        for one in (first, *others):
            one.close()


def expect(found: TensorMeasure, now: np.ndarray, *others: np.ndarray) -> None:
    wide = now.astype(np.float64)
    finite = np.isfinite(wide)
    assert found.count == now.size and found.nonfinite == int((~finite).sum())
    assert found.norm == pytest.approx(np.linalg.norm(wide[finite]), rel=1e-5, abs=1e-200)
    assert found.largest == pytest.approx(np.abs(wide[finite]).max(initial=0.0))
    for beside, other in zip(found.beside, others, strict=True):
        both = finite & np.isfinite(other)
        assert beside.norm == pytest.approx(np.linalg.norm(other[both].astype(np.float64)), rel=1e-5, abs=1e-200)
        away = np.linalg.norm(wide[both] - other[both].astype(np.float64))
        assert beside.distance == pytest.approx(away, rel=1e-4, abs=1e-7 * beside.norm)
        bits = f"u{now.dtype.itemsize}"
        assert beside.changed == pytest.approx((now.view(bits) != other.view(bits)).mean() if now.size else 0.0)


@pytest.mark.parametrize("size", [0, 1, measure.ROW - 1, measure.ROW, measure.ROW + 1, measure.PIECE, 2 * measure.PIECE + 77])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_any_size(tmp_path: Path, size: int, kind: str) -> None:
    draw = np.random.default_rng(size)
    now, before, start = (draw.normal(0, scale, size).astype(kind) for scale in (0.02, 0.02, 0.5))
    expect(measured(tmp_path, now, before, start), now, before, start)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, (2, 30), elements=st.floats(width=32)))
def test_any_values(tmp_path_factory: pytest.TempPathFactory, pair: np.ndarray) -> None:
    now, before = pair[0].copy(), pair[1].copy()
    expect(measured(tmp_path_factory.mktemp("any"), now, before), now, before)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e18, 1e30])
def test_values_whose_squares_are_beyond_float32(tmp_path: Path, scale: float) -> None:
    now, before = (np.float32(scale) * np.random.default_rng(n).standard_normal(5000, dtype=np.float32) for n in (1, 2))
    expect(measured(tmp_path, now, before), now, before)


def test_a_difference_too_small_to_square_is_a_change(tmp_path: Path) -> None:
    before = np.full(100, 1e-25, np.float32)
    now = before.copy()
    now[7] = 1.1e-25
    (beside,) = measured(tmp_path, now, before).beside
    assert beside.distance == pytest.approx(1e-26, rel=1e-3) and beside.changed == 0.01


def test_doubles_that_differ_in_the_twelfth_digit_are_told_apart(tmp_path: Path) -> None:
    before = np.linspace(1, 2, 100)
    (beside,) = measured(tmp_path, before * (1 + 1e-12), before).beside
    assert beside.distance / beside.norm == pytest.approx(1e-12, rel=1e-3)


def test_one_number_that_is_not_finite_spoils_no_sum(tmp_path: Path) -> None:
    before = np.random.default_rng(0).standard_normal(measure.PIECE + 10).astype(np.float32)
    now = before + np.float32(0.5)
    now[3], now[-1], before[5] = np.nan, -np.inf, np.inf
    expect(measured(tmp_path, now, before), now, before)


def test_memory_does_not_grow_with_the_tensor(tmp_path: Path) -> None:
    file = write_safetensors(tmp_path / "a.safetensors", {"w": np.ones(8_000_000, np.float32)})
    first, second = Checkpoint(file), Checkpoint(file)
    tracemalloc.start()
    found = Meter().measure("w", first, [second])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    first.close(), second.close()
    assert found.norm == pytest.approx(8e6**0.5) and peak < 16e6  # half of one of the two


def test_a_stride_estimates_from_some_of_the_pieces(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    before = draw.normal(0, 0.02, 12 * measure.PIECE).astype(np.float32)
    now = before + draw.normal(0, 0.001, before.size).astype(np.float32)
    found = measured(tmp_path, now, before, stride=4)
    assert found.norm == pytest.approx(np.linalg.norm(now), rel=0.01)
    assert found.beside[0].distance == pytest.approx(np.linalg.norm(now - before), rel=0.01)


@pytest.mark.full
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float32", "float64"])
def test_types_of_torch_are_decoded_as_torch_does(tmp_path: Path, name: str) -> None:
    import torch
    from safetensors.torch import save_file

    kind = getattr(torch, name)
    if kind.itemsize <= 2:  # every number there is, NaN and infinities among them
        codes = np.arange(256**kind.itemsize).astype(f"i{kind.itemsize}")
        now, before = (torch.from_numpy(raw).view(kind) for raw in (codes, codes[::-1].copy()))
    else:
        now, before = ((torch.randn(70000) * 8).to(kind) for _ in range(2))
    save_file({"w": now}, tmp_path / "a.safetensors")
    save_file({"w": before}, tmp_path / "b.safetensors")
    first, second = Checkpoint(tmp_path / "a.safetensors"), Checkpoint(tmp_path / "b.safetensors")
    found = Meter().measure("w", first, [second])
    first.close(), second.close()
    wide, other = now.double(), before.double()
    finite = wide.isfinite()
    both = finite & other.isfinite()
    assert found.nonfinite == int((~finite).sum())
    assert found.norm == pytest.approx(float(wide[finite].norm()), rel=1e-5)
    assert found.largest == pytest.approx(float(wide[finite].abs().max()))
    assert found.beside[0].distance == pytest.approx(float((wide - other)[both].norm()), rel=1e-5)


@pytest.mark.full
def test_two_types_of_one_tensor_are_compared(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    before = torch.randn(3000, dtype=torch.float64)
    for kind in (torch.float32, torch.bfloat16, torch.float8_e5m2):
        now = before.to(kind)
        save_file({"w": now}, tmp_path / "a.safetensors")
        save_file({"w": before}, tmp_path / "b.safetensors")
        first, second = Checkpoint(tmp_path / "a.safetensors"), Checkpoint(tmp_path / "b.safetensors")
        found = Meter().measure("w", first, [second])
        first.close(), second.close()
        assert found.beside[0].distance == pytest.approx(float((now.double() - before).norm()), rel=1e-6)
