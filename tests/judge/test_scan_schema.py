"""The JSON of a scan keeps to the schema that the package ships."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from rldk import scan
from rldk.testing.streams import faulty

jsonschema = pytest.importorskip("jsonschema")
pytestmark = pytest.mark.full

SCHEMA = json.loads(files("rldk.judge").joinpath("scan.schema.json").read_text())
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_scans_of_sick_empty_and_odd_logs_keep_to_it(tmp_path: Path) -> None:
    for kind in ("kl_explosion", "nonfinite_metric", "memory_pressure"):
        events = faulty(kind, steps=200, onset=80, seed=1)
        (tmp_path / f"{kind}.jsonl").write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    (tmp_path / "short.jsonl").write_text('{"step": 1, "my key": 2}\n')
    (tmp_path / "broken.jsonl").write_text('{"step": 1, "reward_mean": 1.0}\n{"step": \n')
    found = scan(tmp_path).to_dict()
    assert {run["verdict"] for run in found["runs"]} >= {"critical", "healthy"}
    CHECK.validate(json.loads(json.dumps(found)))


def test_what_is_missing_is_noticed() -> None:
    with pytest.raises(jsonschema.ValidationError):
        CHECK.validate({"runs": [{"path": "x"}]})
