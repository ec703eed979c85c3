"""One interface for all stages: the command line, the YAML file, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.full
pytest.importorskip("torch")


@pytest.fixture
def parser():
    from trainer_utils import common_parser

    return common_parser("ppo", "a stage")


def test_a_file_gives_flags_and_the_command_line_comes_before_it(parser, tmp_path: Path) -> None:
    from trainer_utils import parse_args

    file = tmp_path / "run.yaml"
    lines = ["batch_size: 3", "learning_rate: 2e-5", "use_prepared: true", "no_rldk: false"]
    file.write_text("\n".join([*lines, "report_to: [tensorboard, mlflow]", "inject: [lr, nan_loss@4]"]))
    args = parse_args(parser, ["--config", str(file), "--batch_size", "5", "--use_wandb"])
    assert (args.batch_size, args.learning_rate, args.use_prepared, args.no_rldk) == (5, 2e-5, True, False)
    assert args.report_to == ["tensorboard", "mlflow", "wandb"] and args.inject == ["lr", "nan_loss@4"]
    assert args.run_id == "ppo"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("batchsize: 3", "no flag 'batchsize'. Did you mean batch_size?"),
        ("batch_size: many", "invalid"),
        ("use_prepared: 3", "expected 'use_prepared' to be true or false, got 3"),
        ("- 1", "expected flags by name"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(text, said, parser, tmp_path: Path, capsys) -> None:
    from trainer_utils import parse_args

    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(SystemExit):
        parse_args(parser, ["--config", str(tmp_path / "run.yaml")])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--run_id", "../up"], ["--save_weight", "a/b"], ["--run_id", ".."], ["--batch_size", "0"], ["--grad_clip", "-1"]]
)
def test_names_that_lead_elsewhere_and_numbers_that_mean_nothing_are_refused(words, parser) -> None:
    from trainer_utils import parse_args

    with pytest.raises(SystemExit):
        parse_args(parser, words)


def test_every_flag_says_what_it_is(parser) -> None:
    assert [action.dest for action in parser._actions if not action.help] == []


def test_weights_that_are_not_there_are_named_beside_those_that_are(parser, tmp_path: Path) -> None:
    from trainer_utils import CheckpointError, load_model, parse_args

    (tmp_path / "full_sft").mkdir()
    (tmp_path / "full_sft/config.json").write_text("{}")
    args = parse_args(parser, ["--from_weight", "dpo", "--save_dir", str(tmp_path)])
    with pytest.raises(CheckpointError, match="There are: full_sft"):
        load_model(args)
    for words in (["--from_weight", "../x"], ["--model_path", str(tmp_path)], []):
        with pytest.raises(CheckpointError):
            load_model(parse_args(parser, [*words, "--save_dir", str(tmp_path)]))


def test_a_gpu_that_is_not_there_is_said(parser) -> None:
    import torch

    from trainer_utils import make_accelerator, parse_args

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match="Use --device cpu"):
        make_accelerator(parse_args(parser, ["--device", "cuda:0"]))


@pytest.mark.parametrize("name", ["nowhere", "no_module_x:f", "math:nothing", ":f"])
def test_a_reward_that_cannot_be_found_is_refused(name) -> None:
    from trainer_utils import load_reward

    with pytest.raises(ValueError, match="--reward"):
        load_reward(name)


def test_the_order_of_the_data_is_a_function_of_the_step() -> None:
    from trainer_utils import batch_indices, steps_in

    steps = [batch_indices(10, 4, step, seed=1) for step in range(5)]
    flat = [index for step in steps for index in step]
    assert sorted(flat[:10]) == list(range(10)) and sorted(flat[10:20]) == list(range(10)) and flat[:10] != flat[10:20]
    assert batch_indices(10, 4, 3, seed=1) == steps[3] != batch_indices(10, 4, 3, seed=2)
    assert sorted(batch_indices(3, 8, 0, seed=1))[:3] == [0, 0, 0] or len(batch_indices(3, 8, 0, seed=1)) == 8
    assert steps_in(10, 4, 2, None) == (3, 6) and steps_in(10, 4, 2, 5) == (3, 5)
    with pytest.raises(ValueError, match="empty"):
        steps_in(0, 4, 1, None)


def test_the_learning_rate_warms_up_and_falls(parser) -> None:
    from trainer_utils import learning_rate_at, parse_args

    args = parse_args(parser, ["--warmup_steps", "4", "--lr_schedule", "linear"])
    rates = [learning_rate_at(step, 14, args, 1.0) for step in range(14)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0] and rates[4] == 1.0 and rates[9] == pytest.approx(0.5)
    cosine = parse_args(parser, ["--lr_schedule", "cosine"])
    assert [round(learning_rate_at(step, 10, cosine, 1.0), 3) for step in (0, 5, 10)] == [1.0, 0.55, 0.1]
