"""rldk, the RL debug kit: what is going wrong in a reinforcement-learning fine-tuning run, since when, why, and what to do.

Judge a log of any framework, and see it (in a notebook the plots appear below the cell):

    import rldk
    results = rldk.scan("out/my_run")       # a file, a folder or a glob
    results.verdict                         # 'healthy', 'warning', 'critical' or 'no_data'
    results.incidents                       # what went wrong, since which step, why, and what to do
    results.plot()                          # the curves, with the incidents marked

Watch a training loop of your own:

    with rldk.start("my_run", output_dir="out") as run:
        for step in range(steps):
            run.log(step, kl=0.02, reward=0.7, entropy=1.3)

Watch a trainer of TRL:

    rldk.attach(trainer, output_dir="out")

Read runs into canonical metrics, compare them, and look up what an anomaly means:

    rldk.load("out/my_run").frame()         # a pandas DataFrame
    rldk.compare("out/seed_1", "out/seed_2")
    rldk.explain("reward_hacking")

Everything is imported when it is first used: `import rldk` is light. `rldk --help` lists the commands.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rldk._version import __version__

if TYPE_CHECKING:
    from rldk.api import attach, compare, explain, load, scan, start

__all__ = ["__version__", "attach", "compare", "explain", "load", "scan", "start"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("rldk.api"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
