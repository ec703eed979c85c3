"""Checkpoints on disk: where those of a run are, which files hold their weights, and what in them is damaged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rldk.checkpoints.dtypes import FLOATS, Array
from rldk.checkpoints.safetensors_file import Entry, SafetensorsFile, size_of
from rldk.checkpoints.torch_file import TorchFile
from rldk.core.errors import MissingDependencyError, ReadError
from rldk.core.jsonio import loads

__all__ = ["Checkpoint", "Found", "find_checkpoints", "has_weights", "is_weights", "may_hold_weights", "step_of", "weight_bytes"]

_WHOLE = ("model.safetensors", "adapter_model.safetensors", "pytorch_model.bin", "adapter_model.bin")
_INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")
_NOT_WEIGHTS = re.compile(r"(?:^|[_.-])(optimizer|optim|scheduler|scaler|rng_state|training_args|random_states)", re.IGNORECASE)
_SHARD = re.compile(r"-\d+-of-\d+$")
_WRAPPED = re.compile(r"^(?:module\.|_orig_mod\.)+")
_STEP = re.compile(r"(\d+)(?!.*\d)")


class Checkpoint:
    """The weights of one checkpoint: a folder as trainers save it, or a single file of weights.

    Folders may hold one file, shards with an index, or only an adapter (LoRA). A partly damaged checkpoint can still be read:
    `damage` says which shard is missing or cut off, and `lost` which tensors were in it. Where several
    models lie side by side (`actor.safetensors`, `critic.safetensors`), the name of each comes before those of its tensors.
    """

    def __init__(self, path: str | Path, step: int | None = None) -> None:
        self.path = Path(path)
        self.step = step_of(self.path) if step is None else step
        self.damage: list[str] = []
        self.lost: set[str] = set()
        self._files: dict[str, SafetensorsFile | TorchFile] = {}
        self._where: dict[str, tuple[SafetensorsFile | TorchFile, str]] = {}
        shards = self._shards()
        models = sum(not expected and not _SHARD.search(Path(name).stem) for name, expected in shards.items())
        for name, expected in shards.items():
            self._open(name, expected, f"{Path(name).stem}." if models > 1 else "")
        if not self._files:
            raise ReadError(" ".join(self.damage) or f"{self.path} holds no weights.")
        self.adapter = any(name.startswith("adapter_") for name in self._files)

    def _shards(self) -> dict[str, set[str]]:
        """The files with weights, each with the tensors that the index lists for it."""
        if self.path.is_file():
            return {self.path.name: set()}
        if not self.path.is_dir():
            raise ReadError(f"{self.path} does not exist.")
        for index in _INDICES:
            if (self.path / index).is_file():
                return _promised(self.path / index)
        for name in _WHOLE:
            if (self.path / name).is_file():
                return {name: set()}
        loose = sorted(file.name for file in self.path.iterdir() if is_weights(file))
        if loose:
            return {name: set() for name in loose}
        kinds = {file.suffix for file in self.path.rglob("*")}
        if ".distcp" in kinds:
            raise ReadError(f"{self.path} holds FSDP shards (.distcp): merge them first, e.g. with `accelerate merge-weights`.")
        raise ReadError(f"{self.path} holds no weights ({', '.join(_WHOLE[:2])}, shards with an index, or *.safetensors).")

    def _open(self, name: str, expected: set[str], prefix: str) -> None:
        folder = self.path if self.path.is_dir() else self.path.parent
        path = folder / name
        try:
            if not path.is_file():
                state = "not a regular file" if path.exists() else f"missing from {self.path}"
                raise ReadError(f"The shard {name} is {state}.")
            file = SafetensorsFile(path) if path.suffix == ".safetensors" else TorchFile(path)
        except (ReadError, MissingDependencyError) as error:
            self.damage.append(str(error))
            self.lost |= {_plain(tensor) for tensor in expected}
            return
        self._files[name] = file
        self._where |= {prefix + _plain(tensor): (file, tensor) for tensor in file.entries}
        absent = {_plain(tensor) for tensor in expected - set(file.entries)}
        if absent:
            self.damage.append(f"{name} lacks tensors that the index promises: {len(absent)}, {min(absent)} among them.")
            self.lost |= absent

    def __iter__(self) -> Iterator[str]:
        """The names of all tensors, without the prefixes that wrappers put before them."""
        return iter(self._where)

    def __contains__(self, name: object) -> bool:
        return name in self._where

    @property
    def size_bytes(self) -> int:
        """The size of all its tensors."""
        return sum(size_of(self.entry(name)) for name in self)

    def entry(self, name: str) -> Entry:
        file, own = self._where[name]
        return file.entries[own]

    def measured(self, name: str) -> bool:
        """Whether a tensor holds floating-point numbers that can be read."""
        return self.entry(name).dtype in FLOATS

    def read(self, name: str, first: int, into: Array) -> None:
        """Fill `into` (bytes) with the elements of a tensor from number `first` on."""
        file, own = self._where[name]
        file.read(own, first, into)

    def close(self) -> None:
        """Close the files; until then they stay readable (and keep their space), even if their folder is deleted."""
        for file in self._files.values():
            file.close()


def _plain(tensor: str) -> str:
    return _WRAPPED.sub("", tensor)


def _promised(index: Path) -> dict[str, set[str]]:
    try:
        weight_map = loads(index.read_bytes())["weight_map"]
        shards: dict[str, set[str]] = {}
        for tensor, name in weight_map.items():
            if Path(name).name != name:
                raise ReadError(f"{index} names a shard outside of its folder: {name!r}.")
            shards.setdefault(name, set()).add(tensor)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReadError(f"{index} is not an index of shards: {error}.") from error
    if not shards:
        raise ReadError(f"{index} names no shards.")
    return dict(sorted(shards.items()))


def is_weights(file: Path) -> bool:
    """Whether a file holds weights, by its name."""
    return file.suffix in _SUFFIXES and not _NOT_WEIGHTS.search(file.name) and file.is_file()


def may_hold_weights(name: str) -> bool:
    """Whether a file in a store holds weights or lists the files that do, by its name. Optimizer states are not fetched."""
    file = PurePosixPath(name)
    return file.name in _INDICES or (file.suffix in _SUFFIXES and not _NOT_WEIGHTS.search(file.name))


def has_weights(path: Path) -> bool:
    """Whether a folder (or file) holds weights itself."""
    with suppress(OSError):
        if path.is_file():
            return is_weights(path)
        return any(is_weights(file) or file.name in _INDICES for file in path.iterdir())
    return False


def step_of(path: Path) -> int | None:
    """The step in the name of a checkpoint: the last number in it, as in `checkpoint-500`."""
    found = _STEP.search(path.stem if path.is_file() else path.name)
    return int(found.group(1)) if found else None


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
    """Whether this is a folder, and is not being written or deleted."""
    return child.is_dir() and not child.name.startswith((".", "tmp-"))


def _places(child: Path) -> list[Path]:
    """Where the weights are below the folder of a step; empty for other folders."""
    return [place for place in (child, *(child / inside for inside in _INSIDE)) if place.is_dir() and has_weights(place)][:1]


def weight_bytes(path: Path) -> int:
    """The size on disk of a checkpoint's files of weights."""
    files = [path] if path.is_file() else [file for file in path.iterdir() if is_weights(file)]
    return sum(file.stat().st_size for file in files)
