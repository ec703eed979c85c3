"""Log-probabilities of responses under a policy, without holding the logits of all their tokens in memory.

The body of the model runs once. Its head, whose output is as wide as the vocabulary, runs over a chunk of tokens at a time; in
training each chunk is recomputed in the backward pass. The memory of the logits therefore does not grow with the batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rldk.functional.policy import entropy_of, selected_logprobs

_AFTER_THE_HEAD = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier", "output_multiplier_scale")


class TokenLogprobs(torch.nn.Module):
    """A causal language model that answers with log-probabilities (and entropies) of the response's tokens.

    Args:
        model: of Hugging Face, with a body (`base_model`) and a head (`get_output_embeddings`).
        chunk: tokens that go through the head at a time.
        compiled: compile the body. Generation calls the model itself and does not use the compiled body.
    """

    def __init__(self, model: Any, chunk: int = 4096, compiled: bool = False) -> None:
        super().__init__()
        self.model, self.chunk = model, chunk
        self.body = [torch.compile(model.base_model, dynamic=True) if compiled else model.base_model]  # not a second submodule
        self.plain_head: bool | None = None  # not yet compared

    def forward(
        self, tokens: Tensor, attention: Tensor, mask: Tensor, temperature: float = 1.0, with_entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Both `(batch, time)` of the response, and 0 outside the mask; entropy is `None` unless asked for.

        Args:
            tokens: prompts and responses, padded left and right.
            attention: 0 at padding.
            mask: 1 at the response's tokens, which are the last columns.
        """
        positions = (attention.cumsum(1) - 1).clamp(min=0)
        given = {"input_ids": tokens, "attention_mask": attention, "position_ids": positions, "use_cache": False}
        width, there = mask.shape[1], mask.bool()
        chosen = tokens[:, -width:][there]
        if self.plain_head is None:
            self.plain_head = self._head_is_plain(given)
        if not self.plain_head:
            logits = self.model(**given, logits_to_keep=width + 1).logits[:, :-1]
            found = [_measure(logits[there], chosen, temperature, with_entropy)]
        else:
            head = self.model.get_output_embeddings()
            hidden = self.body[0](**given).last_hidden_state[:, -width - 1 : -1][there]

            def measure(part: Tensor, token: Tensor) -> tuple[Tensor, Tensor | None]:
                return _measure(head(part), token, temperature, with_entropy)

            again = len(hidden) > self.chunk and torch.is_grad_enabled()
            found = [
                checkpoint(measure, part, token, use_reentrant=False) if again else measure(part, token)
                for part, token in zip(hidden.split(self.chunk), chosen.split(self.chunk), strict=True)
            ]

        def spread(values: list[Tensor]) -> Tensor:
            flat = torch.cat(values)
            return flat.new_zeros(mask.shape).masked_scatter(there, flat)

        return spread([one[0] for one in found]), spread([one[1] for one in found]) if with_entropy else None  # type: ignore[misc]

    @torch.no_grad()
    def _head_is_plain(self, given: dict[str, Any]) -> bool:
        """Whether the logits are what the head makes of the hidden states: some models cap or scale them afterwards.

        Such a model says so in its config; the logits of one place are compared as well.
        """
        config = self.model.config.get_text_config()
        if any(getattr(config, name, None) not in (None, 1, 1.0) for name in _AFTER_THE_HEAD):
            return False
        there = given["attention_mask"][:, -2].bool()
        own = self.model(**given, logits_to_keep=2).logits[:, 0].float()[there]
        ours = self.model.get_output_embeddings()(self.model.base_model(**given).last_hidden_state[:, -2]).float()[there]
        if own.shape != ours.shape or not bool(own.isfinite().all()):
            return own.shape == ours.shape  # weights that are not finite are reported elsewhere
        return bool(((own - ours).abs() <= 1e-2 * own.abs().amax(-1, keepdim=True)).all())


def _measure(logits: Tensor, tokens: Tensor, temperature: float, with_entropy: bool) -> tuple[Tensor, Tensor | None]:
    logits = logits.float() if temperature == 1.0 else logits.float() / temperature
    return selected_logprobs(logits, tokens), entropy_of(logits) if with_entropy else None
