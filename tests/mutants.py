"""Does a test notice when the judge or the log is broken? Breaks them at random, one place at a time, and runs their tests.

    python tests/mutants.py --count 40 --seed 0                    # prints each mutant: killed (by which test) or survived
    python tests/mutants.py --count 40 --seed 0 --json after.json --compare before.json

The same seed over the same source draws the same mutants, so that two versions of the tests can be compared. A mutant is
`killed` when a test fails, `survived` when none does, and `undecided` when none has failed within the time limit. Some
survivors are equivalent to the original: read them before you write a test. Nothing in the tree is changed; the mutants
live in a temporary copy.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/rldk")
PARTS = ("judge", "detectors", "signals", "log")
COPIED = ("src", "tests", "pyproject.toml")

NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change at one place: the node by its number in `ast.walk`, and what is done to it."""

    path: str
    line: int
    kind: str
    node: int

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} {self.kind} ({self.node})"


def _compare(swap: dict[type[ast.cmpop], type[ast.cmpop]]) -> Callable[[Any], ast.AST | None]:
    def change(node: Any) -> ast.AST | None:
        if not isinstance(node, ast.Compare) or type(node.ops[0]) not in swap:
            return None
        node.ops[0] = swap[type(node.ops[0])]()
        return node

    return change


def _constant(node: Any) -> ast.AST | None:
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
        return None
    value = node.value
    node.value = value + 1 if isinstance(value, int) else (value * 2 if value else 1.0)
    return node


def _boolean(node: Any) -> ast.AST | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
        return node
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return None


def _arithmetic(node: Any) -> ast.AST | None:
    if not isinstance(node, (ast.BinOp, ast.AugAssign)) or type(node.op) not in ARITHMETIC:
        return None
    node.op = ARITHMETIC[type(node.op)]()
    return node


def _condition(node: Any) -> ast.AST | None:
    if not isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return None
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return node


def _removed(node: Any) -> ast.AST | None:
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return ast.Pass() if call or isinstance(node, (ast.Assign, ast.AugAssign)) else None


def _nothing(node: Any) -> ast.AST | None:
    if not isinstance(node, ast.Return) or node.value is None:
        return None
    if isinstance(node.value, ast.Constant) and node.value.value is None:
        return None
    node.value = ast.Constant(None)
    return node


CHANGES: dict[str, Callable[[Any], ast.AST | None]] = {
    "comparison negated": _compare(NEGATED),
    "boundary moved": _compare(BOUNDARY),
    "number changed": _constant,
    "boolean changed": _boolean,
    "arithmetic changed": _arithmetic,
    "condition negated": _condition,
    "statement removed": _removed,
    "returns None": _nothing,
}


def _behaviour(tree: ast.Module) -> set[int]:
    """Numbers of the nodes that decide what the code does: no annotations, `__all__`, `__slots__` or typing-only imports."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        skip: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            skip = [node.annotation]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            skip = [node.returns, *node.decorator_list]
        elif isinstance(node, ast.arg):
            skip = [node.annotation]
        elif ast.unparse(node).startswith(("__all__ = ", "__slots__ = ", "if TYPE_CHECKING:")):
            skip = [node]
        left_out.update(id(inner) for part in skip if part is not None for inner in ast.walk(part))
    return {number for number, node in enumerate(ast.walk(tree)) if id(node) not in left_out}


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = _behaviour(tree)
    for number, node in enumerate(ast.walk(tree)):
        if number in allowed:
            for kind, change in CHANGES.items():
                if change(copy.deepcopy(node)) is not None:
                    yield Mutant(path.relative_to(ROOT).as_posix(), getattr(node, "lineno", 0), kind, number)


def draw(count: int, seed: int) -> list[Mutant]:
    """So many mutants at random, the same for the same source and seed: every kind of change as often, a quarter in the log."""
    chance = random.Random(seed)
    known: dict[tuple[bool, str], list[Mutant]] = {(log, kind): [] for log in (False, True) for kind in CHANGES}
    for part in PARTS:
        for path in sorted((ROOT / PACKAGE / part).rglob("*.py")):
            for mutant in mutants_of(path):
                known[part == "log", mutant.kind].append(mutant)
    drawn = []
    for number in range(count):
        log = number % 4 == 3
        kind = list(CHANGES)[(number // 4 if log else number - number // 4) % len(CHANGES)]
        some = known[log, kind]
        drawn.append(some.pop(chance.randrange(len(some))))
    return drawn


def mutated(mutant: Mutant) -> tuple[str, str, str]:
    """The file with the mutant, and the changed piece before and after."""
    tree = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    target = list(ast.walk(tree))[mutant.node]
    before = ast.unparse(target)
    after = CHANGES[mutant.kind](copy.deepcopy(target))
    assert after is not None

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return ast.copy_location(after, node) if node is target else self.generic_visit(node)

    text = ast.unparse(ast.fix_missing_locations(Put().visit(tree)))
    return text, _one_line(before), _one_line(ast.unparse(after))


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) < 80 else text[:77] + "…"


def tests_for(path: str) -> list[str]:
    """The tests of a file, nearest first."""
    part, *rest = Path(path).relative_to(PACKAGE).parts
    judge = [
        "tests/golden",
        "tests/signals",
        "tests/detectors",
        "tests/forensics",
        "tests/judge",
        "tests/testing",
        "tests/monitor",
    ]
    near = {
        "log": ["tests/log", "tests/golden", "tests/monitor"],
        "signals": judge,
        "detectors": [f"tests/detectors/{rest[0]}", *judge],
        "judge": ["tests/forensics", *judge] if "trackers" in rest else ["tests/golden", "tests/judge", *judge],
    }[part]
    return [name for name in dict.fromkeys(near) if (ROOT / name).exists()]


def run_tests(folder: Path, names: list[str], limit: float) -> tuple[str, str, float]:
    """`killed`, `survived` or `undecided`; the test that failed; and the seconds it took."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", *names]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    began = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "undecided", "", time.perf_counter() - began
    seconds = time.perf_counter() - began
    if done.returncode == 0:
        return "survived", "", seconds
    failed = [line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "killed", failed[0] if failed else done.stdout[-200:] + done.stderr[-200:], seconds


def copied(folder: Path) -> Path:
    """What the tests need of the tree: copies of what is changed, links to the rest."""
    for path in ROOT.iterdir():
        if path.name == ".git":
            continue
        if path.name not in COPIED:
            (folder / path.name).symlink_to(path)
        elif path.is_dir():
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, folder / path.name)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for the tests of one mutant (default: 60)")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome of each mutant")
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="an earlier --json: run only what it killed, and expect it killed again"
    )
    args = parser.parse_args()
    outcomes: dict[str, str] = {}
    earlier = json.loads(args.compare.read_text()) if args.compare else {}
    with tempfile.TemporaryDirectory(prefix="rldk-mutants-") as name:
        folder = copied(Path(name))
        for number, mutant in enumerate(draw(args.count, args.seed), 1):
            if args.compare and earlier.get(mutant.name) != "killed":
                continue
            text, before, after = mutated(mutant)
            print(f"{number:3} {mutant.name}\n    {before}  ->  {after}", flush=True)
            if args.list:
                continue
            target = folder / mutant.path
            target.write_text(text, encoding="utf-8")
            outcome, killer, seconds = run_tests(folder, tests_for(mutant.path), args.limit)
            shutil.copy(ROOT / mutant.path, target)
            outcomes[mutant.name] = outcome
            print(f"    {outcome} after {seconds:.0f} s {killer}", flush=True)
            if args.json:
                args.json.write_text(json.dumps(outcomes, indent=1))
    if args.list:
        return 0
    counts = {outcome: list(outcomes.values()).count(outcome) for outcome in ("killed", "undecided", "survived")}
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if args.compare:
        lost = [name for name, outcome in earlier.items() if outcome == "killed" and outcomes.get(name) != "killed"]
        print("\n".join(f"no longer killed: {name}" for name in lost) or "every mutant killed before is killed now")
        return 1 if lost else 0
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
