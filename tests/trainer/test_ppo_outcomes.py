"""How runs end: a dead run, weights that are not finite, a full disk, a damaged checkpoint, other arguments. PPO and SFT."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")
HERE = Path(__file__).parent
TRAINER = HERE.parents[1] / "trainer"
sys.path.insert(0, str(HERE))

from ppo_world import build, command  # noqa: E402
from warm_processes import warm  # noqa: E402

ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}",
    "PYTHONWARNINGS": "ignore",
}
TEMPLATE = "{% for message in messages %}{{ message['content'] }} [EOS] {% endfor %}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of PPO, with conversations for SFT beside it."""
    folder = build(tmp_path_factory.mktemp("world"))
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder / "model"))
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(str(folder / "model"))
    said = [(f"w{n}", f"w{n % 9} w{n % 5}") for n in range(48)]
    talks = [{"messages": [{"role": "user", "content": ask}, {"role": "assistant", "content": reply}]} for ask, reply in said]
    (folder / "talks.jsonl").write_text("".join(json.dumps(talk) + "\n" for talk in talks))
    (folder / "sft.yaml").write_text(
        f"stage: sft\noutput: {folder / 'sft.jsonl'}\nsources:\n  - {{name: test, path: {folder / 'talks.jsonl'}}}\n"
    )
    return folder


def words(stage: str, world: Path, out: Path, *more: str) -> list[str]:
    if stage == "ppo":
        return command(world, out, *more)
    common = [f"--data_config={world / 'sft.yaml'}", f"--model_path={world / 'model'}", "--from_weight=none", f"--save_dir={out}"]
    return [*common, "--batch_size=8", "--num_threads=1", "--max_seq_len=16", "--epochs=100", "--eval_interval=0", *more]


def main(stage: str, world: Path, out: Path, *more: str) -> int:
    import importlib

    return importlib.import_module(f"train_{stage}").main(words(stage, world, out, *more))


def started(stage: str, world: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    out.mkdir(parents=True, exist_ok=True)
    return warm().run([str(TRAINER / f"train_{stage}.py"), *words(stage, world, out, *more)], cwd=out, env=ENVIRONMENT)


STAGES = pytest.mark.parametrize("stage", ["ppo", "full_sft"])


@STAGES
def test_updates_that_are_not_finite_for_long_end_the_run_with_a_failure(stage: str, world: Path, tmp_path: Path, capsys) -> None:
    flags = ("--max_steps=50", "--inject=nan_loss@3", "--max_skipped_updates=6", "--save_interval=2")
    assert main(stage, world, tmp_path, *flags) == 1
    assert "the gradients of 6 updates in a row were not finite" in capsys.readouterr().out
    assert not (tmp_path / stage).exists()
    assert main(stage, world, tmp_path, "--max_steps=12", "--from_resume") == 0  # the weights were good all along
    assert (tmp_path / stage).exists()


@STAGES
def test_a_short_run_that_learnt_nothing_is_a_failure_too(stage: str, world: Path, tmp_path: Path, capsys) -> None:
    assert main(stage, world, tmp_path, "--max_steps=3", "--inject=nan_loss") == 1
    assert "had finite gradients" in capsys.readouterr().out and not (tmp_path / stage).exists()


@STAGES
def test_weights_that_are_not_finite_are_neither_a_result_nor_a_checkpoint(stage: str, world: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    bad = tmp_path / "bad"
    shutil.copytree(world / "model", bad)
    weights = load_file(bad / "model.safetensors")
    weights["model.norm.weight"][3] = float("nan")
    save_file(weights, bad / "model.safetensors", metadata={"format": "pt"})
    done = started(stage, world, tmp_path / "out", f"--model_path={bad}", "--max_steps=30", "--save_interval=1")
    assert done.returncode == 1, done.stderr
    assert "updates in a row were not finite" in done.stdout and "no checkpoint is written" in done.stdout
    assert not (tmp_path / "out" / stage).exists() and not list((tmp_path / "out").rglob("*.safetensors"))


@STAGES
def test_a_full_disk_costs_a_checkpoint_and_leaves_no_rubbish(stage: str, world: Path, tmp_path: Path) -> None:
    """The operating system refuses files above a size that logs do not reach, but checkpoints do."""
    limit = 12_000
    code = (
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "sys.path[0] = sys.argv.pop(1)\n"
        "runpy.run_path(f'{sys.path[0]}/{sys.argv.pop(1)}', run_name='__main__')\n"
    )
    flags = ("--max_steps=4", "--save_interval=2", "--no_rldk")
    script = ["-c", code, str(TRAINER), f"train_{stage}.py", *words(stage, world, tmp_path, *flags)]
    if stage == "ppo":  # the test that starts it with a fresh interpreter
        given = {"env": ENVIRONMENT, "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 400, "check": False}
        done = subprocess.run([sys.executable, *script], **given)
    else:
        done = warm().run(script, cwd=tmp_path, env=ENVIRONMENT)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "The checkpoint of step 2 cannot be written" in done.stdout  # and training went on
    assert "error: The weights cannot be written" in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size >= limit] == []
    assert [path.name for path in tmp_path.rglob("*tmp*")] == [] and not (tmp_path / stage).exists()


@STAGES
def test_sigterm_ends_a_run_after_its_step_and_it_resumes_to_the_same_weights(
    stage: str, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import signal

    from safetensors.torch import load_file

    from logger import Logger

    flags = ("--max_steps=5", "--save_interval=2")
    assert main(stage, world, tmp_path / "straight", *flags) == 0
    log = Logger.log

    def told(self: Any, step: int, *rest: Any) -> None:
        log(self, step, *rest)
        if step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr(Logger, "log", told)
        assert main(stage, world, tmp_path / "stopped", *flags) == 128 + signal.SIGTERM
    saved = sorted(path.name for path in (tmp_path / f"stopped/checkpoints/{stage}").iterdir())
    assert saved[-1] == "step_00000003" and not (tmp_path / "stopped" / stage).exists()
    assert main(stage, world, tmp_path / "stopped", *flags, "--from_resume") == 0
    one, other = (load_file(tmp_path / f"{place}/{stage}/model.safetensors") for place in ("straight", "stopped"))
    assert all(one[key].equal(other[key]) for key in one)


def killed(stage: str, world: Path, out: Path, *more: str) -> int:
    """Start a run in a process of its own and kill it when its log has three steps; the number of steps it has logged."""
    import signal
    import time

    out.mkdir(parents=True, exist_ok=True)
    script = [str(TRAINER / f"train_{stage}.py"), *words(stage, world, out, *more, "--inject=slow=0.3")]
    process = warm().start(script, out, ENVIRONMENT, os.devnull, os.devnull)
    log, until = out / f"{stage}_events.jsonl", time.monotonic() + 400
    while time.monotonic() < until and process.poll() is None and not (log.exists() and log.read_bytes().count(b"\n") >= 3):
        time.sleep(0.02)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    return log.read_bytes().count(b"\n")


@STAGES
def test_a_killed_run_resumes_from_its_last_checkpoint_to_the_same_weights(stage: str, world: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    flags = ("--max_steps=6", "--save_interval=1", "--keep_checkpoints=9")
    assert main(stage, world, tmp_path / "straight", *flags) == 0
    assert 3 <= killed(stage, world, tmp_path / "killed", *flags) < 6
    assert not (tmp_path / "killed" / stage).exists() and (tmp_path / f"killed/checkpoints/{stage}/step_00000002").is_dir()
    assert main(stage, world, tmp_path / "killed", *flags, "--from_resume") == 0
    one, other = (load_file(tmp_path / f"{place}/{stage}/model.safetensors") for place in ("straight", "killed"))
    assert all(one[key].equal(other[key]) for key in one)


@STAGES
def test_a_damaged_newest_checkpoint_is_passed_over(stage: str, world: Path, tmp_path: Path, capsys) -> None:
    from safetensors.torch import load_file

    name = {"ppo": "actor", "full_sft": "model"}[stage]
    flags = ("--max_steps=6", "--save_interval=2", "--keep_checkpoints=5")
    assert main(stage, world, tmp_path / "straight", *flags) == 0
    assert main(stage, world, tmp_path / "damaged", *flags) == 0
    newest = tmp_path / f"damaged/checkpoints/{stage}/step_00000006/{name}.safetensors"
    data = bytearray(newest.read_bytes())
    data[-5] ^= 255
    newest.write_bytes(bytes(data))
    capsys.readouterr()
    assert main(stage, world, tmp_path / "damaged", *flags, "--from_resume") == 0
    said = capsys.readouterr().out
    assert f"{name}.safetensors differs from its checksum" in said and "step_00000004" in said
    one, other = (load_file(tmp_path / f"{place}/{stage}/model.safetensors") for place in ("straight", "damaged"))
    assert all(one[key].equal(other[key]) for key in one)


@STAGES
@pytest.mark.parametrize("changed", [["--seed=7"], ["--batch_size=4"], ["--learning_rate=0.02"]])
def test_a_resume_with_other_settings_is_refused_unless_told(stage: str, changed: list[str], world: Path, tmp_path: Path) -> None:
    from checkpoint import CheckpointError

    assert main(stage, world, tmp_path, "--max_steps=2", "--save_interval=1") == 0
    with pytest.raises(CheckpointError, match=r"belongs to a run with other settings: .*--resume_anyway"):
        main(stage, world, tmp_path, "--max_steps=4", "--from_resume", *changed)
    assert main(stage, world, tmp_path, "--max_steps=4", "--from_resume", "--resume_anyway", *changed) == 0


@STAGES
def test_a_resume_with_other_data_is_refused(stage: str, world: Path, tmp_path: Path) -> None:
    done = started(stage, world, tmp_path, "--max_steps=2", "--save_interval=1")
    assert done.returncode == 0, done.stderr
    name = {"ppo": "ppo.yaml", "full_sft": "sft.yaml"}[stage]
    (tmp_path / "less.yaml").write_text((world / name).read_text() + "max_records: 40\n")
    done = started(stage, world, tmp_path, "--max_steps=4", "--from_resume", f"--data_config={tmp_path / 'less.yaml'}")
    assert done.returncode == 2 and "other data" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_tokenizer_that_is_larger_than_the_model_is_refused(world: Path, tmp_path: Path) -> None:
    import shutil

    from transformers import AutoTokenizer

    from checkpoint import CheckpointError

    shutil.copytree(world / "model", tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(str(tmp_path / "model"))
    tokenizer.add_tokens(["one_more"])
    tokenizer.save_pretrained(str(tmp_path / "model"))
    with pytest.raises(CheckpointError, match="33 entries and the model embeds 32"):
        main("ppo", world, tmp_path / "out", f"--model_path={tmp_path / 'model'}", "--max_steps=1")
