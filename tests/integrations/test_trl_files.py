"""Real trainings with every callback attached at once: each file is written once, and holds what the contract says."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.full
pytest.importorskip("trl")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", ["ppo", "grpo", "sft"])
def test_every_file_of_the_contract(kind: str, tmp_path: Path) -> None:
    import trl_matrix_run

    assert trl_matrix_run.main(kind, tmp_path / kind).startswith(f"ok {kind}")
