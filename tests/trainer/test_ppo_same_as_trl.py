"""From the same weights and the same rollouts, our PPO and TRL's take the same step: term by term, and weight by weight."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import build, command, events_of  # noqa: E402

STEPS, BATCH, CONTEXT, LENGTH, PAD = 3, 8, 5, 8, 0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("trl.experimental.ppo", reason="this TRL has no PPOTrainer")  # 4 s: for the process that runs the tests
    from transformers import AutoModelForTokenClassification

    folder = build(tmp_path_factory.mktemp("world"))
    torch.manual_seed(1)
    critic = AutoModelForTokenClassification.from_pretrained(str(folder / "model"), num_labels=1)
    critic.save_pretrained(str(folder / "critic"))
    return folder


class EvenWords(torch.nn.Module):
    """`even_words` of ppo_world.py as TRL wants a reward model: up to each token, the share of even words."""

    base_model_prefix = "model"

    def __init__(self) -> None:
        super().__init__()
        self.model, self.score = self.shares, torch.nn.Identity()

    def shares(self, input_ids, **_):
        word = (input_ids >= 4) & (torch.arange(input_ids.shape[1]) >= CONTEXT)
        share = (word & (input_ids % 2 == 0)).cumsum(1) / word.cumsum(1).clamp(min=1)
        return SimpleNamespace(hidden_states=(share.unsqueeze(-1),))


def train_ours(world: Path, out: Path, least_noise: float, monkeypatch) -> tuple[list, list, list]:
    """Rollouts, their terms, and the weights after each step. Little noise draws the first tokens: PAD, BOS and EOS."""
    from safetensors.torch import load_file

    import rollout
    import train_ppo

    rolls, terms = [], []
    noise, generate, describe = train_ppo.sampling_noise, rollout.generate, train_ppo.rollout_metrics
    monkeypatch.setattr(train_ppo, "sampling_noise", lambda *given: least_noise + (1.0 - least_noise) * noise(*given))
    monkeypatch.setattr(rollout, "generate", lambda *given: rolls.append(generate(*given)) or rolls[-1])
    monkeypatch.setattr(train_ppo, "rollout_metrics", lambda whole, *given: terms.append(dict(whole)) or describe(whole, *given))
    words = (
        f"--max_steps={STEPS}",
        "--save_interval=1",
        f"--keep_checkpoints={STEPS}",
        "--grad_clip=0",
        "--kl_coef=0.3",
        f"--critic={world / 'critic'}",
    )
    with contextlib.redirect_stdout(io.StringIO()):
        assert train_ppo.main(command(world, out, *words, f"--critic={world / 'critic'}")) == 0
    folders = [out / f"checkpoints/ppo/step_{step:08d}" for step in range(1, STEPS + 1)]
    return rolls, terms, [{name: load_file(folder / f"{name}.safetensors") for name in ("actor", "critic")} for folder in folders]


def train_trl(world: Path, out: Path, rolls: list, monkeypatch) -> tuple[list, list]:
    """The terms and the weights of each step, from the rollouts that are given."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoModelForTokenClassification, AutoTokenizer, TrainerCallback
    from trl.experimental.ppo import PPOConfig, PPOTrainer, ppo_trainer

    left, terms, weights = list(rolls), [], []

    def given_instead(model, queries, size, pad, config):
        roll = left.pop(0)
        missing = CONTEXT + roll.responses.shape[1] - roll.tokens.shape[1]
        tokens = torch.nn.functional.pad(roll.tokens, (missing, 0), value=pad)
        return tokens, ppo_trainer.forward(model, tokens, pad).logits[:, CONTEXT - 1 : -1]

    class Notes(TrainerCallback):
        def on_log(self, args, state, control, model=None, logs=None, **_):
            frame = sys._getframe()
            while frame.f_code.co_name != "train":
                frame = frame.f_back
            names = ("logprobs", "kl", "values", "returns", "advantages", "padding_mask", "scores")
            terms.append({name: frame.f_locals[name].detach().clone() for name in names} | {"logs": dict(logs)})
            parts = {"actor": model.policy, "critic": model.value_model}
            weights.append({name: {k: v.clone() for k, v in part.state_dict().items()} for name, part in parts.items()})

    monkeypatch.setattr(ppo_trainer, "batch_generation", given_instead)
    config = PPOConfig(
        output_dir=str(out), use_cpu=True, bf16=False, gradient_checkpointing=False, report_to=[], vf_coef=1.0,
        per_device_train_batch_size=BATCH, gradient_accumulation_steps=1, num_mini_batches=1, total_episodes=BATCH * STEPS,
        response_length=LENGTH, stop_token="eos", temperature=1.0, kl_coef=0.3, num_ppo_epochs=2, learning_rate=3e-3,
        lr_scheduler_type="constant", weight_decay=0.0, num_sample_generations=0, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    data = Dataset.from_dict({"input_ids": [[5] * CONTEXT] * BATCH})
    policy, reference = (AutoModelForCausalLM.from_pretrained(str(world / "model")) for _ in range(2))
    trainer = PPOTrainer(
        args=config, processing_class=AutoTokenizer.from_pretrained(str(world / "model"), padding_side="left"), model=policy,
        ref_model=reference, reward_model=EvenWords(), train_dataset=data, eval_dataset=data, callbacks=[Notes()],
        value_model=AutoModelForTokenClassification.from_pretrained(str(world / "critic"), num_labels=1),
    )  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    return terms, weights


@pytest.fixture(autouse=True)
def silent(monkeypatch) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


def apart(one, other, where) -> float:
    return float((one - other)[where].abs().max())


def test_three_steps_give_trls_terms_and_trls_weights(world: Path, tmp_path: Path, monkeypatch) -> None:
    """Responses of full length, of which both have the same idea; weights go a thousand times as far as they are apart."""
    from transformers import AutoModelForCausalLM

    rolls, ours, weights = train_ours(world, tmp_path / "ours", 0.3, monkeypatch)
    theirs, their_weights = train_trl(world, tmp_path / "trl", rolls, monkeypatch)
    for roll, one, other in zip(rolls, ours, theirs, strict=True):
        everywhere = ~other["padding_mask"]
        assert everywhere.all() and roll.mask.all() and not roll.ended.any()
        assert apart(one["old"], other["logprobs"], everywhere) < 1e-5
        assert apart(one["score"], other["scores"], slice(None)) < 1e-6
        for name in ("kl", "values", "returns"):
            assert apart(one[name], other[name], everywhere) < 1e-5, name
    assert float(theirs[-1]["kl"].abs().max()) > 1e-2  # something has moved
    tokens = BATCH * LENGTH
    for event, other in zip(events_of(tmp_path / "ours"), theirs, strict=True):
        found, logs = event["metrics"], other["logs"]
        assert found["value_loss"] == pytest.approx(logs["loss/value_avg"], rel=1e-4)
        # TRL divides the variance of the advantages by one token less
        expected = logs["loss/policy_avg"] * (tokens / (tokens - 1)) ** 0.5
        assert found["policy_loss"] == pytest.approx(expected, rel=1e-3, abs=1e-5)
        assert found["clip_frac"] == pytest.approx(logs["policy/clipfrac_avg"], abs=2 / tokens)
        assert found["kl_mean_per_sequence"] == pytest.approx(logs["objective/kl"], abs=1e-4)
    start = AutoModelForCausalLM.from_pretrained(str(world / "model")).state_dict()
    for name, weight in start.items():
        assert float((weight - weights[-1]["actor"][name]).abs().max()) > 1e-2, name
    for step in range(STEPS):
        for part in ("actor", "critic"):
            for name, weight in weights[step][part].items():
                assert apart(weight, their_weights[step][part][name], slice(None)) < 1.5e-5, (step, part, name)


def test_where_responses_end_only_the_place_of_the_score_is_ours(world: Path, tmp_path: Path, monkeypatch) -> None:
    """We give the score at the end token, TRL at the place after it where there is one. All else is the same."""
    rolls, ours, _ = train_ours(world, tmp_path / "ours", 0.05, monkeypatch)
    theirs, _ = train_trl(world, tmp_path / "trl", rolls, monkeypatch)
    roll, one, other = rolls[0], ours[0], theirs[0]
    mask, lengths = roll.mask.bool(), roll.mask.sum(1)
    early = roll.ended & (lengths < roll.responses.shape[1])
    assert early.any() and not early.all() and mask.equal(~other["padding_mask"])
    for first, second in (("score", "scores"), ("kl", "kl"), ("values", "values")):
        assert apart(one[first], other[second], mask if first != "score" else slice(None)) < 1e-5, first
    assert apart(one["returns"][~early], other["returns"][~early], mask[~early]) < 1e-5
    for row in early.nonzero()[:, 0].tolist():
        last, expected = int(lengths[row]) - 1, 0.0
        for place in range(last, -1, -1):  # a plain loop from the end token, which earns the score, back to the first
            reward = -0.3 * float(other["kl"][row, place]) + (float(other["scores"][row]) if place == last else 0.0)
            following = float(other["values"][row, place + 1]) if place < last else 0.0
            expected = reward + following - float(other["values"][row, place]) + 0.95 * expected
            assert float(one["raw"][row, place]) == pytest.approx(expected, abs=1e-5)
