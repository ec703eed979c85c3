"""Forensics is light to import, and its public names are those of the contract."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rldk.forensics

HEAVY = ("pandas", "torch", "transformers", "scipy", "streamlit", "rich")


def test_nothing_heavy_is_imported() -> None:
    code = f"import sys, rldk.forensics; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("KLScheduleTracker", "kl_schedule_tracker"),
        ("GradientNormsAnalyzer", "gradient_norms_analyzer"),
        ("AdvantageStatisticsTracker", "advantage_statistics_tracker"),
        ("ComprehensivePPOForensics", "comprehensive_ppo_forensics"),
        ("ComprehensivePPOMetrics", "comprehensive_ppo_forensics"),
        ("scan_ppo_events", "ppo_scan"),
    ],
)
def test_the_contracts_names_are_where_it_says(name: str, module: str) -> None:
    found = getattr(rldk.forensics, name)
    assert getattr(__import__(f"rldk.forensics.{module}", fromlist=[name]), name) is found
    assert name in rldk.forensics.__all__


def test_every_public_name_resolves() -> None:
    assert all(hasattr(rldk.forensics, name) for name in rldk.forensics.__all__)
