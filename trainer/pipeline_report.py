"""Report on the pipeline: `python trainer/pipeline_report.py OUT SECONDS`, at the end of scripts/cpu_pipeline.sh.

For each stage: the held-out reward with its standard error, the gain over the stage before, the variety of answers, and the
verdict of rldk on its log. Status 1 unless the reward rises at every stage, and by more than its standard error where it should.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STAGES = ("pretrain", "midtrain", "full_sft", "dpo", "ppo")
CLEAR = ("full_sft", "dpo", "ppo")  # stages whose gain must be more than its standard error
BUDGET = 250.0  # seconds of processor time


def gains(out: Path) -> dict[str, dict[str, float]]:
    """The evaluation of each stage's weights. The gain of the first is over the model that it began with."""
    found = {Path(one["weights"]).name: one for one in json.loads((out / "evaluation.json").read_text())["models"]}
    first = json.loads((out / "pretrain_events.jsonl").read_text().splitlines()[0])["metrics"]
    if "eval_reward_mean" not in first:
        sys.exit("The first stage was not evaluated before its first step: run the pipeline with an --eval_interval above 0.")
    start, error = first["eval_reward_mean"], first["eval_reward_sem"]
    found["pretrain"] |= {"gain": found["pretrain"]["eval_reward"] - start, "gain_sem": error}
    return {stage: found[stage] for stage in STAGES}


def faults(found: dict[str, dict[str, float]]) -> list[str]:
    """The results that are not as expected."""
    said = []
    for stage, one in found.items():
        least = one["gain_sem"] if stage in CLEAR else 0.0
        if not one["gain"] > least:
            said.append(f"the held-out reward did not rise enough in {stage}: {one['gain']:+.3f}, more than {least:.3f} expected")
    return said


def main(out: Path, seconds: float) -> int:
    found = gains(out)
    runs: list[dict[str, Any]] = json.loads((out / "verdicts.json").read_text())["runs"]
    verdicts = {run["run_id"]: run for run in runs}
    print(f"{'stage':9} {'held-out reward':17} {'gain':17} {'pass@1':>6} {'answers':>8} {'endings':>8}  rldk")
    for stage, one in found.items():
        run = verdicts[stage]
        kinds = sorted({anomaly["type"] for anomaly in run["anomalies"]})
        reward = f"{one['eval_reward']:+.3f} ± {one['eval_reward_sem']:.3f}"
        gain = f"{one['gain']:+.3f} ± {one['gain_sem']:.3f}"
        shares = (one["eval_pass_at_1"], one["eval_distinct_responses_frac"], one["eval_distinct_endings_frac"])
        found_by_rldk = ": ".join(filter(None, (run["verdict"], ", ".join(kinds))))
        print(f"{stage:9} {reward:17} {gain:17} {shares[0]:6.0%} {shares[1]:8.0%} {shares[2]:8.0%}  {found_by_rldk}")
    print("answers, endings: share of different ones; gain: over the previous stage, with its standard error")
    print(f"processor time: {seconds:.0f} s (user and system), the budget is {BUDGET:.0f} s")
    wrong = faults(found)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    if not wrong:
        print("the held-out reward rose at every stage, by more than its standard error at SFT, DPO and PPO")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
