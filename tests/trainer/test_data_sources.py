"""Sources of every format, and the shapes of public sets made the one that a stage needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data_config import DataError, Source
from data_sources import Misshapen, iter_records, shape_record

ROWS = [{"text": "one"}, {"text": "two"}]
SYSTEM = {"role": "system", "content": "S"}
ASK = {"role": "user", "content": "Q2"}
TALK = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]


def records(path: Path, kind: str) -> list[Any]:
    return [record for _, record in iter_records(Source("s", path, kind))]


def test_json_lines_json_and_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n\n{"text": "two"}\n')
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    (tmp_path / "b.json").write_text(json.dumps({"version": 1, "data": ROWS}))
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("one\n\ntwo\n")
    for name, kind in (("a.jsonl", "jsonl"), ("a.json", "json"), ("b.json", "json"), ("a.txt", "text"), ("b.txt", "text")):
        assert records(tmp_path / name, kind) == ROWS, name
    (tmp_path / "c.txt").write_text("one\nmore\n\ntwo\n")
    assert records(tmp_path / "c.txt", "text") == [{"text": "one\nmore"}, {"text": "two"}]


@pytest.mark.full
def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"text": ["one", "two"]}), tmp_path / "a.parquet")
    assert records(tmp_path / "a.parquet", "parquet") == ROWS


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_folder_of_datasets_and_its_split_called_train(tmp_path: Path) -> None:
    import datasets

    made = datasets.Dataset.from_list(ROWS)
    made.save_to_disk(str(tmp_path / "plain"))
    datasets.DatasetDict({"train": made, "test": made.select([0])}).save_to_disk(str(tmp_path / "splits"))
    datasets.DatasetDict({"test": made}).save_to_disk(str(tmp_path / "other"))
    assert records(tmp_path / "plain", "datasets") == records(tmp_path / "splits", "datasets") == ROWS
    with pytest.raises(DataError, match=r"\['test'\] but not train"):
        records(tmp_path / "other", "datasets")


def test_json_that_is_no_list_of_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    with pytest.raises(DataError, match=r"Expected .* to hold a list"):
        records(tmp_path / "a.json", "json")
    (tmp_path / "a.json").write_text('{"text": 1}\n{"text": 2}\n')
    with pytest.raises(DataError, match="`format: jsonl`"):
        records(tmp_path / "a.json", "json")


@pytest.mark.parametrize(
    ("stage", "raw", "shaped"),
    [
        ("pretrain", {"text": "x", "id": 3}, {"text": "x"}),
        ("midtrain", {"content": "x"}, {"text": "x"}),
        ("sft", {"messages": TALK}, {"messages": TALK}),
        ("sft", {"conversations": [{"from": "human", "value": "Q"}, {"from": "gpt", "value": "A"}]}, {"messages": TALK}),
        ("sft", {"prompt": "Q", "completion": "A"}, {"messages": TALK}),
        ("sft", {"instruction": "Q", "input": "", "output": "A"}, {"messages": TALK}),
        (
            "sft",
            {"instruction": "Do", "input": "this", "output": "A"},
            {"messages": [{"role": "user", "content": "Do\nthis"}, TALK[1]]},
        ),
        ("dpo", {"prompt": "Q", "chosen": "A", "rejected": "B"}, {"prompt": "Q", "chosen": "A", "rejected": "B"}),
        (
            "dpo",
            {"chosen": TALK, "rejected": [TALK[0], {"role": "assistant", "content": "B"}]},
            {"prompt": "Q", "chosen": "A", "rejected": "B"},
        ),
        ("midtrain", {"messages": TALK}, {"text": "Q\nA", "messages": TALK}),
        ("ppo", {"text": "Q"}, {"text": "Q"}),
        ("ppo", {"question": "Q", "answer": "A"}, {"text": "Q"}),
        ("ppo", {"messages": TALK}, {"text": "Q"}),
        ("ppo", {"prompt": [*TALK, ASK]}, {"text": "Q2", "messages": [*TALK, ASK]}),
        ("ppo", {"messages": [SYSTEM, *TALK]}, {"text": "Q", "messages": [SYSTEM, TALK[0]]}),
        (
            "dpo",
            {"chosen": [*TALK, ASK, TALK[1]], "rejected": [*TALK, ASK, {"role": "assistant", "content": "B"}]},
            {"prompt": [*TALK, ASK], "chosen": "A", "rejected": "B"},
        ),
        (
            "dpo",
            {"prompt": [SYSTEM, TALK[0]], "chosen": "A", "rejected": "B"},
            {"prompt": [SYSTEM, TALK[0]], "chosen": "A", "rejected": "B"},
        ),
    ],
)
def test_a_known_shape_becomes_what_the_stage_needs(stage: str, raw: dict[str, Any], shaped: dict[str, Any]) -> None:
    before = json.dumps(raw)
    assert shape_record(raw, stage, {}) == shaped
    assert json.dumps(raw) == before


@pytest.mark.parametrize(
    ("stage", "raw", "said"),
    [
        ("pretrain", {"body": "x"}, r"has \['body'\], needs \['text'\]"),
        ("pretrain", {"text": None}, "needs"),
        ("pretrain", "text", "expected an object, got str"),
        ("sft", {"prompt": "Q"}, r"needs \['messages'\]"),
        ("sft", {"messages": TALK[:1]}, "no message of the assistant"),
        ("sft", {"messages": [{"role": "robot", "content": "x"}]}, "role among"),
        ("sft", {"messages": [{"role": "user", "content": None}]}, "role among"),
        ("dpo", {"prompt": "Q", "chosen": "A"}, "needs"),
        ("dpo", {"prompt": "Q", "chosen": "A", "rejected": "A"}, "are the same"),
        ("dpo", {"chosen": TALK, "rejected": [{"role": "user", "content": "other"}, TALK[1]]}, "not the same conversation"),
        ("ppo", {"messages": [{"role": "assistant", "content": "A"}]}, "needs"),
    ],
)
def test_another_shape_is_said_with_what_it_has_and_needs(stage: str, raw: Any, said: str) -> None:
    with pytest.raises(Misshapen, match=said):
        shape_record(raw, stage, {})


def test_columns_of_a_source_go_with_the_prompts_to_the_reward(tmp_path: Path) -> None:
    from data_config import DataError, read_config
    from data_mix import mix, read_prepared, write_prepared

    lines = [{"question": f"{n} + 1?", "solution": n + 1, "tests": ["a", {"b": n}]} for n in range(5)]
    lines.append({"question": "no answer"})
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = "{path: %s, fields: {answer: solution}, columns: [answer, tests]}" % (tmp_path / "sums.jsonl")
    head = f"output: {tmp_path / 'made.jsonl'}\nmax_bad: 0.5\nsources:\n  - {source}\n"
    (tmp_path / "ppo.yaml").write_text(f"stage: ppo\n{head}")
    mixture = mix(read_config(tmp_path / "ppo.yaml"))
    assert mixture.reports[0].left_out["wrong shape"] == 1  # without the columns a record is of no use
    records = read_prepared(write_prepared(mixture), "ppo")
    assert records == mixture.records and len(records) == 5
    for record in records:
        n = int(record["text"].split()[0])
        assert record == {"text": f"{n} + 1?", "answer": n + 1, "tests": ["a", {"b": n}], "source": "sums"}
    (tmp_path / "sft.yaml").write_text(f"stage: sft\n{head}")
    with pytest.raises(DataError, match="for the reward of the stage ppo"):
        read_config(tmp_path / "sft.yaml")


def test_the_system_prompt_of_a_source_goes_before_conversations_that_have_none() -> None:
    assert shape_record({"messages": TALK}, "sft", {}, system="S") == {"messages": [SYSTEM, *TALK]}
    own = [{"role": "system", "content": "own"}, *TALK]
    assert shape_record({"messages": own}, "sft", {}, system="S") == {"messages": own}
    assert shape_record({"text": "Q"}, "ppo", {}, system="S") == {"text": "Q", "messages": [SYSTEM, TALK[0]]}
    pair = shape_record({"prompt": "Q", "chosen": "A", "rejected": "B"}, "dpo", {}, system="S")
    assert pair["prompt"] == [SYSTEM, TALK[0]]


def test_fields_reach_into_objects() -> None:
    raw = {"prompt": [TALK[0]], "reward_model": {"ground_truth": "4"}, "a.b": "dots in the name"}
    fields = {"answer": "reward_model.ground_truth", "other": "a.b"}
    assert shape_record(raw, "ppo", fields, ("answer", "other")) == {"text": "Q", "answer": "4", "other": "dots in the name"}
    with pytest.raises(Misshapen, match=r"needs the columns \['answer'\]"):
        shape_record(raw, "ppo", {"answer": "reward_model.nothing"}, ("answer",))


@pytest.mark.parametrize(
    ("stage", "source", "words"),
    [
        ("ppo", "{path: a.jsonl, hub: owner/name}", "give `path` .* or `hub`"),
        ("ppo", "{name: a}", "give `path` .* or `hub`"),
        ("ppo", "{path: a.jsonl, system: [1]}", "Expected `system` to be text"),
        ("pretrain", "{path: a.jsonl, system: S}", "a `system` prompt is for conversations"),
        ("ppo", "{hub: owner/name, files: {a: b}}", "Expected `files` to be a list of names"),
    ],
)
def test_a_source_that_cannot_be_is_refused(stage: str, source: str, words: str, tmp_path: Path) -> None:
    from data_config import read_config

    (tmp_path / "data.yaml").write_text(f"stage: {stage}\noutput: {tmp_path}/o.jsonl\nsources:\n  - {source}\n")
    with pytest.raises(DataError, match=words):
        read_config(tmp_path / "data.yaml")
