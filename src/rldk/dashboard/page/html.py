"""HTML for what Streamlit does not draw: pieces from templates, messages, tables, and the style sheet."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import streamlit as st
from markupsafe import Markup

from rldk.core.text import ago, counted
from rldk.dashboard.client import ReaderEnded
from rldk.present.html import Table, asset, part, templates, text
from rldk.present.palette import DARK, LIGHT

__all__ = ["errors_as_messages", "lines", "message", "note", "piece", "rules", "show", "style", "table"]

_log = logging.getLogger("rldk")


@cache
def _environment() -> Any:
    environment = templates("rldk.dashboard.page").overlay()
    environment.filters.update(ago=ago, counted=counted)
    return environment


def piece(name: str, *arguments: Any) -> Markup:
    """A macro of `pieces.html`, filled with these arguments."""
    return Markup(getattr(_environment().get_template("pieces.html").module, name)(*arguments))


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


@contextmanager
def errors_as_messages(what: str) -> Iterator[None]:
    """Draw a part of the page: no error in it may break the rest."""
    try:
        yield
    except ReaderEnded as error:
        message(str(error))
    except Exception as error:
        if type(error).__module__.startswith("streamlit"):  # Streamlit restarts the script by an exception
            raise
        _log.exception("The dashboard could not draw %s", what)
        message(f"This part of the page cannot be drawn ({type(error).__name__}). See the terminal of the dashboard for details.")


def note(sentence: str) -> None:
    """A remark among other parts of the page, such as that there is nothing to draw."""
    show(Markup('<div class="note soft">{}</div>').format(text(sentence)))


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> None:
    """A table that scrolls; the columns in `numbers` are aligned to the right."""
    show(part("table", Table(caption, headings, rows, numbers)))


@cache
def rules() -> str:
    """The style sheet of the shared pieces, nested in our class, and our own."""
    return f".rldk {{ {asset('rldk.present', 'parts.css')} }} {asset('rldk.dashboard.page', 'page.css')}"


def style(dark: bool) -> str:
    """The style sheet, in the colours of the plots."""
    palette = DARK if dark else LIGHT
    return f"<style>:root{{{palette.variables()}}}{rules()}</style>"
