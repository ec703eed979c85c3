"""The source compiles on every supported Python that is found; `make interpreters` runs the smoke tests on each."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
COMPILE = """
import pathlib, sys, warnings
warnings.simplefilter("error")
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    compile(path.read_text(encoding="utf-8"), str(path), "exec")
"""


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("interpreters", ROOT / "tests/interpreters.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


interpreters = load_script()


@pytest.mark.parametrize("version", interpreters.SUPPORTED, ids="{0[0]}.{0[1]}".format)
def test_the_source_compiles(version: tuple[int, int]) -> None:
    interpreter = interpreters.find_interpreter(version)
    if interpreter is None:
        pytest.skip(f"Python {version[0]}.{version[1]} is not on this machine")
    done = subprocess.run([interpreter, "-c", COMPILE, str(ROOT / "src")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
