"""Run the smoke tests on every other supported Python of this machine: `python tests/interpreters.py`, or `make interpreters`.

Each interpreter gets an environment of its own (`.venvs/python-3.X`, kept for the next time) with rldk, installed as a user
would, and a test runner. Supported versions that are not on this machine are listed. Exit status: 1 if a test failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUPPORTED = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
KEPT_BY = (("PYENV_ROOT", "~/.pyenv", "versions/{}*/bin"), ("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python", "*-{}*/bin"))
"""Where pyenv and uv keep interpreters: the variable, the usual place, and the folder of a version."""


def find_interpreter(version: tuple[int, int]) -> str | None:
    """An interpreter of this version that starts: on the PATH, or where pyenv and uv keep theirs."""
    for path in _candidates(".".join(map(str, version))):
        told = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if told.returncode == 0 and told.stdout.split() == [str(part) for part in version]:
            return path
    return None


def _candidates(version: str) -> Iterator[str]:
    folders = [Path(folder) for folder in os.get_exec_path()]
    for variable, usual, pattern in KEPT_BY:
        home = Path(os.environ.get(variable) or usual).expanduser()
        folders += sorted(home.glob(pattern.format(version)), reverse=True)
    for folder in folders:
        if found := shutil.which(f"python{version}", path=folder):
            yield found


def run_smoke_tests(version: tuple[int, int], interpreter: str) -> bool:
    """Whether the smoke tests pass on this interpreter."""
    folder = ROOT / ".venvs" / f"python-{version[0]}.{version[1]}"
    python = str(folder / "bin/python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not (folder / ".installed").exists():
        print(f"setting up {folder.relative_to(ROOT)} (once)", flush=True)
        subprocess.run([interpreter, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([*pip, ".[test]"], cwd=ROOT, check=True)
        (folder / ".installed").touch()
    subprocess.run([*pip, "--no-deps", "--force-reinstall", "."], cwd=ROOT, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    tests = [python, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not full", "@tests/smoke.txt"]
    return subprocess.run(tests, cwd=ROOT, env=environment).returncode == 0


def main() -> int:
    passed, failed, absent = [], [], []
    for version in SUPPORTED:
        if version == sys.version_info[:2]:
            continue  # `make test` has run on this one
        name = f"{version[0]}.{version[1]}"
        interpreter = find_interpreter(version)
        if interpreter is None:
            absent.append(name)
        else:
            print(f"Python {name}: {interpreter}", flush=True)
            (passed if run_smoke_tests(version, interpreter) else failed).append(name)
    for outcome, names in (("passed", passed), ("failed", failed), ("not on this machine", absent)):
        print(f"{outcome}: {', '.join(names) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
