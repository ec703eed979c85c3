"""Runs inside the environment of rlwatch: a line of rows in, a line of alerts out.

Each line of the standard input is one run, `[[step, {metric: value}], ...]` with the names of rlwatch's `log_step`. The
answer is `[[row, severity, detector], ...]`: what rlwatch would have sent, with its own cooldown and limit. With the
argument `--speed` the whole of `log_step` is timed instead, and the answer is the microseconds a step of each block.
"""

import json
import logging
import sys
import tempfile
import time

from rlwatch.alerts import AlertManager
from rlwatch.config import load_config
from rlwatch.core import RLWatch
from rlwatch.detectors import DetectorSuite

logging.disable(logging.CRITICAL)
BLOCK = 50


class Silent(AlertManager):
    """Its rules about what to send, without sending."""

    def send(self, alert):
        if not self.should_send(alert):
            return False
        self._alert_count += 1
        self._last_alert_step[(alert.detector, alert.severity)] = alert.step
        return True


def alerts(rows):
    config = load_config(framework="manual")
    suite, manager = DetectorSuite(config), Silent(config.alerts)
    found = []
    for row, (step, metrics) in enumerate(rows):
        for alert in suite.check_step(step, **metrics):
            if manager.send(alert):
                found.append([row, alert.severity, alert.detector])
    return found


def speed(rows):
    with tempfile.TemporaryDirectory() as folder:
        config = load_config(framework="manual")
        config.storage.log_dir = folder
        monitor = RLWatch(config)
        monitor._alerts = Silent(config.alerts)
        blocks = []
        for start in range(0, len(rows) - BLOCK + 1, BLOCK):
            began = time.thread_time()
            for step, metrics in rows[start : start + BLOCK]:
                monitor.log_step(step, **metrics)
            blocks.append((time.thread_time() - began) / BLOCK * 1e6)
        monitor.stop()
    return blocks


if __name__ == "__main__":
    answer = speed if "--speed" in sys.argv else alerts
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
