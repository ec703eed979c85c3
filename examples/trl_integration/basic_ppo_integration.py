"""PPO, watched: one more line in `callbacks`, and the run writes an event log, metrics, alerts and a report.

python examples/trl_integration/basic_ppo_integration.py [OUTPUT_DIR]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tiny_world import make_model, make_prompts, ppo_config, settle

from rldk.integrations.trl import RLDKCallback, create_ppo_trainer


def main(out: Path) -> None:
    watched = RLDKCallback(output_dir=out, run_id="basic_ppo", log_interval=4)
    trainer = create_ppo_trainer(
        model_name=make_model(), ppo_config=ppo_config(str(out / "training")), train_dataset=make_prompts(), callbacks=[watched]
    )
    settle()
    trainer.train()

    report = json.loads((out / "basic_ppo_final_report.json").read_text())
    print(f"\n{report['verdict']}: {report['reason']}")
    print(f"watched {len(report['coverage']['metrics'])} metrics, of which TRL logs {_logged(report)}")
    print(f"policy gradient norm {watched.metrics.policy_grad_norm:.3f}, explained variance of the values:",
          f"{report['metrics']['explained_variance']['last']:.3f}")  # fmt: skip
    print("files:", *sorted(path.name for path in out.iterdir() if path.is_file()))
    print(f"judge it again with: rldk scan {out / 'basic_ppo_events.jsonl'}")


def _logged(report: dict[str, dict[str, dict[str, str]]]) -> int:
    return sum(source != "probe" for source in report["coverage"]["metrics"].values())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/basic_ppo"))
