"""MFU: known peaks only, and never a 0 for what is not known."""

from __future__ import annotations

import pytest

from rldk.functional.throughput import PEAK_FLOPS, calculate_mfu, flops_per_token, peak_flops


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA H100 PCIe", "h100 pcie"),
        ("NVIDIA L40S", "l40s"), ("NVIDIA L4", "l4"), ("Tesla T4", "t4"), ("NVIDIA GeForce RTX 4090", "rtx 4090"),
        ("NVIDIA A10G", "a10g"), ("NVIDIA RTX A6000", "a6000"), ("Tesla V100-SXM2-16GB", "v100"),
    ],
)  # fmt: skip
def test_devices_by_the_names_their_drivers_give(name, key) -> None:
    assert peak_flops(name) == PEAK_FLOPS[key]


@pytest.mark.parametrize("name", ["cpu", "", "NVIDIA A1000", "Tesla T400", "Some Chip 3000", "mps"])
def test_what_is_not_known_has_no_peak_and_no_mfu(name) -> None:
    assert peak_flops(name) is None and calculate_mfu(1e9, 1000.0, name) is None


def test_mfu_is_a_share_of_the_peak_of_all_devices() -> None:
    assert calculate_mfu(6e9, 10_000.0, "NVIDIA A100-SXM4-80GB") == pytest.approx(100 * 6e13 / 312e12)
    assert calculate_mfu(6e9, 10_000.0, 1e14) == pytest.approx(60.0)
    assert calculate_mfu(6e9, 10_000.0, 1e14, n_devices=4) == pytest.approx(15.0)
    assert calculate_mfu(6e9, float("nan"), 1e14) is None
    assert flops_per_token(10) == 60.0


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="n_devices"):
        calculate_mfu(1.0, 1.0, 1.0, n_devices=0)
    with pytest.raises(ValueError, match="trainable_params"):
        flops_per_token(-1)


def test_the_flops_of_a_step_of_reinforcement_learning() -> None:
    from rldk.functional.throughput import rl_step_flops

    assert rl_step_flops(10, 7, epochs=0) == 10 * 2 * 3 * 7  # generated, and passed through twice
    assert rl_step_flops(10, 7, critic=5, reference=7, reward=3, epochs=4) == 10 * (2 * (3 * 7 + 5 + 7 + 3) + 4 * 6 * (7 + 5))
