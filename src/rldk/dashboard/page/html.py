"""Pieces of HTML for what Streamlit does not draw: escaped text, messages, tables, and their style sheet."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence

import streamlit as st

from rldk.core.text import clean
from rldk.present.palette import DARK, LIGHT

__all__ = ["RULES", "facts", "message", "note", "safe", "safe_lines", "show", "style", "table"]


def safe(text: object, max_length: int = 400) -> str:
    """Text from a log, cut and escaped, so that it can only be text on the page."""
    return html.escape(clean(text, max_length), quote=True)


def safe_lines(text: str, max_length: int = 4000) -> str:
    """A longer text, with its line breaks."""
    return "\n".join(safe(line, max_length) for line in text[:max_length].split("\n"))


def show(inside: str, kind: str = "") -> None:
    """Put HTML on the page; `kind` names it for the style sheet of the first picture, and for tests."""
    mark = f' data-rldk="{kind}"' if kind else ""
    st.html(f'<div class="rldk"{mark}>{inside}</div>')


def message(sentence: str) -> None:
    """A message in place of a run that cannot be shown."""
    show(f'<div class="note">{safe(sentence, 1200)}</div>', "message")


def note(sentence: str) -> None:
    """A remark among other parts of the page, such as that there is nothing to draw."""
    show(f'<div class="note soft">{safe(sentence)}</div>')


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> None:
    """A table that scrolls by itself; the columns in `numbers` are aligned to the right."""

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag}{" class=n" if place in numbers else ""}>{safe(cell, 600)}</{tag}>' for place, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    show(
        f'<div class="wide" tabindex="0"><table><thead><tr>{cells(head, "th")}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def facts(rows: Sequence[Sequence[str]]) -> None:
    """Names with their values, in as many columns as there is room for."""
    body = "".join(f"<div><span>{safe(name)}</span><b>{safe(value)}</b></div>" for name, value in rows)
    show(f'<div class="facts">{body}</div>')


def style(dark: bool) -> str:
    """The style sheet, in the colours of the plots."""
    palette = DARK if dark else LIGHT
    return f"<style>:root{{{palette.variables()}}}{RULES}</style>"


RULES = """
.block-container, [data-testid="stMainBlockContainer"] { padding-top: 3.75rem; padding-bottom: 3rem; max-width: 1500px; }
[data-testid="stSidebarUserContent"] { padding-top: 0.5rem; }
.rldk { font-size: 0.95rem; line-height: 1.5; color: var(--rldk-ink); overflow-wrap: anywhere; }
.rldk h1 { font-size: 1.55rem; line-height: 1.25; margin: 0; padding: 0; font-weight: 650; letter-spacing: -0.01em; }
.rldk h2 { font-size: 1.05rem; margin: 0 0 0.25rem; padding: 0; font-weight: 650; }
.rldk p { margin: 0.2rem 0; }
.rldk .soft { color: var(--rldk-soft); }
.rldk .row { display: flex; flex-wrap: wrap; gap: 0.4rem 0.9rem; align-items: center; }
.rldk .badge { font-size: 0.75rem; font-weight: 700; letter-spacing: 0.05em; text-transform: uppercase; padding: 0.12rem 0.55rem;
  border-radius: 999px; border: 1px solid currentColor; white-space: nowrap; }
.rldk .flag { display: inline-block; min-width: 1.5em; line-height: 1.5; border-radius: 999px; text-align: center;
  font-size: 0.8rem; padding: 0 0.35em; }
.rldk .critical { color: var(--rldk-critical); } .rldk .warning { color: var(--rldk-warning); }
.rldk .healthy { color: var(--rldk-good); } .rldk .no_data { color: var(--rldk-soft); }
.rldk .dot { display: inline-block; width: 0.6em; height: 0.6em; border-radius: 50%; background: currentColor;
  margin-right: 0.4em; }
.rldk .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(5rem, 1fr)); gap: 0.5rem;
  margin: 0.6rem 0 0; }
.rldk .tile { border: 1px solid var(--rldk-grid); border-radius: 0.6rem; padding: 0.45rem 0.5rem; }
.rldk .tile b { display: block; font-size: 1.25rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.rldk .tile span { font-size: 0.76rem; color: var(--rldk-soft); display: block; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }
.rldk .bar { height: 4px; border-radius: 2px; background: var(--rldk-grid); margin-top: 0.35rem; overflow: hidden; }
.rldk .bar i { display: block; height: 100%; background: currentColor; }
.rldk .card { border: 1px solid var(--rldk-grid); border-left: 4px solid currentColor; border-radius: 0.5rem;
  padding: 0.7rem 1rem; margin: 0.5rem 0; }
.rldk .card > * { color: var(--rldk-ink); } .rldk .card .soft { color: var(--rldk-soft); }
.rldk .card .badge.critical { color: var(--rldk-critical); } .rldk .card .badge.warning { color: var(--rldk-warning); }
.rldk .card .flag.critical { background: var(--rldk-critical); color: var(--rldk-paper); }
.rldk .card .flag.warning { background: var(--rldk-warning); color: var(--rldk-paper); }
.rldk .card ul { margin: 0.3rem 0 0.3rem 1.1rem; padding: 0; }
.rldk .card li { margin: 0.15rem 0; font-size: 0.92rem; }
.rldk table { border-collapse: collapse; width: 100%; font-size: 0.88rem; margin: 0; }
.rldk .wide { overflow-x: auto; max-height: 28rem; overflow-y: auto; border: 1px solid var(--rldk-grid); border-radius: 0.5rem; }
.rldk th, .rldk td { text-align: left; padding: 0.3rem 0.7rem; border: 0; vertical-align: top;
  overflow-wrap: break-word; max-width: 34rem;
  border-bottom: 1px solid var(--rldk-grid); }
.rldk th { font-weight: 600; color: var(--rldk-soft); position: sticky; top: 0; background: var(--rldk-paper);
  white-space: nowrap; }
.rldk td.n, .rldk th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.rldk .facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 0 1.6rem; }
.rldk .facts div { display: flex; justify-content: space-between; gap: 1rem; padding: 0.18rem 0;
  border-bottom: 1px solid var(--rldk-grid); font-size: 0.88rem; }
.rldk .facts span { color: var(--rldk-soft); } .rldk .facts b { font-weight: 600; font-variant-numeric: tabular-nums; }
.rldk pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.86rem; margin: 0.3rem 0; padding: 0.6rem 0.8rem;
  border-radius: 0.4rem; background: color-mix(in srgb, var(--rldk-grid) 45%, transparent); color: var(--rldk-ink);
  max-height: 22rem; overflow-y: auto; border: 0; }
.rldk .note { border: 1px dashed var(--rldk-grid); border-radius: 0.5rem; padding: 0.6rem 0.9rem; margin: 0.4rem 0; }
.rldk code { background: color-mix(in srgb, var(--rldk-grid) 55%, transparent); color: var(--rldk-ink); padding: 0.05rem 0.3rem;
  border-radius: 0.25rem; }
@media (max-width: 640px) {
  .rldk h1 { font-size: 1.25rem; } .rldk .tiles { grid-template-columns: repeat(3, 1fr); }
  [data-testid="stMainBlockContainer"] { padding-left: 0.8rem; padding-right: 0.8rem; }
}
"""
