"""Checkpoints are whole or not there, hold no pickle, and bring an optimizer back to the bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")


def trained(steps: int, model=None, optimizer=None, first: int = 0):
    from trainer_utils import make_optimizer

    if model is None:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1))
        optimizer = make_optimizer(model, 1e-2, 0.1)
    for step in range(first, first + steps):
        torch.manual_seed(step)
        model(torch.randn(5, 4)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def test_training_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    from checkpoint import load_checkpoint, save_checkpoint

    straight, _ = trained(6)
    model, optimizer = trained(3)
    place = save_checkpoint(tmp_path, 3, {"m": model}, {"m": optimizer}, {"kept": [1, 2.5, None]})
    fresh, other = trained(1)
    state = load_checkpoint(place, {"m": fresh}, {"m": other})
    assert state == {"kept": [1, 2.5, None], "step": 3}
    trained(3, fresh, other, first=3)
    assert all(one.equal(two) for one, two in zip(straight.parameters(), fresh.parameters(), strict=True))


def test_nothing_in_it_is_pickled(tmp_path: Path) -> None:
    from checkpoint import save_checkpoint

    model, optimizer = trained(1)
    place = save_checkpoint(tmp_path, 1, {"m": model}, {"m": optimizer}, {})
    assert sorted(path.suffix for path in place.iterdir()) == [".json", ".safetensors", ".safetensors"]
    for path in place.glob("*.safetensors"):
        data = path.read_bytes()
        json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])  # a header of JSON, and numbers after it


def test_half_written_ones_are_not_found_and_old_ones_go(tmp_path: Path) -> None:
    from checkpoint import CheckpointError, checkpoints, find_checkpoint, save_checkpoint

    assert find_checkpoint("auto", tmp_path / "none") is None
    model, optimizer = trained(1)
    for step in (5, 10, 20):
        save_checkpoint(tmp_path, step, {"m": model}, {"m": optimizer}, {}, keep=2)
    (tmp_path / "step_00000099").mkdir()  # no state.json: not whole
    (tmp_path / ".step_00000030.tmp").mkdir()
    assert [path.name for path in checkpoints(tmp_path)] == ["step_00000010", "step_00000020"]
    assert find_checkpoint("auto", tmp_path).name == "step_00000020"
    assert find_checkpoint(str(tmp_path / "step_00000010"), tmp_path).name == "step_00000010"
    assert find_checkpoint(str(tmp_path), tmp_path / "elsewhere").name == "step_00000020"
    with pytest.raises(CheckpointError, match="no checkpoint there"):
        find_checkpoint(str(tmp_path / "step_00000099"), tmp_path)


def test_a_folder_is_replaced_and_healed(tmp_path: Path) -> None:
    from checkpoint import heal, put_in_place

    for text in ("one", "two"):
        made = tmp_path / ".made"
        made.mkdir()
        (made / "file").write_text(text)
        put_in_place(made, tmp_path / "place")
        assert (tmp_path / "place/file").read_text() == text
    (tmp_path / "place").rename(tmp_path / ".place.old")  # killed between the two renames
    assert (heal(tmp_path / "place") / "file").read_text() == "two"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", ".hidden", "a\nb", "x" * 200])
def test_names_cannot_lead_out_of_their_folder(name) -> None:
    from checkpoint import CheckpointError, checked_name

    with pytest.raises(CheckpointError, match="--run_id"):
        checked_name(name, "--run_id")
