"""Models, tokenizers and data sets by name: a folder, or a name on the Hugging Face hub (`owner/name`, `owner/name@revision`).

A hub name becomes a folder of the local cache (`HF_HOME`), so that everything else works on folders; with `HF_HUB_OFFLINE=1`
nothing is downloaded and only the cache is used. Weights are loaded from safetensors only, never from pickle.
"""

from __future__ import annotations

import re
from pathlib import Path

from checkpoint import CheckpointError, heal

MODEL_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")


def is_hub_name(name: str) -> bool:
    """Whether a text has the form of a hub name; a folder of that name takes precedence."""
    return bool(_HUB_NAME.fullmatch(name)) and not name.startswith(".")


def local_folder(name: str | Path, flag: str, kind: str = "model", files: tuple[str, ...] = ()) -> Path:
    """The folder that a name means.

    Args:
        flag: the flag with the name, for errors.
        kind: `model` or `dataset`.
        files: patterns of the files that are needed; of a model, its configuration, tokenizer and safetensors.
    """
    folder = heal(Path(name))
    if folder.is_dir():
        return folder
    if not is_hub_name(str(name)):
        raise CheckpointError(f"{flag} {name}: there is no such folder, and it is not a hub name (owner/name).")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise CheckpointError(f"{flag} {name}: hub names need `pip install huggingface_hub`.") from error
    repo, _, revision = str(name).partition("@")
    wanted = list(files or (MODEL_FILES if kind == "model" else ())) or None
    try:
        return Path(snapshot_download(repo, repo_type=kind, revision=revision or None, allow_patterns=wanted))
    except (OSError, ValueError, HfHubHTTPError, HFValidationError) as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(
            f"{flag} {name}: there is no such folder, and the hub does not provide it: {why} Check the name and the network; a "
            "private one needs `hf auth login`, and without a network it must be in the cache (HF_HOME)."
        ) from error
