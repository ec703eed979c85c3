"""Checkpoints that are whole or not there, and the way back from them.

A checkpoint is a folder `step_00000120` of safetensors and JSON: weights, optimizer state, and what else a stage gives as
plain values. It is written under another name, flushed to the disk, and renamed; a kill at any moment leaves the last one.
Randomness, learning rate and data position need no place in it: each is a function of the seed and the step.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

STEP = re.compile(r"step_(\d{8,})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class CheckpointError(Exception):
    """A checkpoint or weight folder that is not there or cannot be used."""


def checked_name(name: str, flag: str) -> str:
    """A name that makes one folder or file and cannot lead out of its parent."""
    if not _NAME.fullmatch(name):
        raise CheckpointError(
            f"Expected {flag} to be letters, digits, `_`, `-` and `.`, not beginning with a mark, got {name!r}."
        )
    return name


def sync_tree(folder: Path) -> None:
    """Make the files of a folder, and the folder itself, outlive a crash of the machine."""
    for path in [*(path for path in folder.rglob("*") if path.is_file()), folder]:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def put_in_place(made: Path, place: Path) -> None:
    """Rename a finished folder to its name. An older one of that name stands beside it until the new one is there."""
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
    """Put back an older folder where a kill came between the two renames of `put_in_place`."""
    old = place.with_name(f".{place.name}.old")
    if not place.exists() and old.is_dir():
        old.rename(place)
    return place


def save_optimizer(optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Tensors as safetensors, the rest as JSON in its header: nothing is pickled."""
    saved = optimizer.state_dict()
    tensors: dict[str, torch.Tensor] = {}
    plain: dict[str, dict[str, Any]] = {}
    for number, state in saved["state"].items():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{number}.{key}"] = value.detach().contiguous().cpu()
            else:
                plain.setdefault(str(number), {})[key] = value
    save_file(tensors, path, metadata={"groups": json.dumps(saved["param_groups"]), "plain": json.dumps(plain)})


def load_optimizer(optimizer: torch.optim.Optimizer, path: Path) -> None:
    with safe_open(path, "pt") as opened:
        about = opened.metadata()
    state: dict[int, dict[str, Any]] = {int(number): dict(values) for number, values in json.loads(about["plain"]).items()}
    for name, tensor in load_file(path).items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = tensor
    groups = json.loads(about["groups"])
    for group in groups:
        group.update((key, tuple(value)) for key, value in group.items() if key == "betas")
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def save_checkpoint(
    root: Path,
    step: int,
    models: dict[str, torch.nn.Module],
    optimizers: dict[str, torch.optim.Optimizer],
    state: dict[str, Any],
    keep: int = 2,
) -> Path:
    """Write the checkpoint of a step, and forget all but the `keep` newest. Call it on the main process only."""
    root.mkdir(parents=True, exist_ok=True)
    place = root / f"step_{step:08d}"
    made = root / f".{place.name}.tmp"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    for name, model in models.items():
        save_model(model, str(made / f"{name}.safetensors"))
    for name, optimizer in optimizers.items():
        save_optimizer(optimizer, made / f"{name}_optimizer.safetensors")
    (made / "state.json").write_text(json.dumps({**state, "step": step}))
    put_in_place(made, place)
    for old in checkpoints(root)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def checkpoints(root: Path) -> list[Path]:
    """The whole checkpoints of a run, oldest first."""
    if not root.is_dir():
        return []
    found = [path for path in root.iterdir() if STEP.fullmatch(path.name) and (path / "state.json").is_file()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step_")))


def set_aside(root: Path) -> None:
    """Give the checkpoints of an earlier run by the same name a folder of their own, with a number.

    A run that begins anew would otherwise lose its first ones to them, and be resumed from one that is not its own.
    """
    if checkpoints(root):
        root.rename(next(path for n in range(1, 10**6) if not (path := root.with_name(f"{root.name}_{n}")).exists()))


def find_checkpoint(given: str, root: Path) -> Path | None:
    """The checkpoint that `--from_resume` means: a folder, or the newest of this run; `None` where there is none yet."""
    if given == "auto":
        found = checkpoints(root)
        return found[-1] if found else None
    path = Path(given)
    if not (path / "state.json").is_file():
        inside = checkpoints(path)
        if not inside:
            raise CheckpointError(f"--from_resume {given}: no checkpoint there (a folder with state.json, or with step_… in it).")
        path = inside[-1]
    return path


def load_checkpoint(
    path: Path, models: dict[str, torch.nn.Module], optimizers: dict[str, torch.optim.Optimizer]
) -> dict[str, Any]:
    """Put weights and optimizers back as they were, and give the rest of the state."""
    for name, model in models.items():
        load_model(model, str(path / f"{name}.safetensors"))
    for name, optimizer in optimizers.items():
        load_optimizer(optimizer, path / f"{name}_optimizer.safetensors")
    return json.loads((path / "state.json").read_text())
