"""Independent readers' labels: thirty runs drawn at random, shown without names, and how far each reader agrees.

    python benchmarks/corpus/blind.py draw --seed 1 --out out/corpus/blind    # a picture for each run
    python benchmarks/corpus/blind.py score                                   # compare the readers' answers with the labels

The reader sees the curves of the outcome probe and of the log, some samples, and as dashed lines two healthy runs of the same
setting, the twin among them (for a run without a fault: two other seeds). The answer is FAILING, DEGRADED or SOUND for each: a
harmless fault and none look the same.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus.label import LABELS
from corpus.sheet import HEIGHT, WIDTH, log_panels, outcome_panels, samples
from corpus.store import OUTCOME, RECORDED, read_json
from rldk.present.palette import LIGHT
from rldk.present.plots.svg import svg

ANSWERS = Path(__file__).with_name("blind_answers.json")
DRAWN = {"FAILING": 10, "DEGRADED or HARMLESS": 10, "HEALTHY": 10}
COLUMNS = 4
ENOUGH = 26


def draw(seed: int) -> list[dict[str, Any]]:
    """Thirty labels: ten of each group, in random order. The same for the same seed and the same labels."""
    labels, chance = json.loads(LABELS.read_text()), random.Random(seed)
    first = [one for one in labels if int(one["run"].split("--s")[1].split("--")[0]) < 10]  # those of the first round
    chosen = []
    for group, count in DRAWN.items():
        names = group.split(" or ")
        chosen += chance.sample([one for one in first if one["verdict"] in names], count)
    chance.shuffle(chosen)
    return chosen


def healthy_beside(label: dict[str, Any]) -> list[str]:
    """Two healthy runs of the same setting: the twin and another seed, or two other seeds."""
    setting, seed, *_ = label["run"].split("--")
    seeds = sorted(one.name for one in RECORDED.glob(f"{setting}--s*") if one.name.count("--") == 1)
    others = [name for name in seeds if name != f"{setting}--{seed}"]
    return [f"{setting}--{seed}", others[0]] if label["kind"] else others[:2]


def picture(label: dict[str, Any], number: int) -> str:
    """All that the reader sees of a run, as one SVG."""
    beside = healthy_beside(label)
    run, *others = (read_json(RECORDED / name / OUTCOME) for name in (label["run"], *beside))
    panels = outcome_panels(run, others) + log_panels(label["run"], beside)
    rows = -(-len(panels) // COLUMNS)
    lines = [
        f"Run {number}. Outcome on held-out prompts, then the log. Solid: the run; dashed: two healthy runs of the same setting."
    ]
    lines += [f"run, {text}" for text in samples(run)] + [f"healthy, {text}" for text in samples(others[0])[-1:]]
    lines += [f"the training ended with {run['ended']}"] if run["ended"] else []
    texts = "".join(f'<text x="8" y="{18 + 16 * place}">{escape(text[:170])}</text>' for place, text in enumerate(lines))
    top, width = 16 * len(lines) + 14, COLUMNS * WIDTH
    spots = [(WIDTH * (place % COLUMNS), top + HEIGHT * (place // COLUMNS)) for place in range(len(panels))]
    placed = "".join(
        f'<g transform="translate({x},{y})">{svg(panel, WIDTH, HEIGHT, LIGHT)}</g>'
        for (x, y), panel in zip(spots, panels, strict=True)
    )
    size = f'width="{width}" height="{top + rows * HEIGHT}" font-family="DejaVu Sans,sans-serif" font-size="12"'
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{paper}{texts}{placed}</svg>'


def verdict_of(label: dict[str, Any]) -> str:
    """The label as the reader can tell it."""
    return label["verdict"] if label["verdict"] in ("FAILING", "DEGRADED") else "SOUND"


def readings() -> list[tuple[dict[str, str], list[dict[str, Any]]]]:
    """The answers of each reader by the number of the run, and the labels of the runs."""
    return [(one["answers"], draw(one["seed"])) for one in json.loads(ANSWERS.read_text())]


def agreements() -> list[int]:
    """In how many of the thirty runs each reader agrees with the labels."""
    return [sum(said[str(n)] == verdict_of(label) for n, label in enumerate(drawn, 1)) for said, drawn in readings()]


def score() -> int:
    for reader, (given, drawn) in enumerate(readings(), 1):
        for number, label in enumerate(drawn, 1):
            if given[str(number)] != verdict_of(label):
                print(f"reader {reader}, run {number:2}: the reader says {given[str(number)]}, the label {verdict_of(label)}")
    for reader, agreed in enumerate(agreements(), 1):
        print(f"agreement of reader {reader}: {agreed} of {sum(DRAWN.values())} (at least {ENOUGH})")
    return int(min(agreements()) < ENOUGH)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("draw", "score"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/corpus/blind"))
    args = parser.parse_args()
    if args.action == "score":
        return score()
    import resvg_py

    args.out.mkdir(parents=True, exist_ok=True)
    for number, label in enumerate(draw(args.seed), 1):
        (args.out / f"run_{number:02}.png").write_bytes(bytes(resvg_py.svg_to_bytes(svg_string=picture(label, number))))
    print(f"wrote {sum(DRAWN.values())} pictures to {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
