"""HTML for pages: templates that escape by themselves, so that text from a log is shown as text and does nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rldk.core.text import clean, in_words, sentence
from rldk.present.incidents import accepted, last_good, may_also_be, recovered
from rldk.present.verdicts import verdict_words

__all__ = ["TICKS", "Table", "asset", "badge", "code", "part", "templates", "text", "with_code"]

_MAX_TEXT = 800
TICKS = re.compile(r"`([^`]{1,120})`")
"""A name between backticks, as advice has it."""


def text(value: object, most: int = 400) -> Markup:
    """Text of any origin as a page may hold it: cut, without control characters, and escaped."""
    return escape(clean(value, most))


def code(value: object, most: int = 120) -> Markup:
    """A name from a log, set as code."""
    return Markup("<code>{}</code>").format(text(value, most))


def with_code(value: object) -> Markup:
    """A sentence with the names that stand between backticks set as code; all of it is escaped."""
    return Markup(TICKS.sub(r"<code>\1</code>", str(text(value, _MAX_TEXT))))


def badge(verdict: str) -> Markup:
    """A verdict or a severity as a coloured word."""
    return Markup('<span class="badge {}">{}</span>').format(text(verdict, 40), text(verdict_words(verdict), 40))


@dataclass(frozen=True, slots=True)
class Table:
    """A table for `table` of `parts.html`. A cell that is not `Markup` is escaped; the columns in `numbers` are aligned right."""

    caption: str
    headings: Sequence[str]
    rows: Iterable[Sequence[object]]
    numbers: Collection[int] = ()


def part(name: str, *arguments: Any) -> Markup:
    """A macro of `parts.html` with these arguments, for a page that is not a template of ours."""
    return Markup(getattr(templates("rldk.present").get_template("parts.html").module, name)(*arguments))


def asset(package: str, name: str) -> Markup:
    """A style sheet or a script from the templates of a package."""
    return Markup((files(package) / "templates" / name).read_text(encoding="utf-8"))


@cache
def templates(package: str) -> Environment:
    """The templates of a package, with the shared pieces of `present/templates` beside them.

    Whatever a template prints is cleaned and escaped, unless it is `Markup`. A text has at most 800 characters, and fewer
    with `|cut(n)`.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("rldk.present")]),
        autoescape=True, finalize=_cleaned, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(cut=clean, words=in_words, sentence=sentence, code=code, with_code=with_code)
    words = {"recovered": recovered, "last_good": last_good, "may_also_be": may_also_be, "accepted": accepted}
    environment.globals.update(badge=badge, **words)
    return environment


def _cleaned(value: Any) -> Any:
    return value if isinstance(value, Markup) else clean(value, _MAX_TEXT)
