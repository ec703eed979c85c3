"""Runs inside the environment of rldoctor: the rows of a run in, its findings out."""

import logging

import rl_doctor
from child_loop import serve
from rl_doctor.live import LiveMonitor

logging.disable(logging.CRITICAL)


def answer(rows, config):
    """The findings of a run as `[row, severity, detector]`, at the row after which they are announced.

    `rows` are `[step, {key of a log: value}]`. The run is diagnosed once more at its end, as `rl-doctor diagnose` would do.
    """
    monitor = LiveMonitor(config=config)
    found, last = [], None
    for row, (step, metrics) in enumerate(rows):
        if metrics:
            found += [(row, finding) for finding in monitor.log(metrics, step=step)]
            last = row
    if last is not None:
        found += [(last, finding) for finding in monitor.check()]
    return [[row, finding.severity.name.lower(), finding.detector] for row, finding in found]


if __name__ == "__main__":
    serve(rl_doctor.__version__, answer)
