"""The models of PPO: the critic's start, a reward model with a tokenizer of its own, and what sampler and trainer differ in."""

from __future__ import annotations

import contextlib
import io
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import WORDS, build, command, events_of  # noqa: E402


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a reward model beside the policy."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = build(tmp_path_factory.mktemp("world"))
    torch.manual_seed(5)
    judge = AutoModelForSequenceClassification.from_pretrained(str(folder / "model"), num_labels=1, pad_token_id=0)
    torch.nn.init.normal_(judge.score.weight)
    judge.save_pretrained(str(folder / "judge"))
    AutoTokenizer.from_pretrained(str(folder / "model")).save_pretrained(str(folder / "judge"))
    return folder


def run(*words: str) -> int:
    from accelerate.state import AcceleratorState

    import train_ppo

    AcceleratorState._reset_state(True)  # the runs of one process share it, and it does not change its precision
    with contextlib.redirect_stdout(io.StringIO()):
        return train_ppo.main(list(words))


@pytest.fixture(autouse=True)
def fresh_state():
    from accelerate.state import AcceleratorState

    yield
    AcceleratorState._reset_state(True)


def arguments(world: Path, **more: Any) -> Namespace:
    return Namespace(from_weight="none", model_path=str(world / "model"), reward=str(world / "judge"), batch_size=3, **more)


def test_a_critic_from_the_reward_model_values_a_response_as_the_reward_model_scores_it(world: Path) -> None:
    from models import load_critic, load_model, load_tokenizer

    args = arguments(world, critic="reward", tokenizer=str(world / "model"))
    tokenizer = load_tokenizer(args)
    critic, judge = load_critic(args, tokenizer), load_model(args, "score", folder=args.reward, tokenizer=tokenizer)
    ids = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 2]])
    with torch.no_grad():
        values, scores = critic(input_ids=ids).logits[:, -1, 0], judge(input_ids=ids).logits[:, 0]
    assert torch.allclose(values, scores, atol=1e-6) and scores.abs().min() > 1e-3


def test_the_critic_is_saved_and_can_be_gone_on_with(world: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    from checkpoint import CheckpointError

    assert run(*command(world, tmp_path, "--max_steps=3", "--save_interval=3")) == 0
    kept, saved = tmp_path / "ppo_critic/model.safetensors", tmp_path / "checkpoints/ppo/step_00000003/critic.safetensors"
    assert all(load_file(kept)[key].equal(value) for key, value in load_file(saved).items())
    next_out = tmp_path / "next"
    assert run(*command(world, next_out, "--max_steps=1", f"--critic={tmp_path / 'ppo_critic'}")) == 0
    assert run(*command(world, next_out, "--max_steps=1", "--critic=reward", f"--reward={world / 'judge'}")) == 0
    for wrong in ("--critic=nowhere", "--critic=reward"):
        with pytest.raises(CheckpointError, match="--critic"):
            run(*command(world, next_out, "--max_steps=1", wrong))


def test_a_reward_model_reads_responses_with_its_own_tokenizer(world: Path, tmp_path: Path) -> None:
    """The same words under other numbers: the scores are those of the reward model on its own tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerFast

    from rollout import Rollout
    from scoring import load_scorer

    judge = AutoModelForSequenceClassification.from_pretrained(str(world / "judge"), pad_token_id=WORDS + 3)
    vocabulary = {f"w{n}": n for n in range(WORDS)} | {"[EOS]": WORDS, "[UNK]": WORDS + 1, "[PAD]": WORDS + 3}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", eos_token="[EOS]", unk_token="[UNK]")
    theirs.save_pretrained(str(tmp_path / "judge"))
    judge.save_pretrained(str(tmp_path / "judge"))

    ours = AutoTokenizer.from_pretrained(str(world / "model"))
    prompts, answers = ["w1 w2", "w3", "w4 w5 w6", "w7"], ["w8 w9", "w10 w11 w12", "w13", "w14 w15"]
    rows = [ours(answer)["input_ids"] for answer in answers]
    responses = torch.tensor([row + [0] * (3 - len(row)) for row in rows])
    empty = torch.zeros_like(responses)
    roll = Rollout(responses, empty, responses, empty, empty.float(), torch.ones(4, dtype=torch.bool))
    scorer = load_scorer(Namespace(**{**vars(arguments(world)), "reward": str(tmp_path / "judge")}), ours, torch.device("cpu"))
    with torch.no_grad():
        found = scorer({"texts": prompts, "columns": {}}, roll)
        expected = []
        for prompt, answer in zip(prompts, answers, strict=True):
            ids = torch.tensor([[vocabulary[word] for word in f"{prompt} {answer}".split()]])
            expected.append(judge(input_ids=ids).logits.item())
    assert found.tolist() == pytest.approx(expected, abs=1e-5) and scorer.parameters > 1000
    assert run(*command(world, tmp_path / "out", "--max_steps=2", f"--reward={tmp_path / 'judge'}")) == 0


def test_the_first_ratio_is_exactly_one_and_the_mismatch_with_the_sampler_is_logged(world: Path, tmp_path: Path) -> None:
    """In bfloat16 the sampler rounds differently; what is learnt from is one pass of the trained path."""
    for dtype in ("float32", "bfloat16"):
        assert run(*command(world, tmp_path / dtype, "--max_steps=3", "--ppo_epochs=1", f"--dtype={dtype}")) == 0
        for event in events_of(tmp_path / dtype):
            assert event["metrics"]["ratio_min"] == event["metrics"]["ratio_max"] == 1.0
    exact, coarse = ([event["metrics"] for event in events_of(tmp_path / dtype)] for dtype in ("float32", "bfloat16"))
    assert all(row["mismatch_logp_diff"] < 1e-5 and abs(row["sampling_ratio_mean"] - 1) < 1e-5 for row in exact)
    assert all(0.0 <= row["mismatch_logp_diff"] < 0.1 and row["mismatch_ratio"] >= 1.0 for row in coarse)
    assert all(row["mismatch_prob_corr"] > 0.99 and row["mismatch_kl"] < 1e-3 for row in (*exact, *coarse))


def test_truncated_importance_weighs_tokens_by_trainer_over_sampler(world: Path, tmp_path: Path, monkeypatch) -> None:
    """A sampler that says of every token that it was half as likely: weights of 2, or what they are truncated to."""
    import rollout

    generate = rollout.generate

    def doubtful(*given: Any) -> Any:
        roll = generate(*given)
        roll.logprobs = roll.logprobs - torch.log(torch.tensor(2.0)) * roll.mask
        return roll

    monkeypatch.setattr(rollout, "generate", doubtful)
    found = {}
    for limit in (0, 1.5, 10):
        flags = ("--max_steps=1", "--ppo_epochs=1", "--kl_coef=0", f"--truncated_importance={limit}")
        assert run(*command(world, tmp_path / str(limit), *flags)) == 0
        found[limit] = events_of(tmp_path / str(limit))[0]["metrics"]
    assert found[0]["sampling_ratio_mean"] == pytest.approx(2.0, rel=1e-4)
    assert found[0]["mismatch_ratio"] == pytest.approx(2.0, rel=1e-4)
    assert found[0]["ratio_min"] == found[0]["ratio_max"] == 1.0  # the update starts from the trainer's own numbers
    for limit, factor in ((1.5, 1.5), (10, 2.0)):
        assert found[limit]["policy_grad_norm"] == pytest.approx(factor * found[0]["policy_grad_norm"], rel=1e-3)
        assert found[limit]["value_grad_norm"] == pytest.approx(found[0]["value_grad_norm"], rel=1e-5)


def test_the_mfu_counts_generation_scoring_and_every_epoch(world: Path, tmp_path: Path, monkeypatch) -> None:
    import train_ppo

    asked = []
    monkeypatch.setattr(train_ppo, "calculate_mfu", lambda *given: asked.append(given) or 12.5)
    assert run(*command(world, tmp_path, "--max_steps=1", "--ppo_epochs=3")) == 0
    (event,) = events_of(tmp_path)
    assert event["metrics"]["mfu"] == 0.125
    policy, critic = 3376, 2881
    read, made = event["data_slice"]["tokens_in"], event["data_slice"]["tokens_out"]
    # generation, reference, after the updates; `old` is the first pass of the three epochs of training
    flops = (read + made) * (2 * 3 * policy + 3 * 6 * (policy + critic))
    assert asked[0][0] == pytest.approx(flops / made) and asked[0][1] == pytest.approx(event["metrics"]["tokens_per_second"])
