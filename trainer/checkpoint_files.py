"""The files of a checkpoint: weights and optimizer state as safetensors, with nothing pickled."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model


class CheckpointError(Exception):
    """A checkpoint or weight folder that is missing or cannot be used."""


def save_trained(model: torch.nn.Module, path: Path) -> None:
    """Save all weights, or only those that are trained if some are frozen."""
    trained = {name: weight.detach().contiguous() for name, weight in model.named_parameters() if weight.requires_grad}
    if len(trained) == len(list(model.parameters())):
        save_model(model, str(path))
    else:
        save_file(trained, path)


def load_trained(model: torch.nn.Module, path: Path) -> None:
    """Load what `save_trained` wrote."""
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    if len(trained) == len(list(model.parameters())):
        load_model(model, str(path))
        return
    found = load_file(path)
    if found.keys() != trained.keys():
        raise CheckpointError(f"--from_resume: {path} holds other weights than those that are trained now.")
    with torch.no_grad():
        for name, weight in trained.items():
            weight.copy_(found[name])


def frozen_digest(models: dict[str, torch.nn.Module]) -> str:
    """A checksum of a sample of the frozen weights, which are not in the checkpoint; empty where there are none."""
    digest, count = blake2b(digest_size=16), 0
    for weight in (weight for model in models.values() for weight in model.parameters() if not weight.requires_grad):
        flat = weight.detach().flatten()
        digest.update(flat[:: max(1, len(flat) // 64)].float().cpu().numpy().tobytes())
        count += 1
    return digest.hexdigest() if count else ""


def save_optimizer(optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Tensors as safetensors, the rest as JSON in its header: nothing is pickled."""
    saved = optimizer.state_dict()
    tensors: dict[str, torch.Tensor] = {}
    places: set[int] = set()
    plain: dict[str, dict[str, Any]] = {}
    for number, state in saved["state"].items():
        for key, value in _flat(state):
            if isinstance(value, torch.Tensor):
                here = value.detach().contiguous().cpu()
                shared = here.data_ptr() in places  # 8-bit optimizers have one table for all parameters
                tensors[f"{number}.{key}"] = here.clone() if shared else here
                places.add(here.data_ptr())
            else:
                plain.setdefault(str(number), {})[key] = value
    save_file(tensors, path, metadata={"groups": json.dumps(saved["param_groups"]), "plain": json.dumps(plain)})


def _flat(state: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The state of one parameter by its keys; those of a dict within it (of 8-bit optimizers) after a slash."""
    for key, value in state.items():
        if isinstance(value, dict):
            yield from ((f"{key}/{inner}", one) for inner, one in value.items())
        else:
            yield key, value


def load_optimizer(optimizer: torch.optim.Optimizer, path: Path) -> None:
    with safe_open(path, "pt") as opened:
        about = opened.metadata()
    state: dict[int, dict[str, Any]] = {}
    plain = [(number, key, value) for number, kept in json.loads(about["plain"]).items() for key, value in kept.items()]
    for number, key, value in [*plain, *((*name.split(".", 1), tensor) for name, tensor in load_file(path).items())]:
        outer, _, inner = key.partition("/")
        place = state.setdefault(int(number), {})
        (place.setdefault(outer, {}) if inner else place)[inner or outer] = value
    groups = json.loads(about["groups"])
    for group in groups:
        group.update((key, tuple(value)) for key, value in group.items() if key == "betas")
    optimizer.load_state_dict({"state": state, "param_groups": groups})
