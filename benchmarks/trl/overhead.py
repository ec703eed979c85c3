"""What watching costs: processor time of callback and probes, as a share of a PPO update of TRL.

    python benchmarks/trl/overhead.py [--updates 30] [--rounds 3] [--quick]

The time inside rldk is added up at its only entries, the callback's methods and the optimizer hook, in processor time of
this thread. TRL's PPO collects garbage twice an update and looks at every object of the process, those of rldk too: of that
time rldk is charged with its share of the objects. The rest of the update is the training's. A toy model, a small one and one
of 30 M parameters. Each is trained several times, and the round with the middle share counts: on a shared machine a single
round means little.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "integrations"), str(ROOT / "benchmarks")]

import trl_tiny  # noqa: E402

from report import Report, Row  # noqa: E402

BAR = 0.02
WARM_UP = 3


class Clock:
    """Processor time spent between entering and leaving a set of functions; nested entries count once."""

    def __init__(self) -> None:
        self.spent, self.depth = 0.0, 0

    def around(self, function: Any) -> Any:
        def timed(*args: Any, **options: Any) -> Any:
            self.depth += 1
            began = time.thread_time()
            try:
                return function(*args, **options)
            finally:
                self.depth -= 1
                if not self.depth:
                    self.spent += time.thread_time() - began

        return timed


def objects() -> int:
    """How many objects a garbage collection looks at."""
    gc.collect()
    return len(gc.get_objects())


def train(folder: Path, callbacks: list[Any], updates: int, batch: int, size: dict[str, int]) -> int:
    """Train, and return how many parameters the policy has."""
    options = {"per_device_train_batch_size": batch, "response_length": 24}
    trainer = trl_tiny.ppo_trainer(folder, callbacks, updates, size=size, **options)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    return sum(one.numel() for one in trainer.policy_model.parameters())


def objects_of_rldk() -> int:
    """How many of them are rldk's, of its modules and of a run that it watches; call it before anything else is imported."""
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder) / "before", [], 2, 8, {})  # loads all that TRL needs
        before = objects()
        from rldk.integrations.trl import RLDKCallback

        watched = RLDKCallback(Path(folder) / "rldk", run_id="bench", terminal=False)
        train(Path(folder) / "watched", [watched], 13, 8, {})
        return objects() - before


def measure(size: dict[str, int], updates: int, batch: int, ours: int) -> tuple[float, float, int]:
    """Milliseconds of rldk and of the whole, an update; and the parameters of the policy. `ours` are the objects of rldk."""
    from rldk.integrations.trl import RLDKCallback
    from rldk.integrations.trl.probes.optimizer import GradientProbe

    clock, collections = Clock(), Clock()
    marks: list[tuple[float, float, float]] = []  # at the end of each update: of the process, in rldk, in collections
    hook, collect = GradientProbe._before_step, gc.collect
    with tempfile.TemporaryDirectory() as folder:
        watched = RLDKCallback(Path(folder) / "rldk", run_id="bench", terminal=False)
        for name in ("on_train_begin", "on_log", "on_save", "on_step_begin"):
            setattr(watched, name, clock.around(getattr(watched, name)))
        ended = clock.around(watched.on_step_end)

        def on_step_end(*args: Any, **options: Any) -> None:
            ended(*args, **options)
            marks.append((time.process_time(), clock.spent, collections.spent))

        watched.on_step_end = on_step_end  # type: ignore[method-assign]
        GradientProbe._before_step = clock.around(hook)  # type: ignore[method-assign]
        gc.collect = collections.around(collect)
        try:
            count = train(Path(folder) / "t", [watched], updates + WARM_UP, batch, size)
        finally:
            GradientProbe._before_step = hook  # type: ignore[method-assign]
            gc.collect = collect
    whole, own, collected = (1e3 * (last - first) / updates for first, last in zip(marks[WARM_UP - 1], marks[-1], strict=True))
    return own + collected * ours / objects(), whole, count


def _share(found: tuple[float, float, int]) -> float:
    return found[0] / found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    given = parser.parse_args()
    report = Report(judging=not given.quick)
    report.begin("watching TRL's PPO: processor time of callback and probes in an update (batch 32, 24 tokens, 4 epochs)")
    cases: list[tuple[str, dict[str, int], int]] = [("tiny model", {}, given.updates)]
    if not given.quick:
        cases.append(("small model", {"hidden": 128, "layers": 2}, given.updates))
        cases.append(("30 M model", {"hidden": 512, "layers": 11}, max(3, given.updates // 6)))
    ours = objects_of_rldk()
    for name, size, updates in cases:
        sizes = (2, 8, ours) if given.quick else (updates, 32, ours)
        rounds = sorted((measure(size, *sizes) for _ in range(1 if given.quick else given.rounds)), key=_share)
        own, whole, count = rounds[len(rounds) // 2]
        share = own / whole
        said = f"{own:.2f} of {whole:.0f} ms, {share:.2%}"
        if len(rounds) > 1:
            said += f" ({_share(rounds[0]):.2%} to {_share(rounds[-1]):.2%})"
        report.add(Row(f"{name}, {count / 1e6:.2f} M parameters", said, f"<= {BAR:.0%}", share <= BAR))
    report.finish()


if __name__ == "__main__":
    main()
