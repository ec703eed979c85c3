#!/usr/bin/env bash
# The whole pipeline on a CPU: data, pretrain, midtrain, SFT, DPO, PPO, each from the weights of the stage before.
#
#   bash scripts/cpu_pipeline.sh [FOLDER]
#
# FOLDER (out/pipeline) gets the weights, checkpoints and logs. It takes some minutes on two cores; PYTHON names another
# interpreter. Flags of your own come last and win: STAGE_FLAGS for the first four stages ("--report_to tensorboard"),
# PPO_FLAGS for PPO, DATA_FLAGS for the generated data.
set -euo pipefail
cd "$(dirname "$0")/.."

OUT=${1:-out/pipeline}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
COMMON=(--save_dir "$OUT" --use_prepared --log_interval 20 --num_threads 1)  # so small a model gains nothing from a second thread
BEGAN=$SECONDS

stage() {
    local began=$SECONDS
    echo
    echo "== $1"
    shift
    "$PYTHON" "$@"
    echo "   $((SECONDS - began)) s"
}

stage "data: a small world, its tokenizer, and the mixture of each stage" trainer/generate_corpus.py ${DATA_FLAGS:-}
"$PYTHON" trainer/train_tokenizer.py
"$PYTHON" trainer/prepare_data.py --all

stage "pretrain: plain text" trainer/train_pretrain.py "${COMMON[@]}" --epochs 2 --max_steps 300 ${STAGE_FLAGS:-}
stage "midtrain: text with questions and answers in it" trainer/train_midtrain.py "${COMMON[@]}" --from_weight pretrain --max_steps 100 \
    ${STAGE_FLAGS:-}
stage "SFT: to answer when asked" trainer/train_full_sft.py "${COMMON[@]}" --from_weight midtrain --epochs 3 --max_steps 120 \
    ${STAGE_FLAGS:-}
stage "DPO: to prefer the better of two answers" trainer/train_dpo.py "${COMMON[@]}" --from_weight full_sft --max_steps 20 ${STAGE_FLAGS:-}
stage "PPO: to please a reward" trainer/train_ppo.py "${COMMON[@]}" --from_weight dpo \
    --data_config config/data/posttrain/rlaif/ppo.yaml --reward rewards:helpful --epochs 10 --max_steps 60 \
    --batch_size 32 --max_new_tokens 32 --learning_rate 2e-4 --critic_learning_rate 1e-3 ${PPO_FLAGS:-}

stage "answers to questions that were in no training set" trainer/show_samples.py --weights "$OUT"/{full_sft,dpo,ppo}

echo
echo "== what rldk makes of the five runs"
"$PYTHON" -m rldk scan "$OUT"/*_events.jsonl --json > "$OUT/verdicts.json" || true
"$PYTHON" - "$OUT" << 'PYTHON'
import json, sys
from pathlib import Path

out = Path(sys.argv[1])
for run in json.loads((out / "verdicts.json").read_text())["runs"]:
    print(f"{run['verdict']:9} {run['run_id']:9} {run['events']} steps, {len(run['anomalies'])} anomalies")
rewards = [json.loads(line)["metrics"]["reward_mean"] for line in (out / "ppo_events.jsonl").read_text().splitlines()]
first, last = (sum(part) / len(part) for part in (rewards[:5], rewards[-5:]))
print(f"reward in PPO: {first:.3f} over the first five steps, {last:.3f} over the last five")
sys.exit("the reward did not rise" if last < first + 0.1 else 0)
PYTHON
echo "done in $((SECONDS - BEGAN)) s; weights and logs in $OUT"
