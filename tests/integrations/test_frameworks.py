"""Real loggers of frameworks with rldk attached, each in a small environment of its own: `make frameworks` builds them all.

Three of them are light and part of `make test`: torchtune, the Tinker cookbook and a Hugging Face trainer. framework_run.py has
what is driven and checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/trainer"))

from warm_processes import warm  # noqa: E402

LISTS = sorted((ROOT / "tests/frameworks").glob("*.txt"))
SETTINGS = {
    "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false", "WANDB_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}  # fmt: skip


def run(name: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the Python with that framework; skips where it was not built or others are asked for."""
    settings = {**os.environ, **SETTINGS, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests/integrations'}", "HOME": str(folder)}
    if name == "huggingface":  # a snippet of its page runs with a fresh interpreter: test_framework_pages.py
        return warm().run(arguments, cwd=folder, env=settings)
    python = ROOT / f".venvs/{name}/bin/python"
    asked = os.environ.get("RLDK_FRAMEWORKS", "").split()
    if asked and name not in asked:
        pytest.skip(f"{name} is not among the frameworks of this run ({', '.join(asked)}): `make frameworks` has them all")
    if not python.exists():
        assert name not in asked, f"{python} is missing"
        pytest.skip(f"no environment with {name}: `make frameworks` builds it")
    return subprocess.run(
        [python, *arguments], capture_output=True, text=True, env=settings, cwd=folder, timeout=600, check=False
    )  # fmt: skip


@pytest.mark.parametrize("name", ["huggingface", *(path.stem for path in LISTS)])
def test_every_value_of_the_real_logger_is_in_the_event_log(name: str, tmp_path: Path) -> None:
    done = run(name, str(ROOT / "tests/integrations/framework_run.py"), name, str(tmp_path), folder=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.splitlines()[-1].startswith(f"ok {name} "), done.stdout[-500:]


RAY = """
import os, ray
logs = os.path.abspath("logs")
environment = {"RLDK_ATTACH": "verl, wandb", "RLDK_OUTPUT_DIR": logs, "PYTHONPATH": os.environ["PYTHONPATH"]}
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=True, runtime_env={
    "worker_process_setup_hook": "rldk.integrations.ray_worker.setup", "env_vars": environment})

@ray.remote
class TaskRunner:
    def run(self):
        import sys
        from verl.utils.tracking import Tracking
        tracking = Tracking("project", "experiment", ["console"])
        for step in range(1, 13):
            tracking.log({"critic/score/mean": 0.1 * step, "actor/entropy": 1.0}, step)
        return "wandb" in sys.modules

assert ray.get(TaskRunner.remote().run.remote()) is False
ray.shutdown()
from rldk.log import EventReader
import glob
(log,) = glob.glob(logs + "/*_events.jsonl")
assert [event.step for event in EventReader(log)] == list(range(1, 13)), "rows are missing"
print("ok ray")
"""


def test_a_trainer_in_a_ray_worker_is_watched_without_a_patch(tmp_path: Path) -> None:
    done = run("verl", "-c", RAY, folder=tmp_path)
    assert done.returncode == 0 and "ok ray" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]


def test_verl_imports_the_plugin_by_an_environment_variable(tmp_path: Path) -> None:
    code = (
        "import os; os.environ['VERL_USE_EXTERNAL_MODULES'] = 'rldk.integrations.verl_plugin'\n"
        "os.environ['RLDK_OUTPUT_DIR'] = 'logs'\n"
        "from verl.utils.tracking import Tracking\n"
        "tracking = Tracking('project', 'experiment', ['console'])\n"
        "for step in range(5): tracking.log({'critic/score/mean': 0.1 * step}, step)\n"
    )
    done = run("verl", "-c", code, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    (log,) = (tmp_path / "logs").glob("*_events.jsonl")
    assert log.read_bytes().count(b"\n") == 5
