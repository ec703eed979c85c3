"""Models, tokenizers and data sets by hub name, without a network: from a cache that the test makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[2]
TALK = [{"role": "user", "content": "Where does the fox live?"}, {"role": "assistant", "content": "In the forest."}]


def put(cache: Path, kind: str, name: str, files: Path) -> None:
    """A repository in the cache, as a download leaves it."""
    place, revision = cache / f"{kind}s--{name.replace('/', '--')}", "0" * 40
    shutil.copytree(files, place / "snapshots" / revision)
    (place / "refs").mkdir()
    (place / "refs/main").write_text(revision)


@pytest.fixture(scope="module")
def home(small_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`HF_HOME` with a model, its tokenizer and a data set of two splits."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    home = tmp_path_factory.mktemp("home")
    made = home / "made"
    shutil.copytree(small_world / "dataset/tokenizer", made / "model")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=400, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=128,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(str(made / "model"))
    (made / "data").mkdir()
    for split, count in (("train", 12), ("test", 3)):
        rows = [{"dialog": [{**TALK[0], "content": f"{split} {n}?"}, TALK[1]]} for n in range(count)]
        (made / f"data/{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    put(home / "hub", "model", "someone/tiny", made / "model")
    put(home / "hub", "dataset", "someone/chats", made / "data")
    return home


def environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    return {**kept, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


TRAIN_AND_TALK = """
import chat, prepare_data, train_full_sft
assert prepare_data.main(["--config", "data.yaml"]) == 0
flags = "--data_config data.yaml --use_prepared --model_path someone/tiny@main --from_weight none --save_dir out"
assert train_full_sft.main(f"{flags} --max_steps 2 --batch_size 4 --no_rldk".split()) == 0
assert chat.main(["--weights", "someone/tiny", "--prompt", "Hello?", "--max_new_tokens", "3", "--json"]) == 0
"""
NOWHERE = """
from pathlib import Path
from checkpoint import CheckpointError
from data_config import DataError, Source
from data_sources import iter_records
from hub import local_folder
for name in ("someone/other", "no/such/folder", "../folder"):
    try: local_folder(name, "--model_path")
    except CheckpointError as error: print(error)
for split in ("test", "dev"):
    try: print(split, len(list(iter_records(Source("s", Path("someone/chats"), "hub", split=split)))))
    except DataError as error: print(error)
"""


@pytest.fixture(scope="module")
def used(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of one process that did both, and what it printed in each; `HF_HOME` is read while modules are imported."""
    folder = tmp_path_factory.mktemp("used")
    source = "{hub: someone/chats, fields: {messages: dialog}, system: Be kind.}"
    (folder / "data.yaml").write_text(f"stage: sft\noutput: {folder / 'made.jsonl'}\nsources:\n  - {source}\n")
    told = {**environment(home), "PYTHONPATH": os.pathsep.join([str(ROOT / "trainer"), str(ROOT / "src")])}
    words = [sys.executable, "-c", f"{TRAIN_AND_TALK}print('=' * 9)\n{NOWHERE}"]
    done = subprocess.run(words, cwd=folder, env=told, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder, done.stdout.split("=" * 9 + "\n")


def test_a_stage_and_a_conversation_with_hub_names(used: tuple[Path, list[str]]) -> None:
    folder, (printed, _) = used
    records = [json.loads(line) for line in (folder / "made.jsonl").read_text().splitlines()]
    assert len(records) == 12 and all(record["messages"][0] == {"role": "system", "content": "Be kind."} for record in records)
    assert (folder / "out/full_sft/model.safetensors").is_file()
    said = json.loads(printed[printed.index('{\n "weights"') :])
    assert said["weights"] == "someone/tiny" and said["messages"][-1]["role"] == "assistant"


def test_a_name_that_is_nowhere_says_what_to_do(used: tuple[Path, list[str]]) -> None:
    _, (_, printed) = used
    lines = printed.splitlines()
    assert "--model_path someone/other: there is no such folder, and the hub does not provide it" in lines[0], lines
    assert "in the cache (HF_HOME)" in lines[0]
    assert all("it is not a hub name (owner/name)" in line for line in lines[1:3])
    assert lines[3] == "test 3" and "Name one of its splits by `split`" in printed
