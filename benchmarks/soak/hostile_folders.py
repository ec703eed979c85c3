"""Hostile folders: loops of links, pipes, devices, sockets and odd names, as logs, beside logs and inside of stores."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

from small_logs import in_some_format, put, rows

__all__ = ["FOLDERS"]


def _no_file(path: Path, chance: random.Random) -> Path:
    """Something that is not a file under the name of one."""
    kind = chance.choice(["pipe", "zero", "tty", "loop", "nowhere", "folder", "random", "full", "socket", "mem"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        here = os.open(path.parent, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)
    else:
        targets = {"zero": "/dev/zero", "tty": "/dev/tty", "loop": path.name, "nowhere": "nowhere", "random": "/dev/urandom",
                   "full": "/dev/full", "mem": "/proc/self/mem"}  # fmt: skip
        path.symlink_to(targets[kind])
    return path


def around_a_log(folder: Path, chance: random.Random) -> Path:
    """Loops of links, pipes, devices, and names that are not UTF-8, around a log."""
    log = "\n".join(str(row).replace("'", '"') for row in rows(chance, 30)).encode()
    put(folder / "run.jsonl", log)
    (folder / "loop").symlink_to(folder)
    for n in range(chance.randrange(1, 8)):
        _no_file(folder / f"{n}{chance.choice(['.jsonl', '.log', '.csv', '.parquet', '_events.jsonl', '.db', '.json'])}", chance)
    raw = os.fsencode(folder)
    Path(os.fsdecode(raw + b"/\xff\xfe")).mkdir()
    put(Path(os.fsdecode(raw + b"/\xff.jsonl")), log)
    put(Path(os.fsdecode(raw + b"/\xff\xfe/\x80_events.jsonl")), in_some_format(chance))
    inside = folder
    for _ in range(chance.choice([1, 30])):
        inside = inside / "sub"
        inside.mkdir()
        (inside / "up").symlink_to("..")
    put(folder / "secret.jsonl", b"{}").chmod(0)
    return chance.choice([folder, folder, *sorted(folder.glob("[0-9]*")), folder / "loop"])


def odd_names(folder: Path, chance: random.Random) -> Path:
    """Logs whose names terminals, pages and shells may stumble over."""
    names = [b"a\nb", b"\x1b[2J", b"<b>", b"x" * 249, b"\xed\xa0\x80", b" ", b"-rf", b"'\"`$(id)", b"[1-9]", b"*", b"a?b=c&d#e",
             b"%s%n", b"\xe2\x80\xae", b"~", b"\xff"]  # fmt: skip
    for name in chance.sample(names, 6):
        put(Path(os.fsdecode(os.fsencode(folder) + b"/" + name + b".jsonl")), in_some_format(chance))
    return chance.choice([folder, folder, *sorted(folder.iterdir())])


def bad_shards(folder: Path, chance: random.Random) -> Path:
    """Stores and logs of several files, of which one or two are no files."""
    kind = chance.choice(["tensorboard", "wandb", "mlflow", "trackio", "parts", "settings"])
    if kind == "tensorboard":
        put(folder / "events.out.tfevents.1.host", in_some_format(chance))
        _no_file(folder / "events.out.tfevents.2.host", chance)
    elif kind == "wandb":
        run = folder / "wandb" / "run-20240101_000000-abc"
        (run / "files").mkdir(parents=True)
        _no_file(run / "run-abc.wandb", chance)
        _no_file(run / "files" / "config.yaml", chance)
        put(run / "files" / "wandb-history.jsonl", in_some_format(chance))
    elif kind == "mlflow":
        run = folder / "mlruns" / "0" / "abc"
        (run / "metrics").mkdir(parents=True)
        (run / "params").mkdir()
        put(folder / "mlruns" / "0" / "meta.yaml", b"experiment_id: '0'\nname: x\n")
        put(run / "meta.yaml", b"run_id: abc\nrun_uuid: abc\nstart_time: 1\nlifecycle_stage: active\n")
        put(run / "metrics" / "loss", "".join(f"{n} 0.{n} {n}\n" for n in range(1, 40)).encode())
        _no_file(run / "metrics" / "reward", chance)
        _no_file(run / "params" / "lr", chance)
    elif kind == "trackio":
        _no_file(folder / "one.db", chance)
        _no_file(folder / "two.db", chance)
    elif kind == "parts":
        put(folder / "part_0_events.jsonl", in_some_format(chance))
        _no_file(folder / "part_1_events.jsonl", chance)
        _no_file(folder / "part_0_alerts.json", chance)
        _no_file(folder / "part_0_checkpoint_summary.csv", chance)
        _no_file(folder / "part_0_config.json", chance)
    else:
        put(folder / "log.jsonl", in_some_format(chance))
        (folder / ".hydra").mkdir()
        _no_file(folder / ".hydra" / "config.yaml", chance)
        _no_file(folder / "config.yaml", chance)
        _no_file(folder / "rldk_acks.json", chance)
    return chance.choice([folder, *sorted(folder.iterdir())])


def huge_tree(folder: Path, chance: random.Random) -> Path:
    """Thousands of small files, or a path that is almost too long."""
    if chance.random() < 0.5:
        for n in range(chance.choice([500, 3000])):
            put(folder / f"{n}.jsonl", b'{"step": 1, "loss": 0.5}\n')
        return folder
    inside = folder
    while len(os.fsencode(inside)) < 3700:
        inside = inside / ("d" * 200)
        inside.mkdir()
    put(inside / "log.jsonl", in_some_format(chance))
    return folder


FOLDERS = (around_a_log, odd_names, bad_shards, huge_tree)
