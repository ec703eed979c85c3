"""A run that is told to stop or killed goes on as if it had not been; two processes train as one."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from ppo_world import build, command, events_of, same  # noqa: E402
from warm_processes import Child, rank_settings, warm  # noqa: E402

SCRIPT = HERE.parents[1] / "trainer/train_ppo.py"
STEPS = ("--max_steps=14", "--kl_target=0.02", "--kl_horizon=50", "--lr_schedule=cosine", "--warmup_steps=3")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return build(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def uninterrupted(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import train_ppo

    out = tmp_path_factory.mktemp("uninterrupted")
    assert train_ppo.main(command(world, out, *STEPS, "--save_interval=3")) == 0
    return out


def start_and_stop(world: Path, out: Path) -> Child:
    """A run in a process of its own that is told to stop when its log has six steps."""
    words = [str(SCRIPT), *command(world, out, *STEPS, "--save_interval=3", "--inject=slow=0.15")]
    process = warm().start(words, out, ENVIRONMENT, out / "said", out / "said")
    log, until = out / "ppo_events.jsonl", time.monotonic() + 400
    while time.monotonic() < until and process.poll() is None:
        if log.exists() and log.read_bytes().count(b"\n") >= 6:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.wait(200)
    return process


def goes_on_like(world: Path, out: Path, whole: Path) -> None:
    from safetensors.torch import load_file

    import train_ppo

    assert train_ppo.main(command(world, out, *STEPS, "--save_interval=3", "--from_resume")) == 0
    same(events_of(out), events_of(whole))
    for name in ("actor", "critic", "actor_optimizer", "critic_optimizer"):
        first, second = (load_file(folder / f"checkpoints/ppo/step_00000014/{name}.safetensors") for folder in (out, whole))
        assert first.keys() == second.keys() and all(first[key].equal(second[key]) for key in first), name


def test_after_sigterm_the_run_goes_on_to_the_same_weights(world, uninterrupted, tmp_path: Path) -> None:
    process = start_and_stop(world, tmp_path)
    said = (tmp_path / "said").read_text()
    assert process.returncode == 128 + signal.SIGTERM and "stopped by a signal" in said, said
    steps = [event["step"] for event in events_of(tmp_path)]
    assert steps == list(range(1, len(steps) + 1)) and 6 <= len(steps) < 14
    saved = sorted(path.name for path in (tmp_path / "checkpoints/ppo").iterdir())
    assert saved[-1] == f"step_{steps[-1]:08d}"  # the step it was told in, and not an older one
    assert not (tmp_path / "ppo").exists()  # unfinished weights are not passed on
    goes_on_like(world, tmp_path, uninterrupted)


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(world, uninterrupted, tmp_path: Path) -> None:
    """What is being written stands under another name, and is neither taken nor in the way; the log ends in half a line."""
    import shutil

    out = tmp_path / "out"
    shutil.copytree(uninterrupted, out)
    root = out / "checkpoints/ppo"
    half = root / ".step_00000014.tmp"
    (root / "step_00000014").rename(half)
    (half / "state.json").unlink()
    with (out / "ppo_events.jsonl").open("ab") as log:
        log.write(b'{"step": 15, "metr')
    goes_on_like(world, out, uninterrupted)
    assert not half.exists()


def test_with_nothing_to_resume_from_a_run_begins_and_its_log_is_clean(world, uninterrupted, tmp_path: Path) -> None:
    (tmp_path / "ppo_events.jsonl").write_text((uninterrupted / "ppo_events.jsonl").read_text())  # killed before any checkpoint
    goes_on_like(world, tmp_path, uninterrupted)


BY_TWO = ("--max_steps=6", "--learning_rate=1e-3", "--save_interval=2", "--batch_size=4", "--kl_target=0.02", "--kl_horizon=50")


@pytest.fixture(scope="module")
def two(world: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A whole run by two processes, and what they printed."""
    out = tmp_path_factory.mktemp("two")
    words = [str(SCRIPT), *command(world, out, *BY_TWO, "--report_to=tensorboard")]
    first, second = warm().run_ranks(2, words, cwd=out, env=ENVIRONMENT)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr[-3000:] + second.stderr[-3000:]
    return out, first.stdout + second.stdout


def test_two_processes_train_as_one_with_the_doubled_batch(world, two, tmp_path: Path) -> None:
    import train_ppo

    out, said = two
    assert said.count("Epoch:[1/100](1/6)") == 1  # one process prints
    assert len(list((out / "tensorboard/ppo").glob("events*"))) == 1  # and writes
    assert train_ppo.main(command(world, tmp_path, *BY_TWO, "--batch_size=8")) == 0
    slices = [[event["data_slice"] for event in events_of(folder)] for folder in (out, tmp_path)]
    assert slices[0] == slices[1]  # tokens of all processes together
    # Sums come in another order, and Adam makes much of little at first: the same within noise.
    same(events_of(out), events_of(tmp_path), rel=2e-2, skip=("ratio_min", "ratio_max"))


def test_two_processes_that_are_killed_go_on_to_the_same_weights(world, two, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    words = [str(SCRIPT), *command(world, tmp_path, *BY_TWO, "--inject=slow=0.3")]
    ranks = [
        warm().start(words, tmp_path, {**ENVIRONMENT, **told}, tmp_path / "said", tmp_path / "said") for told in rank_settings(2)
    ]
    log, until = tmp_path / "ppo_events.jsonl", time.monotonic() + 400
    while time.monotonic() < until and not any(rank.poll() for rank in ranks):
        if log.exists() and log.read_bytes().count(b"\n") >= 3:
            break
        time.sleep(0.02)
    for rank in ranks:
        rank.kill()
    assert [rank.wait(60) for rank in ranks] == [-signal.SIGKILL] * 2, (tmp_path / "said").read_text()
    steps = [event["step"] for event in events_of(tmp_path)]
    assert steps[:3] == [1, 2, 3] and len(steps) < 6
    words = [str(SCRIPT), *command(world, tmp_path, *BY_TWO, "--from_resume")]
    done, other = warm().run_ranks(2, words, cwd=tmp_path, env=ENVIRONMENT)
    assert (done.returncode, other.returncode) == (0, 0), done.stderr[-3000:] + other.stderr[-3000:]
    assert "resumed after step" in done.stdout
    same(events_of(tmp_path), events_of(two[0]))  # each step once, and the same to the last digit
    for name in ("actor", "critic", "actor_optimizer", "critic_optimizer"):
        first, second = (load_file(out / f"checkpoints/ppo/step_00000006/{name}.safetensors") for out in (tmp_path, two[0]))
        assert first.keys() == second.keys() and all(first[key].equal(second[key]) for key in first), name


ALONE = """
import gc, weakref
import torch, torch.distributed as dist
from accelerate import Accelerator
import machine

accelerator = Accelerator(cpu=True)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
group = weakref.ref(dist.group.WORLD)
machine.leave(accelerator)
del model
gc.collect()
dist.is_initialized() or print("left,", "kept" if group() else "the model was its last owner")
machine.atexit._run_exitfuncs()
print("gone" if group() is None else "kept for ever")
"""


def test_the_group_outlives_the_models_that_it_wrapped(tmp_path: Path) -> None:
    """Where a model is its last owner, torch may wait for ever while it takes the group apart."""
    found = warm().run(["-c", ALONE], cwd=tmp_path, env={**ENVIRONMENT, "PYTHONPATH": str(SCRIPT.parent)})
    assert found.stdout == "left, kept\ngone\n", found.stderr
