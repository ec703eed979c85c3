"""Real training with every callback attached, on every TRL that is supported: the matrix of `make matrix`.

Each version has a small environment of its own, which `make matrix` and `make test` build once.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "tests/integrations/trl_matrix_run.py"
VERSIONS: dict[str, tuple[str, ...]] = {
    "0.23.1": ("ppo", "grpo", "rloo"),
    "0.29.1": ("ppo",),
    "1.16.0": ("grpo", "rloo", "dpo", "sft"),
}
"""What is trained on which TRL. That of the development environment is 1.12.0, the last with PPO: see test_trl_files.py."""

NEWEST = "1.16.0"
GRPO_BESIDE_TRL = ROOT / "tests/trainer/test_grpo_same_as_trl.py"
SCENARIO_AND_GRPO = """
import pytest, runpy, sys
_, grpo, *sys.argv = sys.argv
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
words = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-v", grpo, "-k", "dapo or dr_grpo"]
print("status", int(pytest.main(words)))
"""
TRANSFORMERS = {"0.23.1": "4.57.6", "1.16.0": "5.22.2"}
SETTINGS = {
    "ACCELERATE_USE_CPU": "true", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false", "TRL_EXPERIMENTAL_SILENCE": "1", "WANDB_MODE": "disabled",
}  # fmt: skip


def python_of(version: str) -> Path:
    """The interpreter with that TRL; skips where it was not built, unless the whole matrix is asked for."""
    python = ROOT / f".venvs/trl-{version}/bin/python"
    if not python.exists():
        assert os.environ.get("RLDK_MATRIX") != "all", f"{python} is missing"
        pytest.skip(f"no environment with TRL {version}: `make matrix` builds it")
    return python


def run(version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, **SETTINGS}
    return subprocess.run(
        [python_of(version), *arguments], capture_output=True, text=True, env=settings, timeout=900, check=False
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """One process for each version; that of the newest trains with our GRPO beside TRL's as well."""

    @cache
    def by(version: str) -> subprocess.CompletedProcess[str]:
        scenario = [str(SCENARIO), str(tmp_path_factory.mktemp("matrix")), *VERSIONS[version]]
        return run(version, *(["-c", SCENARIO_AND_GRPO, str(GRPO_BESIDE_TRL)] if version == NEWEST else []), *scenario)

    return by


@pytest.mark.parametrize("version", VERSIONS)
def test_training_with_every_callback(version: str, trained: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    done = trained(version)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    said = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    for trainer, line in zip(VERSIONS[version], said, strict=True):
        assert line.startswith(f"ok {trainer} trl {version} transformers {TRANSFORMERS.get(version, '')}"), line


def test_our_grpo_is_that_of_the_newest_trl(trained: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    done = trained(NEWEST)
    assert "2 passed" in done.stdout and "status 0" in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_environment_takes_what_is_pinned_from_itself_and_the_rest_from_the_development(version: str) -> None:
    pins = [line for line in (ROOT / f"tests/matrix/trl-{version}.txt").read_text().splitlines() if "==" in line]
    code = (
        "import importlib.metadata as m, importlib.util, sys\n"
        "for pin in sys.argv[1:]:\n"
        "    found = m.distribution(pin.split('==')[0]); print(found.version, found.locate_file('').is_relative_to(sys.prefix))\n"
        "print(*(importlib.util.find_spec(name).origin for name in ('torch', 'rldk')), sep='\\n')"
    )
    done = run(version, "-c", code, *pins)
    assert done.returncode == 0, done.stderr
    *versions, torch, rldk = done.stdout.splitlines()
    assert versions == [f"{pin.split('==')[1]} True" for pin in pins]
    assert not Path(torch).is_relative_to(ROOT / f".venvs/trl-{version}")
    assert Path(rldk).is_relative_to(ROOT / "src")
