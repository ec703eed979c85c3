"""Callbacks for PPO and for checkpoints: each chooses what the monitor writes and which limits it uses."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import replace
from math import isfinite, nan
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.functional.convergence import predict_convergence
from rldk.functional.learning_rate import learning_rate_impact
from rldk.integrations.trl.base import KEPT, WatchingCallback
from rldk.integrations.trl.callbacks import RLDKCallback
from rldk.integrations.trl.checkpoints import CheckpointSummary
from rldk.integrations.trl.metrics import CheckpointMetrics, PPOMetrics, fill
from rldk.integrations.trl.options import CallbackOptions, as_path
from rldk.judge.scores.risks import collapse_risk, hacking_risk
from rldk.monitor import Monitor

__all__ = ["AdvancedPPOMonitor", "CheckpointMetrics", "CheckpointMonitor", "ComprehensivePPOMonitor", "PPOMetrics", "PPOMonitor"]

_FLOW = ("weakest_gradient_layer", "weakest_gradient_norm", "strongest_gradient_layer", "strongest_gradient_norm")
_COURSE = 20  # steps over which the course of the reward per token is measured


class PPOMonitor(RLDKCallback):
    """`RLDKCallback` with the limits of PPO by name. Without a limit, the run's own baseline counts.

    Args:
        kl_threshold: maximum of the KL from the reference. TRL's PPO logs it summed over a response.
        reward_threshold: minimum of the mean reward.
        gradient_threshold: maximum of the norm of all gradients, before any clipping.
        options: those of `RLDKCallback`.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./rldk_logs",
        kl_threshold: float | None = None,
        reward_threshold: float | None = None,
        gradient_threshold: float | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        limits: dict[str, Any] = dict(options.pop("alert_thresholds", None) or {})
        if kl_threshold is not None:
            limits["kl_mean"] = kl_threshold
        if reward_threshold is not None:
            limits["reward_mean"] = {"min": reward_threshold}
        if gradient_threshold is not None:
            limits["grad_norm"] = gradient_threshold
        super().__init__(output_dir=output_dir, run_id=run_id, alert_thresholds=limits, **options)
        self.ppo_metrics = PPOMetrics()
        self.ppo_metrics_history: deque[PPOMetrics] = deque(maxlen=KEPT)

    def on_event(self, event: Event, raised: list[Anomaly], monitor: Monitor) -> None:
        super().on_event(event, raised, monitor)
        if event.phase == "train":
            self.ppo_metrics = fill(PPOMetrics, event.metrics, {"global_step": event.step}, self._derived(event, monitor))
            self.ppo_metrics_history.append(self.ppo_metrics)

    def _derived(self, event: Event, monitor: Monitor) -> dict[str, float]:
        """Add reward per token, its trend and the risks after this event."""
        reward, length = event.metrics.get("reward_mean", nan), event.metrics.get("rollout_length_mean", nan)
        per_token = reward / length if length > 0.0 else nan
        earlier = self.ppo_metrics_history[-_COURSE].reward_per_token if len(self.ppo_metrics_history) >= _COURSE else nan
        view, standing = monitor.forensics.engine.view, monitor.forensics.standing
        return {
            "reward_per_token": per_token,
            "reward_per_token_trend": (per_token - earlier) / abs(earlier) if earlier else nan,
            "collapse_risk": collapse_risk(view, standing),
            "hacking_risk": hacking_risk(view, standing),
        }

    def get_rollout_analysis(self) -> dict[str, Any]:
        """The last rollout: the distribution of its rewards, the lengths, and the reward per token with its course."""
        last, known = self.ppo_metrics, [one.reward_per_token for one in self.ppo_metrics_history]
        finite = [value for value in known if isfinite(value)]
        found: dict[str, Any] = strict({
            "step": last.global_step,
            "rewards": {"mean": last.reward_mean, "std": last.reward_std, "min": last.reward_min, "max": last.reward_max},
            "length": {"mean": last.rollout_length_mean, "std": last.rollout_length_std},
            "reward_per_token": last.reward_per_token,
            "reward_per_token_trend": last.reward_per_token_trend,
            "best_reward_per_token": max(finite, default=None),
            "collapse_risk": last.collapse_risk,
            "hacking_risk": last.hacking_risk,
        })  # fmt: skip
        return found

    def get_learning_rate_impact(self) -> list[dict[str, Any]]:
        """For each change of the learning rate by a fifth or more, what the reward did after it."""
        records = list(self.metrics_history)
        rates = [one.policy_lr if isfinite(one.policy_lr) else one.lr for one in records]
        return learning_rate_impact([one.global_step for one in records], rates, [one.reward_mean for one in records])

    def get_convergence_analysis(self) -> dict[str, Any]:
        """Where the reward will settle: at which level, at which step, and with what confidence."""
        records = list(self.ppo_metrics_history)
        found = predict_convergence([one.global_step for one in records], [one.reward_mean for one in records])
        return {"metric": "reward_mean", **found.to_dict()}


class CheckpointMonitor(WatchingCallback):
    """Writes `R_checkpoint_summary.csv`: after each save, what changed since the one before and since the first.

    Args:
        output_dir: where the summary goes.
        enable_parameter_analysis: false writes nothing.
        enable_gradient_analysis: at each checkpoint, the gradient flow by layer and the memory in use, with suggestions for
            saving it; and an alert before an optimizer step whose gradients are not finite.

    Attributes:
        checkpoint_metrics: the record of the last checkpoint.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./rldk_logs",
        enable_parameter_analysis: bool = True,
        enable_gradient_analysis: bool = True,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        asked = {"checkpoints": enable_parameter_analysis, "alerts": enable_gradient_analysis}
        files = frozenset(name for name, wanted in asked.items() if wanted)
        silent = 1 << 30  # events between two lines: the terminal shows alerts only
        super().__init__(
            CallbackOptions(
                as_path(output_dir), run_id, files=files, terminal=True, log_interval=silent,
                gradient_flow=enable_gradient_analysis, **options,
            )
        )  # fmt: skip

    @property
    def checkpoint_metrics(self) -> CheckpointMetrics:
        return CheckpointMetrics() if self._summary is None else self._summary.latest

    @property
    def _summary(self) -> CheckpointSummary | None:
        outputs = [] if self.monitor is None else self.monitor.outputs
        return next((output for output in outputs if isinstance(output, CheckpointSummary)), None)

    def get_gradient_flow(self) -> dict[str, Any]:
        """The gradient norm of each layer at the last checkpoint, the weakest and the strongest, and layers that get none."""
        return self._facts("layers", "gradient_norm", *_FLOW, "spread", "starved")

    def get_memory_analysis(self) -> dict[str, Any]:
        """What the training kept in memory at the last checkpoint, in gigabytes, and suggestions for saving it."""
        return self._facts("memory_gb", "training_memory_gb", "suggestions")

    def _facts(self, *names: str) -> dict[str, Any]:
        known = {} if self._summary is None else self._summary.facts
        return {name: known[name] for name in names if name in known}


class ComprehensivePPOMonitor(WatchingCallback):
    """Writes the full analysis of a run: `R_comprehensive_analysis.json`, `R_health_summary.json`,
    `R_comprehensive_metrics.csv` and `.json`, and at each checkpoint `R_comprehensive_analysis_step_N.json`.

    Args:
        output_dir: where they go.
        kl_target: the target of the KL; without it, no anomaly depends on a target.
        options: `kl_target_tolerance`, `window_size`, and the switches of `ComprehensivePPOForensics`; and those of
            `RLDKCallback` for stopping, samples, trackers and the terminal.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./rldk_logs",
        kl_target: float | None = None,
        kl_target_tolerance: float | None = None,
        window_size: int | None = None,
        enable_kl_schedule_tracking: bool | None = None,
        enable_gradient_norms_analysis: bool | None = None,
        enable_advantage_statistics: bool | None = None,
        enable_length_bias_detection: bool | None = None,
        length_bias_threshold: float | None = None,
        run_id: str | None = None,
        terminal: bool = True,
        log_interval: int = 10,
        **options: Any,
    ) -> None:
        switches = {
            "kl_target": kl_target,
            "kl_target_tolerance": kl_target_tolerance,
            "window_size": window_size,
            "enable_kl_schedule_tracking": enable_kl_schedule_tracking,
            "enable_gradient_norms_analysis": enable_gradient_norms_analysis,
            "enable_advantage_statistics": enable_advantage_statistics,
            "enable_length_bias_detection": enable_length_bias_detection,
            "length_bias_threshold": length_bias_threshold,
        }
        given = {name: value for name, value in switches.items() if value is not None}
        asked = CallbackOptions(
            as_path(output_dir), run_id, files=frozenset({"analysis", "checkpoints"}), forensics=given, terminal=terminal,
            log_interval=log_interval, resources=True, **options,
        )  # fmt: skip
        super().__init__(asked)

    def on_event(self, event: Event, raised: list[Anomaly], monitor: Monitor) -> None:
        if event.phase == "train":
            self.metrics_history.append(monitor.record())

    def get_comprehensive_analysis(self) -> dict[str, Any]:
        """The analysis so far; empty before training begins."""
        return {} if self.monitor is None else self.monitor.forensics.get_comprehensive_analysis()

    def get_health_summary(self) -> dict[str, Any]:
        """The run in a few numbers; empty before training begins."""
        return {} if self.monitor is None else self.monitor.forensics.get_health_summary()


class AdvancedPPOMonitor(PPOMonitor):
    """`PPOMonitor` that also writes the full analysis, as `ComprehensivePPOMonitor` does."""

    def __init__(
        self,
        output_dir: str | os.PathLike[str] = "./rldk_logs",
        kl_threshold: float | None = None,
        enable_advanced_analytics: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(output_dir=output_dir, kl_threshold=kl_threshold, **options)
        if enable_advanced_analytics:
            self.options = replace(self.options, files=self.options.files | {"analysis"})
