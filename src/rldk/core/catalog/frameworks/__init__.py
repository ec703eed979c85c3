"""One file per framework: what it calls the canonical metrics, which other keys identify it, and the quirks of its logs.

To add keys, edit its file; to add a framework, write such a file and give it a line in the table below. The files are in `core`
and not beside the readers of logs because live events are put into canonical terms by the same tables.
"""

from __future__ import annotations

from rldk.core.catalog.frameworks.areal import AREAL
from rldk.core.catalog.frameworks.art import ART
from rldk.core.catalog.frameworks.baselines import BASELINES
from rldk.core.catalog.frameworks.cleanrl import CLEANRL
from rldk.core.catalog.frameworks.deepspeed_chat import DEEPSPEED_CHAT
from rldk.core.catalog.frameworks.llama_factory import LLAMA_FACTORY
from rldk.core.catalog.frameworks.minimind import MINIMIND
from rldk.core.catalog.frameworks.ms_swift import MS_SWIFT
from rldk.core.catalog.frameworks.nemo_rl import NEMO_RL
from rldk.core.catalog.frameworks.openrlhf import OPENRLHF
from rldk.core.catalog.frameworks.prime_rl import PRIME_RL
from rldk.core.catalog.frameworks.rldk import RLDK
from rldk.core.catalog.frameworks.roll import ROLL
from rldk.core.catalog.frameworks.sb3 import SB3
from rldk.core.catalog.frameworks.skyrl import SKYRL
from rldk.core.catalog.frameworks.slime import SLIME
from rldk.core.catalog.frameworks.tinker import TINKER
from rldk.core.catalog.frameworks.torchtune import TORCHTUNE
from rldk.core.catalog.frameworks.trainer import TRAINER
from rldk.core.catalog.frameworks.trl import TRL_DPO, TRL_GRPO, TRL_OLD, TRL_PPO
from rldk.core.catalog.frameworks.verl import VERL
from rldk.core.catalog.metric import Framework

__all__ = ["FRAMEWORKS"]

FRAMEWORKS: dict[str, Framework] = {
    framework.name: framework
    for framework in (
        RLDK, TRAINER, TRL_PPO, TRL_GRPO, TRL_DPO, TRL_OLD, VERL, OPENRLHF, NEMO_RL, AREAL, MS_SWIFT, SLIME, PRIME_RL, TINKER,
        SKYRL, ROLL, ART, TORCHTUNE, MINIMIND, LLAMA_FACTORY, DEEPSPEED_CHAT, CLEANRL, SB3, BASELINES,
    )
}
"""By name. Where two claim the same key, the one that stands first counts."""
