#!/usr/bin/env bash
# The whole pipeline on a CPU: data, pretrain, midtrain, SFT, DPO, PPO, each from the weights of the stage before. Every stage
# answers held-out questions before and after it. The end shows the gain of each stage with its standard error, what rldk makes
# of the runs, and the processor time; it fails where the reward of a stage does not rise.
#
#   bash scripts/cpu_pipeline.sh [FOLDER]
#
# FOLDER (out) gets the weights, checkpoints and logs. It takes some minutes on two cores; PYTHON names another
# interpreter. Flags of your own come last and win: STAGE_FLAGS for the first four stages ("--report_to tensorboard"),
# PPO_FLAGS for PPO, DATA_FLAGS for the generated data.
set -euo pipefail
cd "$(dirname "$0")/.."

OUT=${1:-out}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
COMMON=(--save_dir "$OUT" --use_prepared --log_interval 20 --num_threads 1)  # so small a model gains nothing from a second thread
ASKED=(--eval_reward rewards:helpful --eval_new_tokens 32 --eval_interval 100)
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

stage "pretrain: plain text" trainer/train_pretrain.py "${COMMON[@]}" "${ASKED[@]}" --epochs 2 --max_steps 300 \
    ${STAGE_FLAGS:-}
stage "midtrain: text with questions and answers in it" trainer/train_midtrain.py "${COMMON[@]}" "${ASKED[@]}" --from_weight pretrain \
    --max_steps 100 ${STAGE_FLAGS:-}
stage "SFT: to answer when asked" trainer/train_full_sft.py "${COMMON[@]}" "${ASKED[@]}" --from_weight midtrain --epochs 3 \
    --max_steps 120 ${STAGE_FLAGS:-}
stage "DPO: to prefer the better of two answers" trainer/train_dpo.py "${COMMON[@]}" "${ASKED[@]}" --from_weight full_sft \
    --max_steps 60 ${STAGE_FLAGS:-}
stage "PPO: to please a reward" trainer/train_ppo.py "${COMMON[@]}" --from_weight dpo \
    --data_config config/data/posttrain/rlaif/ppo.yaml --reward rewards:helpful --epochs 10 --max_steps 50 \
    --batch_size 32 --max_new_tokens 32 --learning_rate 2e-4 --critic_learning_rate 1e-3 --kl_coef 0.4 \
    ${PPO_FLAGS:-}

echo
echo "== the five models beside each other, on questions that were in no training set"
"$PYTHON" trainer/evaluate.py --json --max_new_tokens 32 --weights "$OUT"/{pretrain,midtrain,full_sft,dpo,ppo} > "$OUT/evaluation.json"
"$PYTHON" -m rldk scan "$OUT"/*_events.jsonl --json > "$OUT/verdicts.json" || true
times > "$OUT/times.txt"  # of the shell, and of what it started: minutes and seconds of user and system
SPENT=$(awk '{ for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); total += 60 * part[1] + part[2] } } END { print total }' "$OUT/times.txt")
"$PYTHON" trainer/pipeline_report.py "$OUT" "$SPENT"
echo "done in $((SECONDS - BEGAN)) s; weights and logs in $OUT"
