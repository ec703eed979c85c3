"""The keys that frameworks log, by their newest versions: each is placed with the right unit, or known and not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rldk.core.catalog import CATALOG, FRAMEWORKS, entry_of, identify, resolve

ROOT = Path(__file__).resolve().parents[2]
LISTS: dict[str, Any] = json.loads((ROOT / "tests" / "core" / "framework_keys.json").read_text(encoding="utf-8"))
LOGS: dict[str, Any] = json.loads((ROOT / "tests" / "core" / "framework_logs.json").read_text(encoding="utf-8"))
CORE = {
    "reward_mean", "kl_mean", "kl_update", "mismatch_kl", "entropy_mean", "grad_norm", "policy_grad_norm", "rollout_length_mean",
    "lr", "policy_lr", "loss", "policy_loss",
}  # fmt: skip
NOT_LOGGED = {
    "trl_ppo": {"gradient"}, "torchtune": {"entropy"}, "tinker": {"gradient", "loss"}, "sb3": {"gradient"},
    "cleanrl": {"gradient"}, "baselines": {"gradient"}, "minimind": {"gradient", "entropy"},
    "llama_factory": {"kl", "entropy", "gradient", "length"},
    "deepspeed_chat": {"kl", "entropy", "gradient", "length", "lr"},
}  # fmt: skip
"""What a framework does not log at all."""
GROUPS = {
    "reward": {"reward_mean"}, "kl": {"kl_mean", "kl_update", "mismatch_kl"}, "entropy": {"entropy_mean"},
    "gradient": {"grad_norm", "policy_grad_norm"}, "length": {"rollout_length_mean"}, "lr": {"lr", "policy_lr"},
    "loss": {"loss", "policy_loss"},
}  # fmt: skip


def test_the_script_finds_no_unknown_and_no_misplaced_key() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "framework_keys.py"), "--json"], capture_output=True, text=True, check=False
    )
    counts = json.loads(done.stdout)
    assert done.stderr.strip() == "" and done.returncode == 0
    assert set(counts) == set(LISTS) and all(found["unknown"] == 0 for found in counts.values())
    assert all(found["recognised"] for found in counts.values())
    logs = {(framework, log): row for framework, found in counts.items() for log, row in found["logs"].items()}
    assert len(logs) == sum(map(len, LOGS.values())) and all(row["recognised"] and row["unknown"] == 0 for row in logs.values())


@pytest.mark.parametrize("framework", sorted(LISTS))
def test_what_is_judged_first_is_placed(framework: str) -> None:
    row = dict.fromkeys(LISTS[framework]["keys"], 0.5)
    placed = set(resolve(row, framework=framework).metrics) & CORE
    if framework == "trl_ppo":
        placed.add("rollout_length_mean")  # it logs none; the count of end tokens stands for it
    missing = {group for group, names in GROUPS.items() if not names & placed}
    assert missing == NOT_LOGGED.get(framework, set())


@pytest.mark.parametrize(("framework", "log"), [(framework, log) for framework, logs in LOGS.items() for log in logs])
def test_what_is_judged_first_is_placed_in_logs_of_other_versions(framework: str, log: str) -> None:
    """All that such a log has of the seven quantities, with the reduction that was read from the program."""
    row = dict.fromkeys(LOGS[framework][log]["keys"], 0.5)
    found = resolve(row, framework=framework)
    expected = dict(LOGS[framework][log]["expect"].values())
    assert {name: found.reductions.get(name) for name in expected} == expected
    assert not found.unmapped


def test_units_of_keys_that_say_theirs() -> None:
    assert resolve({"actor/lr(1e-4)": 0.01}, framework="verl").metrics == {"policy_lr": pytest.approx(1e-6)}
    assert resolve({"baseline_reward/pct_1": 30.0}, framework="nemo_rl").metrics == {"groups_all_good_frac": pytest.approx(0.3)}


def test_every_framework_has_a_list() -> None:
    assert set(FRAMEWORKS) - set(LISTS) == {"rldk", "trainer", "trl_dpo", "trl_old"}
    assert set(LOGS) == set(LISTS)


@pytest.mark.parametrize("framework", sorted(LISTS))
def test_a_few_rows_of_its_keys_are_enough_to_recognise_it(framework: str) -> None:
    expected = [key for key in LISTS[framework]["expect"] if key in LISTS[framework]["keys"]]
    if framework in ("llama_factory", "minimind", "ms_swift"):
        expected += LISTS[framework]["keys"]  # they share most of their names with others
    if framework == "deepspeed_chat":
        expected.append("ppo_ep")
    if framework == "torchtune":
        expected.append("approx_policy_kl")
    assert identify(expected) == framework


def test_the_sign_of_what_is_counted_the_other_way() -> None:
    assert resolve({"env/all/format": 0.9}, framework="tinker").metrics == {"malformed_frac": pytest.approx(0.1)}
    mixed = resolve({"env/all/by_group/frac_mixed": 0.4}, framework="tinker")
    assert mixed.metrics == {"reward_zero_std_frac": pytest.approx(0.6)}


NEW = ("staleness", "mismatch_", "groups_", "expert_")


@pytest.mark.parametrize("name", sorted(name for name in CATALOG if name.startswith(NEW)))
def test_new_metrics_have_a_unit_and_a_direction(name: str) -> None:
    entry = entry_of(name)
    assert entry is not None and entry.unit in ("nats", "fraction", "1", "updates", "count") and entry.trouble != "none"
