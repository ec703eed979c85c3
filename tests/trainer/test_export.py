"""Data, reward and settings for verl and OpenRLHF: keys that the published packages have, and rewards that agree with ours."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
PUBLISHED = HERE / "published"  # all keys of the packages' own configuration
sys.path[:0] = [path for path in (str(HERE),) if path not in sys.path]

from ppo_world import build, command, even_words  # noqa: E402

GROUPS = ("--advantage=grpo", "--num_generations=4", "--clip_range_high=0.28", "--kl_coef=0.01", "--max_steps=7")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return build(tmp_path_factory.mktemp("world"))


def exported(framework: str, world: Path, out: Path, *more: str) -> Path:
    import export

    assert export.main([framework, str(out), *command(world, out / "unused", *more)]) == 0
    return out


def words(script: Path) -> list[str]:
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    text = script.read_text()
    return [line.strip(" \\") for line in text[text.index("python -m") :].splitlines()[1:-1]]


def module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"reward_of_{path.parent.name}", path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("flags", [GROUPS, ("--kl_target=0.1",), ("--advantage=dr_grpo", "--num_generations=2")])
def test_every_key_is_one_that_verl_has(world: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    known = set((PUBLISHED / "verl-0.9.1.txt").read_text().split())
    given = dict(word.split("=", 1) for word in words(exported("verl", world, tmp_path, *flags) / "run.sh"))
    assert given.keys() <= known
    if flags == GROUPS:
        assert given["algorithm.adv_estimator"] == "grpo" and given["actor_rollout_ref.rollout.n"] == "4"
        assert given["data.train_batch_size"] == "2" and given["actor_rollout_ref.actor.clip_ratio_high"] == "0.28"
        assert given["actor_rollout_ref.actor.use_kl_loss"] == "True" and given["trainer.total_training_steps"] == "7"
        assert not any(key.startswith("critic.") for key in given)
    if "--kl_target=0.1" in flags:
        assert given["algorithm.kl_ctrl.type"] == "adaptive" and given["critic.model.path"] == str(world / "model")


@pytest.mark.parametrize("flags", [GROUPS, ("--kl_target=0.1",), ("--reward=out/reward",)])
def test_every_flag_is_one_that_openrlhf_has(world: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    known = set((PUBLISHED / "openrlhf-0.11.2.txt").read_text().split())
    given = dict(word.partition(" ")[::2] for word in words(exported("openrlhf", world, tmp_path, *flags) / "run.sh"))
    assert given.keys() <= known
    if flags == GROUPS:
        assert given["--algo.advantage.estimator"] == "group_norm" and given["--actor.eps_clip_low_high"] == "0.2 0.28"
        assert given["--rollout.n_samples_per_prompt"] == "4" and given["--algo.kl.use_loss"] == ""
    if flags[0].startswith("--reward"):
        assert given["--reward.model_name_or_path"] == "out/reward" and not (tmp_path / "reward.py").exists()


def test_verl_gets_the_prompts_and_the_same_scores(world: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(exported("verl", world, tmp_path) / "train.parquet").to_pylist()
    assert len(rows) == 48 and {tuple(row) for row in rows} == {
        ("data_source", "prompt", "ability", "reward_model", "extra_info")
    }
    reward = module(tmp_path / "reward.py")
    for row in rows[:5]:
        (message,) = row["prompt"]
        truth = row["reward_model"]["ground_truth"]
        assert message["role"] == "user" and json.loads(truth)["text"] == message["content"]
        said = reward.compute_score(row["data_source"], "w2 w3 w4[EOS]", truth, row["extra_info"])
        assert said == pytest.approx(even_words([message["content"]], ["w2 w3 w4"])[0])


def test_openrlhf_gets_the_prompts_and_the_same_scores(world: Path, tmp_path: Path) -> None:
    exported("openrlhf", world, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    assert len(rows) == 48
    prompts = ["<user>w1 w2<assistant>", "<user>w3<assistant>"]
    responses = ["w2 w3 w4", "w1 w1"]
    queries = [f"{prompt}{response}[EOS]" for prompt, response in zip(prompts, responses, strict=True)]
    found = module(tmp_path / "reward.py").reward_func(queries, prompts, [row["label"] for row in rows[:2]])
    assert found["rewards"].tolist() == pytest.approx(even_words(["", ""], responses))
    assert found["scores"].tolist() == found["rewards"].tolist()


def test_columns_reach_the_reward(tmp_path: Path) -> None:
    import export

    records = [{"text": "2 + 2?", "source": "sums", "answer": "4"}]
    export.write_reward("verl", tmp_path, "verifiable_rewards:number", ["</s>"])
    truth = export.verl_rows(export.prompts_of(records))[0]["reward_model"]["ground_truth"]
    reward = module(tmp_path / "reward.py")
    assert (reward.compute_score("sums", "It is 4.</s>", truth), reward.compute_score("sums", "It is 5.", truth)) == (1.0, 0.0)


def test_rldk_reads_what_verl_then_writes(tmp_path: Path) -> None:
    from rldk.ingest import ingest_runs

    rows = [{"step": step, "data": {"critic/score/mean": 0.1 * step, "actor/entropy": 1.0}} for step in range(1, 9)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    frame = ingest_runs(str(tmp_path / "metrics.jsonl"))
    assert frame["step"].tolist() == list(range(1, 9)) and frame["reward_mean"].iloc[-1] == pytest.approx(0.8)
