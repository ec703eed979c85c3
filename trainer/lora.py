"""Low-rank adapters (`--lora_rank`, with PEFT): the weights are frozen, and small matrices next to them are trained.

Optimizer and gradients then take little memory, and the reference none: it is the model without its adapters. Weights are
written merged, so that the next stage loads them as usual; the adapters alone are in the folder `adapter` next to them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

_NAME = "default"  # of the one set of adapters


def add_adapters(args: argparse.Namespace, model: Any) -> Any:
    """With --lora_rank, freeze the weights and add adapters to the linear layers, in place; a value or reward head is trained."""
    if not args.lora_rank:
        return model
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise ValueError("--lora_rank needs a package: pip install peft") from None
    head = _head(model)
    config = LoraConfig(
        r=args.lora_rank,
        lora_alpha=args.lora_alpha or 2 * args.lora_rank,
        target_modules=args.lora_targets if args.lora_targets == "all-linear" else args.lora_targets.split(","),
        exclude_modules=[head] if head else None,
        lora_dropout=0.0,
        base_model_name_or_path=model.config.name_or_path,
        task_type=None if head else "CAUSAL_LM",
    )
    inject_adapter_in_model(config, model, adapter_name=_NAME)
    if head:
        model.get_submodule(head).requires_grad_(True)
    return model


def _head(model: Any) -> str:
    """The name of the output layer of a value or reward model; empty for a language model."""
    linear = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    return linear[-1][0] if linear and linear[-1][1].out_features == 1 else ""


def adapted_layers(model: Any) -> dict[str, Any]:
    """The layers with adapters by name; none where there are no adapters."""
    if not hasattr(model, "peft_config"):
        return {}
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {name: module for name, module in model.named_modules() if isinstance(module, BaseTunerLayer)}


@contextmanager
def adapters_off(model: Any) -> Iterator[None]:
    """The model without its adapters. PEFT's own switch would also change which weights are trained."""
    layers = adapted_layers(model).values()
    for layer in layers:
        layer._disable_adapters = True
    try:
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


class AdaptersOff(torch.nn.Module):
    """A reference that is the model itself without its adapters.

    Args:
        passes: the function to call, such as the log-probabilities of the model.
        model: the model with adapters.
    """

    def __init__(self, passes: torch.nn.Module, model: Any) -> None:
        super().__init__()
        self.passes, self.model = passes, model

    def forward(self, *given: Any, **named: Any) -> Any:
        with adapters_off(self.model):
            return self.passes(*given, **named)

    def parameters(self, recurse: bool = True) -> Iterator[torch.nn.Parameter]:
        """The parameters of the reference, without the adapters."""
        return (weight for name, weight in self.model.named_parameters(recurse=recurse) if ".lora_" not in name)


def merged_state(model: Any, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of a model with adapters as those of one without, by the names of the latter; the model is not changed."""
    layers = adapted_layers(model)
    if not layers:
        return state
    found = {}
    for key, value in state.items():
        name, inner, leaf = key.partition(".base_layer.")
        if ".lora_" in key:
            continue
        if inner and leaf == "weight":
            first, second = (state[f"{name}.lora_{part}.{_NAME}.weight"].float() for part in "AB")
            change = second @ first * layers[name].scaling[_NAME]
            value = (value.float() + (change.T if layers[name].fan_in_fan_out else change)).to(value.dtype)
        found[f"{name}.{leaf}" if inner else key] = value
    return found


def save_adapters(model: Any, state: dict[str, torch.Tensor], folder: Path) -> None:
    """Write the adapters alone, as PEFT reads them."""
    kept = {key: value for key, value in state.items() if ".lora_" in key}
    if kept:
        folder.mkdir()
        named = {f"base_model.model.{key.replace(f'.{_NAME}.', '.')}": value.contiguous().cpu() for key, value in kept.items()}
        save_file(named, folder / "adapter_model.safetensors", metadata={"format": "pt"})
        model.peft_config[_NAME].save_pretrained(str(folder))
