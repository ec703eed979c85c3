"""Weights, gradients and optimizer state divided among the processes (FSDP2, `--fsdp`), and checkpoints of such a run.

Each layer is gathered when it is needed and released afterwards. A checkpoint has one safetensors file per process, whose header
says which part of which tensor it holds (`torch.distributed.checkpoint`): nothing is pickled. Like any other it is complete or
absent, with checksums; see checkpoint.py. All processes call these functions together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from accelerate import Accelerator
from accelerate.utils import gather_object
from safetensors import SafetensorError
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from checkpoint import CheckpointError, begin_checkpoint, finish_checkpoint, give_up_checkpoint, unfinished

_FLAT = StateDictOptions(flatten_optimizer_state_dict=True)


def shard(model: Any, accelerator: Accelerator) -> Any:
    """Divide a model among the processes, layer by layer."""
    if not dist.is_initialized():
        raise ValueError("--fsdp divides the model among processes: start the stage with `torchrun --nproc_per_node N`.")
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    model.to(accelerator.device)
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh, reshard_after_forward=True)  # an evaluation leaves it sharded as well


def _layers(model: Any) -> list[torch.nn.Module]:
    """The decoder's layers: the list of modules with the most parameters."""
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    return list(max(lists, key=lambda found: sum(p.numel() for p in found.parameters()), default=[]))


def is_sharded(model: Any) -> bool:
    return isinstance(model, FSDPModule)


def whole_state(model: Any) -> dict[str, torch.Tensor]:
    """The full weights in the memory of the first process, tied ones once; empty in the others."""
    found = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    return {name: weight for name, weight in found.items() if name not in _tied(model)}


def save_sharded(
    accelerator: Accelerator,
    root: Path,
    step: int,
    model: Any,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    keep: int,
) -> None:
    """Like `save_checkpoint`, with one part per process; if one fails, all do."""
    main = accelerator.is_main_process
    tensors = _tensors(model, *get_state_dict(model, optimizer, options=_FLAT))
    try:
        _together(lambda: begin_checkpoint(root, step) if main else None)
        writer = dcp.HuggingFaceStorageWriter(str(unfinished(root, step)), save_distributed=True)
        _together(lambda: dcp.save(tensors, storage_writer=writer))
        _together(lambda: finish_checkpoint(root, step, {**state, "sharded": True}, keep) if main else None)
    except CheckpointError as error:
        if main:
            give_up_checkpoint(root, step)
        raise CheckpointError(f"The checkpoint of step {step} cannot be written to {root}: {error}") from error


def load_sharded(path: Path, model: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Restore this process's part, and return the rest of the state."""
    state = json.loads((path / "state.json").read_text())
    if not state.get("sharded"):
        raise CheckpointError(f"--from_resume: {path} was written by a run without --fsdp. Remove --fsdp.")
    weights, moments = get_state_dict(model, optimizer, options=_FLAT)
    dcp.load(_tensors(model, weights, moments), storage_reader=dcp.HuggingFaceStorageReader(str(path)))
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments, options=_FLAT)
    return state


def _tensors(model: Any, weights: dict[str, Any], moments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The content of a checkpoint, with tied weights once. The optimizer's settings follow from arguments and step."""
    found = {f"model.{name}": value for name, value in weights.items() if name not in _tied(model)}
    return found | {f"optimizer.{name}": value for name, value in moments.items() if isinstance(value, torch.Tensor)}


def _tied(model: Any) -> set[str]:
    """The further names of tied weights."""
    return {name for name, _ in model.named_parameters(remove_duplicate=False)} - {name for name, _ in model.named_parameters()}


def _together(act: Callable[[], Any]) -> None:
    """Do something in all processes; if it fails in one, it fails in all."""
    failed = ""
    try:
        act()
    except (OSError, SafetensorError, dcp.CheckpointException) as error:
        failed = str(error).strip().splitlines()[-1] or type(error).__name__
    if failed := next(filter(None, gather_object([failed])), ""):
        raise CheckpointError(failed)
