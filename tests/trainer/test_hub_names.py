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


def test_a_stage_and_a_conversation_with_hub_names(home: Path, tmp_path: Path) -> None:
    source = "{hub: someone/chats, fields: {messages: dialog}, system: Be kind.}"
    (tmp_path / "data.yaml").write_text(f"stage: sft\noutput: {tmp_path / 'made.jsonl'}\nsources:\n  - {source}\n")
    code = (
        "import sys, train_full_sft, prepare_data, chat\n"
        "assert prepare_data.main(['--config', 'data.yaml']) == 0\n"
        "flags = '--data_config data.yaml --use_prepared --model_path someone/tiny@main --from_weight none --save_dir out'\n"
        "assert train_full_sft.main(f'{flags} --max_steps 2 --batch_size 4 --no_rldk'.split()) == 0\n"
        "assert chat.main(['--weights', 'someone/tiny', '--prompt', 'Hello?', '--max_new_tokens', '3', '--json']) == 0\n"
    )
    paths = os.pathsep.join([str(ROOT / "trainer"), str(ROOT / "src")])
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, cwd=tmp_path, env={**environment(home), "PYTHONPATH": paths}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    records = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert len(records) == 12 and all(record["messages"][0] == {"role": "system", "content": "Be kind."} for record in records)
    assert (tmp_path / "out/full_sft/model.safetensors").is_file()
    said = json.loads(done.stdout[done.stdout.index('{\n "weights"') :])
    assert said["weights"] == "someone/tiny" and said["messages"][-1]["role"] == "assistant"


def test_a_name_that_is_nowhere_says_what_to_do(home: Path, tmp_path: Path) -> None:
    code = (
        "from checkpoint import CheckpointError\n"
        "from data_config import DataError, Source\n"
        "from data_sources import iter_records\n"
        "from hub import local_folder\n"
        "from pathlib import Path\n"
        "for name in ('someone/other', 'no/such/folder', '../folder'):\n"
        "    try: local_folder(name, '--model_path')\n"
        "    except CheckpointError as error: print(error)\n"
        "for split in ('test', 'dev'):\n"
        "    try: print(split, len(list(iter_records(Source('s', Path('someone/chats'), 'hub', split=split)))))\n"
        "    except DataError as error: print(error)\n"
    )
    paths = os.pathsep.join([str(ROOT / "trainer"), str(ROOT / "src")])
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, cwd=tmp_path, env={**environment(home), "PYTHONPATH": paths}, capture_output=True, text=True, timeout=300
    )
    lines = done.stdout.splitlines()
    assert "--model_path someone/other: there is no such folder, and the hub does not give it" in lines[0], done.stderr[-2000:]
    assert "in the cache (HF_HOME)" in lines[0]
    assert all("it is not a hub name (owner/name)" in line for line in lines[1:3])
    assert lines[3] == "test 3" and "Name one of its splits by `split`" in done.stdout
