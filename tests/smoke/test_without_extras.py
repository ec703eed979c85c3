"""What `pip install rldk` alone gives: every module that needs no extra can be imported, and what needs one says which."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from rldk.cli.main import main

EXTRAS = {
    "rldk.integrations.trl": ("transformers", "torch", "trl"),
    "rldk.dashboard": ("streamlit", "plotly", "pyarrow"),  # streamlit brings pyarrow
    "rldk.checkpoints": ("torch", "safetensors"),
    "rldk.integrations.huggingface": ("transformers",),
    "rldk.integrations.ms_swift": ("ms-swift",),
}
"""Packages of which some modules need an extra, and what they may then not find."""

STORES = {
    "events.out.tfevents.1700000000.host": b'\x18\0\0\0\0\0\0\0\xa3\x7fK"\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2\0\0\0\0',
    "run-first.wandb": b":W&B\xe1\xbe\0" + bytes(64),
}
"""How the files of TensorBoard and W&B begin."""

IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # as if they were not installed, wherever this runs
import rldk
for module in pkgutil.walk_packages(rldk.__path__, "rldk."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print(module.name, error.name.split(".")[0])
        except ImportError as error:  # a plugin that only its framework imports; it names the package to install
            print(module.name, str(error).rpartition("pip install ")[2])
"""


def absent(*packages: str) -> pytest.MarkDecorator:
    there = [name for name in packages if importlib.util.find_spec(name) is not None]
    return pytest.mark.skipif(bool(there), reason=f"{', '.join(there)} is installed")


def test_only_modules_of_an_extra_need_it() -> None:
    hidden = {name for names in EXTRAS.values() for name in names}
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, *hidden], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("rldk.")]
    assert any(line.startswith("rldk.integrations.trl.") for line in lines)  # which need TRL
    for line in lines:
        module, missing = line.split()
        assert any(module.startswith(package) and missing in names for package, names in EXTRAS.items()), line


@absent("pyarrow")
def test_parquet_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.parquet").write_bytes(b"PAR1" + bytes(32) + b"PAR1")
    assert main(["scan", str(tmp_path / "log.parquet")]) == 2
    assert "pip install 'rldk[parquet]'" in capsys.readouterr().err


@absent("tensorboard", "wandb")
@pytest.mark.parametrize("name", STORES)
def test_stores_of_trackers_are_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_bytes(STORES[name])
    assert main(["scan", str(tmp_path / name)]) == 2
    assert "pip install 'rldk[trackers]'" in capsys.readouterr().err


@absent("resvg_py")
def test_pictures_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(__file__).parents[1] / "golden/inputs/collapse_events.jsonl"
    status = main(["report", str(run), "--output", str(tmp_path / "report.html"), "--png", str(tmp_path)])
    assert (status, "pip install 'rldk[report]'" in capsys.readouterr().err) == (2, True)


@absent("streamlit")
def test_the_dashboard_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", str(tmp_path)]) == 2
    assert "pip install 'rldk[dashboard]'" in capsys.readouterr().err


@absent("trl", "transformers")
def test_trl_is_named() -> None:
    with pytest.raises(ImportError, match=r"pip install 'rldk\[trl\]'"):
        from rldk.integrations.trl import RLDKCallback  # noqa: F401
