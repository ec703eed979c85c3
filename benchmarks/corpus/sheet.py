"""Pages of small plots: what the outcome probe and the log show of runs, each beside its twin.

python benchmarks/corpus/sheet.py out/corpus/kinds.html --kind reward_flipped     # every run of a kind, to look at labels
python benchmarks/corpus/sheet.py out/corpus/tune.html --split tune
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus.settings import all_runs, split_of
from corpus.store import EVENTS, OUTCOME, RECORDED, read_json
from rldk.ingest import read_runs
from rldk.present.palette import LIGHT
from rldk.present.plots.panel import Curve, Mark, Panel
from rldk.present.plots.svg import svg

__all__ = ["log_panels", "outcome_panels", "page", "samples"]

OUTCOMES = {
    "reward": "true reward", "ended": "responses that end", "distinct": "distinct responses",
    "kl": "KL to the start (nats/token)",
    "entropy": "entropy", "length": "length", "moved": "weight change",
}  # fmt: skip
METRICS = (
    "reward_mean", "reward_std", "kl_mean", "entropy_mean", "rollout_length_mean", "grad_norm", "loss", "value_loss", "clip_frac",
    "preference_accuracy", "preference_margin",
)  # fmt: skip
WIDTH, HEIGHT = 250, 150


def outcome_panels(run: dict[str, Any], others: Sequence[dict[str, Any]], marks: Sequence[Mark] = ()) -> list[Panel]:
    """The channels of the outcome probe over the updates: the run, and healthy runs beside it."""
    made = []
    for name, title in OUTCOMES.items():
        curves = []
        for number, rows in enumerate([run["rows"], *(other["rows"] for other in others)]):
            x = np.array([row["update"] for row in rows], dtype=float)
            curves.append(_curve(name, x, np.array([row.get(name, np.nan) for row in rows], dtype=float), number))
        made.append(Panel(name, "outcome", title, "", curves, marks=list(marks), x_label="update"))
    return made


def _curve(metric: str, x: np.ndarray, y: np.ndarray, number: int) -> Curve:
    """The run itself solid, healthy ones dashed and in one colour."""
    return Curve("healthy" if number else "run", metric, x, y, style="dashed" if number else "solid", colour=min(number, 1))


def log_panels(run: str, others: Sequence[str], marks: Sequence[Mark] = (), log: str = EVENTS) -> list[Panel]:
    """The main metrics of a run's log, beside those of healthy runs."""
    read = [max(read_runs([RECORDED / name / log]).runs, key=len) for name in (run, *others)]
    made = []
    for metric in METRICS:
        curves = [
            _curve(metric, np.asarray(one.steps, dtype=float), np.asarray(one.columns[metric].values, dtype=float), number)
            for number, one in enumerate(read) if metric in one.columns
        ]  # fmt: skip
        if curves:
            made.append(Panel(metric, "log", metric, "", curves, marks=list(marks)))
    return made


def samples(run: dict[str, Any]) -> list[str]:
    """What the policy said to the first held-out prompts: at the start, in the middle, at the end."""
    rows = [row for row in run["rows"] if row.get("samples")]
    chosen = [rows[place] for place in dict.fromkeys((0, len(rows) // 2, len(rows) - 1))] if rows else []
    return [f"update {row['update']}: {' | '.join(row['samples'])}" for row in chosen]


def page(title: str, parts: Iterable[tuple[str, str, Sequence[Panel], Sequence[str]]]) -> str:
    """An HTML page: for each part a heading, a sentence, its panels and its samples."""
    body = []
    for heading, said, panels, texts in parts:
        pictures = "".join(svg(panel, WIDTH, HEIGHT, LIGHT) for panel in panels)
        lines = "".join(f"<li>{escape(text)}</li>" for text in texts)
        body.append(f"<section><h2>{escape(heading)}</h2><p>{escape(said)}</p><div>{pictures}</div><ul>{lines}</ul></section>")
    style = (
        "body{font:13px system-ui,sans-serif;margin:16px;color:#1c2430}h2{font-size:14px;margin:18px 0 2px}p{margin:2px 0}"
        "div{display:flex;flex-wrap:wrap}ul{margin:2px 0;color:#5a6675}"
    )
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{escape(title)}</h1>{"".join(body)}</body></html>\n'


def labelled_part(label: dict[str, Any], with_log: bool) -> tuple[str, str, list[Panel], list[str]]:
    """A run with its label, for people who look at labels."""
    twins = ["--".join(label["run"].split("--")[:2])] if label["kind"] else []
    run, others = read_json(RECORDED / label["run"] / OUTCOME), [read_json(RECORDED / twin / OUTCOME) for twin in twins]
    marks = [Mark(label["onset"], "onset", "critical"), Mark(label["injected"], "injected", "warning")] if twins else []
    panels = outcome_panels(run, others, marks) + (log_panels(label["run"], twins, marks) if with_log else [])
    said = f"{label['verdict']}; broken: {', '.join(label['channels']) or 'nothing'}; lost {label.get('lost', 0):.0%} of the gain"
    said += f"; borderline: or {', '.join(label['borderline'])}" if label.get("borderline") else ""
    return label["run"], said + (f"; ended: {run['ended']}" if run["ended"] else ""), panels, samples(run)


def main() -> int:
    from corpus.label import LABELS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--kind", default="", help="kinds of fault, separated by commas")
    parser.add_argument("--split", default="")
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--no-log", action="store_true", help="only the outcome")
    args = parser.parse_args()
    kinds = [kind for kind in args.kind.split(",") if kind]
    wanted = {spec.id for spec in all_runs() if spec.fault and (not args.split or split_of(spec) == args.split)}
    wanted &= {spec.id for spec in all_runs() if not kinds or spec.fault in kinds}
    labels = [label for label in json.loads(args.labels.read_text()) if label["run"] in wanted]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page("Recorded runs", (labelled_part(label, not args.no_log) for label in labels)))
    print(f"wrote {args.out}: {len(labels)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
