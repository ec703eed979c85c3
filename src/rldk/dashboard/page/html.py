"""HTML for what Streamlit does not draw: pieces from templates, messages, tables, and the style sheet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import streamlit as st
from markupsafe import Markup

from rldk.core.text import ago, counted
from rldk.present.html import Table, templates, text
from rldk.present.incidents import last_good, may_also_be, recovered
from rldk.present.palette import DARK, LIGHT

__all__ = ["asset", "facts", "lines", "message", "note", "piece", "show", "style", "table"]


@cache
def _environment() -> Any:
    environment = templates("rldk.dashboard.page").overlay()
    environment.filters.update(ago=ago, counted=counted)
    environment.globals.update(recovered=recovered, last_good=last_good, may_also_be=may_also_be)
    return environment


def piece(name: str, *arguments: Any, template: str = "pieces.html") -> Markup:
    """A macro of a template, filled with these arguments."""
    return Markup(getattr(_environment().get_template(template).module, name)(*arguments))


def lines(value: str, max_length: int = 4000) -> Markup:
    """A longer text from a log, cut and escaped, with its line breaks."""
    return Markup("\n").join(text(line, max_length) for line in value[:max_length].split("\n"))


def show(inside: Markup, kind: str = "", **data: str) -> None:
    """Put HTML on the page; `kind` names it for the style sheets, and for tests."""
    marks = {"rldk": kind, **data} if kind else data
    attributes = Markup("").join(Markup(' data-{}="{}"').format(name, value) for name, value in marks.items())
    st.html(Markup('<div class="rldk"{}>{}</div>').format(attributes, inside))


def message(sentence: str) -> None:
    """A message in place of a run that cannot be shown."""
    show(Markup('<div class="note">{}</div>').format(text(sentence, 1200)), "message")


def note(sentence: str) -> None:
    """A remark among other parts of the page, such as that there is nothing to draw."""
    show(Markup('<div class="note soft">{}</div>').format(text(sentence)))


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> None:
    """A table that scrolls; the columns in `numbers` are aligned to the right."""
    show(piece("table", Table(caption, headings, rows, numbers), template="parts.html"))


def facts(rows: Sequence[Sequence[str]]) -> None:
    """Names with their values, in as many columns as there is room for."""
    show(piece("facts", rows))


@cache
def asset(name: str) -> str:
    """A style sheet or a script of the page."""
    return (files("rldk.dashboard.page") / "templates" / name).read_text(encoding="utf-8")


def style(dark: bool) -> str:
    """The style sheet, in the colours of the plots."""
    palette = DARK if dark else LIGHT
    return f"<style>:root{{{palette.variables()}}}{asset('page.css')}</style>"
