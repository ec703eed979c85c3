"""Real training with every callback attached, on every TRL that is supported: the matrix of `make matrix`.

Each version has a small environment of its own, which `make matrix` and `make test` build once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "tests/integrations/trl_matrix_run.py"
VERSIONS: dict[str, tuple[str, ...]] = {
    "0.23.1": ("ppo", "grpo", "rloo"),
    "0.29.1": ("ppo",),
    "1.12.0": ("ppo",),
    "1.16.0": ("grpo", "rloo", "dpo", "sft"),
}
"""What is trained on which TRL; 1.12.0, the last with PPO, is that of the development environment."""

TRANSFORMERS = {"0.23.1": "4.57.6", "1.16.0": "5.22.2"}
SETTINGS = {
    "ACCELERATE_USE_CPU": "true", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false", "TRL_EXPERIMENTAL_SILENCE": "1", "WANDB_MODE": "disabled",
}  # fmt: skip


def python_of(version: str) -> Path:
    """The interpreter with that TRL; skips where it was not built, unless the whole matrix is asked for."""
    python = Path(sys.executable) if version == "1.12.0" else ROOT / f".venvs/trl-{version}/bin/python"
    if not python.exists():
        assert os.environ.get("RLDK_MATRIX") != "all", f"{python} is missing"
        pytest.skip(f"no environment with TRL {version}: `make matrix` builds it")
    return python


def run(version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, **SETTINGS}
    return subprocess.run(
        [python_of(version), *arguments], capture_output=True, text=True, env=settings, timeout=900, check=False
    )


@pytest.mark.parametrize(("version", "trainer"), [(version, one) for version, trainers in VERSIONS.items() for one in trainers])
def test_training_with_every_callback(version: str, trainer: str, tmp_path: Path) -> None:
    done = run(version, str(SCENARIO), trainer, str(tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith(f"ok {trainer} trl {version} transformers {TRANSFORMERS.get(version, '')}"), last


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != "1.12.0"])
def test_an_environment_takes_what_is_pinned_from_itself_and_the_rest_from_the_development(version: str) -> None:
    pins = [line for line in (ROOT / f"tests/matrix/trl-{version}.txt").read_text().splitlines() if "==" in line]
    code = (
        "import importlib.metadata as m, sys\n"
        "for pin in sys.argv[1:]:\n"
        "    found = m.distribution(pin.split('==')[0]); print(found.version, found.locate_file('').is_relative_to(sys.prefix))\n"
        "import torch, rldk; print(torch.__file__); print(rldk.__file__)"
    )
    done = run(version, "-c", code, *pins)
    assert done.returncode == 0, done.stderr
    *versions, torch, rldk = done.stdout.splitlines()
    assert versions == [f"{pin.split('==')[1]} True" for pin in pins]
    assert not Path(torch).is_relative_to(ROOT / f".venvs/trl-{version}")
    assert Path(rldk).is_relative_to(ROOT / "src")
