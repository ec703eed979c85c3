"""Write the goldens again: `python tests/golden/update.py`. Read `git diff tests/golden` before you commit it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from recording import EXPECTED, record


def update() -> int:
    EXPECTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = record(Path(folder))
    before = {path.name: path.read_text(encoding="utf-8") for path in EXPECTED.iterdir()}
    for name in before.keys() - found.keys():
        (EXPECTED / name).unlink()
    for name, text in found.items():
        (EXPECTED / name).write_text(text, encoding="utf-8", newline="\n")
    changed = sorted(name for name in before.keys() | found.keys() if before.get(name) != found.get(name))
    print("\n".join(f"changed: {name}" for name in changed) or "nothing has changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(update())
