"""`rldk.attach(name)`: rows of trackers and loggers reach the event log, training is left alone, detaching restores."""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
import runpy
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import rldk
from rldk.core.errors import MissingDependencyError, UsageError
from rldk.integrations import attach as table
from rldk.integrations.attach import TARGETS, attach, attach_from_environment
from rldk.integrations.rows import RowLog, run_name
from rldk.log import EventReader
from rldk.monitor import TrainingStopped
from rldk.testing.streams import faulty


@pytest.fixture(autouse=True)
def apart() -> Iterator[None]:
    """No attachment outlives its test."""
    yield
    for found in table._attached.values():
        found.detach()
    table._attached.clear()


def events(folder: Path) -> dict[int, dict[str, float]]:
    (log,) = folder.glob("*_events.jsonl")
    return {event.step: event.metrics for event in EventReader(log)}


def row(step: int) -> dict[str, float]:
    return {"train/reward": 0.1 * step, "train/kl": 0.01 * step, "train/loss": 1.0 / step, "own_number": float(step)}


@pytest.mark.full
def test_wandb_rows_of_a_step_are_merged_and_steps_are_those_of_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    original = wandb.sdk.wandb_run.Run.log
    run = wandb.init(mode="offline", project="p", id="abc", dir=str(tmp_path), settings=wandb.Settings(console="off"))
    attached = attach("wandb", output_dir=tmp_path / "rldk", terminal=False)  # after init: wandb.log is bound already
    assert attach("wandb") is rldk.attach("wandb") is attached
    for step in range(1, 6):
        wandb.log({"train/reward": 0.1 * step}, step=step)
        run.log({"train/kl": 0.01, "picture": "none", "table": wandb.Table(columns=["a"], data=[[1]])}, step=step)
    wandb.log({"train/reward": 0.9, "train/global_step": 9})
    wandb.finish()
    assert wandb.sdk.wandb_run.Run.log is not original
    attached.detach()
    assert wandb.sdk.wandb_run.Run.log is original
    found = events(tmp_path / "rldk")
    assert list(found) == [1, 2, 3, 4, 5, 9] and next((tmp_path / "rldk").glob("wandb_abc_events.jsonl"))
    assert found[3] == {"reward_mean": pytest.approx(0.3), "kl_mean": 0.01} and found[9]["reward_mean"] == 0.9


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # of its database
def test_mlflow_by_functions_and_by_the_client(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/store.db")
    attached = attach("mlflow", output_dir=tmp_path / "rldk", terminal=False)
    with mlflow.start_run():
        for step in range(1, 4):
            mlflow.log_metrics(row(step), step=step)
            mlflow.log_metric("train/entropy", 0.5, step=step)
    attached.detach()
    found = events(tmp_path / "rldk")
    assert list(found) == [1, 2, 3]
    assert found[2]["reward_mean"] == 0.2 and found[2]["entropy_mean"] == 0.5 and found[2]["own_number"] == 2.0


@pytest.mark.full
def test_tensorboard_each_writer_is_a_run_and_no_value_is_lost(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    attached = attach("tensorboard", output_dir=tmp_path / "rldk", terminal=False)
    writer, other = (tensorboard.SummaryWriter(str(tmp_path / name)) for name in ("one", "two"))
    for step in range(1, 4):
        for key, number in row(step).items():
            writer.add_scalar(key, number, step)
        other.add_scalars("losses", {"a": 1.0, "b": 2.0}, step)
    writer.close()
    other.close()
    attached.detach()
    (first,) = (tmp_path / "rldk").glob("tensorboard_one_events.jsonl")
    found = {event.step: event.metrics for event in EventReader(first)}
    assert list(found) == [1, 2, 3] and all(len(metrics) == 4 for metrics in found.values())
    (second,) = (tmp_path / "rldk").glob("tensorboard_two_2_events.jsonl")
    assert [event.metrics for event in EventReader(second)] == [{"losses/a": 1.0, "losses/b": 2.0}] * 3


ONLY_X = """
import importlib.util, sys
whole = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("torch", "tensorboard") else whole(name, *rest)
if sys.argv[1] == "later":
    from rldk.integrations.attach import attach_from_environment
    attach_from_environment("tensorboard")
    from tensorboardX import SummaryWriter
else:
    import rldk
    from tensorboardX import SummaryWriter
    rldk.attach("tensorboard", output_dir="logs", terminal=False)
writer = SummaryWriter()
for step in range(5):
    writer.add_scalar("train/reward", 0.1 * step, step)
"""


def make_writer(package: Path) -> None:
    """A module with a writer of TensorBoard files, as torch and tensorboardX have one."""
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"from {package.name}.writer import SummaryWriter\n")
    (package / "writer.py").write_text(
        "class SummaryWriter:\n    logdir = 'x'\n    def add_scalar(self, tag, scalar_value, global_step=None): pass\n"
        "    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None): pass\n    def close(self): pass\n"
    )


def run_script(folder: Path, script: str, *arguments: str) -> None:
    """Run a script that logs to `folder/logs`, in a process of its own that can import from `folder`."""
    environment = {"PYTHONPATH": f"{folder}:{Path(table.__file__).parents[2]}", "RLDK_OUTPUT_DIR": str(folder / "logs")}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("when", ["now", "later"])
def test_tensorboardx_alone_is_enough(when: str, tmp_path: Path) -> None:
    make_writer(tmp_path / "tensorboardX")
    run_script(tmp_path, ONLY_X, when)
    assert list(events(tmp_path / "logs")) == [0, 1, 2, 3, 4]


BOTH = """
import sys, rldk
from tensorboardX import SummaryWriter as First
attached = rldk.attach("tensorboard", output_dir="logs", terminal=False)
assert not {"torch", "tensorboard"} & set(sys.modules)
First().add_scalar("train/reward", 0.5, 1)
from torch.utils.tensorboard.writer import SummaryWriter as Second
Second().add_scalar("train/reward", 0.7, 2)
attached.detach()
assert len(attached.logs) == 2, attached.logs
Second().add_scalar("train/reward", 0.9, 3)
assert len(attached.logs) == 2 and "add_scalar" in vars(Second)
"""


def test_tensorboard_hooks_the_writer_that_is_imported_and_the_other_when_it_is(tmp_path: Path) -> None:
    make_writer(tmp_path / "tensorboardX")
    make_writer(tmp_path / "torch/utils/tensorboard")
    for package in ("torch/__init__.py", "torch/utils/__init__.py", "torch/utils/tensorboard/__init__.py"):
        (tmp_path / package).write_text("")
    run_script(tmp_path, BOTH)
    rewards = [event.metrics["reward_mean"] for path in (tmp_path / "logs").glob("*.jsonl") for event in EventReader(path)]
    assert sorted(rewards) == [0.5, 0.7]


def test_what_is_attached_to_before_its_import_can_be_detached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finders = list(sys.meta_path)
    monkeypatch.setattr(table, "need", lambda *_: None)
    with attach("art", output_dir=tmp_path) as attached:
        assert len(sys.meta_path) == len(finders) + 1 and attach("art") is attached
    assert sys.meta_path == finders


@pytest.mark.full
def test_trackio_without_steps_counts_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trackio")
    from trackio.run import Run

    logged = []
    monkeypatch.setattr(Run, "log", lambda self, metrics, step=None: logged.append((metrics, step)))  # no server in a test
    attached = attach("trackio", output_dir=tmp_path / "rldk", terminal=False)
    run = Run.__new__(Run)
    run.name = "my run"
    for step in range(3):
        run.log(row(step + 1))
    run.log(metrics=row(9), step=9)
    attached.detach()
    assert [step for _, step in logged] == [None, None, None, 9]
    assert list(events(tmp_path / "rldk")) == [0, 1, 2, 9]


class Interface(types.ModuleType):
    """A module with the documented interface of a package that is not in the registry."""


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make modules importable by name for one test."""

    def make(**modules: Mapping[str, Any]) -> None:
        for name, content in modules.items():
            parts = name.split("__")
            for end in range(1, len(parts) + 1):
                full = ".".join(parts[:end])
                if full not in sys.modules:
                    module = Interface(full)
                    module.__path__ = []
                    module.__spec__ = importlib.machinery.ModuleSpec(full, None)
                    monkeypatch.setitem(sys.modules, full, module)
            for key, value in content.items():
                setattr(sys.modules[".".join(parts)], key, value)

    return make


def test_nemo_rl_prefixes_and_step_metrics(install: Any, tmp_path: Path) -> None:
    class Logger:
        def log_metrics(
            self, metrics: dict, step: int, prefix: str = "", step_metric: str | None = None, step_finished: bool = False
        ) -> None:
            """As documented: hands the metrics to every backend."""

    install(nemo_rl__utils__logger={"Logger": Logger})
    attached = attach("nemo_rl", output_dir=tmp_path, terminal=False)
    logger = Logger()
    for step in range(1, 4):
        logger.log_metrics({"reward": 0.1 * step, "kl_penalty": 0.01, "grad_norm": 1.0}, step, prefix="train")
        logger.log_metrics({"total_step_time": 2.0}, step, prefix="timing/train", step_finished=True)
    logger.log_metrics({"ray/node.0.cpu": 3.0, "ray/step": 4}, 0, step_metric="ray/step")
    attached.detach()
    found = events(tmp_path)
    assert list(found) == [1, 2, 3, 4] and found[2]["reward_mean"] == pytest.approx(0.2)
    assert found[2]["grad_norm"] == 1.0 or found[2]["policy_grad_norm"] == 1.0


def test_prime_rl_metrics_are_awaited_and_episodes_ignored(install: Any, tmp_path: Path) -> None:
    class Monitor:
        async def log(self, data: Any, step: int | None, kind: str = "train", subset: str = "effective") -> None:
            """As documented: metrics or episodes."""

        async def finalize(self) -> None:
            """As documented."""

    install(prime_rl__monitors__base={"Monitor": Monitor})
    attached = attach("prime_rl", output_dir=tmp_path, terminal=False)
    monitor = type("FileMonitor", (Monitor,), {})()

    async def drive() -> None:
        for step in range(1, 4):
            await monitor.log({"entropy/all/mean": 0.5, "mismatch_kl/all/mean": math.nan if step == 2 else 0.01}, step=step)
            await monitor.log(["an episode"], step, "train", "all")
            await monitor.log({"inference/queue": 3.0}, None)
        await monitor.finalize()

    asyncio.run(drive())
    attached.detach()
    found = events(tmp_path)
    assert list(found) == [1, 2, 3] and math.isnan(found[2]["mismatch_kl"]) and found[1]["entropy_mean"] == 0.5


def test_areal_commits_one_row_or_several(install: Any, tmp_path: Path) -> None:
    class StatsLogger:
        _last_commit_step = -1

        def commit(self, epoch: int, step: int, global_step: int, data: Any) -> None:
            """As in AReaL: rows count up from the global step, and never back."""
            rows = data if isinstance(data, list) else [data]
            self._last_commit_step = max(global_step, self._last_commit_step + 1) + len(rows) - 1

        def close(self) -> None:
            """As documented."""

    install(areal__utils__stats_logger={"StatsLogger": StatsLogger})
    attach("areal", output_dir=tmp_path, terminal=False)
    logger = StatsLogger()
    logger.commit(0, 0, 0, {"ppo_actor/task_reward/avg": 0.1, "ppo_actor/n__count": 3})
    logger.commit(0, 1, 1, [{"ppo_actor/task_reward/avg": 0.2}, {"ppo_actor/task_reward/avg": 0.3}])
    logger.commit(0, 2, 2, {"ppo_actor/task_reward/avg": 0.4})
    logger.close()
    assert {step: metrics["reward_mean"] for step, metrics in events(tmp_path).items()} == {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}


@pytest.mark.full
def test_the_plugin_of_ms_swift_registers_a_callback_from_its_file(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    found: dict[str, Any] = {}
    install(swift__callbacks={"callbacks_map": found})
    place = Path(table.__file__).with_name("ms_swift.py")
    runpy.run_path(str(place), run_name="_swift_external")
    callback = found["rldk"]("arguments", "trainer")
    assert callable(callback.on_log) and callback.options.output_dir is not None
    printed = subprocess.run([sys.executable, "-m", "rldk.integrations.ms_swift"], capture_output=True, text=True, check=True)
    assert Path(printed.stdout.strip()).name == "ms_swift.py"


def test_slime_rollouts_are_seen_with_their_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rldk.integrations import slime

    monkeypatch.setenv("RLDK_OUTPUT_DIR", str(tmp_path))
    monkeypatch.setattr(slime, "_logs", [])
    status = types.SimpleNamespace(value="truncated")
    for rollout in range(3):
        samples = [
            types.SimpleNamespace(reward={"acc": 1.0}, response_length=10, status=status),
            types.SimpleNamespace(reward={"acc": 0.0}, response_length=20, status="completed"),
        ]
        arguments = types.SimpleNamespace(reward_key="acc")
        assert slime.log_rollout(rollout, arguments, [samples], {"rollout/repetition_frac": 0.25}, 3.0) is False
    assert slime.log_rollout(3, None, [object()], None, 1.0) is False  # nothing that is known of it: still no error
    slime._logs[0].close()
    found = events(tmp_path)
    assert found[2]["reward_mean"] == 0.5 and found[2]["rollout_length_mean"] == 15.0 and found[2]["truncated_frac"] == 0.5


def test_every_target_has_hooks_and_fails_with_its_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    for name, target in TARGETS.items():
        assert target.hooks
        with pytest.raises(MissingDependencyError, match="pip install") as told:
            attach(name)
        assert target.package.replace("|", " or ") in str(told.value) and target.pip in str(told.value)
    for name in ("huggingface", "ms_swift"):
        sys.modules.pop(f"rldk.integrations.{name}", None)
        with pytest.raises(MissingDependencyError, match="pip install"):
            importlib.import_module(f"rldk.integrations.{name}")


def test_an_unknown_name_and_wrong_options_are_refused_before_training(install: Any) -> None:
    with pytest.raises(UsageError, match="wandb"):
        attach("wanbd")
    make_verl(install)
    with pytest.raises(UsageError, match="stop_on"):
        attach("verl", stop_on="never")
    assert "verl" not in table._attached


def make_verl(install: Any) -> type:
    class Tracking:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def log(self, data: Any, step: int, backend: Any = None) -> None:
            self.seen.append(step)

        def finish(self) -> None:
            """As documented."""

    install(verl__utils__tracking={"Tracking": Tracking})
    return Tracking


def test_nothing_that_is_logged_can_break_the_training(
    install: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Tracking = make_verl(install)
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    attach("verl", output_dir=blocked, terminal=False)
    tracking = Tracking()
    odd: list[Any] = [{}, None, [1, 2], {"a": object()}, {3: 4.0}, {"critic/score/mean": "text"}, {"critic/score/mean": 0.5}]
    with caplog.at_level(logging.ERROR, "rldk"):
        for step, data in enumerate(odd):
            tracking.log(data, step)
    assert caplog.records and "training continues" in caplog.text
    assert tracking.seen == list(range(len(odd)))


def test_a_run_without_a_reward_is_watched(install: Any, tmp_path: Path) -> None:
    Tracking = make_verl(install)
    attached = attach("verl", output_dir=tmp_path, terminal=False)
    tracking = Tracking()
    for step in range(30):
        tracking.log({"actor/pg_loss": 0.1, "actor/entropy": 1.0}, step)
    tracking.finish()
    assert len(events(tmp_path)) == 30 and attached.logs[0].monitor.result().verdict in ("healthy", "warning", "no_data")


def test_a_stop_that_was_asked_for_ends_the_training_after_everything_is_written(install: Any, tmp_path: Path) -> None:
    Tracking = make_verl(install)
    names = {
        "reward_mean": "critic/score/mean", "kl_mean": "actor/kl_loss", "entropy_mean": "actor/entropy",
        "policy_loss": "actor/pg_loss", "rollout_length_mean": "response_length/mean", "grad_norm": "actor/grad_norm",
    }  # fmt: skip
    attach("verl", output_dir=tmp_path, terminal=False, stop_on="critical")
    tracking = Tracking()
    with pytest.raises(TrainingStopped) as stopped:
        for event in faulty("entropy_explosion", "grpo", steps=250, onset=80, seed=1):
            tracking.log({key: event.metrics[name] for name, key in names.items() if name in event.metrics}, event.step)
    assert 80 < stopped.value.decision.step < 250
    assert max(events(tmp_path)) == stopped.value.decision.step
    assert next(tmp_path.glob("*_final_report.json")).stat().st_size


def test_late_rows_and_rows_without_steps_are_not_lost(tmp_path: Path) -> None:
    log = RowLog("verl", tmp_path, "r", terminal=False)
    for step in (5, 6):
        log.log({"critic/score/mean": 0.1 * step}, step)
    log.log({"val-core/x/acc/mean@1": 0.5}, 5)
    log.log({"actor/entropy": 1.0})
    log.close()
    log.close()
    found = events(tmp_path)
    assert list(found) == [5, 6] and found[6]["eval_accuracy"] == 0.5 and found[6]["entropy_mean"] == 1.0
    count = RowLog(None, tmp_path / "count", "r", terminal=False)
    for number in range(3):
        count.log({"reward": number})
        count.log({"kl": 0.1})
    count.close()
    assert [metrics["reward_mean"] for metrics in events(tmp_path / "count").values()] == [0.0, 1.0, 2.0]


def test_other_ranks_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    log = RowLog("verl", tmp_path / "none", "r", terminal=False)
    log.log({"critic/score/mean": 0.1}, 1)
    log.close()
    assert not (tmp_path / "none").exists()


def test_names_of_runs_can_be_file_names() -> None:
    assert run_name("wandb", "a/b: ü*") == "wandb_a_b_ _"
    assert "/" not in run_name("../../etc", "x") and not run_name("../x").startswith(".")


SCRIPT = """
import sys
from rldk.integrations.attach import attach_from_environment
attach_from_environment("verl")
attach_from_environment("wandb")
assert "verl" not in sys.modules and "wandb" not in sys.modules
from verl.utils.tracking import Tracking
tracking = Tracking()
for step in range(5):
    tracking.log({"critic/score/mean": 0.1 * step, "actor/entropy": 1.0}, step)
heavy = {"torch", "transformers", "trl", "pandas", "wandb", "mlflow", "ray"} & set(sys.modules)
assert not heavy, heavy
"""


def test_hooks_are_set_when_the_framework_is_imported_and_nothing_else_is(tmp_path: Path) -> None:
    """In a process of its own, which ends without closing anything: the last row is there too."""
    package = tmp_path / "verl/utils"
    package.mkdir(parents=True)
    for folder in (tmp_path / "verl", package):
        (folder / "__init__.py").touch()
    (package / "tracking.py").write_text(
        "class Tracking:\n    def log(self, data, step, backend=None): pass\n    def finish(self): pass\n"
    )
    run_script(tmp_path, SCRIPT)
    assert list(events(tmp_path / "logs")) == [0, 1, 2, 3, 4]
    with pytest.raises(UsageError):
        attach_from_environment("nothing")
