"""Tables of text and numbers, as plain HTML: quick to draw, and what a log says stays text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from rldk.dashboard.page.words import safe

__all__ = ["facts", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> None:
    """A table that scrolls within itself; the columns in `numbers` stand to the right."""

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag}{" class=n" if place in numbers else ""}>{safe(cell, 600)}</{tag}>' for place, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    st.html(
        f'<div class="rldk"><div class="wide" tabindex="0"><table><thead><tr>{cells(head, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></div>"
    )


def facts(rows: Sequence[Sequence[str]]) -> None:
    """Names with their values, in as many columns as there is room for."""
    body = "".join(f"<div><span>{safe(name)}</span><b>{safe(value)}</b></div>" for name, value in rows)
    st.html(f'<div class="rldk"><div class="facts">{body}</div></div>')
