"""Prompts and answers that were recorded, the latest first."""

from __future__ import annotations

import streamlit as st

from rldk.dashboard.page.context import Look
from rldk.dashboard.page.curves import nothing_to_draw
from rldk.dashboard.page.words import count, number, safe_lines

__all__ = ["draw_samples"]

_PAGE = 10


def draw_samples(look: Look) -> None:
    """Some samples, to leaf through and to search."""
    if not look.state.get("samples"):
        nothing_to_draw(
            "No sample was recorded. An event may hold them: samples: [{prompt, completion, reward}, …] beside its metrics."
        )
        return
    left, right = st.columns([3, 1])
    words = left.text_input("Search in prompts and answers", key="rldk_words", placeholder="Search in prompts and answers")
    page = int(right.number_input("Page", min_value=1, value=1, step=1, key="rldk_page"))
    asked = {"start": (page - 1) * _PAGE, "count": _PAGE, "words": words or ""}
    found = look.client.ask("samples", key=look.key, run=look.state.get("key_of_run"), **asked)
    total = int(found.get("total", 0))
    st.caption(f"{count(total)} samples, the latest first; page {page} of {max(1, -(-total // _PAGE))}")
    for sample in found.get("samples", ()):
        reward = "" if sample["reward"] is None else f"reward {number(sample['reward'])}"
        prompt = f'<p class="soft">Prompt</p><pre>{safe_lines(sample["prompt"])}</pre>' if sample["prompt"] else ""
        cut = '<p class="soft">Cut at 4000 characters.</p>' if sample["cut"] else ""
        st.html(
            f'<div class="rldk"><div class="card no_data" data-rldk="sample"><h2>step {count(sample["step"])}'
            f' <span class="soft">{reward}</span></h2>{prompt}<p class="soft">Answer</p>'
            f"<pre>{safe_lines(sample['answer'])}</pre>{cut}</div></div>"
        )
