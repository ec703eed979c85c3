"""A lean pass over models of Llama's build: the same weights and the same numbers, in fewer operations.

On a CPU a small model spends more time between its matrix products than in them. Here queries, keys and values are one
product, and so are gate and up; the weights of the norms are taken into the matrices behind them; attention over short
sequences is laid out for small products; and the last layer is worked out only at the places whose logits are asked for.
The pass is compared with the model's own the first time it is used, and given up if they differ. The pass that writes one
token after the other is in rollout.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

SHORT = 128  # longest sequences whose attention is worked out whole; longer ones gain nothing by it
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
    heads, eps = config.num_attention_heads, config.rms_norm_eps
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    batch, length = input_ids.shape
    cos, sin = turns(body, position_ids)
    later = torch.full((length, length), -torch.inf, device=input_ids.device).triu(1)
    bias = later.masked_fill(~attention_mask.bool()[:, None], -torch.inf)
    bias.diagonal(dim1=1, dim2=2).zero_()  # padding has nothing else to look at
    hidden = F.embedding(input_ids, body.embed_tokens.weight)
    for layer in body.layers:
        attention, mlp = layer.self_attn, layer.mlp
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        mixed = F.linear(unit(hidden, eps), joined(parts, layer.input_layernorm), joined_bias(parts))
        asked = places if layer is body.layers[-1] else slice(length)  # what nobody asks for need not be known
        found = attention_at(asked, mixed.view(batch, length, -1, size), cos, sin, bias, heads)
        hidden = hidden[:, asked] + attention.o_proj(found)
        parts = (mlp.gate_proj, mlp.up_proj)
        gate, up = F.linear(unit(hidden, eps), joined(parts, layer.post_attention_layernorm), joined_bias(parts)).chunk(2, -1)
        hidden = hidden + mlp.down_proj(F.silu(gate) * up)
    head = model.lm_head if hasattr(model, "lm_head") else model.score
    return F.linear(unit(hidden, eps), head.weight * body.norm.weight, head.bias)


def joined(parts: tuple[Any, ...], norm: Any) -> Tensor:
    return torch.cat([part.weight for part in parts]) * norm.weight


def joined_bias(parts: tuple[Any, ...]) -> Tensor | None:
    return None if parts[0].bias is None else torch.cat([part.bias for part in parts])


def turns(body: Any, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each position by feature, `(batch, size of a head, length)`; see `turned`."""
    angles = body.rotary_emb.inv_freq[:, None] * positions[:, None]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], dim=1), torch.cat([-sin, sin], dim=1)  # the sign of the half that is turned over


def turned(features: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Queries or keys turned by their position; features are the last but one dimension."""
    return torch.addcmul(features * cos, features.roll(features.shape[-2] // 2, -2), sin)


def attention_at(places: slice, mixed: Tensor, cos: Tensor, sin: Tensor, bias: Tensor, heads: int) -> Tensor:
    """What the queries at these places find; `mixed` has queries, keys and values, `(batch, length, heads of all, size)`."""
    if mixed.shape[1] <= SHORT and mixed.dtype == torch.float32 and not torch.is_autocast_enabled(mixed.device.type):
        return _ShortAttention.apply(places, mixed, cos, sin, bias, heads)
    shared = (mixed.shape[2] - heads) // 2
    turn, values = mixed.split((heads + shared, shared), dim=2)
    turn = turned(turn.permute(0, 2, 3, 1), cos[:, None], sin[:, None]).mT.contiguous()
    found = F.scaled_dot_product_attention(
        turn[:, :heads, places], turn[:, heads:], values.transpose(1, 2), attn_mask=bias[:, None, places].to(turn.dtype),
        enable_gqa=heads != shared,
    )  # fmt: skip
    return found.transpose(1, 2).flatten(2)


class _ShortAttention(torch.autograd.Function):
    """With features before places: a CPU multiplies a wide matrix by a square one several times faster than a narrow one."""

    @staticmethod
    def forward(ctx: Any, places: slice, mixed: Tensor, cos: Tensor, sin: Tensor, bias: Tensor, heads: int) -> Tensor:
        batch, length, every, size = mixed.shape
        shared = (every - heads) // 2
        whole = mixed.permute(2, 0, 3, 1).contiguous()
        turn, values = turned(whole[:-shared], cos, sin), whole[-shared:]
        queries = (turn[:heads, ..., places] * size**-0.5).flatten(0, 1)
        keys, values = (_for_all(part, heads // shared) for part in (turn[heads:], values))
        scores = torch.bmm(queries.mT, keys)
        scores.view(heads, batch, -1, length).add_(bias[:, places])
        chances = scores.softmax(-1)
        found = torch.bmm(values, chances.mT)
        ctx.save_for_backward(queries, keys, values, chances, found, cos, sin)
        ctx.about = places, batch, length, heads, shared
        return found.view(heads, batch, size, -1).permute(1, 3, 0, 2).flatten(2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, chances, found, cos, sin = ctx.saved_tensors
        places, batch, length, heads, shared = ctx.about
        size = keys.shape[1]
        gradient = gradient.unflatten(2, (heads, size)).permute(2, 0, 3, 1).reshape_as(found)
        scores = torch.bmm(gradient.mT, values).sub_((gradient * found).sum(1)[..., None]).mul_(chances)
        whole = gradient.new_zeros(heads + 2 * shared, batch, size, length)
        whole[:heads, ..., places] = torch.bmm(keys, scores.mT).view(heads, batch, size, -1).mul_(size**-0.5)
        for first, part in ((heads, torch.bmm(queries, scores)), (heads + shared, torch.bmm(gradient, chances))):
            torch.sum(part.view(shared, heads // shared, batch, size, length), dim=1, out=whole[first : first + shared])
        turn = whole[:-shared]
        torch.addcmul((turn * sin).roll(size // 2, -2), turn, cos, out=turn)
        return None, whole.permute(1, 3, 0, 2), None, None, None, None


def _for_all(part: Tensor, group: int) -> Tensor:
    """Keys or values `(shared, batch, size, length)` once for each head that shares them, heads and batch in one."""
    return part[:, None].expand(-1, group, -1, -1, -1).flatten(0, 2)


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
