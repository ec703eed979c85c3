"""Record the corpus: train every run that is not there yet, each in its own process, with the TRL it belongs to.

    python benchmarks/corpus/record.py                     # all that is missing; stop and start it as you like
    python benchmarks/corpus/record.py --only ppo-dense    # the runs whose name contains this
    python benchmarks/corpus/record.py --again 5           # record five random runs twice and compare

Each run has one thread, and everything is seeded: on one machine the same command gives the same log, except for times,
resources and paths. Another processor rounds differently. That is enough for other base models, and so for other runs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import world
from corpus.compare import differences
from corpus.settings import SETTINGS, RunSpec, all_runs
from corpus.store import OUTCOME, RECORDED, rounded, write_run

ROOT = Path(__file__).resolve().parents[2]
BASES = ROOT / "out" / "corpus" / "bases"
PYTHONS = {"1.12.0": ".venv", "ours": ".venv", "0.23.1": ".venvs/trl-0.23.1", "1.16.0": ".venvs/trl-1.16.0"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--exactly", default="", help="this run and no other")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--again", type=int, default=0, help="record so many random runs twice and compare")
    parser.add_argument("--into", type=Path, default=RECORDED, help="folder of the recorded runs")
    parser.add_argument("--trl", help="only the runs of this TRL, in this process")
    parser.add_argument("--healthy", action="store_true", help="only runs without a fault")
    args = parser.parse_args()
    if args.again:
        return record_again(args)
    wanted = [one for one in all_runs() if (one.id == args.exactly if args.exactly else args.only in one.id)]
    missing = [one for one in wanted if not (args.into / one.id / OUTCOME).exists()]
    missing = [one for one in missing if not (args.healthy and one.fault)]
    if args.trl:
        return record_here([one for one in missing if SETTINGS[one.setting].trl == args.trl], args)
    if missing:
        make_bases()
    failed = 0
    for version, home in PYTHONS.items():
        count = sum(SETTINGS[one.setting].trl == version for one in missing)
        if count:
            print(f"{count} runs with {version}", flush=True)
            given = [f"--trl={version}", f"--workers={args.workers}", f"--only={args.only}", f"--into={args.into}"]
            given += [f"--exactly={args.exactly}", *(["--healthy"] if args.healthy else [])]
            failed |= subprocess.run([str(ROOT / home / "bin/python"), __file__, *given], check=False).returncode
    return failed


def make_bases() -> None:
    """Pretrain the base models once, in a process of their own: what forks later must not have trained."""
    if not all((BASES / name / "policy" / "config.json").exists() for name in world.SHAPES):
        print(f"pretraining base models in {BASES} (once, two minutes)", flush=True)
        code = "import sys, pathlib; from corpus import world; world.bases(pathlib.Path(sys.argv[1]))"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")}
        subprocess.run(
            [str(ROOT / ".venv/bin/python"), "-c", code, str(BASES)], check=True, env=environment, stderr=subprocess.DEVNULL
        )


def record_here(specs: list[RunSpec], args: argparse.Namespace) -> int:
    """Train runs with the TRL of this environment: everything is imported once, then each run gets a fork."""
    failed = 0
    _import_everything(specs)
    args.into.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(args.workers, maxtasksperchild=1) as pool:
        for number, (spec_id, said) in enumerate(pool.imap_unordered(record, [(one, args.into) for one in specs]), 1):
            print(f"{number:4}/{len(specs)} {time.perf_counter() - began:6.0f} s  {spec_id:60} {said}", flush=True)
            failed |= said.startswith("FAILED")
    return int(failed)


def _import_everything(specs: list[RunSpec]) -> None:
    import trl

    from corpus import train_ours, train_trl  # noqa: F401

    kinds = {SETTINGS[one.setting].trainer for one in specs}
    if "ppo" in kinds:
        from rldk.integrations.trl.ppo_trainer import find_ppo

        find_ppo()
    for kind in kinds - {"ppo", "ours"}:
        getattr(trl, f"{kind.upper()}Trainer")


def record(job: tuple[RunSpec, Path]) -> tuple[str, str]:
    """Train one run and store it; what to print about it."""
    spec, into = job
    from corpus import train_ours, train_trl

    plan = spec.plan()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        out = Path(folder)
        train = train_ours.train if plan.setting.trainer == "ours" else train_trl.train
        try:
            probe, plain, ended = train(plan, BASES, out)
        except Exception as error:  # noqa: BLE001 - one run that cannot be made must not end the recording of the others
            return spec.id, f"FAILED {type(error).__name__}: {error}"
        if plan.setting.trainer != "ours":
            plain = {"log_history": plain}
        outcome = {
            "setting": spec.setting, "seed": spec.seed, "fault": spec.fault, "injected": spec.onset,
            "trainer": plan.setting.trainer,
            "trl": plan.setting.trl, "updates": plan.setting.updates, "log_every": plan.setting.log_every, "ended": ended,
            "rows": rounded(probe.rows),
        }  # fmt: skip
        write_run(into / spec.id, out / "run_events.jsonl", plain, outcome)
    last = {key: probe.rows[-1].get(key) for key in ("update", "reward", "ended", "distinct", "kl", "entropy")}
    return spec.id, f"{time.perf_counter() - began:5.1f} s  {probe.rows[0].get('reward')} -> {json.dumps(last)} {ended}"


def record_again(args: argparse.Namespace) -> int:
    """Whether runs that are drawn at random come out the same twice on this machine.

    Whether they also equal the stored ones is printed and is no error: those may come from another machine.
    """
    drawn = random.Random(time.time()).sample([one for one in all_runs() if args.only in one.id], args.again)
    make_bases()
    unequal = 0
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        for one in drawn:
            twice = [Path(folder) / part / one.id for part in ("first", "second")]
            for made in twice:
                version = SETTINGS[one.setting].trl
                given = [f"--trl={version}", "--workers=1", f"--exactly={one.id}", f"--into={made.parent}"]
                subprocess.run([str(ROOT / PYTHONS[version] / "bin/python"), __file__, *given], check=True, capture_output=True)
            found, stored = differences(*twice), args.into / one.id
            unequal += bool(found)
            said = "; ".join(found[:5]) or "twice the same"
            if stored.exists():
                count = len(differences(stored, twice[0]))
                said += f"; {count} values differ from the stored run" if count else "; and the same as the stored run"
            print(f"{one.id:60} {said}", flush=True)
    print(f"{len(drawn) - unequal} of {len(drawn)} runs are the same when recorded twice")
    return int(unequal > 0)


if __name__ == "__main__":
    sys.exit(main())
