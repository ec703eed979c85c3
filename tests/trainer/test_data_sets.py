"""The tokenizer and the data sets: what is learnt, what is masked, what is padded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full

TALK = [
    {"role": "user", "content": "Where does the fox live?"},
    {"role": "assistant", "content": "The fox lives in the forest."},
    {"role": "user", "content": "And the frog?"},
    {"role": "assistant", "content": "The frog lives in the pond."},
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Trained, saved and loaded again, as a stage gets it."""
    from transformers import AutoTokenizer

    from generate_corpus import generate
    from train_tokenizer import texts_of, train_tokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    generate(folder / "raw", scale=0.02)
    train_tokenizer(texts_of([folder / "raw"]), 512).save_pretrained(str(folder / "made"))
    return AutoTokenizer.from_pretrained(str(folder / "made"))


@pytest.mark.parametrize("text", ["The fox lives in the forest.", "Ünïcode, 漢字 and \t tabs\n", "", "<|im_end|>"])
def test_every_text_comes_back_from_its_tokens(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_the_tokenizer_knows_the_words_of_the_world_and_its_marks(tokenizer: Any) -> None:
    assert len(tokenizer) <= 512
    assert len(tokenizer(" lives")["input_ids"]) == len(tokenizer("<|im_end|>")["input_ids"]) == 1
    assert tokenizer.eos_token == "<|im_end|>" and tokenizer.pad_token_id != tokenizer.eos_token_id


def test_a_tokenizer_needs_texts_and_room_for_the_bytes(tmp_path: Path) -> None:
    from train_tokenizer import texts_of, train_tokenizer

    with pytest.raises(FileNotFoundError, match="generate_corpus"):
        list(texts_of([tmp_path]))
    with pytest.raises(ValueError, match="at least 259, got 100"):
        train_tokenizer(iter(["x"]), 100)


def test_packed_blocks_hold_every_document_once_with_its_end(tokenizer: Any) -> None:
    from data_config import DataError
    from data_sets import PackedBlocks

    records = [{"text": f"Document {number} ends here."} for number in range(20)]
    blocks = PackedBlocks(records, tokenizer, 16)
    tokens = blocks.blocks.flatten().tolist()
    whole = tokenizer.decode(tokens).split("<|im_end|>")
    assert whole[:-1] == [record["text"] for record in records][: len(whole) - 1] and len(whole) >= 19
    batch = PackedBlocks.collate([blocks[0], blocks[1]])
    assert batch["labels"].tolist() == batch["input_ids"].tolist() and bool(batch["attention_mask"].all())
    with pytest.raises(DataError, match="do not fill one block of 9999"):
        PackedBlocks(records, tokenizer, 9999)


def test_only_the_words_of_the_assistant_are_learnt(tokenizer: Any) -> None:
    from data_sets import Conversations

    data = Conversations([{"messages": TALK}, {"messages": TALK[:2]}], tokenizer, 128)
    batch = data.collate([data[0], data[1]])
    for row, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        assert bool(((labels == -100) | (labels == row)).all())
    learnt = [tokenizer.decode(labels[labels != -100]) for labels in batch["labels"]]
    assert learnt[0] == "The fox lives in the forest.<|im_end|>The frog lives in the pond.<|im_end|>"
    assert learnt[1] == "The fox lives in the forest.<|im_end|>"
    assert tokenizer.decode(batch["input_ids"][0]) == tokenizer.apply_chat_template(TALK, tokenize=False)
    assert batch["attention_mask"].sum(1).tolist() == [len(data[0][0]), len(data[1][0])]
    assert batch["labels"][1][batch["attention_mask"][1] == 0].eq(-100).all()


def test_a_template_that_rewrites_earlier_turns_is_refused(tokenizer: Any) -> None:
    import copy

    from data_config import DataError
    from data_sets import Conversations

    other = copy.deepcopy(tokenizer)
    other.chat_template = "{{ messages | length }} {% for message in messages %}{{ message['content'] }}{% endfor %}"
    with pytest.raises(DataError, match="changes earlier turns"):
        Conversations([{"messages": TALK}], other, 128)
    other.chat_template = None
    with pytest.raises(DataError, match="no chat template"):
        Conversations([{"messages": TALK}], other, 128)


def test_pairs_share_their_prompt_and_are_learnt_on_the_answer(tokenizer: Any) -> None:
    from chat_tokens import prompt_tokens
    from data_sets import Pairs

    records = [
        {"prompt": "Where does the fox live?", "chosen": "In the forest.", "rejected": "Ugh, go away. In the pond."},
        {"prompt": "Do you know what the bear eats?", "chosen": "Honey.", "rejected": "Hay."},
    ]
    data = Pairs(records, tokenizer, 64)
    batch = data.collate([data[0], data[1]])
    learnt = [tokenizer.decode(labels[labels != -100]) for labels in batch["labels"]]
    assert learnt == [f"{record[which]}<|im_end|>" for which in ("chosen", "rejected") for record in records]
    for number, record in enumerate(records):
        start = prompt_tokens(record["prompt"], tokenizer)
        assert batch["input_ids"][number, : len(start)].tolist() == batch["input_ids"][number + 2, : len(start)].tolist() == start


def test_prompts_are_padded_on_the_left_and_end_where_the_answer_begins(tokenizer: Any) -> None:
    from data_sets import Prompts

    texts = ["Where does the fox live?", "Please tell me. Do you know what the bear eats?"]
    data = Prompts([{"text": text, "source": "s"} for text in texts], tokenizer, 64)
    batch = data.collate([data[0], data[1]])
    assert batch["texts"] == texts and batch["sources"] == ["s", "s"]
    for row, mask, text in zip(batch["input_ids"], batch["attention_mask"], texts, strict=True):
        assert tokenizer.decode(row[mask == 1]) == f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        assert mask.tolist() == sorted(mask.tolist()) and row[mask == 0].eq(tokenizer.pad_token_id).all()


def test_samples_that_are_too_long_are_said_and_too_many_refused(tokenizer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from data_config import DataError
    from data_sets import Prompts

    short, long = {"text": "Hi", "source": "s"}, {"text": "Hi " * 40, "source": "s"}
    assert len(Prompts([short, short, long], tokenizer, 20)) == 2
    assert "1 of 3 prompts longer than 20 tokens left out" in capsys.readouterr().out
    with pytest.raises(DataError, match=r"2 of 3 prompts are longer than 20 tokens .*--max_seq_len larger"):
        Prompts([short, long, long], tokenizer, 20)


def test_a_pair_of_several_turns_learns_the_last_answer_only(tokenizer: Any) -> None:
    from data_sets import Pairs

    system = {"role": "system", "content": "Be kind."}
    record = {"prompt": [system, *TALK[:3]], "chosen": "In the pond.", "rejected": "Go away."}
    pairs = Pairs([record], tokenizer, 200)
    batch = pairs.collate([pairs[0]])
    learnt = [tokenizer.decode([int(label) for label in row if label != -100]) for row in batch["labels"]]
    assert learnt == ["In the pond.<|im_end|>", "Go away.<|im_end|>"]
    whole = tokenizer.decode(batch["input_ids"][0])
    assert whole.startswith("<|im_start|>system\nBe kind.<|im_end|>") and "The fox lives in the forest." in whole


def test_a_prompt_of_several_turns_is_asked_whole_and_the_reward_sees_it(tokenizer: Any) -> None:
    from data_sets import Prompts

    records = [{"text": "Hello?", "source": "s"}, {"text": TALK[2]["content"], "messages": TALK[:3], "source": "s"}]
    prompts = Prompts(records, tokenizer, 200)
    batch = prompts.collate([prompts[0], prompts[1]])
    assert batch["texts"] == ["Hello?", "And the frog?"]
    assert batch["columns"]["messages"] == [[{"role": "user", "content": "Hello?"}], TALK[:3]]
    asked = tokenizer.decode(batch["input_ids"][1])
    assert "The fox lives in the forest." in asked and asked.endswith("And the frog?<|im_end|>\n<|im_start|>assistant\n")
    assert "messages" not in Prompts(records[:1], tokenizer, 200)[0]["columns"]


def test_conversations_among_plain_text_have_the_marks_of_the_chat_template(tokenizer: Any) -> None:
    from data_sets import PackedBlocks

    records = [{"text": "A story."}, {"text": "…", "messages": TALK[:2]}] * 8
    text = tokenizer.decode(PackedBlocks(records, tokenizer, 8).blocks.flatten().tolist())
    assert "A story.<|im_end|><|im_start|>user\nWhere does the fox live?<|im_end|>\n<|im_start|>assistant\nThe fox" in text
