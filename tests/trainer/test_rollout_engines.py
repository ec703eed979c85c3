"""Engines that make responses: one in another process, which is run; vLLM and SGLang, against signatures of their packages."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from ppo_world import build, command, events_of  # noqa: E402

SIGNATURES = json.loads((HERE / "engine_signatures.json").read_text())
BATCH = {
    "input_ids": torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10], [0, 11, 12, 13], [0, 0, 0, 14]]),
    "attention_mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1]]),
}
SETTINGS = SimpleNamespace(temperature=0.7, end_tokens=[2, 9])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("world"))


def loaded(world: Path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(str(world / "model")), AutoTokenizer.from_pretrained(str(world / "model"))


def logprobs_of(policy, roll):
    from logprobs import TokenLogprobs

    return TokenLogprobs(policy.eval())(roll.tokens, roll.attention, roll.mask, SETTINGS.temperature)[0].detach()


@pytest.fixture(scope="module")
def engine(world: Path):
    """One engine for several tests: importing torch and transformers takes its process 4 s."""
    from rollout_process import ProcessEngine

    made = ProcessEngine(loaded(world)[1], micro=3)
    yield made
    made.close()
    assert not made.folder.path.exists() and made.process.poll() is not None


def test_another_process_samples_with_the_weights_that_it_was_given_last(world: Path, engine) -> None:
    from rollout_engines import TorchEngine

    policy, _ = loaded(world)
    noise = torch.rand(4, 12, generator=torch.Generator().manual_seed(0))
    for spread in (0.0, 0.3):
        with torch.no_grad():
            for weight in policy.parameters():
                weight += spread * torch.randn_like(weight)
        engine.sync(policy)
        roll, again = (engine.respond(BATCH, noise, SETTINGS) for _ in range(2))
        own = TorchEngine(policy, 3, 0).respond(BATCH, noise, SETTINGS)
        assert roll.tokens[:, :4].equal(BATCH["input_ids"]) and own.tokens[:, :4].equal(BATCH["input_ids"])
        assert torch.allclose(roll.logprobs, logprobs_of(policy, roll), atol=1e-4)  # those of the weights it has now
        assert again.tokens.equal(roll.tokens)  # by its seed
        for one in (roll, own):
            last = one.responses.gather(1, one.mask.sum(1, keepdim=True) - 1)[:, 0]
            assert one.ended.tolist() == [token in (2, 9) for token in last.tolist()]
            assert (one.responses[one.mask == 0] == 0).all() and one.attention[:, 4:].equal(one.mask)
    with pytest.raises(RuntimeError, match="The rollout process cannot respond"):
        engine.respond(BATCH, noise, SimpleNamespace(temperature=-1.0, end_tokens=[2]))


def test_a_process_that_was_killed_is_named_and_leaves_no_folder(world: Path) -> None:
    from rollout_process import ProcessEngine

    killed = ProcessEngine(loaded(world)[1], micro=3)
    killed.process.kill()
    with pytest.raises(RuntimeError, match="The rollout process ended with status -9"):
        killed.respond(BATCH, torch.rand(4, 12), SETTINGS)
    killed.close()
    assert not killed.folder.path.exists() and killed.process.poll() is not None


def test_an_engine_that_is_not_given_the_weights_is_noticed(world: Path, tmp_path: Path, engine, monkeypatch) -> None:
    """While it is, its log-probabilities are the trainer's; without, the gap grows, and the judge says what it is."""
    import rollout_process
    import train_ppo
    from rldk.forensics import ComprehensivePPOForensics

    started = []

    def running(*given, **named):
        started.append(given)
        return engine.process

    flags = ["--rollout=process", "--max_steps=45", "--inject=stale_engine@12", "--learning_rate=1e-2", "--kl_coef=0"]
    flags += ["--advantage=grpo", "--num_generations=4", "--max_new_tokens=6", "--save_interval=0"]
    monkeypatch.setattr(rollout_process, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": running}))
    with contextlib.redirect_stdout(io.StringIO()):
        assert train_ppo.main(command(world, tmp_path, *flags)) == 0
    assert len(started) == 1 and engine.process.poll() == 0  # the trainer has ended it
    found = events_of(tmp_path)
    gaps = [event["metrics"]["mismatch_kl"] for event in found]
    assert max(map(abs, gaps[:11])) < 1e-5 and min(gaps[-5:]) > 0.05, gaps
    anomalies = ComprehensivePPOForensics().scan_ppo_events_comprehensive(iter(found))["comprehensive_analysis"]["anomalies"]
    steps = [one["step"] for one in anomalies if one["type"] == "train_inference_mismatch"]
    assert steps and 12 < steps[0] <= 40


class Recorded:
    """A callable with the parameters of a real one, which answers with `reply`."""

    def __init__(self, parameters: list[str], reply, kwargs_of: list[str] | None = None) -> None:
        one = inspect.Parameter
        kinds = {0: one.POSITIONAL_OR_KEYWORD, 1: one.KEYWORD_ONLY, 2: one.VAR_KEYWORD}
        found = [
            one(name.strip("*="), kinds[name.count("*")], default=None if name.endswith("=") else one.empty)
            for name in parameters
        ]
        self.signature, self.reply, self.kwargs_of, self.calls = inspect.Signature(found), reply, kwargs_of, []

    def __call__(self, *given, **named):
        bound = self.signature.bind(*given, **named).arguments
        if self.kwargs_of is not None:
            assert set(bound.get("kwargs", {})) <= set(self.kwargs_of), bound
        self.calls.append(bound)
        return self.reply(bound)


def fields(names: list[str]) -> Recorded:
    return Recorded([f"{name}=" for name in names], lambda bound: SimpleNamespace(**bound))


SAID = [[5, 6, 2], [7, 9], [4, 4, 4, 4], [2]]


def args(**more) -> SimpleNamespace:
    return SimpleNamespace(weight_dtype="bfloat16", seed=3, rollout_memory=0.3, **more)


def check(roll) -> None:
    assert roll.responses.tolist() == [[5, 6, 2, 0], [7, 9, 0, 0], [4, 4, 4, 4], [2, 0, 0, 0]]
    assert roll.ended.tolist() == [True, True, False, True] and roll.mask.sum(1).tolist() == [3, 2, 4, 1]
    assert torch.allclose(roll.logprobs[0], torch.tensor([-0.5, -0.6, -0.2, 0.0]))


def test_vllm_is_called_by_its_signatures(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = SIGNATURES["vllm"]
    assert set(known["CompletionOutput"]) >= {"token_ids", "logprobs"} and "logprob" in known["Logprob"]

    def answered(bound):
        assert len(bound["prompts"]) == len(bound["sampling_params"]) == 4
        logprobs = [[{token: SimpleNamespace(logprob=-token / 10)} for token in row] for row in SAID]
        outputs = [SimpleNamespace(token_ids=tuple(row), logprobs=found) for row, found in zip(SAID, logprobs, strict=True)]
        return [SimpleNamespace(outputs=[one]) for one in outputs]

    generate, rpc = Recorded(known["LLM.generate"], answered), Recorded(known["LLM.collective_rpc"], lambda bound: [None])
    engine = SimpleNamespace(generate=generate, collective_rpc=rpc)
    start = Recorded(known["LLM.__init__"], lambda bound: engine, kwargs_of=known["EngineArgs"])
    package = ModuleType("vllm")
    package.LLM, package.SamplingParams = start, fields(known["SamplingParams"])
    monkeypatch.setitem(sys.modules, "vllm", package)

    from rollout_servers import VllmEngine

    policy, tokenizer = loaded(world)
    used = VllmEngine(tokenizer, args())
    used.sync(policy)
    assert (used.folder.path / "model.safetensors").is_file() and (used.folder.path / "tokenizer.json").is_file()
    noise = torch.rand(4, 6)
    check(used.respond(BATCH, noise, SETTINGS))
    used.sync(policy)
    assert len(start.calls) == 1 and start.calls[0]["kwargs"]["logprobs_mode"] == "processed_logprobs"
    (reload,) = rpc.calls
    Recorded(known["GPUModelRunner.reload_weights"], lambda bound: None)(**reload["kwargs"])
    assert reload["method"] == "reload_weights"
    first = generate.calls[0]
    assert first["prompts"][0] == {"prompt_token_ids": [5, 6]}
    how = first["sampling_params"][0]
    assert (how.temperature, how.max_tokens, how.stop_token_ids, how.logprobs) == (0.7, 6, [2, 9], 0)
    assert len({one.seed for one in first["sampling_params"]}) == 4
    used.close()
    assert not used.folder.path.exists()


def test_sglang_is_called_by_its_signatures(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = SIGNATURES["sglang"]

    def answered(bound):
        assert all(set(one) <= set(known["SamplingParams"]) for one in bound["sampling_params"])
        assert bound["return_logprob"] is True and bound["input_ids"][1] == [7, 8, 9, 10]
        return [{"meta_info": {"output_token_logprobs": [(-token / 10, token, None) for token in row]}} for row in SAID]

    replies = iter([(True, "ok"), (False, "no such file")])
    update = Recorded(known["Engine.update_weights_from_disk"], lambda bound: next(replies))
    stop = Recorded(known["Engine.shutdown"], lambda bound: None)
    engine = SimpleNamespace(
        generate=Recorded(known["Engine.generate"], answered), update_weights_from_disk=update, shutdown=stop
    )
    package = ModuleType("sglang")
    package.Engine = Recorded(["**kwargs"], lambda bound: engine, kwargs_of=known["ServerArgs"])
    monkeypatch.setitem(sys.modules, "sglang", package)

    from rollout_servers import SglangEngine

    policy, tokenizer = loaded(world)
    used = SglangEngine(tokenizer, args())
    used.sync(policy)
    check(used.respond(BATCH, torch.rand(4, 6), SETTINGS))
    used.sync(policy)
    with pytest.raises(RuntimeError, match="cannot load the weights of the policy: no such file"):
        used.sync(policy)
    used.close()
    assert len(stop.calls) == 1 and package.Engine.calls[0]["kwargs"]["mem_fraction_static"] == 0.3


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_an_engine_that_is_not_installed_or_cannot_be_used_is_named(name: str, world: Path, monkeypatch) -> None:
    from rollout_engines import make_engine

    monkeypatch.setitem(sys.modules, name, None)
    policy, tokenizer = loaded(world)
    with pytest.raises(ValueError, match=f"--rollout {name} needs a package: pip install {name}"):
        make_engine(args(rollout=name), policy, tokenizer, 4, processes=1)
    with pytest.raises(ValueError, match=f"--rollout {name} works with one training process, got 2"):
        make_engine(args(rollout=name), policy, tokenizer, 4, processes=2)


def test_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    import os

    from rollout_engines import _remove_left_over

    for owner in (os.getpid(), 2**22 + 7):
        (tmp_path / f"rldk-rollout-{owner}-abc").mkdir()
    _remove_left_over(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"rldk-rollout-{os.getpid()}-abc"]
