"""From the same weights and the same rollouts, our GRPO and TRL's have the same advantages, losses and updated weights.

Both by plain gradient descent: Adam's first steps make a whole step of a gradient that is 0 but for rounding.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import build, command, even_words, events_of  # noqa: E402

STEPS, BATCH, GROUP, LENGTH, RATE = 3, 8, 4, 8, 0.5


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("world"))


def train_ours(world: Path, out: Path, flags: list[str], monkeypatch) -> tuple[list, list, list]:
    """Rollouts, the advantages of their responses, and the weights after each step."""
    from safetensors.torch import load_file

    import ppo_models
    import rollout
    import train_ppo

    rolls, advantages = [], []
    monkeypatch.setattr(ppo_models, "make_optimizer", lambda model, rate, *_, **__: torch.optim.SGD(model.parameters(), lr=rate))
    generate, describe = rollout.generate, train_ppo.rollout_metrics
    monkeypatch.setattr(rollout, "generate", lambda *given: rolls.append(generate(*given)) or rolls[-1])
    monkeypatch.setattr(
        train_ppo, "rollout_metrics", lambda whole, *given: advantages.append(whole["raw"][:, 0]) or describe(whole, *given)
    )
    common = [f"--max_steps={STEPS}", "--save_interval=1", f"--keep_checkpoints={STEPS}", "--grad_clip=0", "--kl_coef=0.1"]
    common.append(f"--learning_rate={RATE}")
    with contextlib.redirect_stdout(io.StringIO()):
        assert train_ppo.main(command(world, out, *common, f"--num_generations={GROUP}", *flags)) == 0
    weights = [load_file(out / f"checkpoints/ppo/step_{step:08d}/actor.safetensors") for step in range(1, STEPS + 1)]
    return rolls, advantages, weights


def train_trl(world: Path, out: Path, rolls: list, options: dict) -> tuple[list, list, list]:
    """Advantages, losses of each update, and the weights after the last update of each rollout."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    left, advantages, losses, weights = list(rolls), [], [], []

    def given_instead(prompts: list, trainer: object) -> dict:
        roll = left.pop(0)
        width = roll.responses.shape[1]
        asked = [row[real.bool()].tolist() for row, real in zip(roll.tokens[:, :-width], roll.attention[:, :-width], strict=True)]
        said = [row[real.bool()].tolist() for row, real in zip(roll.responses, roll.mask, strict=True)]
        return {"prompt_ids": asked, "completion_ids": said, "logprobs": None}

    class Noting(GRPOTrainer):
        def _generate_and_score_completions(self, inputs):
            found = super()._generate_and_score_completions(inputs)
            advantages.append(found["advantages"].clone())
            return found

    class Notes(TrainerCallback):
        def on_step_end(self, args, state, control, model=None, **_):
            if state.global_step % 2 == 0:  # two updates from each rollout
                weights.append({name: weight.clone() for name, weight in model.state_dict().items()})

        def on_log(self, args, state, control, logs=None, **_):
            if "loss" in logs:
                losses.append(float(logs["loss"]))

    config = GRPOConfig(
        output_dir=str(out), use_cpu=True, bf16=False, gradient_checkpointing=False, report_to=[], max_grad_norm=0.0, beta=0.1,
        per_device_train_batch_size=BATCH, gradient_accumulation_steps=1, num_generations=GROUP, num_iterations=2,
        max_completion_length=LENGTH, learning_rate=RATE, optim="sgd", lr_scheduler_type="constant", weight_decay=0.0,
        save_strategy="no", disable_tqdm=True, max_steps=2 * STEPS, logging_steps=1, temperature=1.0, seed=0, **options,
    )  # fmt: skip
    data = Dataset.from_dict({"prompt": ["w1 w2"] * 64})
    trainer = Noting(
        model=AutoModelForCausalLM.from_pretrained(str(world / "model")), args=config, train_dataset=data,
        reward_funcs=lambda prompts, completions, **_: even_words(prompts, completions), rollout_func=given_instead,
        processing_class=AutoTokenizer.from_pretrained(str(world / "model"), padding_side="left"), callbacks=[Notes()],
    )  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    return advantages, losses, weights


VARIANTS = {
    "dapo": (["--advantage=grpo"], {"loss_type": "dapo"}),
    "grpo": (["--advantage=grpo", "--loss_aggregation=sequence"], {"loss_type": "grpo"}),
    "dr_grpo": (["--advantage=dr_grpo"], {"loss_type": "dr_grpo", "scale_rewards": "none"}),
    "asymmetric": (["--advantage=grpo", "--clip_range=0.02", "--clip_range_high=0.05"], {"epsilon": 0.02, "epsilon_high": 0.05}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_advantages_losses_and_weights_are_trls(variant: str, world: Path, tmp_path: Path, monkeypatch) -> None:
    from transformers import AutoModelForCausalLM

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    flags, options = VARIANTS[variant]
    rolls, ours, weights = train_ours(world, tmp_path / "ours", flags, monkeypatch)
    # TRL moves the rows of a rollout about before it trains on them; advantages are compared as they come out of the scores
    theirs, losses, their_weights = train_trl(world, tmp_path / "trl", rolls, options)
    assert len(theirs) == STEPS and len(their_weights) == STEPS
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6) and one.abs().max() > 0.1
    for number, event in enumerate(events_of(tmp_path / "ours")):
        mean = sum(losses[2 * number : 2 * number + 2]) / 2
        assert event["metrics"]["policy_loss"] == pytest.approx(mean, rel=1e-5, abs=1e-6)
    start = AutoModelForCausalLM.from_pretrained(str(world / "model")).state_dict()
    moved = max(float((weights[-1][name] - start[name]).abs().max()) for name in weights[-1])
    assert moved > 1e-2
    for step in range(STEPS):
        for name, weight in weights[step].items():
            assert torch.allclose(weight, their_weights[step][name], rtol=1e-5, atol=1e-5 * moved), (step, name)
