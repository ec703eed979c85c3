"""Rollouts: prompts in, sampled responses out, with little between the matrix products.

`model.generate` spends most of a small model's time outside of the model. Here the prompts go through the model once, and
then one token at a time: for models built like Llama by a lean pass over the same weights, for others by their own
forward. The lean pass is compared with the model's own forward the first time it is used, and given up if they differ.

The noise is given, one number for each sample and token, so that a response does not depend on which batch or process
its prompt was in, nor on what was drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lean import is_plain


@dataclass
class Rollout:
    """Prompts and responses side by side; all tensors have the batch first."""

    tokens: Tensor  # prompt and response, padded left and right
    attention: Tensor  # 1 where a token is one
    responses: Tensor  # the response part
    mask: Tensor  # 1 at the tokens of the response, its end token included
    logprobs: Tensor  # of the response's tokens, at the temperature they were drawn with
    ended: Tensor  # whether the response has an end token


def sampling_noise(seed: int, step: int, samples: int, length: int) -> Tensor:
    """Uniform numbers for a step, the same in every process: rows are samples, in the order of the global batch."""
    generator = torch.Generator().manual_seed(((seed & 0xFFFFFFFF) << 24) + step)
    return torch.rand(samples, length, generator=generator)


@torch.no_grad()
def generate(model: Any, prompts: Tensor, prompt_mask: Tensor, noise: Tensor, temperature: float, eos: int, pad: int) -> Rollout:
    """Sample a response to each prompt, as many tokens as the noise has columns; ends early when all have ended."""
    batch, width = prompts.shape
    length = noise.shape[1]
    noise = noise.to(prompts.device)
    attention = torch.cat([prompt_mask, prompt_mask.new_ones(batch, length)], dim=1)
    positions = (attention.cumsum(1) - 1).clamp(min=0)
    cache = _new_cache(model)
    first = model(
        input_ids=prompts, attention_mask=prompt_mask, position_ids=positions[:, :width], past_key_values=cache,
        use_cache=True, logits_to_keep=1,
    )  # fmt: skip
    step = _decoder(model, cache, attention, positions, width)
    logits = first.logits[:, -1]
    tokens, chances = [], []
    ended = torch.zeros(batch, dtype=torch.bool, device=prompts.device)
    last_check = length - 1
    for t in range(length):
        chance = (logits.float() / temperature).softmax(-1)
        upto = chance.cumsum(-1)
        token = torch.searchsorted(upto, noise[:, t : t + 1] * upto[:, -1:], right=True).clamp_(max=chance.shape[-1] - 1)
        chances.append(chance.gather(1, token))
        token = token.squeeze(1).masked_fill(ended, pad)
        tokens.append(token)
        ended = ended | (token == eos)
        if t == last_check or ((prompts.device.type == "cpu" or t % 8 == 7) and bool(ended.all())):
            break  # a GPU is asked only now and then: asking makes it wait
        logits = step(token, width + t)
    responses = torch.stack(tokens, dim=1)
    before_end = ((responses == eos).cumsum(1) - (responses == eos).long()) == 0
    mask = before_end.long()
    logprobs = torch.cat(chances, dim=1).log().masked_fill(~before_end, 0.0)
    responses = responses.masked_fill(~before_end, pad)
    whole = torch.cat([prompts, responses], dim=1)
    return Rollout(whole, torch.cat([prompt_mask, mask], dim=1), responses, mask, logprobs, ended)


def _new_cache(model: Any) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def _decoder(model: Any, cache: Any, attention: Tensor, positions: Tensor, width: int) -> Any:
    """A function `(token, place) -> logits` that goes on from the prompts in the cache."""

    def own(token: Tensor, place: int) -> Tensor:
        given = {"attention_mask": attention[:, : place + 1], "position_ids": positions[:, place : place + 1]}
        return model(input_ids=token[:, None], past_key_values=cache, use_cache=True, **given).logits[:, -1]

    if not getattr(model, "lean_agrees", True) or not is_plain(model):
        return own
    lean = LeanDecoder(model, cache, attention, positions, width)
    if hasattr(model, "lean_agrees"):
        return lean

    def both(token: Tensor, place: int) -> Tensor:
        """The first token: by both ways. They share no cache, so either can go on."""
        if hasattr(model, "lean_agrees"):
            return lean(token, place) if model.lean_agrees else own(token, place)
        ours, theirs = lean(token, place).float(), own(token, place)
        close = 1e-3 if theirs.dtype == torch.float32 else 5e-2
        model.lean_agrees = bool((ours - theirs).abs().max() <= close * theirs.abs().max())
        return ours if model.lean_agrees else theirs

    return both


class LeanDecoder:
    """One token through a model of Llama's build: the same weights, about twenty operations a layer."""

    def __init__(self, model: Any, cache: Any, attention: Tensor, positions: Tensor, width: int) -> None:
        body, config = model.model, model.config
        self.body, self.head = body, model.lm_head.weight * body.norm.weight
        self.heads, self.shared = config.num_attention_heads, config.num_key_value_heads
        self.size = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.eps = config.rms_norm_eps
        batch, total = attention.shape
        cos, sin = body.rotary_emb(self.head, position_ids=positions)
        half = self.size // 2
        self.cos = cos.unbind(1)
        self.sin = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1).unbind(1)  # the sign of the half that is turned over
        self.bias = attention.bool()[:, None, None, :]
        self.layers = []
        for number, layer in enumerate(body.layers):
            attn, mlp, kept = layer.self_attn, layer.mlp, cache.layers[number]
            parts = (attn.q_proj, attn.k_proj, attn.v_proj)
            bias = None if parts[0].bias is None else torch.cat([part.bias for part in parts])
            keys = kept.keys.new_zeros(batch, self.shared, total, self.size)
            values = torch.zeros_like(keys)
            keys[:, :, :width], values[:, :, :width] = kept.keys, kept.values
            self.layers.append((
                torch.cat([part.weight for part in parts]) * layer.input_layernorm.weight, bias, keys, values,
                attn.o_proj.weight, attn.o_proj.bias, mlp.down_proj.weight, mlp.down_proj.bias,
                torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]) * layer.post_attention_layernorm.weight,
            ))  # fmt: skip

    def __call__(self, token: Tensor, place: int) -> Tensor:
        hidden = F.embedding(token, self.body.embed_tokens.weight)
        batch, turned, upto = len(hidden), self.heads + self.shared, place + 1
        cos, sin = self.cos[place][:, None], self.sin[place][:, None]
        bias, half, gqa = self.bias[..., :upto], self.size // 2, self.heads != self.shared
        for qkv, qkv_bias, keys, values, out, out_bias, down, down_bias, gate_up in self.layers:
            mixed = F.linear(self.scaled(hidden), qkv, qkv_bias).view(batch, -1, self.size)
            turn = mixed[:, :turned]
            turn = torch.addcmul(turn * cos, turn.roll(half, -1), sin)
            keys[:, :, place] = turn[:, self.heads :]
            values[:, :, place] = mixed[:, turned:]
            seen = F.scaled_dot_product_attention(
                turn[:, : self.heads, None], keys[:, :, :upto], values[:, :, :upto], attn_mask=bias, enable_gqa=gqa
            )
            hidden = hidden + F.linear(seen.view(batch, -1), out, out_bias)
            gate, up = F.linear(self.scaled(hidden), gate_up).chunk(2, -1)
            hidden = hidden + F.linear(F.silu(gate) * up, down, down_bias)
        return F.linear(self.scaled(hidden), self.head)

    def scaled(self, hidden: Tensor) -> Tensor:
        """To a root mean square of 1; the norms' own weights are already in the matrices that come after."""
        return hidden * (hidden.square().mean(-1, keepdim=True) + self.eps).rsqrt()
