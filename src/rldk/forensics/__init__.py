"""Forensics: trackers that measure, detectors that judge, scores, and the scan of a finished run."""

from __future__ import annotations

from rldk.forensics.advantage_statistics_tracker import AdvantageStatisticsMetrics, AdvantageStatisticsTracker
from rldk.forensics.comprehensive_ppo_forensics import ComprehensivePPOForensics, ComprehensivePPOMetrics
from rldk.forensics.engine import Engine
from rldk.forensics.gradient_norms_analyzer import GradientNormsAnalyzer, GradientNormsMetrics
from rldk.forensics.kl_schedule_tracker import KLScheduleMetrics, KLScheduleTracker
from rldk.forensics.length_bias import LengthBiasMetrics, LengthBiasTracker
from rldk.forensics.ppo_scan import scan_ppo_events

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
