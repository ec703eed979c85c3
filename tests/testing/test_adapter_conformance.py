"""Every adapter keeps what adapters promise; and an adapter that does not is found out."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from rldk.core.errors import ReadError
from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.choose import ADAPTERS, choose
from rldk.testing.adapters import Writer, yield_adapter_checks

Row = dict[str, Any]


def beside(name: str) -> ModuleType:
    """A module of the adapters' own tests, whose samples are taken."""
    path = Path(__file__).parents[1] / "ingest" / "formats" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"samples_of_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FRAMEWORKS: Mapping[str, tuple[Row, Any]] = beside("test_json_lines").ROWS
TRL_ROW: Row = beside("test_hf_trainer").GRPO
epochs, verl = beside("test_epoch_lines"), beside("test_verl_console")
console, trackers = beside("test_hf_console"), beside("conftest")
sb3 = beside("test_sb3_console")
notebook = beside("test_notebook")


def text(name: str, make: Callable[[int], str]) -> Writer:
    """A writer of a file of text."""

    def write(folder: Path, rows: int) -> Path:
        path = folder / "a_log"
        path.write_text(make(rows))
        return path

    write.__name__ = name
    return write


def lines(row: Row) -> Callable[[int], str]:
    """JSON lines like this one; numbers differ from row to row."""

    def make(rows: int) -> str:
        return "".join(json.dumps({"step": n, **varied(row, n)}) + "\n" for n in range(1, rows + 1))

    return make


def tables(rows: int) -> str:
    """Tables of two columns, as OpenAI baselines prints them."""
    edge = "-" * 33 + "\n"
    line = "| {:15s} | {:<11.6g} |\n".format
    made = (line("eprewmean", 0.5 + 0.01 * n) + line("misc/nupdates", float(n)) for n in range(1, rows + 1))
    return "".join(edge + table + edge for table in made)


def boxes(rows: int) -> str:
    """Tables that are drawn with lines, as AReaL prints them."""
    line = "│ {:30s} │ {: .6e} │ {:28s} │ {: .6e} │\n".format
    reward, grad = "ppo_actor/task_reward/avg", "ppo_actor/update/grad_norm"
    made = ((n, line(reward, 0.5 + 0.01 * n, grad, 0.25 + n / 8)) for n in range(1, rows + 1))
    return "".join(f"Train step {n}/99 done.\n╒{'═' * 90}╕\n{table}╘{'═' * 90}╛\n" for n, table in made)


def varied(row: Row, n: int) -> Row:
    return {key: round(value * (1.0 + 0.01 * n), 9) if isinstance(value, float) else value for key, value in row.items()}


def of_epochs(form: str) -> Callable[[int], str]:
    return lambda rows: "Model Params: 30.03M\n" + "".join(form.format(e=1, n=n, r=-0.5 + n / 100) for n in range(1, rows + 1))


def events(rows: int) -> str:
    metrics = {"reward_mean": 0.5, "kl_mean": 0.01, "entropy_mean": 1.5}
    return "".join(json.dumps({"step": n, "wall_time": 100.0 + n, "metrics": varied(metrics, n)}) + "\n" for n in range(rows))


def llama_factory(rows: int) -> str:
    return "".join(
        json.dumps({
            "current_steps": n, "total_steps": 547, "loss": round(0.5 / n, 6), "lr": 1e-6, "epoch": n / 547,
            "percentage": 0.18, "elapsed_time": f"0:00:{n % 60:02d}", "remaining_time": "1:02:03", "reward": 0.25,
        }) + "\n"
        for n in range(1, rows + 1)
    )  # fmt: skip


def ms_swift(rows: int) -> str:
    row = {"loss": 0.5, "learning_rate": 4e-8, "reward": 0.25, "kl": 0.0625, "completions/mean_length": 100.5}
    words = {"percentage": "0.18%", "remaining_time": "2d 0h 18m 21s", "train_speed(iter/s)": 0.003}
    return "".join(
        json.dumps({**varied(row, n), "global_step/max_steps": f"{n}/9547", "elapsed_time": f"5m {n}s", **words}) + "\n"
        for n in range(1, rows + 1)
    )


def trainer_state(rows: int) -> str:
    history = [{**varied(TRL_ROW, n), "step": n} for n in range(1, rows + 1)]
    return json.dumps({"global_step": rows, "is_world_process_zero": True, "log_history": history, "total_flos": 0.0}, indent=1)


def table(rows: int) -> str:
    names = "global_step,charts/episodic_return,losses/approx_kl,losses/entropy\n"
    return names + "".join(f"{1024 * n},{10.5 + n / 7:.6f},{0.01 * n:.4f},{1.5 / n:.6f}\n" for n in range(1, rows + 1))


def document(rows: int) -> str:
    found = {"mean_reward": 0.5, "kl_div": 0.125, "loss": 0.25}
    return json.dumps([{"iteration": n, **varied(found, n)} for n in range(1, rows + 1)], indent=1) + "\n"


def talk(rows: int) -> str:
    stamp = "2026-06-23 12:07:25,123 - trainer - INFO"
    return "Starting\n" + "".join(f"{stamp} - step={n} loss={0.5 / n:.6f} reward={0.25 + n / 8}\n" for n in range(1, rows + 1))


SAMPLES: dict[str, Writer] = {
    "rldk": text("rldk", events),
    "verl": text("verl", lambda rows: "".join(f"{verl.PREFIX}{verl.line(n)}\n" for n in range(1, rows + 1))),
    "llama_factory": text("llama_factory", llama_factory),
    "ms_swift": text("ms_swift", ms_swift),
    **{name: text(name, lines(row)) for name, (row, _) in FRAMEWORKS.items()},
    "trl": text("trl", lines(TRL_ROW)),
    "hf_console": text("hf_console", lambda rows: "".join(console.row(n, total=rows) + "\n" for n in range(1, rows + 1))),
    "trainer": text("trainer", of_epochs(epochs.TRAINER)),
    "minimind": text("minimind", of_epochs(epochs.GRPO)),
    "skyrl": text("skyrl", lines({
        "reward/avg_raw_reward": 0.5, "policy/policy_kl": 0.125, "policy/policy_entropy": 0.75, "generate/avg_num_tokens": 90.5,
    })),
    "roll": text("roll", lines({
        "critic/score/mean": 0.5, "actor/approxkl": 0.125, "actor_train/grad_norm": 0.75, "system/tps": 90.5,
    })),
    "art": text("art", lines({"train/reward": 0.5, "loss/train": 0.125, "loss/entropy": 0.75, "time/wall_clock_sec": 90.5})),
    "table_console": text("table_console", tables),
    "box_tables": text("box_tables", boxes),
    "sb3_console": text("sb3_console", lambda rows: "".join(map(sb3.table, range(1, rows + 1)))),
    "notebook": text("notebook", lambda rows: str(notebook.markdown(range(1, rows + 1), end=""))),
    "csv": text("csv", table),
    "json": text("json", document),
    "keyvalue": text("keyvalue", talk),
    "flexible": text("flexible", lines({"avg_reward": 0.5, "kl_div": 0.125, "my thing": 3.5})),
}
MORE = {
    "trl": text("trainer_state", trainer_state),
    "notebook": text("notebook", lambda rows: str(notebook.notebook(notebook.page(range(1, rows + 1))))),
}
STORES = ("tensorboard", "wandb", "mlflow", "trackio", "parquet")
BY_NAME = {kind.name: kind for kind in ADAPTERS}

ALSO = {
    "trl": {"rldk"},  # the contract has it read the log of rldk's own callbacks
    "minimind": {"trainer"},  # the trainer's lines grew out of its
    "keyvalue": {"verl", "hf_console", "trainer", "minimind"},  # free text takes any text
    "flexible": set(SAMPLES),  # it comes last, and takes what is left over
}
"""What an adapter can read beside its own; the order of the table decides whose it is."""


def others(name: str) -> list[Writer]:
    return [write for other, write in SAMPLES.items() if other != name and other not in ALSO.get(name, set())]


@pytest.mark.parametrize(("name", "write"), [*SAMPLES.items(), *MORE.items()])
def test_adapter(name: str, write: Writer) -> None:
    for check, run in yield_adapter_checks(BY_NAME[name], write, others=others(name)):
        try:
            run()
        except AssertionError as error:
            raise AssertionError(f"{check}: {error}") from error


@pytest.mark.parametrize("name", SAMPLES)
def test_each_sample_goes_to_its_adapter(name: str, tmp_path: Path) -> None:
    assert choose(SAMPLES[name](tmp_path, 6)).name == name


def test_every_adapter_of_the_table_is_checked() -> None:
    assert {*SAMPLES, *STORES} == set(BY_NAME)


def test_a_line_of_epochs_that_ends_after_a_whole_value_is_said_to_be_cut(tmp_path: Path) -> None:
    path = SAMPLES["minimind"](tmp_path, 3)
    path.write_bytes(path.read_bytes()[: path.read_bytes().rindex(b"Actor Loss")])
    (run,) = choose(path).runs()
    assert run.notes == ["line 4 has no newline: values after its last may be missing"]
    assert run.steps.tolist() == [1, 2, 3]


def test_a_line_of_words_that_ends_after_a_whole_value_keeps_it(tmp_path: Path) -> None:
    path = SAMPLES["keyvalue"](tmp_path, 3)
    path.write_bytes(path.read_bytes()[: path.read_bytes().rindex(b"ward=")])
    (run,) = choose(path).runs()
    assert "line 4 has no newline: values after its last may be missing" in run.notes
    assert run.columns["loss"].values.tolist() == [0.5, 0.25, 0.166667]


def tensorboard(folder: Path, rows: int) -> Path:
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder / "run"))
    for step in range(rows):
        for tag, value in (("train/loss", 1.0 / (step + 1)), ("train/kl", 0.25 * step), ("train/reward", 0.5 * step)):
            summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(event_pb2.Event(wall_time=1.7e9 + step, step=step, summary=summary))
    writer.close()
    (path,) = (folder / "run").iterdir()
    return path


def parquet(folder: Path, rows: int) -> Path:
    pytest.importorskip("pyarrow")
    import pandas as pd

    path = folder / "log.parquet"
    steps = list(range(rows))
    pd.DataFrame({"step": steps, "reward": [0.5 * n for n in steps], "kl": [0.25 * n for n in steps]}).to_parquet(path)
    return path


def mlflow(folder: Path, rows: int) -> Path:
    """A file store as MLflow lays it out: a folder for each run, a file for each metric, a line for each value."""
    run = folder / "mlruns" / "7" / "0123456789abcdef0123456789abcdef"
    (run / "metrics").mkdir(parents=True)
    (run.parent / "meta.yaml").write_text("artifact_location: x\nexperiment_id: '7'\nlifecycle_stage: active\nname: experiment\n")
    (run / "meta.yaml").write_text(
        "artifact_uri: x\nend_time: null\nexperiment_id: '7'\nlifecycle_stage: active\n"
        f"run_id: {run.name}\nrun_name: first\nrun_uuid: {run.name}\nstart_time: 1700000000000\nstatus: 1\n"
    )
    for key, scale in (("reward", 0.5), ("kl", 0.125)):
        (run / "metrics" / key).write_text("".join(f"{1700000000000 + n} {scale * n} {n}\n" for n in range(rows)))
    return folder / "mlruns"


def writer_of(name: str, make: pytest.TempPathFactory) -> Writer:
    """A writer for a tracker's store; what takes the tracker a process to write is written once and copied."""
    own: dict[str, Writer] = {"tensorboard": tensorboard, "parquet": parquet, "mlflow": mlflow}
    if name in own:
        return own[name]
    pytest.importorskip(name)
    home = make.mktemp(name)
    if name == "wandb":
        trackers._run(trackers.WANDB, home, WANDB_CACHE_DIR=str(home / "cache"), WANDB_CONFIG_DIR=str(home / "config"))
        (stored,) = home.glob("wandb/*/run-first.wandb")
    else:
        trackers._run(trackers.TRACKIO, home, TRACKIO_DIR=str(home / "store"), HF_HOME=str(home / "hf"))
        stored = home / "store" / "alpha.db"
    return lambda folder, rows: Path(shutil.copy(stored, folder))


@pytest.mark.full
@pytest.mark.parametrize("name", STORES)
def test_adapter_of_a_store(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    write = writer_of(name, tmp_path_factory)
    for check, run in yield_adapter_checks(BY_NAME[name], write, others=SAMPLES.values(), text=False):
        run()
        assert check
    path = write(tmp_path, 6)
    assert [kind.name for kind in ADAPTERS if kind(path).can_handle()] == [name], "others leave it alone"


class Lines(Adapter):
    """Reads lines `step reward`: the least that an adapter is."""

    name: ClassVar[str] = "two_columns"
    title: ClassVar[str] = "lines of a step and a reward"

    def can_handle(self) -> bool:
        first = self.source.head_lines[:1]
        found = bool(first) and first[0].split()[:2] == [b"step", b"reward"]
        self.why = "it begins with `step reward`" if found else "it does not begin with `step reward`"
        return found

    def read(self) -> Iterator[Row]:
        for number, line in self.source.lines(self.problems, self.progress):
            if number == 1:
                continue
            words = line.decode("utf-8", "replace").split()
            if number == self.problems.unterminated or len(words) != 2 or not words[0].isdigit() or to_number(words[1]) is None:
                self.problems.add(number, "no step and reward")
            else:
                yield {"step": int(words[0]), "reward": to_number(words[1])}


def columns(folder: Path, rows: int) -> Path:
    path = folder / "log.txt"
    path.write_text("step reward\n" + "".join(f"{n} {n / 8 + 0.125}\n" for n in range(rows)))
    return path


class TakesAll(Lines):
    def can_handle(self) -> bool:
        self.why = "why not"
        return True


class TrustsTheEnd(Lines):
    def read(self) -> Iterator[Row]:
        for line in self.source.path.read_bytes().splitlines()[1:]:
            if len(words := line.split()) == 2:
                yield {"step": int(words[0]), "reward": float(words[1])}


class Writes(Lines):
    def read(self) -> Iterator[Row]:
        (self.source.path.parent / "index").write_text("read")
        return super().read()


class Silent(Lines):
    def read(self) -> Iterator[Row]:
        for row in super().read():
            if self.problems.total:
                break
            yield row
        self.problems = type(self.problems)()


class ByLinuxOnly(Lines):
    def read(self) -> Iterator[Row]:
        if b"\r" in self.source.head:
            raise ReadError("no")
        return super().read()


class Refuses(Lines):
    def can_handle(self) -> bool:
        self.why = "it is compressed" if self.source.path.read_bytes().startswith(b"\x1f\x8b") else ""
        return not self.why and super().can_handle()


class Numbers(Lines):
    def read(self) -> Iterator[Row]:
        for number, row in enumerate(super().read()):
            yield {**row, "kl": number * row["step"] / 10}


class Hoards(Lines):
    def read(self) -> Iterator[Row]:
        rows = [bytearray(3 << 10) + str(row).encode() for row in super().read() for _ in range(8)]
        assert rows
        return super().read()


BAD: dict[str, type[Adapter]] = {
    "reads_its_sample": type("Nameless", (Lines,), {"name": "Two Columns"}),
    "leaves_the_file_as_it_is": Writes,
    "refuses_what_is_no_log": TakesAll,
    "leaves_to_others-csv": TakesAll,
    "cut_off_anywhere": TrustsTheEnd,
    "says_that_the_last_line_is_torn": Silent,
    "takes_either_line_ending": ByLinuxOnly,
    "takes_compressed_text": Refuses,
    "takes_lines_in_any_order": Numbers,
    "passes_over_garbage": Silent,
    "memory_is_bounded": Hoards,
}


def test_the_least_adapter_passes() -> None:
    for name, check in yield_adapter_checks(Lines, columns, others=SAMPLES.values()):
        check()
        assert name


@pytest.mark.parametrize("name", BAD)
def test_a_bad_adapter_is_found_out(name: str) -> None:
    check = dict(yield_adapter_checks(BAD[name], columns, others=[SAMPLES["csv"]]))[name]
    with pytest.raises(AssertionError):
        check()


def test_every_check_has_a_bad_adapter_to_find() -> None:
    assert set(BAD) == {name for name, _ in yield_adapter_checks(Lines, columns, others=[SAMPLES["csv"]])}
