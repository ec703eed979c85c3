"""Logs in forms that their authors made up: documents, console lines and names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldk.core.catalog.guess import guess
from rldk.ingest.read import read_runs
from rldk.runs.run import Run

ROWS = 40
REWARD = [0.1 + 0.01 * row for row in range(ROWS)]
KL = [0.001 * row for row in range(ROWS)]
STAMP = "2026-01-01 10:00:00"
RECORDS = [{"step": row, "avg_return": REWARD[row], "kl_avg": KL[row]} for row in range(ROWS)]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str, Any], list[Run]]:
    """Write a log and read its runs; what is not text is written as JSON."""

    def written(name: str, content: Any) -> list[Run]:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return read_runs(path).runs

    return written


def values(run: Run, metric: str) -> list[float]:
    return [float(value) for value in run.columns[metric].values]


# Documents


@pytest.mark.parametrize(
    "document",
    [
        {"config": {"lr": 1e-5}, "step_log": RECORDS},
        {"meta": {"seed": 1}, "results": {"inner": {"records": RECORDS}}},
        {"samples": [{"prompt": "a", "reward": 1.0}, {"prompt": "b", "reward": 0.0}], "curve": RECORDS},
    ],
    ids=["any_key", "nested", "beside_samples"],
)
def test_a_list_of_rows_under_any_key(read, document):
    (run,) = read("log.json", document)
    assert values(run, "reward_mean") == pytest.approx(REWARD) and run.steps.tolist() == list(range(ROWS))


def test_a_dict_of_runs(read):
    for document in ({"a": RECORDS, "b": RECORDS[:20]}, {"runs": {"a": {"log": RECORDS}, "b": {"log": RECORDS[:20], "seed": 2}}}):
        runs = read("log.json", document)
        assert [(run.run_id, len(run)) for run in runs] == [("a", ROWS), ("b", 20)]


def test_a_list_of_evaluations_beside_that_of_training(read):
    evaluations = [{"step": row, "avg_return": 0.5} for row in range(0, ROWS, 10)]
    (run,) = read("log.json", {"train_log": RECORDS, "eval_log": evaluations})
    assert len(run) == ROWS and "eval_reward_mean" in run.columns
    assert values(run, "reward_mean") == pytest.approx(REWARD)


@pytest.mark.parametrize("name", ["{}", "step_{}", "step {}", "iter-{}", "checkpoint-{}"])
def test_a_dict_keyed_by_step(read, name):
    by_step = {name.format(10 * row): {"mean_reward": REWARD[row], "kl": KL[row]} for row in range(ROWS)}
    for document in (by_step, {"history": by_step}):
        (run,) = read("log.json", document)
        assert run.steps.tolist() == list(range(0, 10 * ROWS, 10)) and values(run, "kl_mean") == pytest.approx(KL)


@pytest.mark.parametrize(
    "document",
    [
        {"epochs": [{"epoch": 0, "batches": RECORDS[:20]}, {"epoch": 1, "batches": RECORDS[20:]}]},
        {"curve": [{"iteration": row, "stats": {"reward": {"mean": REWARD[row]}, "kl": KL[row]}} for row in range(ROWS)]},
        {"log": [{**record, "prompt": "a", "completion": "b"} for record in RECORDS]},
    ],
    ids=["in_parts", "wrapped", "with_a_text_each"],
)
def test_rows_in_parts_in_an_object_or_beside_a_text(read, document):
    (run,) = read("log.json", document)
    assert values(run, "reward_mean") == pytest.approx(REWARD) and run.steps.tolist() == list(range(ROWS))


def test_a_list_of_runs_and_runs_as_lists_of_numbers(read):
    lists = [{key: [record[key] for record in RECORDS[:end]] for key in RECORDS[0]} for end in (ROWS, 20)]
    for document in (
        {"experiments": [{"name": "a", "log": RECORDS}, {"name": "b", "log": RECORDS[:20]}]},
        [{"run": "a", "history": RECORDS}, {"run": "b", "history": RECORDS[:20]}],
        {"a": lists[0], "b": lists[1]},
    ):
        runs = read("log.json", document)
        assert [(run.run_id, len(run)) for run in runs] == [("a", ROWS), ("b", 20)]
        assert values(runs[0], "reward_mean") == pytest.approx(REWARD)


# Console lines


@pytest.mark.parametrize(
    "line",
    ["[step {step:04d}] reward={reward:.3f} kl={kl:.4f}", "step {step}/500 reward {reward:.3f} kl {kl:.4f}",
     "mean reward: {reward:.3f}\nkl: {kl:.4f}\n--- step {step} done ---", "reward={reward:.3f} kl={kl:.4f}\nstep {step}/40",
     "=== Step {step} ===\n  reward: {reward:.3f}\n  kl: {kl:.4f}\n  elapsed 3 s",
     "[{step:04d}/0500] reward {reward:.3f}, kl {kl:.4f}", "({step}/500) reward: {reward:.3f}, kl: {kl:.4f}",
     "Step [{step}/500] | Reward {reward:.3f} | KL {kl:.4f}", "Reward {reward:.3f}\nKL {kl:.4f}\nEnd of step {step}",
     f"{STAMP} INFO reward: {{reward:.3f}}\n{STAMP} INFO kl: {{kl:.4f}}\n{STAMP} INFO finished step {{step}}",
     "it {step} | avg_rew {reward:.3f} | kl_ref_mean {kl:.4f}"],
    ids=["brackets", "of_total", "before", "one_line_before", "after", "count_in_brackets", "count_in_parentheses", "capitals",
         "end_of_step", "stamped_before", "made_up_names"],
)  # fmt: skip
def test_steps_and_values_on_one_line_or_several(read, line):
    text = "".join(line.format(step=row, reward=REWARD[row], kl=KL[row]) + "\n" for row in range(ROWS))
    (run,) = read("train.log", text)
    assert run.steps.tolist() == list(range(ROWS))
    assert values(run, "reward_mean") == pytest.approx(REWARD, abs=1e-3) and values(run, "kl_mean") == pytest.approx(KL, abs=1e-4)


def test_single_values_between_rows_are_not_taken(read):
    lines = [f"step={row} reward={REWARD[row]:.3f} kl={KL[row]:.4f}" for row in range(ROWS)]
    lines.insert(3, "entropy: 0.5")
    (run,) = read("train.log", "\n".join(lines) + "\n")
    assert "entropy_mean" not in run.columns and len(run) == ROWS


def test_the_mean_of_a_list_counts(read):
    (run,) = read("train.log", "".join(f"step={row} rewards=[0, 1, 1, {row % 2}] loss=0.1\n" for row in range(ROWS)))
    assert values(run, "reward_mean") == [0.5 + 0.25 * (row % 2) for row in range(ROWS)]
    (run,) = read("other.log", "".join(f"Step {row}: rewards=[0.0,1.0], kl=0.01\n" for row in range(ROWS)))
    assert values(run, "reward_mean") == [0.5] * ROWS


@pytest.mark.parametrize(
    "rewards", ["rewards: [0.0, 1.0, 0.5]", "rewards=(0, 1, 0.5)", "rewards=tensor([0., 1., 0.5])",
                "rewards=array([0., 1., 0.5])", "rewards=tensor([0.00, 1.00, 0.50], device='cuda:0')", "rewards=[0. 1. 0.5]"]
)  # fmt: skip
def test_lists_as_python_and_arrays_print_them(read, rewards):
    (run,) = read("train.log", "".join(f"step {row} | {rewards} | kl={KL[row]:.4f}\n" for row in range(ROWS)))
    assert values(run, "reward_mean") == [0.5] * ROWS and values(run, "kl_mean") == pytest.approx(KL, abs=1e-4)
    assert set(run.columns) == {"reward_mean", "kl_mean"}


def test_a_time_is_not_a_step_and_words_before_a_name_are_not_part_of_it(read):
    line = "[step {0:04d}] {1}rewards=[{2},1] rollout=177s update=216.{0}s\n"
    (run,) = read("train.log", "".join(line.format(row, "SKIP " * (row % 3 == 0), row % 2) for row in range(ROWS)))
    assert run.steps.tolist() == list(range(ROWS))
    assert values(run, "reward_mean") == [0.5 + 0.5 * (row % 2) for row in range(ROWS)]


def test_a_postfix_that_is_printed_twice_is_one_row(read):
    bar = "\rEpoch 0:  5%|#  | {0}/40 [00:01<00:50, 1.0it/s, loss=0.{1:02d}, reward=0.{0:02d}]"
    (run,) = read("bar.log", "".join(2 * bar.format(row, 90 - row) for row in range(ROWS)) + "\n")
    assert len(run) == ROWS and values(run, "reward_mean") == pytest.approx([row / 100 for row in range(ROWS)])


def test_a_bar_without_an_end_that_is_printed_twice_is_one_row(read):
    bars = (2 * f"\r{row}it [00:10,  5.17s/it, kl=0.01, reward=0.{row:02d}]" for row in range(ROWS))
    (run,) = read("bar.log", "".join(bars) + "\n")
    assert len(run) == ROWS and values(run, "reward_mean") == pytest.approx([row / 100 for row in range(ROWS)])


@pytest.mark.parametrize("name", ["act_loss: {}|cri_loss: {}", "Actor Loss: {}|Critic Loss: {}"])
def test_deepspeed_chat_prints_the_reward_on_its_own_line(read, name):
    line = "epoch: 0|step: {}|ppo_ep: 1|{}|unsuper_loss: 0.0\naverage reward score: {:.4f}\n" + "-" * 80 + "\n"
    (run,) = read("train.log", "".join(line.format(row, name.format(0.1, 0.2), REWARD[row]) for row in range(ROWS)))
    assert run.framework == "deepspeed_chat" and run.steps.tolist() == list(range(ROWS))
    assert values(run, "reward_mean") == pytest.approx(REWARD, abs=1e-4) and values(run, "value_loss") == [0.2] * ROWS


def table(pairs: list[tuple[str, float]]) -> str:
    return "-" * 41 + "\n" + "".join(f"| {key:23s} | {value:<11.4g} |\n" for key, value in pairs) + "-" * 41 + "\n"


def test_tables_of_openai_baselines(read):
    rows = [[("eprewmean", REWARD[row]), ("loss/policy_entropy", 1.0), ("misc/nupdates", row + 1.0)] for row in range(ROWS)]
    (run,) = read("log.txt", "Logging to /tmp\n" + "".join(map(table, rows)) + "-" * 41 + "\n| eprewmean | 0.1")
    assert (run.adapter, run.framework) == ("table_console", "baselines")
    assert run.steps.tolist() == list(range(1, ROWS + 1)) and values(run, "reward_mean") == pytest.approx(REWARD, abs=1e-3)


def test_a_table_with_spaces_in_its_names(read):
    share = ("% time spent exploring", 9.0)
    rows = [[share, ("mean 100 episode reward", REWARD[row]), ("steps", 100.0 * row)] for row in range(ROWS)]
    (run,) = read("log.txt", "".join(map(table, rows)))
    assert run.steps.tolist() == list(range(0, 100 * ROWS, 100)) and values(run, "reward_mean") == pytest.approx(REWARD, abs=1e-3)


# Units and signs


def test_the_sign_of_an_entropy_loss_is_decided_by_its_course(read):
    rows = [{"step": row, "reward": REWARD[row], "entropy_loss": -1.4 + 0.1 * row} for row in range(ROWS)]
    (run,) = read("log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert values(run, "entropy_mean")[:2] == pytest.approx([1.4, 1.3]) and values(run, "entropy_mean")[-1] < 0
    for key in ("ent_loss", "loss/entropy", "losses/entropy_loss", "policy_entropy_loss"):
        lines = (json.dumps({"step": row, "reward": REWARD[row], key: -1.4}) + "\n" for row in range(ROWS))
        (run,) = read("named.jsonl", "".join(lines))
        assert values(run, "entropy_mean") == [1.4] * ROWS, key
    rows = [{**row, "entropy_loss": abs(float(row["entropy_loss"])) + 0.1} for row in rows]
    (run,) = read("other.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert min(values(run, "entropy_mean")) > 0


def test_shares_in_percent_become_fractions_and_the_notes_say_so(read):
    rows = [{"step": row, "accuracy": 30.0 + row, "truncated_pct": 5.0, "reward": 3.0 + REWARD[row]} for row in range(ROWS)]
    (run,) = read("log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert values(run, "accuracy")[0] == pytest.approx(0.3) and values(run, "truncated_frac")[0] == pytest.approx(0.05)
    assert values(run, "reward_mean")[0] == pytest.approx(3.1)
    assert "accuracy is logged in percent, and was divided by 100" in run.notes


# Names


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("avg_rew", "reward_mean"), ("mean_ep_return", "reward_mean"), ("episode_returns_avg", "reward_mean"),
        ("kl_to_ref_mean", "kl_mean"), ("approx_kl_avg", "kl_update"), ("mean_tok_entropy", "entropy_mean"),
        ("policy.kl", "kl_mean"), ("actor/kl", "kl_mean"), ("policy_kl", "kl_mean"),
        ("resp_len_avg", "rollout_length_mean"), ("policy_grad_norm_avg", "policy_grad_norm"), ("gnorm_avg", "grad_norm"),
        ("critic_loss_mean", "value_loss"), ("batch_rew_std", "reward_std"), ("heldout_math_rate", "eval_accuracy"),
        ("eval_gsm8k_score", "eval_accuracy"), ("val_solve_rate", "eval_accuracy"), ("test_anything_acc", "eval_accuracy"),
        ("Avg_Reward_100", "reward_mean"), ("reward_ma10", "reward_mean"), ("Average Score (last 100)", "reward_mean"),
        ("mean_shaped", "reward_mean"), ("loss_v", "value_loss"), ("LossV", "value_loss"),
        ("Evaluation/AverageReturn", "eval_reward_mean"), ("val_avg_rew", "eval_reward_mean"),
        ("truncated_pct", "truncated_frac"), ("rewards_curve", "reward_mean"), ("kl_history", "kl_mean"),
        ("episode_rewards_list", "reward_mean"), ("latest_reward", "reward_mean"), ("exact_kl", "kl_mean"),
        ("format_reward", "reward_function_mean/format"), ("mean_correctness_reward", "reward_function_mean/correctness"),
        ("train/hack_rate", "exploited_frac"), ("frac_hacked", "exploited_frac"),
        ("eval/reward_hacking_rate", "eval_exploited_frac"),
    ],
)  # fmt: skip
def test_made_up_names_are_matched_by_their_parts(key, metric):
    place = guess(key)
    assert place is not None and place.metric == metric


@pytest.mark.parametrize(
    "key",
    ["step", "model_size", "heldout_error_rate", "eval_toxicity_rate", "test_timeout_rate", "eval_kl_score", "valid_rate",
     "true_negative_rate", "eval_false_pass_rate", "total_completion_tokens", "cumulative_tokens", "reward_scale",
     "kl_target_value", "x", "num_tokens_seen", "entropy_bonus_coef", "exploit_rate", "n_hacks", "rewards/hack_penalty"],
)  # fmt: skip
def test_other_names_are_not_guessed(key):
    assert guess(key) is None


def test_a_guess_is_said_and_gives_way_to_a_known_key(read):
    rows = [{"it": row, "avg_rew": REWARD[row], "resp_len_avg": 100 + row} for row in range(ROWS)]
    (run,) = read("log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    said = "guessed by the parts of its name: avg_rew as reward_mean, resp_len_avg as rollout_length_mean"
    assert values(run, "reward_mean") == pytest.approx(REWARD) and said in run.notes
    rows = [{**row, "reward": 1.0} for row in rows]
    (run,) = read("other.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert values(run, "reward_mean") == [1.0] * ROWS and "avg_rew" in run.columns


@pytest.mark.parametrize(
    ("heading", "metric", "value"),
    [
        ("Eval Acc", "eval_accuracy", 0.25), ("Val Acc", "eval_accuracy", 0.25), ("true_acc", "eval_accuracy", 0.25),
        ("eval perplexity", "eval_perplexity", 0.25), ("Expl Variance", "explained_variance", 0.25),
        ("val_var_explained", "explained_variance", 0.25), ("reward_var", "reward_std", 0.5),
        ("zero-var groups", "reward_zero_std_frac", 0.25), ("pref_acc", "preference_accuracy", 0.25),
        ("in_group_std", "reward_group_std", 0.25), ("GRPO KL", "kl_mean", 0.25), ("per-token KL", "kl_mean", 0.25),
        ("熵", "entropy_mean", 0.25), ("生成长度", "rollout_length_mean", 0.25), ("截断比", "truncated_frac", 0.25),
        ("平均奖励", "reward_mean", 0.25), ("奖励标准差", "reward_std", 0.25), ("梯度范数", "grad_norm", 0.25),
        ("准确率", "accuracy", 0.25),
    ],
)  # fmt: skip
def test_the_headings_of_tables_in_reports(read, heading, metric, value):
    beside = "kl" if metric in ("reward_mean", "accuracy") else "reward"
    (run,) = read("log.json", [{"step": row, beside: REWARD[row], heading: 0.25} for row in range(ROWS)])
    assert values(run, metric) == pytest.approx([value] * ROWS)


def test_a_first_column_named_by_a_number_sign(read):
    rows = "\n".join(f"{row + 1},Train,{REWARD[row]},{KL[row]}" for row in range(ROWS))
    (run,) = read("log.csv", f"#,Type,Reward,KL\n{rows}\n")
    assert run.steps.tolist() == list(range(1, ROWS + 1)) and values(run, "kl_mean") == pytest.approx(KL)


@pytest.mark.parametrize("name", ["train_step", "train_steps", "optimizer_step", "update_step"])
def test_the_step_has_many_names(read, name):
    steps = list(range(10, 10 * ROWS + 10, 10))
    lines = [json.dumps({name: step, "reward": value}) for step, value in zip(steps, REWARD, strict=True)]
    (rows,) = read("run.jsonl", "\n".join(lines))
    (columns,) = read("run.json", {name: steps, "reward": REWARD})
    assert [event.step for event in rows.events()] == [event.step for event in columns.events()] == steps
