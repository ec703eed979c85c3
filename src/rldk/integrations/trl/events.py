"""Makes an event from what a trainer logs and what the probes find."""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rldk.core.catalog import Resolution, identify, resolve
from rldk.core.event import Event
from rldk.core.jsonio import to_number
from rldk.functional.preflight import DistinctCount, has_dropout
from rldk.functional.responses import describe_responses
from rldk.integrations import processes
from rldk.integrations.trl.probes.group import completion_lengths, digests_of_group, group_statistics, responses_of_group
from rldk.integrations.trl.probes.rollout import (
    digests_of_rollout,
    filled_share,
    pairs_of,
    reduce_rollouts,
    responses_of_rollout,
    rollout_sample,
    texts_of,
    thinned,
    undiluted,
)
from rldk.integrations.trl.probes.settings import kl_coefficient
from rldk.integrations.trl.probes.stack import ModelParts, rollout_of

if TYPE_CHECKING:
    from rldk.integrations.trl.session import Session

__all__ = ["EventMaker"]

_log = logging.getLogger("rldk")

_FRAMEWORKS = {"PPO": "trl_ppo", "GRPO": "trl_grpo", "RLOO": "trl_grpo", "DPO": "trl_dpo", "SFT": "trl_dpo", "Reward": "trl_dpo"}
_LOGGED_WRONGLY = ("ratio_std",)  # TRL logs the spread of the means of minibatches, which is almost zero
_MAX_TEXT = 2000
_DILUTED = (
    "With these settings TRL averages losses, entropy, clip fraction and ratio over slots of which {} % are filled; the events "
    "hold the means over those, which are larger than what TRL prints."
)


class EventMaker:
    """Makes the events of a session. Every process makes each of them, since statistics of a rollout are gathered.

    Attributes:
        notes: the notes of the next event.
        sources: where each metric came from: the trainer's key, or the probe.
    """

    def __init__(self, session: Session, facts: Mapping[str, float], words: Mapping[str, Any]) -> None:
        self.session = session
        self.facts, self.words = dict(facts), dict(words)
        self.notes: list[str] = []
        self.sources: dict[str, str] = {}
        self.last_step = session.resume_step or 0
        name = str(words.get("trainer", ""))
        self.framework = next((found for start, found in _FRAMEWORKS.items() if name.startswith(start)), None)
        self._before = self._began = time.perf_counter()
        self._steps: list[float] = []
        self._tokens = math.nan
        self._signs: dict[str, float] = {}
        self._identify = lru_cache(maxsize=100)(identify)  # by the keys of a row, of which a training has few kinds
        self._prompts = DistinctCount()
        self._made = 0
        self._debugged: set[str] = set()
        self._filled = filled_share(session.args) if session.is_ppo else 1.0
        if self._filled < 1.0:
            self.notes.append(_DILUTED.format(round(100 * self._filled)))

    def make(self, step: int, logs: Mapping[str, Any]) -> Event | None:
        """The event of a step; `None` for a row that describes the whole run and not a step."""
        if self.session.is_ppo:
            logs = undiluted(logs, self._filled)
        found = resolve(logs, framework=self._identify(tuple(logs)) or self.framework, signs=self._signs)
        own = {key: number for key in (*found.unmapped, *found.not_judged) if (number := to_number(logs[key])) is not None}
        if found.kind == "summary" or not (found.metrics or found.nulls or own):
            return None
        event = Event(step, {**found.metrics, **own}, time.time(), nulls=tuple(found.nulls))
        event.model_info = {**self.words, "phase": "eval" if found.kind == "eval" else "train"}
        if "kl_mean" in found.reductions:
            event.model_info["reductions"] = {"kl_mean": found.reductions["kl_mean"]}
        event.rng = {"seed": self.session.args.seed} if hasattr(self.session.args, "seed") else {}
        if found.kind != "eval":
            self._probe(event, found)
        self.sources.update(found.sources)
        if _log.isEnabledFor(logging.DEBUG):
            self._debug(step, found)
        self.last_step = step
        return event

    def _debug(self, step: int, found: Resolution) -> None:
        """Log where each metric comes from, and which keys are not recognised, when they are first seen."""
        read = {f"{name} from {key}" for name, key in self.sources.items()}
        read |= {f"the key {key} is not recognised, and kept" for key in found.unmapped}
        for line in sorted(read - self._debugged):
            _log.debug("step %d: %s", step, line)
        self._debugged |= read

    def _probe(self, event: Event, found: Resolution) -> None:
        """Add what the probes have; logged values take precedence over probed ones, except where they mean something else."""
        session, guard = self.session, self.session.guard
        if not self._made and "kl_coef" in self.facts:  # dropout only matters with a reference to compare with
            self.facts |= guard.call("the probe of dropout", self._dropout) or {}
        probed: dict[str, float] = dict(self.facts)
        if (coef := guard.call("the probe of settings", kl_coefficient, session.trainer(), session.args)) is not None:
            probed["kl_coef"] = coef
        wanted = session.options.samples if self._made % session.options.log_interval == 0 else 0
        if session.is_ppo:
            with np.errstate(all="ignore"):  # values that are not finite are reported later; numpy need not warn
                probed |= self._rollout(event, wanted)
        elif "reward" in found.sources.values() or found.nulls:
            probed |= guard.call("the probe of the group", self._group, event, wanted) or {}
            probed |= self._count_prompts(guard.call("the probe of prompts", digests_of_group, session.trainer()) or [])
            probed |= self._completions()
        probed |= guard.call("the clock", self._times, event) or {}
        if session.gradients is not None:
            probed |= guard.call("the probe of gradients", session.gradients.read) or {}
        if session.is_ppo:
            session.updated()  # its `on_step_end` comes after the log
        if session.weights is not None:
            probed |= guard.call("the probe of weights", session.weights.read) or {}
        if session.endings is not None:
            probed |= guard.call("the probe of endings", session.endings.read) or {}
        if session.resources is not None:
            probed |= guard.call("the probe of resources", session.resources.latest) or {}
        if {"policy_loss", "value_loss"} <= event.metrics.keys() and hasattr(session.args, "vf_coef"):
            probed["loss"] = event.metrics["policy_loss"] + session.args.vf_coef * event.metrics["value_loss"]
        fresh = {name: value for name, value in probed.items() if name not in event.metrics or name in _LOGGED_WRONGLY}
        event.metrics |= fresh
        self.sources |= dict.fromkeys(fresh, "probe")
        event.notes, self.notes = self.notes, []
        self._made += 1

    def _dropout(self) -> dict[str, float]:
        """Whether the policy drops activations, measured after its first update, when it is in training mode."""
        model = getattr(self.session.trainer(), "model", None)
        if model is None:
            return {}
        alone = processes.world_size() == 1  # a sharded model can only run in all processes together
        return {"dropout_active": float(has_dropout(ModelParts.of(model).policy, try_it=alone))}

    def _count_prompts(self, digests: list[int]) -> dict[str, float]:
        """The number of different prompts so far."""
        return {"distinct_prompts": float(self._prompts.add(digests))} if digests else {}

    def _rollout(self, event: Event, wanted: int) -> dict[str, float]:
        """The statistics of a PPO rollout in all processes: each sends its part, even if its probe has failed."""
        guard = self.session.guard
        local = guard.call("the probe of the rollout", rollout_of)
        part = guard.call("the probe of the rollout", rollout_sample, local) if local else None
        gradients = self.session.gradients
        ratio = guard.call("the probe of the ratio", gradients.last_ratio) if gradients is not None else None
        if part is not None and ratio is not None and len(ratio):
            part["ratio"] = thinned(ratio)
        trainer = self.session.trainer()
        if part is not None and local is not None:
            pad = getattr(getattr(trainer, "processing_class", None), "pad_token_id", None)
            part["prompts"] = guard.call("the probe of prompts", digests_of_rollout, local, pad) or []
            part["responses"] = guard.call("the probe of responses", responses_of_rollout, local) or ([], [])
        parts = [one for one in processes.gathered(part) if one]
        if not parts:
            return {}
        prompts = [one for part in parts for one in part.pop("prompts")]
        responses = describe_responses([part.pop("responses") for part in parts])
        if wanted and local is not None and trainer is not None:
            texts = guard.call("the probe of samples", texts_of, local, trainer, wanted) or []
            event.extra["samples"] = [_short(text) for text in texts]
        event.extra["response_data"] = guard.call("the probe of lengths", pairs_of, parts) or []
        found = guard.call("the statistics of the rollout", reduce_rollouts, parts) or {}
        if "rollout_length_mean" in found and local is not None:
            count = found["rollout_buffer_pos"]
            event.data_slice = {"tokens_out": round(found["rollout_length_mean"] * count)}
            event.data_slice["tokens_in"] = round(int(local["context_length"]) * count)
        return found | responses | self._count_prompts(prompts)

    def _group(self, event: Event, wanted: int) -> dict[str, float]:
        found, records = group_statistics(self.session.trainer())
        event.extra["response_data"] = records
        if wanted:
            event.extra["samples"] = [_short(record) for record in records[:wanted]]
        return found

    def _completions(self) -> dict[str, float]:
        """Lengths and variety of the completions of all processes: each sends its own, even if its probe has failed."""
        guard, trainer = self.session.guard, self.session.trainer()
        lengths = guard.call("the probe of lengths", completion_lengths, trainer) or []
        own = guard.call("the probe of responses", responses_of_group, trainer) or ([], [])
        parts = processes.gathered((lengths, own))
        every = [length for part, _ in parts for length in part]
        found = {"rollout_length_std": statistics.stdev(every)} if len(every) > 1 else {}
        return found | describe_responses(sample for _, sample in parts)

    def step_ended(self) -> None:
        """The trainer has ended a step; the time between steps does not count."""
        self._steps.append(time.perf_counter() - self._began)

    def step_began(self) -> None:
        """The trainer begins a step."""
        self._began = time.perf_counter()

    def _times(self, event: Event) -> dict[str, float]:
        """The time of a step. In PPO also that of the updates, extrapolated from the optimizer steps; the rest is generation."""
        steps, self._steps = self._steps, []
        before, self._before = self._before, time.perf_counter()
        took = sum(steps) / len(steps) if steps else self._before - before
        found = {"step_time": took} if steps or self.session.is_ppo else {}
        tokens = event.data_slice.get("tokens_out", math.nan)
        if "num_tokens" in event.metrics:
            seen, self._tokens = self._tokens, event.metrics["num_tokens"]
            tokens = (self._tokens - seen) / max(1, len(steps))
        if found and tokens == tokens and took > 0:
            found["tokens_per_second"] = tokens / took
        updates = self.session.gradients.times if self.session.gradients is not None else []
        if self.session.is_ppo and len(updates) > 1:
            updating = min((updates[-1] - updates[0]) * len(updates) / (len(updates) - 1), took)
            found |= {"update_time": updating, "generation_time": took - updating}
        return found


def _short(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[:_MAX_TEXT] if isinstance(value, str) else value for name, value in record.items()}
