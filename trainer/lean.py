"""A lean pass over models of Llama's build: the same weights and the same numbers, in fewer operations.

On a CPU a small model spends more time between its matrix products than in them. Here queries, keys and values are one
product, and so are gate and up; the weights of the norms are taken into the matrices behind them; and the last layer is
worked out only at the places whose logits are asked for. The pass is compared with the model's own the first time it is
used, and given up if they differ. The pass that writes one token after the other is in rollout.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LEAN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "LlamaForTokenClassification", "Qwen2ForTokenClassification")


def is_plain(model: Any) -> bool:
    """Whether the build is Llama's: attention to everything before, positions turned in the plain way, no dropout."""
    config = model.config
    if type(model).__name__ not in LEAN or config.hidden_act != "silu" or getattr(config, "attention_dropout", 0.0):
        return False
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    return kinds == {"full_attention"} and rope.get("rope_type", "default") == "default"


def answer_at_places(model: Any, lean: bool = True) -> Any:
    """Let `model(..., use_cache=False, places=slice)` answer with the logits at these places alone, leanly where that can be.

    A call that asks for a cache goes to the model's own pass. The model itself is changed, so that a wrapper for several
    processes put around it afterwards sees the same pass.
    """
    own = model.forward
    model.lean_learns = None if lean and is_plain(model) else False  # None: not yet compared

    def forward(*args: Any, places: slice | None = None, **given: Any) -> Any:
        if places is None:
            return own(*args, **given)
        if model.lean_learns is None:
            model.lean_learns = agrees(model, own, places, given)
        if model.lean_learns:
            return SimpleNamespace(logits=lean_logits(model, places, **given))
        if "CausalLM" in type(model).__name__:
            return own(*args, logits_to_keep=places, **given)
        return SimpleNamespace(logits=own(*args, **given).logits[:, places])

    model.forward = forward
    return model


@torch.no_grad()
def agrees(model: Any, own: Any, places: slice, given: dict[str, Any]) -> bool:
    """Whether both passes give the same logits, at places that are no padding."""
    there = given["attention_mask"][:, places].bool()
    ours, theirs = lean_logits(model, places, **given)[there].float(), own(**given).logits[:, places][there].float()
    exact = next(model.parameters()).dtype == torch.float32 and not torch.is_autocast_enabled(there.device.type)
    return bool((ours - theirs).abs().max() <= (1e-3 if exact else 5e-2) * theirs.abs().max())


def lean_logits(model: Any, places: slice, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, **_: Any) -> Tensor:
    """Logits of the policy, or values of the critic, at these places."""
    body, config = model.model, model.config
    heads, shared, eps = config.num_attention_heads, config.num_key_value_heads, config.rms_norm_eps
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    batch, length = input_ids.shape
    cos, sin = (turn[:, :, None] for turn in body.rotary_emb(body.norm.weight, position_ids=position_ids))
    half = size // 2
    sin = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)  # the sign of the half that is turned over
    earlier = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).tril()
    itself = torch.eye(length, dtype=torch.bool, device=input_ids.device)  # padding has nothing else to look at
    seen = (earlier & attention_mask.bool()[:, None, None, :]) | itself
    hidden = F.embedding(input_ids, body.embed_tokens.weight)
    for layer in body.layers:
        attention, mlp = layer.self_attn, layer.mlp
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        mixed = F.linear(unit(hidden, eps), _joined(parts, layer.input_layernorm), _joined_bias(parts))
        turn, values = mixed.view(batch, length, -1, size).split((heads + shared, shared), dim=2)
        queries, keys = torch.addcmul(turn * cos, turn.roll(half, -1), sin).split((heads, shared), dim=2)
        if layer is body.layers[-1]:  # what nobody asks for need not be known
            queries, seen, hidden = queries[:, places], seen[:, :, places], hidden[:, places]
        found = F.scaled_dot_product_attention(
            queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), attn_mask=seen, enable_gqa=heads != shared
        )
        hidden = hidden + attention.o_proj(found.transpose(1, 2).flatten(2))
        parts = (mlp.gate_proj, mlp.up_proj)
        gate, up = F.linear(unit(hidden, eps), _joined(parts, layer.post_attention_layernorm), _joined_bias(parts)).chunk(2, -1)
        hidden = hidden + mlp.down_proj(F.silu(gate) * up)
    head = model.lm_head if hasattr(model, "lm_head") else model.score
    return F.linear(unit(hidden, eps), head.weight * body.norm.weight, head.bias)


def _joined(parts: tuple[Any, ...], norm: Any) -> Tensor:
    return torch.cat([part.weight for part in parts]) * norm.weight


def _joined_bias(parts: tuple[Any, ...]) -> Tensor | None:
    return None if parts[0].bias is None else torch.cat([part.bias for part in parts])


def unit(hidden: Tensor, eps: float) -> Tensor:
    """To a root mean square of 1 over the last dimension."""
    return _Unit.apply(hidden, eps)


class _Unit(torch.autograd.Function):
    """With a way back of its own: three passes over the numbers where autograd needs seven."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, eps: float) -> Tensor:
        scale = torch.linalg.vector_norm(hidden, dim=-1, keepdim=True).square_().div_(hidden.shape[-1]).add_(eps).rsqrt_()
        scaled = hidden * scale
        ctx.save_for_backward(scaled, scale)
        return scaled

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        scaled, scale = ctx.saved_tensors
        along = (gradient * scaled).mean(-1, keepdim=True)
        return torch.addcmul(gradient, scaled, along, value=-1.0).mul_(scale), None
