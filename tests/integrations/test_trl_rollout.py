"""The statistics of a rollout, beside numpy's own of the same numbers, without a training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")
pytest.importorskip("trl")

RESPONSES, TOKENS = 7, 5


def rollout(seed: int = 0, kind: Any = torch.float32) -> dict[str, Any]:
    torch.manual_seed(seed)
    sizes = torch.randint(0, TOKENS - 1, (RESPONSES,))
    places = torch.arange(TOKENS).repeat(RESPONSES, 1)
    made = {name: torch.randn(RESPONSES, TOKENS).to(kind) for name in ("kl", "rewards", "returns", "values")}
    return {
        **made, "scores": torch.randn(RESPONSES).to(kind), "sequence_lengths": sizes, "contain_eos_token": sizes > 1,
        "padding_mask": places > sizes[:, None], "padding_mask_p1": places > sizes[:, None] + 1,
    }  # fmt: skip


def reduced(*parts: dict[str, Any], **more: Any) -> dict[str, float]:
    from rldk.integrations.trl.probes.rollout import reduce_rollouts, rollout_sample

    with np.errstate(all="ignore"):
        return reduce_rollouts([{**rollout_sample(part), **more} for part in parts])


def expected(local: dict[str, Any]) -> dict[str, float]:
    held = {name: tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy() for name, tensor in local.items()}
    real, valued = ~held["padding_mask"], ~held["padding_mask_p1"]
    values, returns, lengths = held["values"][valued], held["returns"][valued], held["sequence_lengths"] + 1
    kl, rewards, advantages = held["kl"].sum(1), held["rewards"].sum(1), (held["returns"] - held["values"])[real]
    return {
        "reward_std": held["scores"].std(ddof=1), "reward_min": held["scores"].min(), "reward_max": held["scores"].max(),
        "reward_missing_frac": 1.0 - np.isfinite(held["scores"]).mean(), "rollout_mean_reward": rewards.mean(),
        "rollout_std_reward": rewards.std(ddof=1), "rollout_length_mean": lengths.mean(),
        "rollout_length_std": lengths.std(ddof=1), "rollout_length_min": lengths.min(), "rollout_length_max": lengths.max(),
        "eos_frac": held["contain_eos_token"].mean(), "truncated_frac": 1.0 - held["contain_eos_token"].mean(),
        "kl_std": kl.std(ddof=1), "kl_max": kl.max(), "value_mean": values.mean(), "value_std": values.std(ddof=1),
        "value_min": values.min(), "value_max": values.max(), "return_mean": returns.mean(), "return_std": returns.std(ddof=1),
        "explained_variance": 1.0 - (returns - values).var() / returns.var(), "rollout_buffer_pos": len(lengths),
        "advantage_mean": advantages.mean(), "advantage_std": advantages.std(ddof=1), "advantage_min": advantages.min(),
        "advantage_median": np.median(advantages), "advantage_p95": np.percentile(advantages, 95),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "float16"])
def test_a_rollout_is_described_as_numpy_does(kind: str) -> None:
    local = rollout(kind=getattr(torch, kind))
    local["values"].requires_grad_()
    found, alone = reduced(local), expected({**local, "values": local["values"].detach()})
    assert {name: found[name] for name in alone} == pytest.approx(alone, rel=1e-4, abs=1e-5)
    assert not {"ratio_std", "ratio_min"} & found.keys()


def test_the_parts_of_two_processes_are_one_rollout() -> None:
    both = [rollout(1), rollout(2)]
    whole = {name: torch.cat([part[name] for part in both]) for name in both[0]}
    assert reduced(*both) == pytest.approx(reduced(whole), rel=1e-6) and reduced(whole)["rollout_buffer_pos"] == 2 * RESPONSES


def test_what_is_not_finite_stays_so_and_a_ratio_has_its_spread() -> None:
    local = rollout(3)
    local["scores"][2] = math.nan
    local["returns"][0, 0], local["values"][0, 0] = math.inf, math.inf
    found = reduced(local, ratio=np.array([0.5, 1.0, 1.5], dtype=np.float32))
    assert found["reward_missing_frac"] == pytest.approx(1 / RESPONSES) and math.isnan(found["reward_std"])
    assert math.isnan(found["advantage_mean"]) and found["value_max"] == math.inf and math.isnan(found["return_std"])
    assert (found["ratio_std"], found["ratio_min"], found["ratio_max"]) == pytest.approx((0.5, 0.5, 1.5))
    assert math.isfinite(found["kl_std"]) and math.isfinite(found["rollout_length_std"])


def test_a_single_response_has_no_spread_and_an_empty_rollout_is_refused() -> None:
    one = {name: tensor[:1] for name, tensor in rollout(4).items()}
    found = reduced(one)
    assert "reward_std" not in found and found["reward_min"] == found["reward_max"]
    with pytest.raises(ValueError, match="with responses and tokens"):
        reduced({name: tensor[:0] for name, tensor in one.items()})


def test_norms_of_small_and_large_gradients_are_those_of_all_together() -> None:
    from rldk.integrations.trl.probes.optimizer import GradientProbe

    torch.manual_seed(0)
    model = torch.nn.Module()
    model.policy = torch.nn.Sequential(torch.nn.Linear(200, 200), torch.nn.Linear(200, 3))  # one matrix is large
    model.value_model = torch.nn.Linear(3, 1)
    probe = GradientProbe(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe.attach(optimizer)
    for without in (None, model.policy[1].bias, model.value_model.weight):  # what has no gradient does not count that of before
        optimizer.zero_grad()
        model.value_model(model.policy(torch.randn(4, 200))).pow(2).sum().backward()
        if without is not None:
            without.grad = None
        norms = {
            name: math.sqrt(sum(float(one.grad.double().pow(2).sum()) for one in part.parameters() if one.grad is not None))
            for name, part in (("policy_grad_norm", model.policy), ("value_grad_norm", model.value_model))
        }
        optimizer.step()
        found = probe.read()
        assert found["policy_lr"] == found["value_lr"] == 0.1
        assert {name: found[name] for name in norms} == pytest.approx(norms, rel=1e-5)
        assert found["grad_norm"] == pytest.approx(math.hypot(*norms.values()), rel=1e-5)
    assert [len(part) for part in probe._large] == [1, 0]
    optimizer.zero_grad()
    optimizer.step()
    assert probe.read().keys() == {"policy_lr", "value_lr"}  # no gradient is not a norm of 0


def test_a_prompt_has_one_digest_however_far_it_is_padded_and_different_ones_have_different() -> None:
    from rldk.integrations.trl.probes.rollout import digests_of_rollout

    torch.manual_seed(0)
    prompts = torch.randint(1, 1000, (500, 40))
    prompts[1] = prompts[0]
    prompts[3] = prompts[2].flip(0)  # the same tokens in another order
    narrow = digests_of_rollout({"query_responses": torch.cat([prompts, prompts], 1), "context_length": 40}, pad=0)
    padded = torch.cat([torch.zeros(500, 300, dtype=torch.long), prompts], 1)
    assert digests_of_rollout({"query_responses": padded, "context_length": 340}, pad=0) == narrow
    assert narrow[0] == narrow[1] and len(set(narrow)) == 499
