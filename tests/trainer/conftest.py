"""The trainer is a folder of scripts, not a package: its tests import from it as the scripts do from each other."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "trainer"))


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """TRL's PPO, which is trained beside ours, collects garbage several times per update; modules need not be looked at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the project's root with generated data, a tokenizer of 400 entries and the config of a very small model."""
    from generate_corpus import generate
    from train_tokenizer import texts_of, train_tokenizer

    root = tmp_path_factory.mktemp("small_world")
    generate(root / "dataset/raw", scale=0.05)
    train_tokenizer(texts_of([root / "dataset/raw"]), 400).save_pretrained(str(root / "dataset/tokenizer"))
    (root / "config").mkdir()
    (root / "config/data").symlink_to(ROOT / "config/data")
    (root / "config/model").mkdir()
    (root / "config/model/tiny.yaml").write_text(
        "model_type: llama\nhidden_size: 32\nintermediate_size: 64\nnum_hidden_layers: 1\nnum_attention_heads: 2\n"
        "max_position_embeddings: 256\ntie_word_embeddings: true\n"
    )
    return root
