"""The settings of the corpus, the seeds, and which run gets which fault: the whole plan is made from this file."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.faults import FAULTS
from corpus.plan import Plan, Setting

__all__ = ["JUDGE_SETTINGS", "ROUND", "SETTINGS", "RunSpec", "all_runs", "reveal_judge", "split_of"]

PPO, OLD, NEW, OURS = "1.12.0", "0.23.1", "1.16.0", "ours"

_ROWS = [
    # name, trainer, TRL, base model, reward, learning rate, KL coefficient, and what differs from the defaults
    ("ppo-dense", "ppo", PPO, "llama-small", "dense", 1e-3, 0.05, {"length": 20, "updates": 70}),
    ("ppo-binary", "ppo", PPO, "llama-small", "binary", 1e-3, 0.05, {"length": 20, "batch": 32, "updates": 70}),
    ("ppo-components", "ppo", PPO, "llama-wide", "components", 5e-4, 0.1, {"length": 20, "updates": 60}),
    ("ppo-deep", "ppo", PPO, "qwen-deep", "dense", 5e-4, 0.05, {"length": 20, "updates": 50}),
    ("ppo-gpt2", "ppo", PPO, "gpt2", "binary", 1e-3, 0.02, {"length": 18, "batch": 24, "updates": 60}),
    ("ppo-model", "ppo", PPO, "llama-small", "model", 1e-3, 0.1, {"length": 20, "updates": 70}),
    ("ppo-brief", "ppo", PPO, "llama-wide", "brief", 5e-4, 0.05, {"length": 24, "updates": 60}),
    ("ppo-free", "ppo", PPO, "llama-small", "binary", 5e-4, 0.0, {"length": 20, "updates": 60}),
    ("ppo-sparse", "ppo", PPO, "llama-small", "sparse", 1e-3, 0.02, {"length": 18, "batch": 32, "updates": 80}),
    ("ppo-epochs2", "ppo", PPO, "gpt2", "components", 1e-3, 0.05, {"length": 24, "updates": 70, "epochs": 2}),
    ("ppo-model-wide", "ppo", PPO, "llama-wide", "model", 3e-4, 0.1, {"length": 20, "batch": 32, "updates": 60}),
    ("ppo-old-dense", "ppo", OLD, "llama-small", "dense", 1e-3, 0.1, {"length": 18, "updates": 70}),
    ("ppo-old-binary", "ppo", OLD, "llama-wide", "binary", 5e-4, 0.05, {"length": 20, "batch": 24, "updates": 60}),
    ("ppo-old-brief", "ppo", OLD, "llama-small", "brief", 1e-3, 0.05, {"length": 20, "updates": 70}),
    ("grpo-dense", "grpo", NEW, "llama-small", "dense", 2e-3, 0.05, {"length": 20}),
    ("grpo-free", "grpo", NEW, "llama-small", "components", 1e-3, 0.0, {"length": 20}),
    ("grpo-components", "grpo", NEW, "llama-wide", "components", 1e-3, 0.05, {"length": 20, "updates": 150, "log_every": 5}),
    ("grpo-deep", "grpo", NEW, "qwen-deep", "dense", 1e-3, 0.02, {"length": 20, "updates": 90}),
    ("grpo-gpt2", "grpo", NEW, "gpt2", "binary", 2e-3, 0.05, {"length": 18, "batch": 32, "group": 8}),
    ("grpo-model", "grpo", NEW, "llama-small", "model", 2e-3, 0.1, {"length": 20, "updates": 150, "log_every": 5}),
    ("grpo-brief", "grpo", NEW, "llama-wide", "brief", 1e-3, 0.02, {"length": 24, "updates": 200, "log_every": 10}),
    ("grpo-sparse", "grpo", NEW, "llama-small", "sparse", 2e-3, 0.02, {"length": 18, "batch": 32, "group": 8, "updates": 120}),
    ("grpo-reuse", "grpo", NEW, "qwen-deep", "components", 1e-3, 0.1, {"length": 20, "more": {"num_iterations": 2}}),
    ("grpo-old-dense", "grpo", OLD, "llama-small", "dense", 2e-3, 0.05, {"length": 20}),
    ("grpo-old-binary", "grpo", OLD, "llama-wide", "binary", 1e-3, 0.05, {"length": 20, "updates": 150, "log_every": 5}),
    ("grpo-old-components", "grpo", OLD, "gpt2", "components", 2e-3, 0.05, {"length": 24}),
    ("grpo-old-free", "grpo", OLD, "llama-small", "components", 1e-3, 0.0, {"length": 20, "updates": 120}),
    ("grpo-old-brief", "grpo", OLD, "qwen-deep", "brief", 1e-3, 0.05, {"length": 20, "updates": 200, "log_every": 10}),
    ("grpo-old-sparse", "grpo", OLD, "llama-wide", "sparse", 1e-3, 0.02, {"length": 18, "batch": 32, "group": 8, "updates": 120}),
    ("rloo-dense", "rloo", NEW, "llama-small", "dense", 2e-3, 0.05, {"length": 20}),
    ("rloo-binary", "rloo", NEW, "llama-wide", "binary", 1e-3, 0.05, {"length": 20, "updates": 150, "log_every": 5}),
    ("rloo-components", "rloo", NEW, "gpt2", "components", 2e-3, 0.1, {"length": 20}),
    ("rloo-old-brief", "rloo", OLD, "llama-small", "brief", 2e-3, 0.05, {"length": 20}),
    ("rloo-old-dense", "rloo", OLD, "qwen-deep", "dense", 1e-3, 0.05, {"length": 20}),
    ("dpo-model", "dpo", PPO, "llama-small", "model", 1e-4, 0.1, {"length": 20, "updates": 80}),
    ("dpo-dense", "dpo", PPO, "llama-wide", "dense", 2e-4, 0.3, {"length": 20, "updates": 150, "log_every": 5}),
    ("dpo-brief", "dpo", PPO, "llama-wide", "brief", 1e-4, 0.1, {"length": 20, "updates": 90}),
    ("dpo-deep", "dpo", PPO, "qwen-deep", "model", 5e-5, 0.1, {"length": 20, "updates": 120, "log_every": 10}),
    ("dpo-strict", "dpo", PPO, "llama-small", "dense", 3e-4, 0.5, {"length": 20}),
    ("ours-dense", "ours", OURS, "llama-small", "dense", 1e-3, 0.05, {"length": 20, "updates": 80}),
    ("ours-binary", "ours", OURS, "llama-wide", "binary", 5e-4, 0.05, {"length": 20, "updates": 80, "batch": 24}),
    ("ours-brief", "ours", OURS, "llama-wide", "brief", 5e-4, 0.05, {"length": 20, "updates": 60}),
    ("ours-model", "ours", OURS, "llama-small", "model", 1e-3, 0.1, {"length": 20, "updates": 80}),
    ("ours-gpt2", "ours", OURS, "gpt2", "dense", 1e-3, 0.05, {"length": 20, "updates": 60}),
    ("ours-target", "ours", OURS, "llama-small", "binary", 1e-3, 0.1, {"length": 20, "updates": 80, "more": {"kl_target": 0.1, "kl_horizon": 800.0}}),
]  # fmt: skip
_LATER_ROWS: list[Any] = []
"""Settings that were added after the first recording: only `ADDED` gives them runs."""
SETTINGS = {name: Setting(name, *rest, **more) for name, *rest, more in (*_ROWS, *_LATER_ROWS)}
ADDED: list[tuple[str, int, str, int | None]] = []
"""Runs that were added after the first recording: setting, seed, fault (empty for none), and the round in whose *judge* split
the run is (`None` for *tune*). Their twins need no row. A seed from 100 on is one that no other run has: then the twin is
recorded beside the run, on the same machine. Base models differ a little from machine to machine."""

LEFT_OUT = frozenset({("grpo-deep", 12)})
"""Settings with seeds whose run without a fault went wrong by itself, by its outcome: neither sound nor the twin of another."""

JUDGE_SETTINGS = frozenset(
    [
        "ppo-brief",
        "ppo-model-wide",
        "ppo-old-binary",
        "ppo-epochs2",
        "grpo-deep",
        "grpo-sparse",
        "grpo-old-components",
        "grpo-old-brief",
        "rloo-binary",
        "dpo-brief",
        "ours-binary",
        "ours-gpt2",
    ]
)
"""No rule ever sees a run of these."""
ROUND_FILE = Path(__file__).with_name("round.json")
ROUND: int = json.loads(ROUND_FILE.read_text())["round"] if ROUND_FILE.exists() else 0
"""How often the runs of *judge* were looked at. Each time they became runs of *tune*, and new seeds took their place."""
TUNE_SEEDS, JUDGE_SEEDS = (1, 2), (3,)
EACH = {"tune": 2, "judge": 2, "judge_only": 4}
"""Runs of each kind of fault in each split; kinds that are in *judge* only get more of them there."""

_NEEDS_KL = ("kl_coef_zero", "kl_coef_zero_mid", "kl_coef_tiny", "reference_shared", "reference_foreign", "controller_unstable")
_NOT_WITH_TARGET = ("kl_coef_zero", "kl_coef_tiny", "kl_coef_huge", "controller_unstable", "kl_coef_negative_mid")


@dataclass(frozen=True)
class RunSpec:
    """One run: a setting, a seed, and a fault or none."""

    setting: str
    seed: int
    fault: str = ""

    @property
    def id(self) -> str:
        return "--".join(part for part in (self.setting, f"s{self.seed}", self.fault) if part)

    @property
    def twin(self) -> RunSpec:
        """The same run without its fault."""
        return RunSpec(self.setting, self.seed)

    def sister_seeds(self) -> list[RunSpec]:
        """The healthy runs of the same setting: those of the first round, and those of this run's own."""
        first = [RunSpec(self.setting, seed) for seed in (*TUNE_SEEDS, *JUDGE_SEEDS)]
        pool = list(_added_twins()) if self.twin in _added_twins() else judge_pool(self.seed // 10)
        own = [one for one in pool if one.setting == self.setting]
        return list(dict.fromkeys([*first, *own]))

    @property
    def onset(self) -> int:
        """The first update that a fault acts on: 0 before training, else a little before or after the middle."""
        if not self.fault or not FAULTS[self.fault].mid:
            return 0
        share = 0.4 + 0.2 * (zlib.crc32(self.id.encode()) % 1000) / 1000
        return round(share * SETTINGS[self.setting].updates)

    def plan(self) -> Plan:
        plan = Plan(SETTINGS[self.setting], 1000 + self.seed, self.onset)
        if self.fault:
            FAULTS[self.fault].apply(plan)
        return plan


def judge_pool(number: int) -> list[RunSpec]:
    """The healthy runs of *judge* in a round: settings that no rule sees, and other seeds of those that rules do see."""
    seeds = [(row[0], seed) for row in _ROWS for seed in (*TUNE_SEEDS, *JUDGE_SEEDS)]
    kept = [(name, seed) for name, seed in seeds if name in JUDGE_SETTINGS or seed in JUDGE_SEEDS]
    return [RunSpec(name, seed + 10 * number) for name, seed in kept]


def tune_pool() -> list[RunSpec]:
    """The healthy runs that rules have always been made from."""
    return [RunSpec(row[0], seed) for row in _ROWS if row[0] not in JUDGE_SETTINGS for seed in TUNE_SEEDS]


def _added_twins() -> dict[RunSpec, int | None]:
    """The twins of the runs that were added, with their round."""
    return {RunSpec(setting, seed): number for setting, seed, _, number in ADDED}


def split_of(spec: RunSpec) -> str:
    """*judge* where the run's twin is of the present round; a run and its twin are always in the same split."""
    added = _added_twins()
    return "judge" if spec.twin in judge_pool(ROUND) or (spec.twin in added and added[spec.twin] == ROUND) else "tune"


def healthy_runs() -> list[RunSpec]:
    drawn = [*tune_pool(), *(spec for number in range(ROUND + 1) for spec in judge_pool(number))]
    return _kept(dict.fromkeys([*drawn, *_added_twins()]))


def faulty_runs() -> list[RunSpec]:
    """The faults of *tune*, those of *judge* in every round, and those that were added."""
    drawn = {kind: fault for kind, fault in FAULTS.items() if not fault.later}
    runs = _spread(tune_pool(), {kind: EACH["tune"] for kind, fault in drawn.items() if not fault.judge_only})
    counts = {kind: EACH["judge_only" if fault.judge_only else "judge"] for kind, fault in drawn.items()}
    for number in range(ROUND + 1):
        runs += _spread(judge_pool(number), counts)
    return _kept([*runs, *(RunSpec(setting, seed, kind) for setting, seed, kind, _ in ADDED if kind)])


def _kept(runs: Iterable[RunSpec]) -> list[RunSpec]:
    return [one for one in runs if (one.setting, one.seed) not in LEFT_OUT]


def _spread(pool: list[RunSpec], counts: dict[str, int]) -> list[RunSpec]:
    """Give every kind of fault its runs: over several trainers, and every healthy run about as many faults as the others."""
    used: dict[RunSpec, int] = {}
    runs: list[RunSpec] = []
    for kind, count in counts.items():
        chosen: list[RunSpec] = []
        for _ in range(count):
            options = [one for one in pool if _fits(kind, one) and one not in chosen]
            trainers = [SETTINGS[one.setting].trainer for one in chosen]
            best = min(options, key=lambda one: _cost(one, kind, trainers, used))
            chosen.append(best)
            used[best] = used.get(best, 0) + 1
        runs += [RunSpec(one.setting, one.seed, kind) for one in chosen]
    return runs


def reveal_judge() -> str:
    """Retire the runs of *judge*: they have been looked at. What to do next."""
    ROUND_FILE.write_text(json.dumps({"round": ROUND + 1}) + "\n")
    return (
        f"The runs above are in tune from now on (round {ROUND + 1}). Record new ones with `make corpus`, "
        "then label them with `python benchmarks/corpus/label.py`."
    )


def _cost(spec: RunSpec, kind: str, trainers: list[str], used: dict[RunSpec, int]) -> tuple[int, int, int]:
    setting = SETTINGS[spec.setting]
    return trainers.count(setting.trainer), used.get(spec, 0), zlib.crc32(f"{kind}{spec.id}".encode())


def _fits(kind: str, spec: RunSpec) -> bool:
    setting = SETTINGS[spec.setting]
    if setting.trainer not in FAULTS[kind].trainers or (kind in _NEEDS_KL and not setting.beta):
        return False
    if "kl_coef" in kind and not setting.beta:
        return False
    if kind in ("clip_wide", "clip_narrow") and setting.trainer == "grpo" and setting.more.get("num_iterations", 1) == 1:
        return False  # one update per batch: the ratio is 1, and nothing is ever clipped
    return not (kind in _NOT_WITH_TARGET and "kl_target" in setting.more)


def all_runs() -> list[RunSpec]:
    return [*healthy_runs(), *faulty_runs()]
