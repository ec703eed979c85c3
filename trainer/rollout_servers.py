"""Responses by vLLM (`--rollout vllm`) and SGLang (`--rollout sglang`), on the same GPU as the trainer.

Both read the weights before each step from a folder in memory. Their calls are checked against the signatures of vLLM 0.32 and
SGLang 0.5.23 (tests/trainer/test_rollout_engines.py); they have not been run, because the project has no GPU.
"""

from __future__ import annotations

import argparse
from typing import Any

from rollout_engines import WeightFolder, assembled, prompts_of, row_seeds


class VllmEngine:
    """vLLM's offline engine. Log-probabilities include the temperature, like the trainer's."""

    def __init__(self, tokenizer: Any, args: argparse.Namespace) -> None:
        try:
            import vllm
        except ImportError:
            raise ValueError("--rollout vllm needs a package: pip install vllm") from None
        self.vllm, self.args, self.pad = vllm, args, tokenizer.pad_token_id
        self.folder, self.engine, self.device = WeightFolder(tokenizer), None, "cpu"

    def sync(self, policy: Any) -> None:
        path, self.device = self.folder.write(policy), policy.device
        if self.engine is None:
            self.engine = self.vllm.LLM(
                model=path, dtype=self.args.weight_dtype, seed=self.args.seed, logprobs_mode="processed_logprobs",
                gpu_memory_utilization=self.args.rollout_memory, enable_prefix_caching=False,
            )  # fmt: skip
        else:
            self.engine.collective_rpc("reload_weights", kwargs={"weights_path": path})

    def respond(self, batch: dict[str, Any], noise: Any, settings: Any) -> Any:
        ends = list(settings.end_tokens)
        fixed = {"top_p": 1.0, "top_k": 0, "ignore_eos": True, "stop_token_ids": ends, "logprobs": 0, "detokenize": False}
        fixed |= {"temperature": settings.temperature, "max_tokens": noise.shape[1]}
        how = [self.vllm.SamplingParams(**fixed, seed=seed) for seed in row_seeds(noise)]
        prompts = [{"prompt_token_ids": row} for row in prompts_of(batch)]
        outputs = [one.outputs[0] for one in self.engine.generate(prompts, how, use_tqdm=False)]
        said = [list(one.token_ids) for one in outputs]
        chances = [
            [found[token].logprob for token, found in zip(tokens, one.logprobs, strict=True)]
            for tokens, one in zip(said, outputs, strict=True)
        ]
        return assembled(batch, said, chances, ends, self.pad, self.device)

    def close(self) -> None:
        self.engine = None
        self.folder.close()


class SglangEngine:
    """SGLang's offline engine."""

    def __init__(self, tokenizer: Any, args: argparse.Namespace) -> None:
        try:
            import sglang
        except ImportError:
            raise ValueError("--rollout sglang needs a package: pip install sglang") from None
        self.sglang, self.args, self.pad = sglang, args, tokenizer.pad_token_id
        self.folder, self.engine, self.device = WeightFolder(tokenizer), None, "cpu"

    def sync(self, policy: Any) -> None:
        path, self.device = self.folder.write(policy), policy.device
        if self.engine is None:
            self.engine = self.sglang.Engine(
                model_path=path, dtype=self.args.weight_dtype, random_seed=self.args.seed,
                mem_fraction_static=self.args.rollout_memory, disable_radix_cache=True,
            )  # fmt: skip
            return
        loaded, why, *_ = self.engine.update_weights_from_disk(model_path=path)
        if not loaded:
            raise RuntimeError(f"SGLang cannot load the weights of the policy: {why}")

    def respond(self, batch: dict[str, Any], noise: Any, settings: Any) -> Any:
        ends = list(settings.end_tokens)
        common = {"temperature": settings.temperature, "top_p": 1.0, "max_new_tokens": noise.shape[1], "ignore_eos": True}
        how = [{**common, "stop_token_ids": ends, "sampling_seed": seed} for seed in row_seeds(noise)]
        found = self.engine.generate(input_ids=prompts_of(batch), sampling_params=how, return_logprob=True)
        pairs = [one["meta_info"]["output_token_logprobs"] for one in found]  # of each token: log-probability, token, text
        said, chances = ([[pair[place] for pair in row] for row in pairs] for place in (1, 0))
        return assembled(batch, said, chances, ends, self.pad, self.device)

    def close(self) -> None:
        if self.engine is not None:
            self.engine.shutdown()
        self.folder.close()
