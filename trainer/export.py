r"""Write data, reward and settings of a PPO or GRPO run for verl or OpenRLHF, with rldk attached: the step after one node.

    python trainer/export.py verl exported --data_config config/data/posttrain/rlaif/ppo.yaml --from_weight full_sft \
        --advantage grpo --num_generations 8 --batch_size 64

The flags after the folder are those of train_ppo.py. The folder gets the prompts, the held-out ones, `reward.py` around your
reward function, and `run.sh`. The keys are those of verl 0.9.1 and OpenRLHF 0.11.2; other settings keep their defaults.
"""

from __future__ import annotations

import thread_policy  # isort: skip  # noqa: F401  before torch

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from arguments import main_guard
from chat_tokens import end_tokens, messages_of
from data_config import read_config
from data_mix import load_records
from held_out import held_out_records
from models import load_tokenizer, model_source
from ppo_arguments import critic_rate, get_args

REWARD = '''"""The reward function {name} as {framework} calls it. Written by trainer/export.py."""

import importlib
import inspect
import json
import sys

sys.path[:0] = {paths!r}
ENDS = {ends!r}  # the tokens that end an answer, as text
reward = getattr(importlib.import_module({module!r}), {function!r})
_taken = inspect.signature(reward).parameters
_all = any(one.kind is one.VAR_KEYWORD for one in _taken.values())


def score(prompt, response, columns):
    for end in ENDS:
        response = response.split(end)[0]
    given = {{name: [value] for name, value in columns.items() if _all or name in list(_taken)[2:]}}
    return float(reward([prompt], [response], **given)[0])
'''
VERL = """

def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    record = json.loads(ground_truth)
    return score(record["text"], solution_str, record["columns"])
"""
OPENRLHF = """

def reward_func(queries, prompts, labels, **_):
    import torch

    found = []
    for query, prompt, label in zip(queries, prompts, labels):
        record = json.loads(label)
        found.append(score(record["text"], query[len(prompt):], record["columns"]))
    scores = torch.tensor(found)
    return {"rewards": scores, "scores": scores, "extra_logs": {}}
"""


def prompts_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages, and the reward's input as one text, which both frameworks pass on."""
    found = []
    for record in records:
        columns = {key: value for key, value in record.items() if key not in ("text", "source")}
        kept = json.dumps({"text": record["text"], "columns": columns}, default=str)
        messages = messages_of(record.get("messages") or record["text"])
        found.append({"messages": messages, "kept": kept, "source": record["source"]})
    return found


def verl_rows(prompts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "data_source": prompt["source"],
            "prompt": prompt["messages"],
            "ability": "chat",
            "reward_model": {"style": "rule", "ground_truth": prompt["kept"]},
            "extra_info": {"index": place},
        }
        for place, prompt in enumerate(prompts)
    ]


def verl_settings(args: argparse.Namespace, folder: Path, model: str) -> dict[str, Any]:
    """The run as verl's configuration keys."""
    prompts = args.batch_size * args.accumulation_steps // args.num_generations
    estimator = {"gae": "gae", "grpo": "grpo", "dr_grpo": "grpo", "rloo": "rloo"}[args.advantage]
    actor, rollout, ref = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
    aggregation = {"token": "token-mean", "sequence": "seq-mean-token-mean", "length": "seq-mean-token-sum-norm"}
    found: dict[str, Any] = {
        "data.train_files": str(folder / "train.parquet"),
        "data.val_files": str(folder / "test.parquet"),
        "data.prompt_key": "prompt",
        "data.train_batch_size": prompts,
        "data.max_prompt_length": args.max_seq_len,
        "data.max_response_length": args.max_new_tokens,
        "algorithm.adv_estimator": estimator,
        "algorithm.gamma": args.gamma,
        "algorithm.lam": args.lam,
        "algorithm.norm_adv_by_std_in_grpo": args.advantage != "dr_grpo",
        "algorithm.use_kl_in_reward": args.kl_in == "reward",
        "algorithm.kl_penalty": {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}[args.kl_estimator],
        "algorithm.kl_ctrl.type": "adaptive" if args.kl_target else "fixed",
        "algorithm.kl_ctrl.kl_coef": args.kl_coef,
        "actor_rollout_ref.model.path": model,
        f"{actor}.optim.lr": args.learning_rate,
        f"{actor}.optim.weight_decay": args.weight_decay,
        f"{actor}.ppo_mini_batch_size": max(1, prompts // args.mini_batches),
        f"{actor}.ppo_micro_batch_size_per_gpu": args.batch_size,
        f"{actor}.ppo_epochs": args.ppo_epochs,
        f"{actor}.clip_ratio": args.clip_range,
        f"{actor}.clip_ratio_low": args.clip_range,
        f"{actor}.clip_ratio_high": args.clip_range_high,
        f"{actor}.loss_agg_mode": aggregation[args.loss_aggregation],
        f"{actor}.entropy_coeff": args.entropy_coef,
        f"{actor}.use_kl_loss": args.kl_in == "loss",
        f"{actor}.kl_loss_coef": args.kl_coef,
        f"{actor}.kl_loss_type": "low_var_kl",
        f"{actor}.grad_clip": args.grad_clip,
        f"{rollout}.name": "vllm",
        f"{rollout}.n": args.num_generations,
        f"{rollout}.temperature": args.temperature,
        f"{rollout}.tensor_model_parallel_size": 1,
        f"{rollout}.log_prob_micro_batch_size_per_gpu": args.batch_size,
        f"{ref}.log_prob_micro_batch_size_per_gpu": args.batch_size,
        "trainer.total_epochs": args.epochs,
        "trainer.n_gpus_per_node": 1,
        "trainer.nnodes": 1,
        "trainer.project_name": args.wandb_project,
        "trainer.experiment_name": args.run_id,
        "trainer.logger": '["console","file"]',
        "trainer.test_freq": args.eval_interval or -1,
        "trainer.save_freq": args.save_interval or -1,
    }
    if args.kl_target:
        found |= {"algorithm.kl_ctrl.target_kl": args.kl_target, "algorithm.kl_ctrl.horizon": int(args.kl_horizon)}
    if args.max_steps:
        found["trainer.total_training_steps"] = args.max_steps
    if args.advantage == "gae":
        found |= {"critic.optim.lr": critic_rate(args), "critic.model.path": model}
        found["critic.cliprange_value"] = args.clip_range_value
        found["critic.ppo_micro_batch_size_per_gpu"] = args.batch_size
    if ":" in args.reward:
        found |= {"reward.custom_reward_function.path": str(folder / "reward.py")}
        found |= {"reward.custom_reward_function.name": "compute_score"}
    else:
        found |= {"reward.reward_model.enable": True, "reward.reward_model.model_path": args.reward}
    return found


def openrlhf_settings(args: argparse.Namespace, folder: Path, model: str) -> dict[str, Any]:
    """The run as flags of `openrlhf.cli.train_ppo_ray`; `True` stands for a flag without a value."""
    responses = args.batch_size * args.accumulation_steps
    estimator = {"gae": "gae", "grpo": "group_norm", "dr_grpo": "dr_grpo", "rloo": "rloo"}[args.advantage]
    found: dict[str, Any] = {
        "--actor.model_name_or_path": model,
        "--data.prompt_dataset": str(folder / "train.jsonl"),
        "--data.prompt_split": "train",
        "--data.input_key": "prompt",
        "--data.label_key": "label",
        "--data.apply_chat_template": True,
        "--data.max_len": args.max_seq_len + args.max_new_tokens,
        "--rollout.max_new_tokens": args.max_new_tokens,
        "--rollout.temperature": args.temperature,
        "--rollout.batch_size": responses // args.num_generations,
        "--rollout.n_samples_per_prompt": args.num_generations,
        "--rollout.micro_batch_size": args.batch_size,
        "--train.batch_size": responses // args.mini_batches,
        "--train.micro_batch_size": args.batch_size,
        "--train.max_epochs": args.ppo_epochs,
        "--train.num_episodes": args.epochs,
        "--train.seed": args.seed,
        "--train.colocate_all": True,
        "--vllm.num_engines": 1,
        "--vllm.tensor_parallel_size": 1,
        "--vllm.enable_sleep": True,
        "--ds.enable_sleep": True,
        "--actor.num_nodes": 1,
        "--actor.num_gpus_per_node": 1,
        "--ref.num_nodes": 1,
        "--ref.num_gpus_per_node": 1,
        "--actor.adam.lr": args.learning_rate,
        "--actor.adam.weight_decay": args.weight_decay,
        "--actor.max_norm": args.grad_clip,
        "--actor.eps_clip_low_high": [args.clip_range, args.clip_range_high],
        "--actor.entropy_coef": args.entropy_coef,
        "--actor.loss_agg_mode": "seq-mean-token-mean" if args.loss_aggregation == "sequence" else "token-mean",
        "--algo.advantage.estimator": estimator,
        "--algo.advantage.gamma": args.gamma,
        "--algo.advantage.lambd": args.lam,
        "--algo.kl.init_coef": args.kl_coef,
        "--algo.kl.estimator": "k3" if args.kl_in == "loss" else args.kl_estimator,
        "--logger.tensorboard_dir": str(folder / "tensorboard"),
        "--logger.logging_steps": 1,
        "--ckpt.output_dir": str(folder / "weights"),
        "--ckpt.path": str(folder / "checkpoints"),
        "--ckpt.save_steps": args.save_interval or -1,
    }
    if args.kl_in == "loss":
        found["--algo.kl.use_loss"] = True
    if args.kl_target:
        found |= {"--algo.kl.target": args.kl_target, "--algo.kl.horizon": int(args.kl_horizon)}
    if args.eval_interval:
        found |= {"--eval.dataset": str(folder / "test.jsonl"), "--eval.split": "train", "--eval.steps": args.eval_interval}
    if args.advantage == "gae":
        found |= {"--critic.adam.lr": critic_rate(args), "--critic.value_clip": args.clip_range_value}
        found |= {"--critic.num_nodes": 1, "--critic.num_gpus_per_node": 1}
    if ":" in args.reward:
        return found | {"--reward.remote_url": str(folder / "reward.py")}
    return found | {"--reward.model_name_or_path": args.reward}


def script_of(framework: str, settings: dict[str, Any], folder: Path) -> str:
    """run.sh: rldk follows the log that the run writes."""
    if framework == "verl":
        log = folder / "metrics.jsonl"
        start = [f"export VERL_FILE_LOGGER_PATH={shlex.quote(str(log))}"]
        command = ["python -m verl.trainer.main_ppo", *(f"{key}={shlex.quote(str(value))}" for key, value in settings.items())]
    else:
        log, start = folder / "tensorboard", []
        words = [key if value is True else f"{key} {_quoted(value)}" for key, value in settings.items()]
        command = ["python -m openrlhf.cli.train_ppo_ray", *words]
    quoted, judged = shlex.quote(str(log)), shlex.quote(str(folder / "rldk.log"))
    lines = [
        "#!/usr/bin/env bash",
        f"# A run of {framework}, written by trainer/export.py. rldk judges it as it goes; afterwards: rldk scan {log}",
        "set -euo pipefail",
        *start,
        f"(until [ -e {quoted} ]; do sleep 5; done; exec rldk watch {quoted} > {judged} 2>&1) &",
        "trap 'kill $! 2>/dev/null || true' EXIT",
        " \\\n    ".join([*command, '"$@"']),
    ]
    return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    return " ".join(shlex.quote(str(one)) for one in (value if isinstance(value, list) else [value]))


def write_data(framework: str, folder: Path, sets: dict[str, list[dict[str, Any]]]) -> None:
    for name, prompts in sets.items():
        if framework == "verl":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(verl_rows(prompts)), folder / f"{name}.parquet")
        else:
            rows = [{"prompt": prompt["messages"], "label": prompt["kept"]} for prompt in prompts]
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_reward(framework: str, folder: Path, name: str, ends: list[str]) -> None:
    module, _, function = name.partition(":")
    paths = [str(Path.cwd()), str(Path(__file__).resolve().parent)]
    text = REWARD.format(name=name, framework=framework, paths=paths, ends=ends, module=module, function=function)
    (folder / "reward.py").write_text(text + (VERL if framework == "verl" else OPENRLHF))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=("verl", "openrlhf"), help="the framework that will train")
    parser.add_argument("output", type=Path, help="output folder")
    given, flags = parser.parse_known_args(argv)
    args = get_args(flags)
    config, folder = read_config(args.data_config), given.output.resolve()
    source = model_source(args)
    if source is None:
        raise ValueError("Name the policy to start from: --from_weight or --model_path.")
    if args.advantage == "dr_grpo" and given.framework == "openrlhf" and args.loss_aggregation == "length":
        print("note: OpenRLHF has no loss over a fixed length; its dr_grpo is used with the mean over tokens")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(args)
    records = load_records(config, args.use_prepared)
    sets = {"train": prompts_of(records), "test": prompts_of(held_out_records(config) if config.held_out else records[:64])}
    write_data(given.framework, folder, sets)
    if ":" in args.reward:
        write_reward(given.framework, folder, args.reward, [tokenizer.decode([token]) for token in end_tokens(tokenizer)])
    model = args.model_path if args.model_path and args.from_weight == "none" else str(source.resolve())
    settings = (verl_settings if given.framework == "verl" else openrlhf_settings)(args, folder, model)
    script = folder / "run.sh"
    script.write_text(script_of(given.framework, settings, folder))
    script.chmod(0o755)
    print(f"{len(sets['train'])} prompts, {len(sets['test'])} held out, reward and settings for {given.framework} in {folder}")
    print(f"not tested here: no GPU. Check {script}, set the GPUs, and start it where {given.framework} and rldk are installed.")
    return 0


if __name__ == "__main__":
    with main_guard():
        sys.exit(main())
