"""Talk to a model: `python trainer/chat.py --weights out/ppo`, or one answer with `--prompt "Where does the fox live?"`.

In a conversation, `/reset` starts a new one and `/quit` (or Ctrl-D) exits.
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import argparse
import json
import sys
from typing import Any

import torch

from arguments import main_guard
from chat_tokens import end_tokens, talk_tokens
from held_out import GREEDY
from machine import spare_threads
from models import count_parameters, load_model, open_tokenizer
from rollout import generate


def get_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--weights", required=True, metavar="MODEL", help="folder or hub name of the model")
    add("--prompt", action="append", help="answer this prompt and exit; repeat the flag for further turns of the conversation")
    add("--system", default="", help="system prompt")
    add("--max_new_tokens", type=int, default=128, help="maximum length of an answer in tokens")
    add("--temperature", type=float, default=0.7, help="sampling temperature; 0: always the most likely token")
    add("--seed", type=int, default=42, help="seed of the sampling")
    add("--device", default="cpu", help="cpu, cuda or cuda:N")
    add("--json", action="store_true", help="with --prompt, print the conversation as JSON")
    args = parser.parse_args(argv)
    if args.temperature < 0 or args.max_new_tokens < 1:
        parser.error("expected --temperature of at least 0 and --max_new_tokens of at least 1")
    if args.json and not args.prompt:
        parser.error("--json needs --prompt")
    return args


class Talk:
    """A conversation with a model."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.tokenizer = args, open_tokenizer(args.weights, "--weights")
        self.model = load_model(args, "causal", folder=args.weights, tokenizer=self.tokenizer).to(args.device).eval()
        spare_threads(count_parameters(self.model, False))
        self.noise = torch.Generator().manual_seed(args.seed)
        self.reset()

    def reset(self) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": self.args.system}] if self.args.system else []

    def say(self, text: str) -> str:
        """The model's answer, which becomes part of the conversation."""
        self.messages.append({"role": "user", "content": text})
        tokens = torch.tensor([talk_tokens(self.messages, self.tokenizer)], device=self.model.device)
        room = getattr(self.model.config, "max_position_embeddings", None) or 1 << 20
        length = min(self.args.max_new_tokens, room - tokens.shape[1])
        if length < 1:
            raise ValueError(f"The conversation has {tokens.shape[1]} tokens and the model takes {room}: use `/reset`.")
        noise = torch.rand(1, length, generator=self.noise)
        temperature, ends = max(self.args.temperature, GREEDY), end_tokens(self.tokenizer, self.model)
        roll = generate(self.model, tokens, torch.ones_like(tokens), noise, temperature, ends, self.tokenizer.pad_token_id)
        answer = self.tokenizer.decode(roll.responses[0], skip_special_tokens=True).strip()
        self.messages.append({"role": "assistant", "content": answer})
        return answer


def main(argv: list[str] | None = None) -> int:
    args = get_args(argv)
    talk = Talk(args)
    if args.prompt:
        answers = [talk.say(prompt) for prompt in args.prompt]
        print(json.dumps({"weights": args.weights, "messages": talk.messages}, indent=1) if args.json else "\n".join(answers))
        return 0
    print(f"{args.weights}: /reset starts a new conversation, /quit exits")
    while True:
        try:
            text = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if text == "/quit":
            return 0
        if text == "/reset":
            talk.reset()
        elif text:
            try:
                print(talk.say(text), flush=True)
            except ValueError as error:
                talk.messages.pop()
                print(error)


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
