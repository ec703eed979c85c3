"""Samples responses with Hugging Face's `generate` in another process (`--rollout process`).

Run as a script, this file is that process. It reads one JSON object per line (`load` a folder of weights, `respond` to prompts)
and answers with one. It ends with its input, so that it does not outlive a trainer that was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


class ProcessEngine:
    """The trainer's side.

    Args:
        micro: responses that are generated at a time.
    """

    def __init__(self, tokenizer: Any, micro: int) -> None:
        from rollout_engines import WeightFolder

        self.folder, self.pad, self.micro = WeightFolder(tokenizer), tokenizer.pad_token_id, micro
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  as long as the process
        alone = {key: value for key, value in os.environ.items() if key not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            env=alone, text=True,
        )  # fmt: skip
        self.device: Any = "cpu"

    def sync(self, policy: Any) -> None:
        self.device = policy.device
        self._ask({"do": "load", "folder": self.folder.write(policy), "device": str(policy.device)})

    def respond(self, batch: dict[str, Any], noise: Any, settings: Any) -> Any:
        from rollout_engines import assembled, prompts_of, row_seeds

        request = {
            "do": "respond", "prompts": prompts_of(batch), "seed": row_seeds(noise)[0], "length": noise.shape[1],
            "temperature": settings.temperature, "ends": list(settings.end_tokens), "pad": self.pad, "size": self.micro,
        }  # fmt: skip
        found = self._ask(request)
        return assembled(batch, found["tokens"], found["logprobs"], settings.end_tokens, self.pad, self.device)

    def close(self) -> None:
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # a process that has ended does not read the last request
                self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.folder.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.wait(30)
            self.errors.seek(0)
            told = self.errors.read()[-2000:].decode(errors="replace").strip()
            raise RuntimeError(f"The rollout process ended with status {self.process.returncode}: {told}")
        found = json.loads(line)
        if "error" in found:
            raise RuntimeError(f"The rollout process cannot {request['do']}: {found['error']}")
        return found


# The other process.


def load(request: dict[str, Any]) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(request["folder"], local_files_only=True, use_safetensors=True, dtype="auto")
    model.generation_config = GenerationConfig()  # the request has all settings
    return model.to(request["device"]).eval()


def respond(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Tokens and log-probabilities of a response to each prompt; a response ends with its first end token."""
    import torch

    torch.manual_seed(request["seed"])
    tokens: list[list[int]] = []
    logprobs: list[list[float]] = []
    for at in range(0, len(request["prompts"]), request["size"]):
        part = request["prompts"][at : at + request["size"]]
        width = max(map(len, part))
        ids = torch.tensor([[request["pad"]] * (width - len(row)) + row for row in part], device=model.device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in part], device=model.device)
        made = model.generate(
            input_ids=ids, attention_mask=mask, do_sample=True, temperature=request["temperature"], top_k=0, top_p=1.0,
            max_new_tokens=request["length"], eos_token_id=request["ends"] or None, pad_token_id=request["pad"],
            return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
        said = made.sequences[:, width:]
        logp = torch.stack(made.scores, dim=1).float().log_softmax(-1).gather(2, said[..., None])[..., 0]
        for row, chances in zip(said.tolist(), logp.tolist(), strict=True):
            length = next((place + 1 for place, token in enumerate(row) if token in request["ends"]), len(row))
            tokens.append(row[:length])
            logprobs.append(chances[:length])
    return {"tokens": tokens, "logprobs": logprobs}


def main() -> None:
    """Answer requests until the input ends."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    answers, sys.stdout = sys.stdout, sys.stderr  # output of libraries is no answer
    model = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "load":
                model, found = load(request), {}
            else:
                found = respond(model, request)
        except (OSError, RuntimeError, ValueError) as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
