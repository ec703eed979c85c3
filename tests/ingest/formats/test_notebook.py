"""Notebooks and pages: the tables of steps that a trainer shows in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.notebook import NotebookAdapter

NAMES = ["Step", "Training Loss", "reward", "reward_std", "completions / mean_length", "kl", "rewards / works / mean"]


def cells(step: int) -> list[str]:
    return [str(step), "0.001200", f"{0.1 * step:.6f}", "0.500000", "1,200.5" if step == 2 else "300.5", "No log", "-.25"]


def page(steps: range) -> str:
    """The table as the trainer's callback for notebooks writes it."""
    head = "".join(f"      <th>{name}</th>\n" for name in NAMES)
    body = "".join("    <tr>\n" + "".join(f"      <td>{cell}</td>\n" for cell in cells(step)) + "    </tr>\n" for step in steps)
    begin = '    <table border="1" class="dataframe">\n  <thead>\n <tr style="text-align: left;">\n'
    return f"{begin}{head}    </tr>\n  </thead>\n  <tbody>\n{body}  </tbody>\n</table><p>"


def markdown(steps: range, end: str = "\nand words\n") -> str:
    rows = "".join(f"| {' | '.join(cells(step))} |\n" for step in steps)
    return f"# A run\n\n| {' | '.join(NAMES)} |\n|{'---|' * len(NAMES)}\n{rows}{end}"


def notebook(*texts: str) -> str:
    """The texts as outputs of cells, in lines, beside outputs that are no tables."""
    others = [{"output_type": "stream", "name": "stdout", "text": ["| Step | loss |\n"]}, {"output_type": "error"}, None]
    outputs = [{"output_type": "display_data", "data": {"text/html": text.splitlines(keepends=True)}} for text in texts]
    code = {"cell_type": "code", "source": ["trainer.train()"], "metadata": {}}
    shown = [{**code, "outputs": [*others, output]} for output in outputs]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "words"}, *shown], "nbformat": 4}, indent=1)


@pytest.mark.parametrize(
    "make", [page, markdown, lambda steps: notebook(page(steps)), lambda steps: json.dumps(json.loads(notebook(page(steps))))]
)
def test_the_table_of_steps_is_a_run(text_log: Any, make: Any) -> None:
    run = text_log.run(make(range(1, 6)), "notebook")
    assert run.framework == "trl_grpo" and run.steps.tolist() == [1, 2, 3, 4, 5]
    assert text_log.values(run, "reward_mean") == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert text_log.values(run, "loss") == [0.0012] * 5
    assert text_log.values(run, "rollout_length_mean") == [300.5, 1200.5, 300.5, 300.5, 300.5]
    assert text_log.values(run, "reward_function_mean/works") == [-0.25] * 5
    assert "kl_mean" not in run.columns, "what was not logged is missing"
    assert run.coverage.unmapped == []


def test_a_table_for_each_time_the_notebook_was_run(text_log: Any) -> None:
    _, runs = text_log.read(notebook(page(range(1, 6)), page(range(1, 4))), "notebook")
    assert [run.steps.tolist() for run in runs] == [[1, 2, 3, 4, 5], [1, 2, 3]]


def test_losses_of_training_and_of_validation(text_log: Any) -> None:
    rows = "".join(f"<tr><td>{n}</td><td>0.5</td><td>0.75</td></tr>" for n in (10, 20, 30))
    run = text_log.run(f"<table><tr><th>Step</th><th>Training Loss</th><th>Validation Loss</th></tr>{rows}</table>", "notebook")
    assert text_log.values(run, "loss") == [0.5] * 3 and text_log.values(run, "eval_loss") == [0.75] * 3


@pytest.mark.parametrize(
    "text",
    [
        markdown(range(1, 2)),
        "| Step | what to do |\n|---|---|\n| 1 | this |\n| 2 | that |\n| 3 | all |\n",
        notebook("<p>words</p>"),
        "<table><tr><th>reward</th></tr>" + "<tr><td>1</td></tr>" * 5 + "</table>",
    ],
)
def test_other_tables_are_declined(text_log: Any, text: str) -> None:
    assert not NotebookAdapter(text_log.write(text)).can_handle()


@pytest.mark.parametrize("text", [page(range(1, 6))[:-170], markdown(range(1, 6), end="")[:-33]])
def test_a_table_that_is_cut_off_is_said_to_be(text_log: Any, text: str) -> None:
    run = text_log.run(text, "notebook")
    assert run.steps.tolist()[:4] == [1, 2, 3, 4]
    assert {round(value, 6) for value in text_log.values(run, "reward_mean") if value} <= {0.1, 0.2, 0.3, 0.4, 0.5}
    assert "a table is cut off: what came after its last row is missing" in run.notes


def test_a_notebook_that_is_cut_off_is_said_to_be(text_log: Any) -> None:
    with pytest.raises(ReadError, match="cut off"):
        choose(text_log.write(notebook(page(range(1, 6)))[:-40])).runs()
