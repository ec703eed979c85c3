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
    assert sorted(path.suffix for path in place.iterdir()) == [".json", ".json", ".safetensors", ".safetensors"]
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


def saved(root: Path, *steps: int) -> list[Path]:
    from checkpoint import save_checkpoint

    model, optimizer = trained(1)
    return [save_checkpoint(root, step, {"m": model}, {"m": optimizer}, {}, keep=9) for step in steps]


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("name", ["m.safetensors", "m_optimizer.safetensors", "state.json", "checksums.json"])
@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_the_newest_intact_checkpoint_is_taken(name: str, how: str, tmp_path: Path, capsys) -> None:
    from checkpoint import CheckpointError, find_checkpoint

    first, second, third = saved(tmp_path, 1, 2, 3)
    for place in (second, third):
        if how == "flipped":
            flip(place / name)
        elif how == "cut":
            (place / name).write_bytes((place / name).read_bytes()[:-9])
        else:
            (place / name).unlink()
    assert find_checkpoint("auto", tmp_path) == first
    assert name == "state.json" or capsys.readouterr().out.count("is damaged and skipped") == 2
    if name != "state.json" or how != "gone":
        with pytest.raises(CheckpointError, match="is damaged"):
            find_checkpoint(str(third), tmp_path)


def test_where_all_are_damaged_nothing_begins_anew(tmp_path: Path) -> None:
    from checkpoint import CheckpointError, find_checkpoint

    for place in saved(tmp_path, 1, 2):
        flip(place / "m.safetensors")
    with pytest.raises(CheckpointError, match=r"All 2 checkpoints in .* are damaged"):
        find_checkpoint("auto", tmp_path)


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """The operating system refuses to write more than so many bytes, as a full disk does."""
    import resource

    from checkpoint import CheckpointError, save_checkpoint

    model = torch.nn.Linear(300, 300)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    saved(tmp_path, 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match="step 2 cannot be written"):
            save_checkpoint(tmp_path, 2, {"m": model}, {}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000001"]


def test_a_run_is_known_by_its_settings_and_its_data() -> None:
    from argparse import Namespace

    from checkpoint import CheckpointError, check_fingerprint, fingerprint

    args = Namespace(seed=1, learning_rate=1e-3, batch_size=4, accumulation_steps=2, save_dir="a", max_steps=9)
    there = json.loads(json.dumps(fingerprint(args, 8, [[1, 2], [3]])))
    other = Namespace(**{**vars(args), "batch_size": 8, "accumulation_steps": 1, "save_dir": "b", "max_steps": 99})
    assert check_fingerprint(there, fingerprint(other, 8, [[1, 2], [3]]), anyway=False) == []
    for changed, size, data, said in (
        ({"seed": 2}, 8, [[1, 2], [3]], "seed was 1 and is 2"),
        ({}, 16, [[1, 2], [3]], "samples per step was 8 and is 16"),
        ({}, 8, [[1, 2], [4]], "other data"),
        ({"learning_rate": 1.0}, 8, [[1, 2], [3]], "learning_rate"),
    ):
        now = fingerprint(Namespace(**{**vars(args), **changed}), size, data)
        with pytest.raises(CheckpointError, match=f"{said}.*--resume_anyway"):
            check_fingerprint(there, now, anyway=False)
        assert len(check_fingerprint(there, now, anyway=True)) == 1
