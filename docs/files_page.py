"""The page that lists every file of the package with what it holds, from the docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = ("src/rldk", "trainer")
BRIEF = ("src/rldk/detectors", "src/rldk/adapters", "src/rldk/core/catalog/frameworks")
"""Folders of files that are made alike: each holds one thing, which its first sentence says."""

HEAD = """# Files

Every file of `src/rldk` and `trainer`, what it is for, and what its functions, classes and named constants do, from their
docstrings. Search this page for a word of what you want to change; [Architecture](architecture.md) says how the parts work
together."""


def files_page() -> str:
    lines = [HEAD, ""]
    for folder in sorted({path.parent for place in PLACES for path in (ROOT / place).rglob("*.py")}):
        files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        if files:
            lines += [f"## {folder.relative_to(ROOT).as_posix()}", "", *_about(folder), *_entries(folder, files), ""]
    return "\n".join(lines)


def _about(folder: Path) -> list[str]:
    """What the package of a folder says of itself."""
    package = folder / "__init__.py"
    said = _said(ast.parse(package.read_text())) if package.exists() else ""
    return [said, ""] if said else []


def _entries(folder: Path, files: list[Path]) -> Iterator[str]:
    brief = folder.relative_to(ROOT).as_posix().startswith(BRIEF)
    for path in files:
        tree = ast.parse(path.read_text())
        if not _said(tree):
            continue
        yield f"- **`{path.name}`** {_said(tree)}"
        if not brief:
            yield from (f"    - {text}" for text in _contents(tree))


def _said(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """The first sentence of a docstring."""
    return _first(ast.get_docstring(node) or "")


def _first(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.?])\s+(?=[A-Z`])", paragraph)[0].replace("](", "] (").replace("<", "&lt;")


def _contents(tree: ast.Module) -> Iterator[str]:
    """The public functions and classes of a file, with their methods, and the constants that have a docstring."""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef):
            yield from _line(node.name, node)
        elif isinstance(node, ast.ClassDef):
            yield from _line(node.name, node)
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and not node.name.startswith("_"):
                    yield from _line(one.name, one, f"{node.name}.")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_text(after):
            names = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            yield f"`{names.strip('()')}` {_first(after.value.value)}"


def _line(name: str, node: ast.ClassDef | ast.FunctionDef, before: str = "") -> Iterator[str]:
    said = _said(node)
    if said and not name.startswith("_"):
        yield f"`{before}{name}` {said}"


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
