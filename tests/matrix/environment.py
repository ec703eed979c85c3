"""Make a small environment with another TRL: its own packages first, everything else from the development environment.

    .venv/bin/python tests/matrix/environment.py .venvs/trl-0.23.1 tests/matrix/trl-0.23.1.txt

Only what the list pins is installed, without its dependencies, into an environment that does not yet see the other one:
nothing there can be replaced. Torch and the rest are shared, so that each takes seconds and not gigabytes.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

SHARE = "import site; site.addsitedir({shared!r})\n"
"""Appends the development environment, with its own `.pth` files: what the small environment has of its own comes first."""

CHECK = """
import importlib.metadata, pathlib, sys
for pin in sys.argv[1:]:
    name, _, version = pin.partition("==")
    found = importlib.metadata.distribution(name)
    inside = pathlib.Path(found.locate_file("")).is_relative_to(sys.prefix)
    if found.version != version or not inside:
        sys.exit(f"{name} is {found.version} from {found.locate_file('')}, and not {version} of this environment")
import rldk, torch
"""


def build(folder: Path, pins: Path) -> None:
    """Make the environment anew, and see that Python takes from it what it should."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)], check=True)
    python = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-deps", "--requirement", str(pins)], check=True)
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True, capture_output=True, text=True
    )
    shared = Path(sysconfig.get_path("purelib")).resolve()  # not by way of a link, which may be gone one day
    Path(own.stdout.strip(), "zz_development.pth").write_text(SHARE.format(shared=str(shared)))
    listed = [line for line in pins.read_text().splitlines() if "==" in line and not line.startswith("#")]
    subprocess.run([python, "-c", CHECK, *listed], check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
