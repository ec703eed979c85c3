"""Many runs: the first index by one and by two processes, with nothing or some changed, on a local S3 server and on Ray.

    python benchmarks/many_runs.py                 # 10,000 runs of 300 rows: 2.8 GB in a temporary folder, about 40 minutes
    python benchmarks/many_runs.py --parts s3      # one of the parts: local, ray (needs .venvs/ray), s3 (needs .venvs/moto)
    python benchmarks/many_runs.py --runs 500      # a quick look

Every line is one `rldk index`: seconds by the clock, and the most memory that the process which was started took.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rldk.fleet.index import read_index
from rldk.testing.streams import FAULTS, faulty, healthy

ROOT = Path(__file__).parents[1]
ROWS = 300
PARTS = ("local", "ray", "s3")
FAULT_NAMES = sorted(FAULTS)


def write_run(path: Path, number: int) -> None:
    """One run: three of four are healthy."""
    if number % 4:
        events = healthy(("ppo", "grpo")[number % 2], ROWS, seed=number)
    else:
        events = faulty(FAULT_NAMES[number // 4 % len(FAULT_NAMES)], steps=ROWS, seed=number)
    events[0].model_info["config"] = {"learning_rate": (1e-6, 1e-5, 3e-5)[number % 3], "seed": number}
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))


def index(store: str, target: Path, jobs: int, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run `rldk index` and measure it."""
    command = [sys.executable, "-m", "rldk", "index", store, "--index", str(target), "--json", "--jobs", str(jobs)]
    with tempfile.TemporaryFile() as output:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, env={**os.environ, **(environment or {})})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        if status:
            sys.exit(f"rldk index failed with {status}")
        output.seek(0)
        return {**json.loads(output.read()), "seconds": seconds, "megabytes": usage.ru_maxrss / 1024}


def show(what: str, found: Mapping[str, Any]) -> float:
    print(f"{what:44} {found['seconds']:8.1f} s {found['megabytes']:7.0f} MB  judged {found['judged']:6}", flush=True)
    return float(found["seconds"])


def local(folder: Path, runs: int, changed: int) -> None:
    store = str(folder / "runs")
    one = show("first, one process", index(store, folder / "one.parquet", 1))
    two = show("first, two processes", index(store, folder / "two.parquet", 2))
    print(f"{'two processes against one':44} {one / two:8.2f} x")
    show("nothing changed", index(store, folder / "two.parquet", 2))
    for number in range(changed):
        write_run(folder / "runs" / f"run{number:05}.jsonl", runs + number)
    show(f"{changed} changed", index(store, folder / "two.parquet", 2))


def object_storage(folder: Path, changed: int) -> None:
    """The same against a real S3 server of this machine."""
    spec = importlib.util.spec_from_file_location("s3_server", ROOT / "tests" / "storage" / "s3_server.py")
    assert spec is not None and spec.loader is not None
    servers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(servers)
    from obstore.store import S3Store

    with servers.s3_server() as port:
        endpoint = f"http://127.0.0.1:{port}"
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket", method="PUT"), timeout=60).close()
        options: dict[str, Any] = {"endpoint": endpoint, "client_options": {"allow_http": True}, "config": keys}
        bucket = S3Store("bucket", **options)
        paths = sorted((folder / "runs").glob("*.jsonl"))
        for path in paths:
            bucket.put(f"runs/{path.name}", path.read_bytes())
        environment = {**keys, "AWS_ENDPOINT_URL": endpoint, "RLDK_CACHE": str(folder / "cache")}
        target = folder / "s3.parquet"
        show("S3: first, two processes", index("s3://bucket/runs", target, 2, environment))
        show("S3: nothing changed", index("s3://bucket/runs", target, 2, environment))
        for number, path in enumerate(paths[:changed]):
            write_run(path, 1_000_000 + number)
            bucket.put(f"runs/{path.name}", path.read_bytes())
        show(f"S3: {changed} changed", index("s3://bucket/runs", target, 2, environment))


def ray_cluster(folder: Path) -> None:
    """The same on a Ray of two workers, one of which is killed half-way; the table has to be that of two local processes."""
    script = [ROOT / ".venvs" / "ray" / "bin" / "python", ROOT / "tests" / "fleet" / "ray_index.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    begun = time.perf_counter()
    command = [*script, folder / "runs", folder / "ray.parquet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the index on Ray failed with {done.returncode}: {done.stderr[-2000:]}")
    said = done.stdout.strip().splitlines()[-1]  # before it Ray says that a worker died
    print(f"{'Ray: first, two workers, one killed':44} {time.perf_counter() - begun:8.1f} s  {said}", flush=True)
    index(str(folder / "runs"), folder / "two.parquet", 2)
    here, there = (read_index(folder / name).rows() for name in ("two.parquet", "ray.parquet"))
    print(f"{'Ray: the table is that of two processes':44} {'yes' if here == there else 'NO'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--changed", type=int, default=100)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default: everything)")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rldk_many_runs_"))
    try:
        (folder / "runs").mkdir()
        begun = time.perf_counter()
        for number in range(args.runs):
            write_run(folder / "runs" / f"run{number:05}.jsonl", number)
        size = sum(path.stat().st_size for path in (folder / "runs").iterdir())
        written = time.perf_counter() - begun
        print(f"{args.runs:,} runs of {ROWS} rows, {size / 1e6:,.0f} MB, written in {written:.0f} s", flush=True)
        if "local" in args.parts:
            local(folder, args.runs, args.changed)
        if "ray" in args.parts:
            ray_cluster(folder)
        if "s3" in args.parts:
            object_storage(folder, args.changed)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
