"""Answers end with the same token in all stages, also where the chat template closes a turn with another than `eos_token`."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import command, events_of  # noqa: E402

GEMMA = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ 'model' if message['role'] == 'assistant' else 'user' }}\n"
    "{{ message['content'] | trim }}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
PLAIN = "{% for message in messages %}{{ message['content'] }} {% endfor %}"  # no end token at all
RECORD = {"prompt": "w1 w2", "chosen": "w3 w4", "rejected": "w5"}


def tokenizer(template: str = GEMMA) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<end_of_text>"]
    words = [*special, "user", "model", *(f"w{number}" for number in range(20))]
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", bos_token="<bos>", unk_token="<unk>",
        additional_special_tokens=special[4:], chat_template=template,
    )  # fmt: skip


def model(generation_ends: Any = None) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, bos_token_id=2, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    made = LlamaForCausalLM(config)
    if generation_ends is not None:
        made.generation_config.eos_token_id = generation_ends
    return made


def ends_learnt(words: Any) -> dict[str, int]:
    """The token that each stage learns to end an answer with."""
    from data_sets import Conversations, Pairs

    talk = [{"role": "user", "content": RECORD["prompt"]}, {"role": "assistant", "content": RECORD["chosen"]}]
    sft = Conversations([{"messages": talk * 2}], words, 64)
    pairs = Pairs([RECORD], words, 64)  # of DPO and of the reward model
    found = {"sft": [label for label in sft[0][1] if label != -100][-1], "chosen": pairs[0][1][-1], "rejected": pairs[0][2][-1]}
    assert [label for label in sft[0][1] if label != -100] == pairs[0][1] * 2  # the whole answer alike
    return found


def test_all_stages_learn_the_end_that_the_template_writes() -> None:
    words = tokenizer()
    assert set(ends_learnt(words).values()) == {words.convert_tokens_to_ids("<end_of_turn>")} != {words.eos_token_id}


def test_a_template_without_an_end_token_gets_the_tokenizers() -> None:
    words = tokenizer(PLAIN)
    assert set(ends_learnt(words).values()) == {words.eos_token_id}


def test_generation_stops_at_all_of_them() -> None:
    from chat_tokens import end_tokens

    words = tokenizer()
    eos, turn, text = words.convert_tokens_to_ids(["<eos>", "<end_of_turn>", "<end_of_text>"])
    assert set(end_tokens(words)) == set(end_tokens(words, model())) == {eos, turn}
    assert set(end_tokens(words, model([turn, text]))) == {eos, turn, text}
    words.chat_template = None
    assert end_tokens(words, model()) == [eos]


def test_ppo_stops_where_sft_ends_and_passes_it_on(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    import rollout
    import train_ppo

    words, made = tokenizer(), model()
    turn = words.convert_tokens_to_ids("<end_of_turn>")
    with torch.no_grad():  # writes that token often, and the tokenizer's `eos_token` never
        head = made.lm_head.weight
        direction = made.model.norm.weight.new_ones(16)
        head[turn] += 0.02 * direction
        head[words.eos_token_id] = 0.0
    words.save_pretrained(str(tmp_path / "model"))
    made.save_pretrained(str(tmp_path / "model"))
    lines = [{"text": f"w{number} w{number % 7}"} for number in range(16)]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = f"{{name: test, path: {tmp_path / 'prompts.jsonl'}}}"
    (tmp_path / "ppo.yaml").write_text(f"stage: ppo\noutput: {tmp_path / 'prepared.jsonl'}\nsources:\n  - {source}\n")
    rolls, generate = [], rollout.generate
    rollout.generate = lambda *given: rolls.append(generate(*given)) or rolls[-1]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            flags = ["--max_steps=2", "--max_new_tokens=24", "--reward=test_stop_tokens:length"]
            assert train_ppo.main(command(tmp_path, tmp_path / "out", *flags)) == 0
    finally:
        rollout.generate = generate
    ended = []
    for roll in rolls:
        lasts = roll.responses.gather(1, roll.mask.sum(1, keepdim=True) - 1)[:, 0]
        ended += lasts[roll.ended].tolist()
    assert turn in ended and set(ended) <= {turn, words.eos_token_id}
    assert events_of(tmp_path / "out")[0]["metrics"]["eos_frac"] > 0
    assert turn in AutoModelForCausalLM.from_pretrained(str(tmp_path / "out/ppo")).generation_config.eos_token_id


def length(prompts: list[str], responses: list[str]) -> list[float]:
    return [float(len(response)) for response in responses]
