"""Logs as trainers print and write them, in forms of several versions: values, steps and units of what is judged first."""

from __future__ import annotations

import json
import pprint
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldk.ingest.formats.console_tables import BoxTableAdapter
from rldk.ingest.formats.hf_trainer import HFConsoleAdapter
from rldk.ingest.read import read_runs
from rldk.runs.run import Run

STEPS = range(1, 31)


def reward(step: int) -> float:
    return round(0.3 + 0.001 * step, 4)


def kl(step: int) -> float:
    return round(0.005 + 0.001 * step, 4)


def entropy(step: int) -> float:
    return round(0.9 - 0.001 * step, 4)


def gradient(step: int) -> float:
    return round(0.7 + 0.001 * step, 4)


def length(step: int) -> float:
    return 100.0 + step


def loss(step: int) -> float:
    return round(-0.1 + 0.001 * step, 4)


def ray(step: int, text: str) -> str:
    return f"\x1b[36m(Actor pid={4711 + step % 2})\x1b[0m {text}\n"


def verl_of_2025(step: int) -> str:
    """The learning rate is logged in units of 1e-4."""
    return ray(step, (
        f"step:{step} - timing/gen:21.470 - actor/reward_kl_penalty:{kl(step)} - critic/lr(1e-4):0.100 - "
        f"actor/entropy_loss:{entropy(step)} - actor/pg_loss:{loss(step)} - actor/grad_norm:{gradient(step)} - "
        f"actor/lr(1e-4):0.010 - critic/score/mean:{reward(step)} - response_length/mean:{length(step)}"
    ))  # fmt: skip


def prime_rl(step: int) -> str:
    return (
        f"\x1b[90m11:00:01\x1b[0m \x1b[32mSUCCESS\x1b[0m Step {step} | Time: 9.1s | Loss: {loss(step)} | "
        f"Entropy: {entropy(step)} | Mismatch KL: {kl(step)} | Grad. Norm: {gradient(step)} | LR: 1.00e-06 | "
        "Throughput: 5000 tokens/s | MFU: 5.1%\n"
    )


def slime(step: int) -> str:
    batch = {"rollout/raw_reward": reward(step), "rollout/response_lengths": length(step), "rollout/truncated": 0.1}
    update = {
        "train/loss": loss(step), "train/entropy_loss": entropy(step), "train/kl_loss": kl(step),
        "train/grad_norm": gradient(step), "train/lr-pg_0": 1e-06,
    }  # fmt: skip
    return (
        ray(step, f"metrics.py:120 - perf {step}: {{'perf/rollout_time': np.float64(3.2), 'rollout/truncated_ratio': 0.1}}")
        + ray(step, f"data.py:1 - rollout {step}: {batch}")
        + ray(step, f"model.py:847 - step {step}: {update}")
    )


def skyrl(step: int) -> str:
    """A dict over several lines, with Ray's prefix before each of them, and numbers as text."""
    row: dict[str, Any] = {
        "policy/policy_loss": f"{loss(step):.4f}", "policy/policy_kl": f"{kl(step):.4f}", "policy/policy_lr": "1e-06",
        "policy/policy_entropy": f"{entropy(step):.4f}", "policy/raw_grad_norm": f"{gradient(step):.4f}",
        "generate/avg_num_tokens": f"{length(step):.4f}", "reward/avg_raw_reward": f"{reward(step):.4f}",
        "trainer/global_step": step,
    }  # fmt: skip
    lines = f"2026-09-01 10:00:00.100 | INFO | tracking:log:189 - {pprint.pformat(row)}".splitlines()
    return "Started: 'step'\n" + "".join(ray(0, line) for line in lines) + "Finished: 'step', time cost: 12.1s\n"


def nemo_rl(step: int) -> str:
    return (
        f"\n============ Step {step}/30 ============\n▶ Preparing batch...\n\n📊 Training Results:\n  • Loss: {loss(step)}\n"
        f"  • Generation KL Error: {kl(step)}\n  • Avg Reward: {reward(step)}\n  • Mean Generation Length: {length(step)}\n"
        "\n⏱️  Timing:\n  • Total step time: 12.00s\n  • generation: 6.00s (50.0%)\n"
    )


def openrlhf(step: int) -> str:
    return (
        f"\rTrain epoch [1/1]: {step:3d}%|###| {step}/30 [00:30<00:10,  1.90s/it, act_loss={loss(step)}, reward={reward(step)}, "
        f"return=0.2, gen_len={length(step)}, tot_len=300, kl={kl(step)}, act_lr=1e-6, grad_norm={gradient(step)}, "
        f"ent_loss={entropy(step)}]"
    )


def deepspeed_chat(step: int) -> str:
    return (
        f"epoch: 0|step: {step}|ppo_ep: 1|act_loss: {loss(step)}|cri_loss: 0.2|unsuper_loss: 0.0\n"
        f"Average reward score: {reward(step)} Average return: 0.1 Average length: {length(step):.0f} Average kl: {kl(step)} "
        f"Average entropy: {entropy(step)} Max kl: 0.9 Max return: 2.0 KL ratio: 0.3\n"
    )


def box(pairs: list[tuple[str, float]], across: int) -> str:
    """A table of pairs, as `tabulate` draws it."""
    cells = [f"│ {key:34s} │ {value: .4e} " for key, value in pairs]
    cells += [f"│ {'':34s} │ {'':11s} "] * (-len(cells) % across)
    lines = ["".join(cells[start : start + across]) + "│" for start in range(0, len(cells), across)]
    rule = "═" * (len(lines[0]) - 2)
    return f"╒{rule}╕\n" + f"\n├{rule.replace('═', '─')}┤\n".join(lines) + f"\n╘{rule}╛"


def areal(step: int, actor: str = "ppo_actor", across: int = 4) -> str:
    pairs = {
        "task_reward/avg": reward(step), "update/approx_kl/avg": kl(step), "update/entropy/avg": entropy(step),
        "update/grad_norm": gradient(step), "update/lr": 1e-6, "update/actor_loss/avg": loss(step),
        "seq_len/avg": length(step) + 50.0, "prompt_len/avg": 50.0, "n_seqs": 64.0,
    }  # fmt: skip
    table = box([(f"{actor}/{key}", value) for key, value in pairs.items()], across)
    head = "\x1b[37m(AReaL) 20260829-00:00:01.000 StatsLogger INFO:"
    done = f"{head} Epoch 2/5 Step {step}/30 Train step {step}/150 done.\x1b[0m\n"
    return f"{done}{head} Stats (1/1):\n{head} \n{table}\x1b[0m\nanother line\n"


ALL = {
    "reward_mean": reward, "kl_mean": kl, "entropy_mean": entropy, "policy_grad_norm": gradient, "rollout_length_mean": length,
    "policy_lr": lambda _: 1e-6, "policy_loss": loss,
}  # fmt: skip
SHARED = {"policy_grad_norm": "grad_norm", "policy_lr": "lr", "policy_loss": "loss"}


def only(*left_out: str, **renamed: str) -> dict[str, Callable[[int], float]]:
    return {renamed.get(name, name): make for name, make in ALL.items() if name not in left_out}


LOGS: dict[str, tuple[Callable[[int], str], str, str | None, dict[str, Callable[[int], float]]]] = {
    "verl": (verl_of_2025, "verl", "token", ALL),
    "prime_rl": (prime_rl, "prime_rl", None, only("reward_mean", "rollout_length_mean", kl_mean="mismatch_kl", **SHARED)),
    "slime": (slime, "slime", "token", only(**SHARED)),
    "skyrl": (skyrl, "skyrl", "token", ALL),
    "nemo_rl": (nemo_rl, "nemo_rl", None, only(
        "entropy_mean", "policy_grad_norm", "policy_lr", kl_mean="mismatch_kl", policy_loss="loss")),
    "openrlhf": (openrlhf, "openrlhf", "token", only(policy_grad_norm="grad_norm")),
    "deepspeed_chat": (deepspeed_chat, "deepspeed_chat", "unstated", only("policy_grad_norm", "policy_lr")),
    "areal": (areal, "areal", None, only(kl_mean="kl_update")),
    "areal_before_1_0": (lambda step: areal(step, "grpo_actor", 3), "areal", None, only(kl_mean="kl_update")),
}  # fmt: skip


def read(path: Path, text: str) -> Run:
    path.write_text(text)
    (run,) = read_runs(path).runs
    return run


@pytest.mark.parametrize("name", LOGS)
def test_what_is_judged_first_is_read_at_its_step_and_in_its_unit(name: str, tmp_path: Path) -> None:
    make, framework, per, metrics = LOGS[name]
    run = read(tmp_path / "train.log", "Starting\n" + "".join(map(make, STEPS)) + "\n")
    assert run.framework == framework and run.steps.tolist() == list(STEPS)
    assert run.coverage.reductions.get("kl_mean") == per
    for metric, value in metrics.items():
        assert run.columns[metric].values.tolist() == pytest.approx([value(step) for step in STEPS], rel=1e-3), metric


def test_a_word_that_changes_what_is_measured_belongs_to_the_name(tmp_path: Path) -> None:
    run = read(tmp_path / "train.log", "Starting\n" + "".join(map(deepspeed_chat, STEPS)) + "\n")
    assert run.coverage.metrics["reward_mean"] == "Average reward score"  # and not the `return` of `Max return`
    assert "ratio_mean" not in run.columns  # which `KL ratio` is not


def test_metrics_that_nemo_rl_exports_have_a_dict_of_steps_each(tmp_path: Path) -> None:
    makes = {"train/reward": reward, "train/kl_penalty": kl, "train/approx_entropy": entropy, "train/grad_norm": gradient}
    document = {key: {str(step): make(step) for step in STEPS} for key, make in makes.items()}
    run = read(tmp_path / "metrics.json", json.dumps(document))
    assert run.framework == "nemo_rl" and run.steps.tolist() == list(STEPS)
    assert run.columns["kl_mean"].values.tolist() == pytest.approx([kl(step) for step in STEPS])


def test_areal_rows_under_metrics_are_not_those_of_another_framework(tmp_path: Path) -> None:
    metrics = {"ppo_actor/task_reward/avg": 0.5, "ppo_actor/update/lr": 1e-6}
    rows = ({"global_step": step, "metrics": metrics} for step in STEPS)
    assert read(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows)).framework == "areal"


def test_the_score_of_old_verl_on_held_out_data(tmp_path: Path) -> None:
    for key in ("val/test_score/openai/gsm8k", "val/openai/gsm8k/test_score"):
        run = read(tmp_path / "a.log", "".join(f"step:{step} - critic/score/mean:0.5 - {key}:{reward(step)}\n" for step in STEPS))
        assert run.columns["eval_reward_mean"].values.tolist() == pytest.approx([reward(step) for step in STEPS])


TABLE = "Train step {0}/9 done.\n╒══╤══╕\n│ ppo_actor/task_reward/avg │ 5.2{0}e-01 │\n╘══╧══╛\n"
DICT = "{{'reward/avg_raw_reward': '0.2{0}',\n 'trainer/global_step': {0}}}\n"


@pytest.mark.parametrize(("text", "kind"), [(TABLE, BoxTableAdapter), (DICT, HFConsoleAdapter)], ids=["tables", "dicts"])
def test_cut_off_anywhere(text: str, kind: type, text_log: Any) -> None:
    text_log.cut_everywhere("".join(map(text.format, (1, 2))), kind)


def test_a_table_or_a_dict_without_an_end_does_not_take_the_next_with_it(tmp_path: Path) -> None:
    tables = "".join(map(areal, STEPS)).split("╘")
    run = read(tmp_path / "areal.log", "╘".join(tables[:5]) + "╘".join(["", *tables[6:]]))
    assert len(run) == len(STEPS) - 1
    dicts = [skyrl(step) for step in STEPS]
    dicts[7] = dicts[7].replace("}", "")
    assert read(tmp_path / "skyrl.log", "".join(dicts)).steps.tolist() == [step for step in STEPS if step != 8]


def test_the_step_before_a_dict_is_that_of_the_row(tmp_path: Path) -> None:
    for words in ("step {}: ", "✨ Global step {}: ", "[iter {}/900] ", "Update {} -> "):
        row = "".join(f"{words.format(10 * step)}{ {'reward': reward(step), 'kl': kl(step)} }\n" for step in STEPS)
        run = read(tmp_path / "train.log", row)
        assert run.steps.tolist() == [10 * step for step in STEPS], words
        assert run.columns["reward_mean"].values.tolist() == pytest.approx([reward(step) for step in STEPS])
