"""A course of checkpoints: what is said of each, what is wrong and since when, and what is silent."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldk.checkpoints import CheckpointHistory, CheckpointReport, compare_checkpoints, find_checkpoints, scan_checkpoints
from rldk.core.errors import ReadError
from rldk.testing.checkpoints import moved, small_model, write_course, write_safetensors

Q0 = "model.layers.0.self_attn.q_proj.weight"


def scan(folder: Path) -> list[CheckpointReport]:
    return list(scan_checkpoints(find_checkpoints(folder)))


def types(report: CheckpointReport) -> list[str]:
    return [problem.type for problem in report.problems]


def test_a_healthy_course_is_silent_and_its_numbers_are_those_of_numpy(tmp_path: Path) -> None:
    kept: list[dict[str, Any]] = []
    write_course(tmp_path, 5, lambda n, weights: kept.append(dict(weights)))
    reports = scan(tmp_path)
    assert [report.step for report in reports] == [10, 20, 30, 40, 50]
    assert [report.verdict for report in reports] == ["healthy"] * 5
    flat = [np.concatenate([values.ravel() for values in weights.values()]).astype(np.float64) for weights in kept]
    for n, report in enumerate(reports):
        assert report.norm == pytest.approx(np.linalg.norm(flat[n]), rel=1e-5)
        assert report.parameters == flat[n].size and report.nonfinite == 0
        if n:
            away = np.linalg.norm(flat[n] - flat[n - 1]) / np.linalg.norm(flat[n - 1])
            assert report.update_ratio == pytest.approx(away, rel=1e-4)
            assert report.update_ratio_per_step == pytest.approx(away / 10, rel=1e-4)
            assert report.drift_from_start == pytest.approx(np.linalg.norm(flat[n] - flat[0]) / np.linalg.norm(flat[0]), rel=1e-4)
            assert report.changed_share == pytest.approx((flat[n] != flat[n - 1]).mean(), abs=1e-6)
            assert report.health_score > 0.95
    first = reports[0]
    assert np.isnan([first.update_ratio, first.drift_from_start, first.changed_share, first.norm_trend]).all()
    slope = np.polyfit([report.step for report in reports], np.log([report.norm for report in reports]), 1)[0]
    assert reports[-1].norm_trend == pytest.approx(1000 * slope, rel=1e-6, abs=1e-9)


def test_layers_are_summed_up_and_ranked(tmp_path: Path) -> None:
    def push(n: int, weights: dict[str, Any]) -> None:
        if n == 2:
            weights["model.layers.1.mlp.up_proj.weight"] *= 1.1

    write_course(tmp_path, 2, push)
    report = scan(tmp_path)[1]
    assert [layer.name for layer in report.layers] == ["model.embed_tokens", "model.layers.0", "model.layers.1", "model.layers.2"]
    top = report.most_moved(2)
    assert top[0].name == "model.layers.1" and top[0].update_ratio > 5 * top[1].update_ratio
    assert sum(layer.parameters for layer in report.layers) == report.parameters


def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    def spoil(n: int, weights: dict[str, Any]) -> None:
        if n >= 4:
            weights[Q0].flat[:3] = [np.nan, np.inf, -np.inf]

    write_course(tmp_path, 5, spoil)
    reports = scan(tmp_path)
    assert [report.verdict for report in reports] == ["healthy"] * 3 + ["critical"] * 2
    (problem,) = reports[3].problems
    assert (problem.type, problem.names) == ("nonfinite_weights", (Q0,))
    assert f"3 of 18520 weights, in 1 tensor ({Q0})" in problem.message and "Go back to checkpoint-30" in problem.advice
    assert "Go back to checkpoint-30" in reports[4].problems[0].advice
    assert reports[3].health_score == 0.0 and np.isfinite(reports[3].norm)


def test_weights_that_do_not_change_at_all(tmp_path: Path) -> None:
    folders = write_course(tmp_path, 3)
    shutil.copytree(folders[-1], tmp_path / "checkpoint-40")
    reports = scan(tmp_path)
    assert types(reports[2]) == [] and types(reports[3]) == ["weights_unchanged"]
    assert reports[3].update_ratio == 0.0 and reports[3].health_parts["moving"] == 0.0


def test_a_layer_frozen_from_the_start_is_no_problem_and_one_that_stops_is(tmp_path: Path) -> None:
    start = small_model()

    def freeze(n: int, weights: dict[str, Any]) -> None:
        weights["model.embed_tokens.weight"] = start["model.embed_tokens.weight"]
        if n == 3:
            start[Q0] = weights[Q0]
        if n > 3:
            weights[Q0] = start[Q0]

    write_course(tmp_path, 4, freeze)
    reports = scan(tmp_path)
    assert [types(report) for report in reports] == [[], [], [], ["layers_stopped"]]
    assert reports[2].unchanged == ("model.embed_tokens.weight",)
    assert reports[3].problems[0].names == (Q0,) and 0.5 < reports[3].health_parts["moving"] < 1


def test_a_layer_that_dies(tmp_path: Path) -> None:
    def kill(n: int, weights: dict[str, Any]) -> None:
        weights["lora_B"] = np.zeros(50, np.float32)  # dead from the start: how an adapter begins
        if n == 3:
            weights[Q0][:] = 0

    write_course(tmp_path, 3, kill)
    reports = scan(tmp_path)
    assert reports[0].dead == ("lora_B",) and types(reports[0]) == types(reports[1]) == []
    assert types(reports[2]) == ["layers_died"] and reports[2].problems[0].names == (Q0,)
    assert "Go back to checkpoint-20" in reports[2].problems[0].advice


def test_a_jump_is_seen_where_it_happens_and_not_before(tmp_path: Path) -> None:
    def jump(n: int, weights: dict[str, Any]) -> None:
        if n == 6:
            weights.update(moved(weights, 0.05, 99))

    write_course(tmp_path, 7, jump)
    reports = scan(tmp_path)
    assert [types(report) for report in reports] == [[]] * 5 + [["update_jump"]] + [[]]
    assert "times as fast as before" in reports[5].problems[0].message
    assert reports[5].health_parts["pace"] < 0.2 < 0.9 < reports[6].health_parts["pace"]


def test_updates_that_stay_large_are_reported_since_the_interval_of_the_jump(tmp_path: Path) -> None:
    def run_away(n: int, weights: dict[str, Any]) -> None:
        if n >= 4:
            weights.update(moved(weights, 0.05, 90 + n))

    write_course(tmp_path, 6, run_away)
    reports = scan(tmp_path)
    assert [types(report) for report in reports] == [[]] * 3 + [["update_jump"]] * 3
    first, *later = [report.problems[0] for report in reports[3:]]
    assert first.message.startswith("Between checkpoint-30 and checkpoint-40, the weights moved ")
    assert all("The weights still move" in one.message and "before checkpoint-30" in one.message for one in later)
    assert {one.advice for one in (first, *later)} == {"Look at the learning rate and the gradients since checkpoint-30."}
    assert all(report.health_parts["pace"] < 0.2 for report in reports[3:])


@pytest.mark.parametrize(
    "sizes", [(0.2, 0.001, 0.001, 0.001, 0.001), (0.01, 0.005, 0.002, 0.0005, 0.0002), (0.001, 0.003, 0.005, 0.007)]
)
def test_a_large_first_update_a_decay_and_a_warm_up_are_no_jumps(sizes: tuple[float, ...], tmp_path: Path) -> None:
    weights = small_model()
    for n, size in enumerate((0.0, *sizes)):
        weights = moved(weights, size, n)
        write_safetensors(tmp_path / f"checkpoint-{10 + 10 * n}/model.safetensors", weights)
    assert [types(report) for report in scan(tmp_path)] == [[]] * (1 + len(sizes))


def two_steps(folder: Path, *weights: dict[str, Any]) -> CheckpointReport:
    """The last of these checkpoints, two steps after the one before it."""
    for n, one in enumerate(weights):
        write_safetensors(folder / f"checkpoint-{100 + 2 * n}/model.safetensors", one)
    return scan(folder)[-1]


def scaled(weights: dict[str, Any], share: float) -> dict[str, Any]:
    """Each weight moved by this share of itself, up or down: the norm of the change is that share of the norm."""
    draw = np.random.default_rng(1)
    signs = {name: draw.choice([-1, 1], values.shape) for name, values in weights.items()}
    return {name: (values * (1 + share * signs[name])).astype(np.float32) for name, values in weights.items()}


@pytest.mark.parametrize(("share", "found"), [(0.4, ["weights_torn"]), (0.15, [])])
def test_weights_that_move_by_two_fifths_in_two_steps_are_torn(share: float, found: list[str], tmp_path: Path) -> None:
    start = small_model()
    report = two_steps(tmp_path, start, scaled(start, share))
    assert report.update_ratio == pytest.approx(share, rel=1e-3) and types(report) == found
    if found:
        assert report.verdict == "warning" and report.health_score <= 0.7
        assert "moved by 40 % of their norm in 2 steps" in report.problems[0].message
        assert "go back to checkpoint-100" in report.problems[0].advice


def test_far_in_many_steps_is_not_torn(tmp_path: Path) -> None:
    start = small_model()
    for step, weights in ((0, start), (1000, scaled(start, 0.4))):
        write_safetensors(tmp_path / f"checkpoint-{step}/model.safetensors", weights)
    assert types(scan(tmp_path)[-1]) == []


def test_an_adapter_that_starts_at_zero_is_not_torn(tmp_path: Path) -> None:
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    first = {name.format("A"): np.full((8, 40), 0.01, np.float32), name.format("B"): np.zeros((40, 8), np.float32)}
    second = {name.format("A"): 1.5 * first[name.format("A")], name.format("B"): np.full((40, 8), 0.1, np.float32)}
    assert "weights_torn" not in types(two_steps(tmp_path, first, second))


def test_the_norm_is_compared_with_the_previous_checkpoint_and_with_the_first(tmp_path: Path) -> None:
    start = small_model()
    courses = [{name: (factor * values).astype(np.float32) for name, values in start.items()} for factor in (1.0, 1.1, 1.21)]
    report = two_steps(tmp_path, *courses)
    assert (report.norm_change, report.norm_change_from_start) == pytest.approx((1.1, 1.21), rel=1e-4)
    assert (report.layers[0].norm_change, report.layers[0].norm_change_from_start) == pytest.approx((1.1, 1.21), rel=1e-4)
    row = report.row()
    assert (row["norm_change"], row["norm_change_from_start"]) == (report.norm_change, report.norm_change_from_start)


def test_norms_that_explode(tmp_path: Path) -> None:
    def grow(n: int, weights: dict[str, Any]) -> None:
        if n > 1:
            weights["model.layers.2.mlp.up_proj.weight"] *= 3

    write_course(tmp_path, 3, grow)
    reports = scan(tmp_path)
    assert "norm_explosion" not in types(reports[1])
    (problem,) = [problem for problem in reports[2].problems if problem.type == "norm_explosion"]
    assert problem.names == ("model.layers.2.mlp.up_proj.weight",)
    assert reports[2].health_parts["norms"] == pytest.approx(2 / 9, rel=0.01)


def test_layers_come_and_go_and_change_their_shape(tmp_path: Path) -> None:
    weights = small_model()
    write_safetensors(tmp_path / "checkpoint-1/model.safetensors", weights)
    changed = {name: values for name, values in weights.items() if not name.startswith("model.layers.2")}
    changed["extra.weight"] = np.ones(5, np.float32)
    changed[Q0] = np.ones((2, 2), np.float32)
    write_safetensors(tmp_path / "checkpoint-2/model.safetensors", changed)
    report = scan(tmp_path)[1]
    assert report.added == ("extra.weight",) and len(report.removed) == 3
    assert types(report)[:3] == ["tensors_added", "tensors_removed", "shape_changed"]
    said = f"Another shape than before, so not compared: 1 tensor ({Q0})."
    assert report.problems[2].names == (Q0,) and report.problems[2].message == said
    (tensor,) = [tensor for tensor in report.tensors if tensor.name == Q0]
    assert np.isnan(tensor.update) and tensor.norm == 2.0


def test_old_checkpoints_may_be_deleted_under_a_live_run(tmp_path: Path) -> None:
    folders = write_course(tmp_path / "kept", 4)
    expected = scan(tmp_path / "kept")
    with CheckpointHistory() as history:
        for n, folder in enumerate(folders):
            live = history.add(folder, 10 * (n + 1))
            assert (live.update_ratio, live.drift_from_start, live.health_score) == pytest.approx(
                (expected[n].update_ratio, expected[n].drift_from_start, expected[n].health_score), nan_ok=True
            )
            shutil.rmtree(folder)  # as save_total_limit=1 does, and worse


def test_a_damaged_checkpoint_is_a_report_and_the_next_is_compared_with_the_last_good_one(tmp_path: Path) -> None:
    folders = write_course(tmp_path, 3)
    file = folders[1] / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    reports = scan(tmp_path)
    assert [report.verdict for report in reports] == ["healthy", "critical", "healthy"]
    assert types(reports[1]) == ["unreadable_checkpoint"] and "is cut off: " in reports[1].problems[0].message
    assert reports[1].step == 20
    assert reports[2].update_ratio == pytest.approx(compare_checkpoints(folders[0], folders[2]).update_ratio)
    assert reports[2].update_ratio_per_step == pytest.approx(reports[2].update_ratio / 20)


def test_a_file_that_is_cut_off_while_it_is_open(tmp_path: Path) -> None:
    folders = write_course(tmp_path, 3)
    with CheckpointHistory() as history:
        assert history.add(folders[0]).verdict == "healthy"
        with (folders[0] / "model.safetensors").open("r+b") as file:
            file.truncate(5000)
        report = history.add(folders[1])
        assert types(report) == ["unreadable_checkpoint"] and "was cut off while it was read" in report.problems[0].message


def test_a_run_that_is_taken_up_again(tmp_path: Path) -> None:
    folders = write_course(tmp_path, 4)
    expected = scan(tmp_path)[3]
    with CheckpointHistory() as history:
        history.resume(tmp_path, 30)
        report = history.add(folders[3], 40)
    for name in ("update_ratio", "drift_from_start", "update_ratio_per_step"):
        assert getattr(report, name) == pytest.approx(getattr(expected, name))


def test_a_run_taken_up_again_whose_checkpoints_are_gone_begins_anew(tmp_path: Path) -> None:
    (folder,) = write_course(tmp_path / "run", 1)
    with CheckpointHistory() as history:
        history.resume(tmp_path / "nowhere", 30)
        history.resume(tmp_path, 5)
        report = history.add(folder, 40)
    assert report.verdict == "healthy" and np.isnan(report.update_ratio)


def test_a_large_checkpoint_is_sampled_if_asked_and_says_so(tmp_path: Path) -> None:
    before = {"w": np.random.default_rng(0).normal(size=2_000_000).astype(np.float32)}
    for n, weights in enumerate((before, moved(before, 0.01, 1))):
        write_safetensors(tmp_path / f"checkpoint-{n}/model.safetensors", weights)
    full = scan(tmp_path)[1]
    with CheckpointHistory(most_bytes=2_000_000) as history:
        first, second = (history.add(tmp_path / f"checkpoint-{n}") for n in (0, 1))
    assert "One piece of 4 was read" in first.notes[-1]
    assert second.update_ratio == pytest.approx(full.update_ratio, rel=0.05)


def test_comparing_two(tmp_path: Path) -> None:
    first, second = write_course(tmp_path, 2)
    report = compare_checkpoints(first, second)
    assert report.update_ratio == report.drift_from_start > 0
    with pytest.raises(ReadError, match="does not exist"):
        compare_checkpoints(first, tmp_path / "nowhere")
