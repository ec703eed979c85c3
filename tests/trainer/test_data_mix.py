"""The mixer: the same bytes each time, the mixture that was asked for, and every record that is left out accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_config import DataError, read_config
from data_mix import mix, read_prepared, write_prepared
from prepare_data import main as prepare


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write sources and a config that names them, and read the config."""
    monkeypatch.chdir(tmp_path)

    def build(
        sources: dict[str, list[Any]], stage: str = "ppo", each: dict[str, dict[str, Any]] | None = None, **options: Any
    ) -> Any:
        entries = []
        for name, records in sources.items():
            Path(f"{name}.jsonl").write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
            entries.append({"name": name, "path": f"{name}.jsonl", **(each or {}).get(name, {})})
        Path("mix.yaml").write_text(yaml.safe_dump({"stage": stage, "output": "made/mixed.jsonl", "sources": entries, **options}))
        return read_config("mix.yaml")

    return build


def texts(start: str, count: int) -> list[dict[str, str]]:
    return [{"text": f"{start} {number}"} for number in range(count)]


def test_the_same_config_gives_the_same_bytes_and_another_seed_another_order(make: Any) -> None:
    config = make({"a": texts("a", 50), "b": texts("b", 50)})
    first = write_prepared(mix(config)).read_bytes()
    report = Path("made/mixed.report.json").read_bytes()
    assert write_prepared(mix(config)).read_bytes() == first
    assert Path("made/mixed.report.json").read_bytes() == report
    other = write_prepared(mix(make({"a": texts("a", 50), "b": texts("b", 50)}, seed=7))).read_bytes()
    assert other != first and sorted(other.splitlines()) == sorted(first.splitlines())
    assert not list(Path("made").glob(".*.part"))


def test_the_order_of_lines_and_of_sources_does_not_matter(make: Any) -> None:
    first = mix(make({"a": texts("a", 30), "b": texts("b", 30)}, max_records=40)).records
    assert mix(make({"b": texts("b", 30)[::-1], "a": texts("a", 30)[::-1]}, max_records=40)).records == first


def test_a_limit_takes_the_same_records_whatever_their_order(make: Any) -> None:
    each = {"a": {"limit": 10}}
    first = mix(make({"a": texts("a", 100)}, each=each)).records
    assert mix(make({"a": texts("a", 100)[::-1]}, each=each)).records == first
    assert {record["text"] for record in first} != {f"a {number}" for number in range(10)}


def test_the_records_of_all_sources_are_shuffled_together(make: Any) -> None:
    many = {"few": texts("f", 100), "cut": texts("c", 1000), "limited": texts("l", 1000)}
    each = {"few": {"weight": 1}, "cut": {"weight": 1}, "limited": {"weight": 1, "limit": 100}}
    records = mix(make(many, each=each)).records
    for name in many:
        places = [place for place, record in enumerate(records) if record["source"] == name]
        assert len(places) == 100 and 30 < sum(place < 150 for place in places) < 70, name


def test_weights_are_shares_of_the_result_and_the_scarcest_source_sets_its_size(make: Any) -> None:
    config = make({"many": texts("m", 300), "few": texts("f", 20)}, each={"many": {"weight": 3}, "few": {"weight": 1}})
    many, few = mix(config).reports
    assert (many.taken, few.taken) == (60, 20)
    assert many.left_out == {"not needed for the weights": 240}


def test_repeat_lets_a_small_source_reach_its_weight(make: Any) -> None:
    config = make(
        {"many": texts("m", 300), "few": texts("f", 20)}, each={"many": {"weight": 3}, "few": {"weight": 1, "repeat": 3}}
    )
    mixture = mix(config)
    assert [report.taken for report in mixture.reports] == [180, 60]
    from_few = [record["text"] for record in mixture.records if record["source"] == "few"]
    assert {from_few.count(text) for text in set(from_few)} == {3}


def test_limit_and_max_records_bound_a_source_and_the_whole(make: Any) -> None:
    mixture = mix(make({"a": texts("a", 50), "b": texts("b", 50)}, each={"a": {"limit": 10}}, max_records=25))
    assert len(mixture.records) == 25
    assert mixture.reports[0].left_out["over `limit`"] == 40
    assert mixture.reports[1].left_out["over `max_records`"] == 50 - mixture.reports[1].taken


@pytest.mark.parametrize("most", range(1, 12))
def test_shares_that_round_up_do_not_exceed_max_records(make: Any, most: int) -> None:
    weights = {name: {"weight": 1} for name in "abc"}
    assert len(mix(make({name: texts(name, 9) for name in "abc"}, each=weights, max_records=most)).records) <= most


def test_every_record_is_taken_or_counted_with_its_cause_and_examples(make: Any) -> None:
    records = [*texts("good", 90), {"text": "good 1"}, {"text": "  "}, {"text": "x" * 200}, {"other": 1}, "not json"]
    config = make({"a": records, "b": [{"text": "good 2"}, {"text": "of its own"}]}, max_chars=100)
    first, second = mix(config).reports
    assert first.left_out == {"duplicate": 1, "empty": 1, "too long": 1, "wrong shape": 2}
    assert first.taken + first.left_out.total() == first.read == 95
    assert second.left_out == {"duplicate": 1}  # also what another source already has
    assert first.examples["too long"] == ["a.jsonl:93: 200 characters, at most 100"]
    assert first.examples["wrong shape"][0] == "a.jsonl:94: has ['other'], needs ['text']"
    assert first.examples["wrong shape"][1].startswith("a.jsonl:95: not JSON")


def test_a_source_with_many_records_of_a_wrong_shape_is_refused(make: Any) -> None:
    config = make({"a": [*texts("good", 8), {"body": "x"}, {"body": "y"}]})
    with pytest.raises(DataError, match=r"Source a: 2 of 10 .* has \['body'\], needs \['text'\].*fields"):
        mix(config)
    assert len(mix(make({"a": [*texts("good", 8), {"body": "x"}, {"body": "y"}]}, max_bad=0.2)).records) == 8


def test_fields_give_a_source_the_names_that_the_stage_needs(make: Any) -> None:
    config = make({"a": [{"body": "x"}, {"body": "y"}]}, each={"a": {"fields": {"text": "body"}}})
    assert {record["text"] for record in mix(config).records} == {"x", "y"}


def test_a_source_with_nothing_usable_is_refused(make: Any) -> None:
    with pytest.raises(DataError, match=r"no usable record among the 2 .*: 2 empty"):
        mix(make({"a": [{"text": ""}, {"text": " "}]}))
    with pytest.raises(DataError, match="it is empty"):
        mix(make({"a": []}))


def test_a_missing_source_is_said_with_what_to_do(make: Any) -> None:
    config = make({"a": texts("a", 3)})
    Path("a.jsonl").unlink()
    with pytest.raises(DataError, match=r"Source a: no a.jsonl.*generate_corpus"):
        mix(config)


def test_what_is_written_is_what_is_read_back(make: Any) -> None:
    mixture = mix(make({"a": [{"text": "ünïcode \u2028 and\nlines"}, *texts("a", 3)]}))
    assert read_prepared(write_prepared(mixture), "ppo") == mixture.records
    report = json.loads(Path("made/mixed.report.json").read_text())
    assert report["records"] == 4 and report["sources"][0]["taken"] == 4


@pytest.mark.parametrize(
    ("line", "stage", "said"),
    [
        ('{"prompt": "x", "answer": "y"}', "ppo", r"made.jsonl:2 .*it has \['answer', 'prompt'\], it needs \['text', 'source'\]"),
        ('{"text": "x"}', "ppo", r"it has \['text'\], it needs \['text', 'source'\]"),
        ('{"text": "", "source": "a"}', "ppo", r"Expected \['text'\] to be text and not empty"),
        ('{"text": 3, "source": "a"}', "pretrain", r"Expected \['text'\] to be text and not empty"),
        ('{"messages": "hello", "source": "a"}', "sft", r"Expected \['messages'\] to be messages"),
        ('{"prompt": "x", "chosen": "y", "source": "a"}', "dpo", r"it needs \['prompt', 'chosen', 'rejected', 'source'\]"),
        ("[1]", "ppo", "it has list"),
        ("{", "ppo", "not JSON"),
    ],
)
def test_a_prepared_file_of_another_shape_is_refused(tmp_path: Path, line: str, stage: str, said: str) -> None:
    good = {
        "ppo": '{"text": "fine", "source": "a"}',
        "pretrain": '{"text": "fine", "source": "a"}',
        "sft": '{"messages": [{"role": "user", "content": "x"}], "source": "a"}',
        "dpo": '{"prompt": "x", "chosen": "y", "rejected": "z", "source": "a"}',
    }[stage]
    (tmp_path / "made.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(DataError, match=said):
        read_prepared(tmp_path / "made.jsonl", stage)


def test_a_prepared_file_that_is_empty_or_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="prepare_data"):
        read_prepared(tmp_path / "none.jsonl", "ppo")
    (tmp_path / "made.jsonl").write_text("")
    with pytest.raises(DataError, match="is empty"):
        read_prepared(tmp_path / "made.jsonl", "ppo")


def test_the_command_prints_the_report_and_fails_with_a_sentence(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    make({"a": [*texts("a", 30), {"text": "a 1"}]})
    assert prepare(["--config", "mix.yaml"]) == 0
    printed = capsys.readouterr().out
    assert "30 taken of      31 read (100.0% of the mixture)" in printed and "1 duplicate" in printed and "a.jsonl:31" in printed
    assert prepare(["--config", "mix.yaml", "--seed", "3", "--output", "other.jsonl"]) == 0
    assert Path("other.jsonl").read_bytes() != Path("made/mixed.jsonl").read_bytes()
    Path("a.jsonl").unlink()
    assert prepare(["--config", "mix.yaml"]) == 2
    assert "prepare_data: Source a: no a.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stage": "grpo"}, "Expected `stage` to be one of"),
        ({"sources": []}, "at least one source"),
        ({"sources": [{"path": "x.jsonl", "weight": 0}]}, "Expected `weight`"),
        ({"sources": [{"path": "x.jsonl", "weight": float("inf")}]}, "Expected `weight`"),
        ({"sources": [{"path": "x.jsonl", "limit": 0}]}, "Expected `limit`"),
        ({"sources": [{"path": "x.xml"}]}, "Expected `format` to be one of"),
        ({"sources": [{"path": "x.jsonl", "wieght": 1}]}, "'wieght'.* not known"),
        ({"sources": [{"path": "x.jsonl", "weight": 1}, {"path": "y.jsonl"}]}, "every source a `weight`, or none"),
        ({"sources": [{"path": "x.jsonl"}, {"path": "deep/x.jsonl"}]}, "a name of its own"),
        ({"sources": [{"path": "x.jsonl", "fields": ["text"]}]}, "Expected `fields`"),
        ({"sources": ["x.jsonl"]}, "Expected a mapping"),
        ({"max_chars": -1}, "Expected `max_chars`"),
        ({"max_bad": 2}, "Expected `max_bad`"),
        ({"colour": "red"}, "'colour'.* not known"),
        ({"output": None, "stage": None}, "Expected `stage`"),
    ],
)
def test_what_is_wrong_with_a_config_is_said(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "mix.yaml"
    path.write_text(yaml.safe_dump({"stage": "ppo", "output": "o.jsonl", "sources": [{"path": "x.jsonl"}], **change}))
    with pytest.raises(DataError, match=said):
        read_config(path)


def test_a_config_that_is_missing_or_no_yaml_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No data config"):
        read_config(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(DataError, match="is not YAML"):
        read_config(tmp_path / "bad.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(DataError, match="Expected a mapping"):
        read_config(tmp_path / "list.yaml")
