"""Forensics: trackers that measure, detectors that judge, scores, and the scan of a finished run."""

from __future__ import annotations

from rldk.forensics.advantage_statistics_tracker import AdvantageStatisticsMetrics, AdvantageStatisticsTracker
from rldk.forensics.comprehensive_ppo_forensics import ComprehensivePPOForensics, ComprehensivePPOMetrics
from rldk.forensics.gradient_norms_analyzer import GradientNormsAnalyzer, GradientNormsMetrics
from rldk.forensics.kl_schedule_tracker import KLScheduleMetrics, KLScheduleTracker
from rldk.forensics.ppo_scan import scan_ppo_events
from rldk.judge.engine import Engine
from rldk.judge.trackers.length_bias import LengthBiasMetrics, LengthBiasTracker

__all__ = [
    "AdvantageStatisticsMetrics",
    "AdvantageStatisticsTracker",
    "ComprehensivePPOForensics",
    "ComprehensivePPOMetrics",
    "Engine",
    "GradientNormsAnalyzer",
    "GradientNormsMetrics",
    "KLScheduleMetrics",
    "KLScheduleTracker",
    "LengthBiasMetrics",
    "LengthBiasTracker",
    "scan_ppo_events",
]
