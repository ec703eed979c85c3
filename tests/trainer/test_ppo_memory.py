"""Memory and speed by default: chunks, checkpointed activations, 16-bit weights, threads; peak memory is that of a pass."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from ppo_world import build, command, events_of, same  # noqa: E402
from warm_processes import warm  # noqa: E402


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("world"))


def run(*words: str) -> str:
    import train_ppo

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert train_ppo.main(list(words)) == 0
    return said.getvalue()


def small(kind: str, **more):
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8}
    sizes |= {key: more.pop(key) for key in ("num_hidden_layers",) if key in more}
    sizes = (
        {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64} if kind == "gpt2" else {**sizes, "num_key_value_heads": 1}
    )
    ids = {"vocab_size": 32, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes, **ids, **more)).eval()


TOKENS = torch.tensor([[0, 0, 5, 6, 7, 2, 0, 0], [7, 8, 9, 10, 11, 12, 13, 14], [0, 11, 12, 13, 14, 15, 16, 2]])
ATTENTION = (TOKENS != 0).long()
MASK = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]])


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
@pytest.mark.parametrize("chunk", [3, 4096])
def test_log_probabilities_in_chunks_are_the_models_own_with_their_gradients(kind: str, chunk: int) -> None:
    from logprobs import TokenLogprobs

    more = {"final_logit_softcapping": 3.0} if kind == "gemma2" else {}  # capped after the head
    model, plain = small(kind, **more), small(kind, **more)
    measured = TokenLogprobs(model, chunk)
    found, entropy = measured(TOKENS, ATTENTION, MASK, 0.7, True)
    assert measured.plain_head is (kind != "gemma2")
    positions = (ATTENTION.cumsum(1) - 1).clamp(min=0)
    logits = plain(input_ids=TOKENS, attention_mask=ATTENTION, position_ids=positions).logits[:, 3:-1] / 0.7
    logp = logits.log_softmax(-1)
    expected = logp.gather(-1, TOKENS[:, 4:, None])[..., 0] * MASK
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.allclose(entropy, -(logp.exp() * logp).sum(-1) * MASK, atol=1e-5)
    for values in (found, expected):
        (values * torch.arange(4.0)).sum().backward()
    for (name, one), other in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-5 * float(other.grad.abs().max()) + 1e-7), name


def test_checkpointed_activations_and_small_chunks_change_no_numbers(world: Path, tmp_path: Path) -> None:
    flags = ("--max_steps=3", "--learning_rate=1e-3")
    run(*command(world, tmp_path / "plain", *flags))
    run(*command(world, tmp_path / "lean", *flags, "--gradient_checkpointing", "--logprob_chunk=5"))
    same(events_of(tmp_path / "plain"), events_of(tmp_path / "lean"), rel=2e-3, skip=("ratio_min", "ratio_max"))


def test_compiled_passes_give_the_same_numbers_and_leave_generation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the compiler's front end alone: generating code takes minutes, and is not ours to test."""
    from logprobs import TokenLogprobs

    compiled: list[str] = []
    whole = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda model, **named: compiled.append(type(model).__name__) or whole(model, **named, backend="eager")
    )
    model, plain = small("llama", num_hidden_layers=1), small("llama", num_hidden_layers=1)
    measured = TokenLogprobs(model, compiled=True)
    found, expected = measured(TOKENS, ATTENTION, MASK)[0], TokenLogprobs(plain)(TOKENS, ATTENTION, MASK)[0]
    assert compiled == ["LlamaModel"] and torch.allclose(found, expected, atol=1e-6)
    for values in (found, expected):
        values.sum().backward()
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-6)
    assert [name for name, _ in measured.named_parameters()] == [f"model.{name}" for name, _ in plain.named_parameters()]
    assert not isinstance(model.model, torch._dynamo.OptimizedModule)


def test_weights_of_16_bits_train(world: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    run(*command(world, tmp_path, "--max_steps=3", "--weight_dtype=bfloat16", "--attention=eager"))
    weights = load_file(tmp_path / "ppo/model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}
    assert events_of(tmp_path)[-1]["metrics"]["weight_change"] > 0


PEAK = """
import re, sys
sys.path[:0] = sys.argv[1:3]
import train_ppo
had = lambda name: int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
before = had("VmRSS")
status = train_ppo.main(sys.argv[3:])
print("peak", status, had("VmHWM") - before)
"""


def test_peak_memory_is_that_of_a_pass_and_not_of_a_step(world: Path, tmp_path: Path) -> None:
    """A wide vocabulary makes logits the largest thing there is: those of eight passes would double the peak."""
    from transformers import LlamaConfig, LlamaForCausalLM

    wide = tmp_path / "wide"
    config = LlamaConfig(
        vocab_size=20_000, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(str(wide))
    peaks = []
    for passes in (1, 8):
        flags = (
            f"--model_path={wide}",
            f"--tokenizer={world / 'model'}",
            "--max_new_tokens=40",
            "--batch_size=4",
            "--max_steps=1",
        )
        words = command(
            world, tmp_path / str(passes), *flags, f"--accumulation_steps={passes}", "--inject=constant_reward", "--no_rldk"
        )
        done = warm().run(["-c", PEAK, str(ROOT / "trainer"), str(HERE), *words], cwd=tmp_path, env=os.environ)
        assert done.returncode == 0 and "peak 0" in done.stdout, done.stderr[-2000:]
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] < 1.3 * peaks[0], peaks


def test_a_small_model_gets_one_thread_and_says_so(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from machine import SMALL, set_threads

    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cpu, free = torch.device("cpu"), SimpleNamespace(num_threads=0)
    assert "CPU threads: 1, a model of this size" in set_threads(free, cpu, SMALL - 1)
    assert "CPU threads: 8, all" in set_threads(free, cpu, SMALL)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert "CPU threads: 2" in set_threads(free, cpu, SMALL)
    assert set_threads(SimpleNamespace(num_threads=3), cpu, 5) == "" and set_threads(free, torch.device("cuda"), 5) == ""
    monkeypatch.setenv("OMP_NUM_THREADS", "5")  # the user's choice
    assert set_threads(free, cpu, 5) == ""
    assert chosen == [1, 8, 2, 3]


@pytest.mark.parametrize(
    "script", ["train_pretrain", "train_midtrain", "train_full_sft", "train_dpo", "train_reward", "train_ppo"]
)
def test_waiting_threads_sleep_unless_the_user_wants_otherwise(script: str) -> None:
    """The policy is set when torch is loaded: after that nobody reads it."""
    code = (
        "import builtins, os, sys\n"
        "load, seen = builtins.__import__, []\n"
        "def noted(name, *rest):\n"
        "    if name == 'torch' and not seen: seen.append(os.environ.get('OMP_WAIT_POLICY')); print(seen[0]); os._exit(0)\n"
        "    return load(name, *rest)\n"
        f"sys.path.insert(0, {str(ROOT / 'trainer')!r}); builtins.__import__ = noted; import {script}"
    )
    for given, expected in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
        environment |= {"OMP_WAIT_POLICY": given} if given else {}
        environment["PYTHONUNBUFFERED"] = "1"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.stdout.strip() == expected, done.stderr
