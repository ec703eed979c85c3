"""An agent's view: the tools of the server, driven by a real client over standard input and output."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.commands.mcp import Folders, _bound, compare, list_runs, read_samples, scan
from rldk.core.errors import UsageError

pytestmark = [pytest.mark.full, pytest.mark.skipif(find_spec("mcp") is None, reason="needs mcp")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    served = tmp_path / "served"
    served.mkdir()
    sick = [{"step": step, "reward_mean": 0.5, "kl_mean": 0.01 * step, "loss": float("nan")} for step in range(30)]
    (served / "sick.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sick))
    (tmp_path / "secret.jsonl").write_text('{"step": 1, "reward_mean": 1.0}\n')
    (served / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    return served


async def asked(folder: Path, *calls: tuple[str, dict[str, Any]], more: tuple[str, ...] = ()) -> tuple[list[str], list[Any]]:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    words = ["-m", "rldk", "mcp", str(folder), *more]
    command = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with stdio_client(command) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = sorted(tool.name for tool in (await session.list_tools()).tools)
        answers = [json.loads((await session.call_tool(name, given)).content[0].text) for name, given in calls]
    return tools, answers


def test_an_agent_lists_scans_and_looks_up(folder: Path) -> None:
    import anyio

    page_of = ("explain", {"type": "nonfinite_metric"})
    calls = (("list_runs", {}), ("scan", {"path": "sick.jsonl"}), page_of, ("scan", {"path": ".."}))
    tools, (runs, judged, page, refused) = anyio.run(lambda: asked(folder, *calls))
    assert tools == ["compare", "explain", "list_runs", "scan"]
    assert [(run["path"], run["verdict"]) for run in runs["runs"] if "sick" in run["path"]] == [("sick.jsonl", "critical")]
    assert judged["runs"][0]["incidents"][0]["advice"] and judged["runs"][0]["path"] == "sick.jsonl"
    assert "NaN" in json.dumps(page) and "below the folders" in refused["error"]


@pytest.mark.parametrize("path", ["../secret.jsonl", "link.jsonl", "/etc/passwd", "file:///etc/passwd", "a\0b"])
def test_nothing_outside_the_folders_is_read(folder: Path, path: str) -> None:
    with pytest.raises(UsageError):
        scan(Folders([folder]), path)


def test_a_link_out_of_a_folder_is_not_followed(folder: Path) -> None:
    assert [run["path"] for run in list_runs(Folders([folder]))["runs"]] == ["sick.jsonl"]
    assert [run["path"] for run in scan(Folders([folder]), ".")["runs"]] == ["sick.jsonl"]


def test_a_folder_that_is_one_log_with_a_link_out_of_it_is_not_read(folder: Path, tmp_path: Path) -> None:
    """MLflow's store: the metrics of a run are files in a folder."""
    store = folder / "mlruns"
    run = store / "1" / "abc"
    outside = tmp_path / "metrics"
    run.mkdir(parents=True)
    outside.mkdir()
    (store / "1" / "meta.yaml").write_text("experiment_id: '1'\nname: e\n")
    (run / "meta.yaml").write_text("run_id: abc\nrun_name: r\n")
    for name in ("reward", "kl"):
        (outside / name).write_text("".join(f"{1_700_000_000_000 + n} 0.{n:02} {n}\n" for n in range(30)))
    (run / "metrics").symlink_to(outside)
    folders = Folders([folder])
    assert [run["path"] for run in list_runs(folders)["runs"]] == ["sick.jsonl"]
    assert scan(folders, "mlruns")["runs"] == []
    (run / "metrics").unlink()
    outside.rename(run / "metrics")
    assert [run["path"] for run in scan(folders, "mlruns")["runs"]] == ["mlruns"]


def test_a_comparison_leaves_links_out_and_shortens_paths(folder: Path) -> None:
    rows = [{"step": step, "reward_mean": 0.5, "kl_mean": 0.01} for step in range(30)]
    (folder / "sub").mkdir()
    (folder / "sub" / "fine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folders = Folders([folder])
    found = compare(folders, "sick.jsonl", "sub")
    assert [run["path"] for group in found["groups"] for run in group["runs"]] == ["sick.jsonl", "sub/fine.jsonl"]
    (folder / "sub" / "fine.jsonl").unlink()
    (folder / "link.jsonl").rename(folder / "sub" / "link.jsonl")
    (folder.parent / "secret.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match="two runs"):
        compare(folders, "sick.jsonl", "sub")


def test_answers_are_strict_json(folder: Path) -> None:
    (folder / "fine.jsonl").write_text("".join(json.dumps({"step": step, "reward_mean": 0.5}) + "\n" for step in range(30)))
    folders = Folders([folder])
    calls = [(compare, {"a": "sick.jsonl", "b": "fine.jsonl"}), (scan, {"path": "."}), (list_runs, {})]
    answers = [_bound(tool, folders)(**given) for tool, given in calls]
    assert all("error" not in answer for answer in answers)
    assert json.loads(json.dumps(answers, allow_nan=False)) == answers


def test_the_worst_run_comes_first_and_the_rest_is_counted(folder: Path) -> None:
    (folder / "fine.jsonl").write_text("".join(json.dumps({"step": step, "reward_mean": 0.5}) + "\n" for step in range(30)))
    found = list_runs(Folders([folder]), most=1)
    assert [run["verdict"] for run in found["runs"]] == ["critical"] and found["not_listed"] >= 1


def test_samples_are_read_where_they_are_logged(folder: Path) -> None:
    assert read_samples(Folders([folder]), "sick.jsonl") == {"samples": []}


def test_samples_are_a_tool_only_where_they_are_allowed(folder: Path) -> None:
    import anyio

    assert "read_samples" in anyio.run(lambda: asked(folder, more=("--samples",)))[0]
