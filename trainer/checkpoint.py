"""Checkpoints that are complete or absent, and how to resume from them.

A checkpoint is a folder `step_00000120` of safetensors and JSON: weights, optimizer state, what else a stage gives as plain
values, and a checksum of each file. It is written under another name, flushed to the disk, and renamed; a kill at any moment
leaves the last one, and a full disk leaves nothing half written. A resume takes the newest checkpoint whose checksums agree.
Randomness, learning rate and data position are not stored: each is a function of the seed and the step. A fingerprint
of what those functions depend on (seed, samples per step, data, …) is stored instead, and a resume with another one is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from checkpoint_files import CheckpointError, frozen_digest, load_optimizer, load_trained, save_optimizer, save_trained

STEP = re.compile(r"step_(\d{8,})")
CHECKSUMS = "checksums.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def checked_name(name: str, flag: str) -> str:
    """A name that makes one folder or file and cannot escape from its parent."""
    if not _NAME.fullmatch(name):
        raise CheckpointError(
            f"Expected {flag} to consist of letters, digits, `_`, `-` and `.`, and to begin with a letter or digit, got {name!r}."
        )
    return name


def sync_tree(folder: Path) -> None:
    """Flush the files of a folder and the folder itself to the disk, so that they survive a crash of the machine."""
    for path in [*(path for path in folder.rglob("*") if path.is_file()), folder]:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def put_in_place(made: Path, place: Path) -> None:
    """Rename a finished folder. An older one of that name is kept next to it until the new one is in place."""
    sync_tree(made)
    old = place.with_name(f".{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    made.rename(place)
    sync_tree_entry(place.parent)
    shutil.rmtree(old, ignore_errors=True)


def sync_tree_entry(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def heal(place: Path) -> Path:
    """Restore an older folder if the process was killed between the two renames of `put_in_place`."""
    old = place.with_name(f".{place.name}.old")
    if not place.exists() and old.is_dir():
        old.rename(place)
    return place


def checkpoint_root(args: argparse.Namespace) -> Path:
    return Path(args.save_dir) / "checkpoints" / args.run_id


def save_checkpoint(
    root: Path,
    step: int,
    models: dict[str, torch.nn.Module],
    optimizers: dict[str, torch.optim.Optimizer],
    state: dict[str, Any],
    keep: int = 2,
) -> Path:
    """Write the checkpoint of a step, and delete all but the `keep` newest. Call it on the main process only.

    If it cannot be written (a full disk), its files are removed, and `CheckpointError` says why.
    """
    try:
        made = begin_checkpoint(root, step)
        for name, model in models.items():
            save_trained(model, made / f"{name}.safetensors")
        for name, optimizer in optimizers.items():
            save_optimizer(optimizer, made / f"{name}_optimizer.safetensors")
        frozen = frozen_digest(models)
        return finish_checkpoint(root, step, {**state, **({"frozen": frozen} if frozen else {})}, keep)
    except (OSError, SafetensorError) as error:
        give_up_checkpoint(root, step)
        raise CheckpointError(f"The checkpoint of step {step} cannot be written to {root}: {error}") from error


def begin_checkpoint(root: Path, step: int) -> Path:
    """The temporary folder to write a checkpoint to."""
    root.mkdir(parents=True, exist_ok=True)
    for left_over in root.glob(".step_*.tmp"):  # of a run that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    made = unfinished(root, step)
    made.mkdir()
    return made


def finish_checkpoint(root: Path, step: int, state: dict[str, Any], keep: int) -> Path:
    """Complete the checkpoint: write state and checksums, and rename it. All but the `keep` newest are deleted."""
    made, place = unfinished(root, step), root / f"step_{step:08d}"
    (made / "state.json").write_text(json.dumps({**state, "step": step}))
    (made / CHECKSUMS).write_text(json.dumps({path.name: checksum(path) for path in sorted(made.iterdir())}))
    put_in_place(made, place)
    for old in checkpoints(root)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def give_up_checkpoint(root: Path, step: int) -> None:
    shutil.rmtree(unfinished(root, step), ignore_errors=True)


def unfinished(root: Path, step: int) -> Path:
    return root / f".step_{step:08d}.tmp"


def checksum(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def damage(path: Path) -> str:
    """What is wrong with a checkpoint, or an empty text."""
    try:
        expected = json.loads((path / CHECKSUMS).read_text())
    except (OSError, ValueError):
        return f"{CHECKSUMS} is missing or cannot be read"
    for name, digest in expected.items():
        try:
            if checksum(path / name) != digest:
                return f"{name} differs from its checksum"
        except OSError:
            return f"{name} is missing or cannot be read"
    return ""


def checkpoints(root: Path) -> list[Path]:
    """The checkpoints of a run, oldest first; `damage` checks whether their files are intact."""
    if not root.is_dir():
        return []
    found = [path for path in root.iterdir() if STEP.fullmatch(path.name) and (path / "state.json").is_file()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step_")))


def set_aside(root: Path) -> None:
    """Move the checkpoints of an earlier run of the same name to a numbered folder: a new run must not be resumed from them."""
    if checkpoints(root):
        root.rename(next(path for n in range(1, 10**6) if not (path := root.with_name(f"{root.name}_{n}")).exists()))


def find_checkpoint(given: str, root: Path) -> Path | None:
    """The checkpoint that `--from_resume` means: a folder, or the newest intact one; `None` where there is none yet."""
    path = root if given == "auto" else Path(given)
    if (path / "state.json").is_file():
        if wrong := damage(path):
            raise CheckpointError(f"--from_resume {given}: the checkpoint is damaged: {wrong}.")
        return path
    found = checkpoints(path)
    if not found and given != "auto":
        raise CheckpointError(f"--from_resume {given}: no checkpoint there (a folder with state.json, or with step_… in it).")
    for one in reversed(found):
        wrong = damage(one)
        if not wrong:
            return one
        print(f"checkpoint {one} is damaged and skipped: {wrong}")
    if found:
        raise CheckpointError(f"All {len(found)} checkpoints in {path} are damaged. Start without --from_resume.")
    return None


def load_checkpoint(
    path: Path, models: dict[str, torch.nn.Module], optimizers: dict[str, torch.optim.Optimizer]
) -> dict[str, Any]:
    """Restore weights and optimizers, and return the rest of the state."""
    state = json.loads((path / "state.json").read_text())
    if state.get("sharded"):
        raise CheckpointError(f"--from_resume: {path} was written by a sharded run. Add --fsdp.")
    if state.get("frozen", "") != frozen_digest(models):
        raise CheckpointError(f"--from_resume: the frozen weights differ from those of {path}.")
    for name, model in models.items():
        load_trained(model, path / f"{name}.safetensors")
    for name, optimizer in optimizers.items():
        load_optimizer(optimizer, path / f"{name}_optimizer.safetensors")
    return state


# What may differ between a run and its resumption: where things are written, how they are shown, how a step is cut into passes
# (samples per step count, see `fingerprint`), how long the run is, and faults.
_FREE = frozenset(
    [
        "save_dir",
        "run_id",
        "save_weight",
        "from_resume",
        "resume_anyway",
        "config",
        "log_interval",
        "report_to",
        "use_wandb",
        "wandb_project",
        "no_rldk",
        "stop_on",
        "save_interval",
        "keep_checkpoints",
        "num_threads",
        "device",
        "max_steps",
        "epochs",
        "inject",
        "on_nonfinite",
        "max_skipped_updates",
        "eval_interval",
        "eval_reward",
        "eval_prompts",
        "eval_generations",
        "eval_new_tokens",
        "pass_score",
        "plan",
        "json",
        "data_config",
        "use_prepared",
        "batch_size",
        "accumulation_steps",
        "logprob_chunk",
        "gradient_checkpointing",
        "compile",
        "fsdp",
        "rollout_memory",
    ]
)


def fingerprint(args: argparse.Namespace, samples_per_step: int, data: Iterable[Any]) -> dict[str, Any]:
    """What the course of a run depends on: arguments, samples per step, and the data as tokens."""
    digest = blake2b(digest_size=16)
    for item in data:
        digest.update(json.dumps(item.tolist() if isinstance(item, torch.Tensor) else item, default=str).encode())
    kept = {key: value for key, value in sorted(vars(args).items()) if key not in _FREE}
    return {**kept, "samples per step": samples_per_step, "data": digest.hexdigest()}


def check_fingerprint(saved: dict[str, Any] | None, now: dict[str, Any], anyway: bool) -> list[str]:
    """The differences between a run and the one it resumes; raises an error unless `anyway`."""
    if saved is None:
        return []
    now = json.loads(json.dumps(now, default=str))
    names = [name for name in now if name in saved and now[name] != saved[name]]
    differences = ["other data" if name == "data" else f"{name} was {saved[name]} and is {now[name]}" for name in names]
    if differences and not anyway:
        raise CheckpointError(
            f"--from_resume: the checkpoint belongs to a run with other settings: {'; '.join(differences)}. "
            "Use the same settings, or add --resume_anyway."
        )
    return differences
