"""Runs inside the environment of rlwatch: the rows of a run in, its alerts out."""

import logging
import tempfile
import time

import numpy as np
import rlwatch
from child_loop import serve
from rlwatch.alerts import AlertManager
from rlwatch.config import load_config
from rlwatch.core import RLWatch
from rlwatch.detectors import DetectorSuite

logging.disable(logging.CRITICAL)
BLOCK = 50


class Silent(AlertManager):
    """rlwatch's rules about what to send (its cooldown and its limit), without sending."""

    def send(self, alert):
        if not self.should_send(alert):
            return False
        self._alert_count += 1
        self._last_alert_step[(alert.detector, alert.severity)] = alert.step
        return True


def answer(rows, config=None, rewards=None, speed=False):
    """The alerts of a run as `[row, severity, detector]`, or with `speed` the microseconds per step of each block of 50.

    `rows` are `[step, {argument of log_step: value}]`, `config` holds keyword arguments of `attach`, and `rewards` are the
    rewards of each row's responses, or null.
    """
    settings = load_config(framework="manual", **(config or {}))
    return step_times(rows, settings) if speed else alerts(rows, settings, rewards or [None] * len(rows))


def alerts(rows, settings, rewards):
    suite, manager = DetectorSuite(settings), Silent(settings.alerts)
    found = []
    for row, (step, metrics) in enumerate(rows):
        if not metrics:
            continue  # as its TRL callback does
        given = None if rewards[row] is None else np.array(rewards[row], dtype=float)
        found += [[row, alert.severity, alert.detector] for alert in _checked(suite, step, given, metrics) if manager.send(alert)]
    return found


def _checked(suite, step, rewards, metrics):
    try:
        return suite.check_step(step, rewards=rewards, **metrics)
    except OverflowError:  # the square of a huge number; its documentation says that no error of a detector stops a run
        return []


def step_times(rows, settings):
    with tempfile.TemporaryDirectory() as folder:
        settings.storage.log_dir = folder
        monitor = RLWatch(settings)
        monitor._alerts = Silent(settings.alerts)
        blocks = []
        for start in range(0, len(rows) - BLOCK + 1, BLOCK):
            began = time.thread_time()
            for step, metrics in rows[start : start + BLOCK]:
                monitor.log_step(step, **metrics)
            blocks.append((time.thread_time() - began) / BLOCK * 1e6)
        monitor.stop()
    return blocks


if __name__ == "__main__":
    serve(rlwatch.__version__, answer)
