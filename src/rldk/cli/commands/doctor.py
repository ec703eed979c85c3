"""Check this machine: what is installed, which parts of rldk work, versions that clash, permissions, disk and accelerator.

Exit status: 0 nothing is wrong, 1 something is.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from rldk._version import __version__
from rldk.cli.options import add_json
from rldk.cli.output import console, print_json
from rldk.core.errors import UsageError
from rldk.core.text import clean, counted

EXAMPLES = """
rldk doctor
rldk doctor --json
rldk doctor --folder /scratch/runs
"""

PARTS = {
    "reading and judging": ("core", ("numpy", "pandas", "msgspec", "psutil", "yaml", "rich", "zstandard", "jinja2")),
    "Parquet": ("parquet", ("pyarrow",)),
    "TRL callbacks": ("trl", ("torch", "transformers", "trl", "accelerate")),
    "training": ("train", ("torch", "transformers", "accelerate", "datasets", "safetensors")),
    "PNG files": ("report", ("resvg_py",)),
    "dashboard": ("dashboard", ("streamlit", "plotly")),
    "W&B, MLflow, TensorBoard, trackio": ("trackers", ("wandb", "tensorboard", "mlflow", "trackio")),
    "index of many runs": ("fleet", ("pyarrow", "duckdb")),
    "object storage and the web": ("storage", ("fsspec", "obstore", "aiohttp", "huggingface_hub")),
    "judging on Ray": ("ray", ("ray",)),
    "agents (rldk mcp)": ("mcp", ("mcp",)),
}
"""What rldk can do, with the extra that brings it and the modules it needs."""

_LITTLE_DISK = 1 << 30
_OWN_EXTRAS = ("dev", "test", "lint", "docs")  # what rldk is developed with


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked: `ok`, `note` (worth knowing) or `problem`."""

    name: str
    state: str
    message: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", default=".", metavar="DIR", help="where runs are written (default: the working directory)")
    add_json(parser, "the findings")


def run(args: argparse.Namespace) -> int:
    folder = Path(args.folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder.")
    found = [_python(), *_parts(), *_clashes(), _writing(folder), _disk(folder), _accelerator()]
    problems = sum(one.state == "problem" for one in found)
    if args.json:
        print_json({"version": __version__, "problems": problems, "findings": [asdict(one) for one in found]})
    else:
        _show(found, problems)
    return 1 if problems else 0


def _show(found: list[Finding], problems: int) -> None:
    from rich.text import Text

    out = console()
    styles = {"ok": "green", "note": "yellow", "problem": "bold red"}
    width = max(len(one.name) for one in found)
    for one in found:
        out.print(Text.assemble((f"{one.state:8}", styles[one.state]), f" {one.name:{width}}  {clean(one.message, 400)}"))
    out.print()
    said, style = (counted(problems, "problem"), "bold red") if problems else ("nothing is wrong", "green")
    out.print(said, style=style)


def _python() -> Finding:
    return Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}; rldk {__version__}")


def _parts() -> list[Finding]:
    """Which parts can be used; one whose extra is not installed is worth knowing, and no problem."""
    found = []
    for name, (extra, modules) in PARTS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        if not missing:
            versions = ", ".join(f"{module} {_version(module)}" for module in modules)
            found.append(Finding(name, "ok", versions))
        elif extra == "core":
            found.append(Finding(name, "problem", f"{', '.join(missing)} not installed: pip install --force-reinstall rldk"))
        else:
            found.append(Finding(name, "note", f"{', '.join(missing)} not installed: pip install 'rldk[{extra}]'"))
    return found


@cache
def _packages() -> Mapping[str, Sequence[str]]:
    """The packages that bring each module; collecting them takes most of a second."""
    return importlib.metadata.packages_distributions()


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(_packages().get(module, [module])[0])
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _clashes() -> list[Finding]:
    """Installed packages that are older than the extras of rldk ask for."""
    try:
        wanted = importlib.metadata.requires("rldk") or []
    except importlib.metadata.PackageNotFoundError:
        return [Finding("versions", "note", "rldk runs from its source and is not installed, so versions are not checked")]
    old = [said for line in wanted if (said := _too_old(line))]
    if old:
        return [Finding("versions", "problem", f"{'; '.join(dict.fromkeys(old))}: pip install --upgrade them")]
    return [Finding("versions", "ok", "all installed packages are as new as rldk needs")]


def _too_old(line: str) -> str:
    """`trl 0.20 is installed, >=0.23 is needed`; empty where the requirement holds or the package is not installed."""
    requirement, _, marker = line.partition(";")
    name, separator, least = requirement.partition(">=")
    if not separator or "[" in name or any(f'"{extra}"' in marker.replace("'", '"') for extra in _OWN_EXTRAS):
        return ""
    try:
        own = importlib.metadata.version(name.strip())
    except importlib.metadata.PackageNotFoundError:
        return ""
    return f"{name.strip()} {own} is installed, {least.strip()} or newer is needed" if _numbers(own) < _numbers(least) else ""


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `2.4.1+cpu` is (2, 4, 1)."""
    found = []
    for part in version.partition("+")[0].split("."):
        digits = "".join(character for character in part if character.isdigit())
        if not part[:1].isdigit():
            break
        found.append(int(digits))
    return tuple(found)


def _writing(folder: Path) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"rldk")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Finding("writing", "problem", f"{folder.absolute()} cannot be written: {error.strerror}")
    return Finding("writing", "ok", f"{folder.absolute()} can be written")


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    said = f"{free / (1 << 30):.1f} GB free in {folder.absolute()}"
    if free > _LITTLE_DISK:
        return Finding("disk", "ok", said)
    return Finding("disk", "problem", f"{said}: event logs may be cut off")


def _accelerator() -> Finding:
    if importlib.util.find_spec("torch") is None:
        return Finding("accelerator", "note", "torch is not installed; reading and judging need none")
    try:
        import torch

        if torch.cuda.is_available():
            names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
            return Finding("accelerator", "ok", f"{', '.join(names)} (CUDA {torch.version.cuda})")
        mps = getattr(torch.backends, "mps", None)
        if sys.platform == "darwin" and mps is not None and mps.is_available():
            return Finding("accelerator", "ok", "Apple GPU")
    except Exception as error:  # noqa: BLE001  a broken installation of torch is a finding
        return Finding("accelerator", "problem", f"torch cannot be used: {error}")
    return Finding("accelerator", "note", "no GPU; training runs on the CPU")
