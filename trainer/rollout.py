"""Rollouts: prompts in, sampled responses out, with little between the matrix products.

`model.generate` spends most of a small model's time outside of the model. Here the prompts go through the model once, and
then one token at a time: for models built like Llama by a lean pass over the same weights, for others by their own
forward. The lean pass is compared with the model's own forward the first time it is used, and given up if they differ.

The noise is given, one number for each sample and token, so that a response does not depend on which batch or process
its prompt was in, nor on what was drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lean import is_plain, joined, joined_bias


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
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=prompts.device)
    last, on_cpu = length - 1, prompts.device.type == "cpu"
    for t, drawn in enumerate(noise.split(1, dim=1)):
        chance = (logits.float() if temperature == 1.0 else logits.float() / temperature).softmax(-1)
        upto = chance.cumsum(-1)
        token = torch.searchsorted(upto, drawn * upto[:, -1:], right=True).clamp_(max=chance.shape[-1] - 1)
        chances.append(chance.gather(1, token))
        tokens.append(token)  # also of those that have ended: what is written after an end is taken away below
        ended.logical_or_(token == eos)
        if t == last or ((on_cpu or t % 8 == 7) and bool(ended.all())):
            break  # a GPU is asked only now and then: asking makes it wait
        logits = step(token, width + t)
    responses = torch.cat(tokens, dim=1)
    before_end = ((responses == eos).cumsum(1) - (responses == eos).long()) == 0
    mask = before_end.long()
    logprobs = torch.cat(chances, dim=1).log().masked_fill(~before_end, 0.0)
    responses = responses.masked_fill(~before_end, pad)
    whole = torch.cat([prompts, responses], dim=1)
    return Rollout(whole, torch.cat([prompt_mask, mask], dim=1), responses, mask, logprobs, ended.squeeze(1))


def _new_cache(model: Any) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def _decoder(model: Any, cache: Any, attention: Tensor, positions: Tensor, width: int) -> Any:
    """A function `(token, place) -> logits` that goes on from the prompts in the cache; tokens are `(batch, 1)`."""

    def own(token: Tensor, place: int) -> Tensor:
        given = {"attention_mask": attention[:, : place + 1], "position_ids": positions[:, place : place + 1]}
        return model(input_ids=token, past_key_values=cache, use_cache=True, **given).logits[:, -1]

    exact = next(model.parameters()).dtype == torch.float32  # what is done in less is left to autocast
    if not exact or not getattr(model, "lean_agrees", True) or not is_plain(model):
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
    """One token through a model of Llama's build: the same weights, about twenty operations a layer.

    The two features that a position turns into each other are put side by side in queries and keys, so that turning them
    is one product of complex numbers. Products of queries and keys are the same in any order of the features.
    """

    def __init__(self, model: Any, cache: Any, attention: Tensor, positions: Tensor, width: int) -> None:
        body, config = model.model, model.config
        self.heads, self.shared = config.num_attention_heads, config.num_key_value_heads
        self.size = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.embedding, root = body.embed_tokens.weight, config.hidden_size**0.5
        self.least = (config.hidden_size * torch.tensor(config.rms_norm_eps, device=attention.device)).sqrt()
        angles = positions[..., None] * body.rotary_emb.inv_freq
        self.turns = torch.polar(torch.ones_like(angles), angles).unsqueeze(2).unbind(1)
        self.unturned = torch.ones_like(self.turns[0]).expand(-1, self.shared, -1)  # values stay as they are
        self.layers = []
        for number, layer in enumerate(body.layers):
            attn, mlp, kept = layer.self_attn, layer.mlp, cache.layers[number]
            parts, wide = (attn.q_proj, attn.k_proj, attn.v_proj), (mlp.gate_proj, mlp.up_proj)
            both = kept.values.new_empty(2, *kept.keys.shape[:2], attention.shape[1], self.size)  # keys and values
            both[0, :, :, :width], both[1, :, :, :width] = kept.keys[..., _pairs(kept.keys, self.size)], kept.values
            keys, values = both.flatten(1, 2)
            mixed_bias = None if attn.q_proj.bias is None else _paired(joined_bias(parts), self.size, self.shared)
            products = (
                (_paired(joined(parts, layer.input_layernorm) * root, self.size, self.shared), mixed_bias),
                (attn.o_proj.weight, attn.o_proj.bias),
                (joined(wide, layer.post_attention_layernorm) * root, joined_bias(wide)),
                (mlp.down_proj.weight, mlp.down_proj.bias),
            )
            self.layers.append((both, keys.mT, values, *(_product(*given, both.dtype) for given in products)))
        self.head = _product(model.lm_head.weight * (body.norm.weight * root), None, both.dtype)
        self.bias = attention.to(both.dtype).log().repeat_interleave(self.shared, dim=0)[:, None]  # -inf at padding

    def __call__(self, token: Tensor, place: int) -> Tensor:
        hidden = torch.embedding(self.embedding, token.squeeze(1))
        batch, heads, shared, size = len(hidden), self.heads, self.shared, self.size
        turn = torch.cat([self.turns[place].expand(-1, heads + shared, -1), self.unturned], dim=1)
        bias, scale, upto = self.bias.narrow(2, 0, place + 1), size**-0.5, place + 1
        for both, keys, values, to_mixed, out, to_gate_up, down in self.layers:
            mixed = to_mixed(self.scaled(hidden)).float().view(batch, -1, size // 2, 2)
            mixed = torch.view_as_real(torch.view_as_complex(mixed) * turn).view(batch, -1, size)
            both.select(3, place).copy_(mixed.narrow(1, heads, 2 * shared).view(batch, 2, shared, size).transpose(0, 1))
            queries = mixed.narrow(1, 0, heads).reshape(batch * shared, -1, size)
            chances = torch.baddbmm(bias, queries, keys.narrow(2, 0, upto), alpha=scale).softmax(-1)
            found = torch.bmm(chances, values.narrow(1, 0, upto))
            hidden = hidden + out(found.view(batch, -1))
            gate, up = to_gate_up(self.scaled(hidden)).chunk(2, -1)
            hidden = hidden + down(F.silu(gate) * up)
        return self.head(self.scaled(hidden))

    def scaled(self, hidden: Tensor) -> Tensor:
        """To a length of 1, as if `eps` were there too; the norms' weights and the root of the size are in the matrices."""
        return hidden / torch.linalg.vector_norm(hidden, dim=-1, keepdim=True).hypot_(self.least)


def _product(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Any:
    """`F.linear` by this weight, which is turned over and cast once and not at every token."""
    matrix = weight.to(dtype).t()
    return partial(torch.mm, mat2=matrix) if bias is None else partial(torch.addmm, bias.to(dtype), mat2=matrix)


def _pairs(like: Tensor, size: int) -> Tensor:
    """Features from halves, as Llama has them, to pairs: 0 and its partner, 1 and its partner, and so on."""
    return torch.arange(size, device=like.device).view(2, -1).t().flatten()


def _paired(rows: Tensor, size: int, shared: int) -> Tensor:
    """Rows of queries, keys and values with those of queries and keys in pairs."""
    each = rows.unflatten(0, (-1, size))
    return torch.cat([each[:-shared][:, _pairs(rows, size)], each[-shared:]]).flatten(0, 1)
