"""Where the checkpoints of a run are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from rldk.checkpoints.checkpoint import has_weights, is_weights, step_of
from rldk.core.errors import ReadError

__all__ = ["Found", "find_checkpoints", "weight_bytes"]

_SHARD = re.compile(r"-\d+-of-\d+$")
_INSIDE = ("policy", "actor", "actor/huggingface", "huggingface", "hf", "model", "weights")
"""Where frameworks put the policy's weights inside the folder of a step."""


class Found(NamedTuple):
    """A checkpoint and its step; no step for the weights saved at the end, in the folder of the run itself."""

    path: Path
    step: int | None


def find_checkpoints(folder: str | Path) -> list[Found]:
    """The checkpoints of a run in the order of their steps.

    `folder` holds one folder for each (`checkpoint-100`, `global_step_100/actor` …) or one file for each
    (`policy_100.safetensors`); or it is a single checkpoint itself.
    """
    root = Path(folder)
    if root.is_file():
        return [Found(root, step_of(root))]
    if not root.is_dir():
        raise ReadError(f"{root} does not exist.")
    children = [(child, place) for child in sorted(root.iterdir()) if _shown(child) for place in _places(child)]
    found = [Found(place, step_of(child)) for child, place in children]
    if not any(one.step is not None for one in found):
        files = [file for file in root.iterdir() if file.is_file() and has_weights(file) and not _SHARD.search(file.stem)]
        stepped = [Found(file, step_of(file)) for file in files if step_of(file) is not None]
        found = stepped if len(stepped) > 1 and len(stepped) == len(files) else found
    if not found and has_weights(root):
        return [Found(root, step_of(root))]
    found.sort(key=lambda one: (one.step is None, one.step or 0, str(one.path)))
    if found and has_weights(root) and all(one.path.is_dir() for one in found):
        found.append(Found(root, None))
    if not found:
        raise ReadError(f"{root} holds no checkpoints: neither folders such as checkpoint-100 nor files of weights.")
    return found


def _shown(child: Path) -> bool:
    """Whether it is a folder, and none that is still being written or on its way out."""
    return child.is_dir() and not child.name.startswith((".", "tmp-"))


def _places(child: Path) -> list[Path]:
    """Where the weights are below the folder of a step; nowhere for other folders."""
    return [place for place in (child, *(child / inside for inside in _INSIDE)) if place.is_dir() and has_weights(place)][:1]


def weight_bytes(path: Path) -> int:
    """What the files of weights of a checkpoint take on the disk."""
    files = [path] if path.is_file() else [file for file in path.iterdir() if is_weights(file)]
    return sum(file.stat().st_size for file in files)
