"""The commands of the pages about the trainer, typed as they stand there after the pipeline, work.

A small world stands in for the pipeline's, and --max_steps is added to what trains; everything else is as the pages have it.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]
ROOT = Path(__file__).parents[2]
PAGES = ("training.md", "data.md", "scaling.md")
TRAINS = ("train_pretrain", "train_midtrain", "train_full_sft", "train_dpo", "train_reward", "train_ppo")


def documented(page: str) -> list[str]:
    """The commands in the pages' blocks of bash, without those that leave something out or need the hub."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = [re.sub(r"\s+#.*", "", line).strip() for line in lines]
    return [line for line in found if line.startswith("python trainer/") and "…" not in line and "Qwen/" not in line]


COMMANDS = list(dict.fromkeys(command for page in PAGES for command in documented(page)))


@pytest.fixture(scope="module")
def after_the_pipeline(small_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the pipeline leaves it: data, tokenizer, prepared mixtures, and the weights of SFT and PPO under `out`."""
    import prepare_data
    import train_full_sft

    root = tmp_path_factory.mktemp("after") / "world"
    shutil.copytree(small_world, root, symlinks=True)
    before = Path.cwd()
    os.chdir(root)
    try:
        assert prepare_data.main(["--all"]) == 0
        flags = "--from_weight none --tokenizer dataset/tokenizer --model_config config/model/tiny.yaml --max_steps 2 --no_rldk"
        assert train_full_sft.main(shlex.split(flags)) == 0
        for name in ("ppo", "dpo"):
            shutil.copytree("out/full_sft", f"out/{name}")
    finally:
        os.chdir(before)
    return root


def test_the_pages_have_commands() -> None:
    scripts = {command.split()[1] for command in COMMANDS}
    assert {
        "trainer/train_ppo.py",
        "trainer/evaluate.py",
        "trainer/chat.py",
        "trainer/export.py",
        "trainer/prepare_data.py",
    } <= scripts


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_works(command: str, after_the_pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, script, *flags = shlex.split(command)
    name = Path(script).stem
    module = importlib.import_module(name)
    monkeypatch.chdir(after_the_pipeline)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Where does the fox live?\n"))
    flags += ["--max_steps", "1"] if name in TRAINS and "--plan" not in flags else []
    if name in ("generate_corpus", "train_tokenizer"):  # they read the command line themselves; the small world is theirs
        monkeypatch.setattr(sys, "argv", [script, *flags, "--output", str(after_the_pipeline / f"made_by_{name}")])
        module.main()
    else:
        assert module.main(flags) == 0
