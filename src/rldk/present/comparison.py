"""A comparison of runs as pages and notebooks show it: where they part, what differs in their settings, where each ended."""

from __future__ import annotations

from math import isnan

from markupsafe import Markup

from rldk.comparison.compare import Comparison
from rldk.comparison.grouping import shown_value
from rldk.core.text import clean, short_number
from rldk.present.html import Table, badge, part, text
from rldk.present.notebook import framed

__all__ = ["comparison_html", "comparison_pieces", "ends_rows", "level_words", "settings_rows"]


def level_words(level: tuple[float, float] | None) -> str:
    """Where a metric ended: `0.81`, for a group of seeds `0.81 ± 0.02`."""
    if level is None:
        return "–"
    mean, spread = level
    return short_number(mean) if isnan(spread) else f"{short_number(mean)} ± {short_number(spread, 2)}"


def settings_rows(found: Comparison) -> list[list[str]]:
    """A row for each setting that differs."""
    return [[clean(one.name, 60), *(clean(shown_value(value), 60) for value in one.values)] for one in found.settings]


def ends_rows(found: Comparison) -> list[list[str]]:
    """A row for each metric: where it ended in each group."""
    return [[metric, *map(level_words, levels)] for metric, levels in found.ends()]


def comparison_pieces(found: Comparison) -> Markup:
    """Where the groups part, what differs in their settings, and where each ended."""
    names = [clean(group.name, 40) for group in found.groups]
    lines = [*found.sentences(), *found.notes()]
    said = Markup("").join(Markup("<p>{}</p>").format(text(line, 800)) for line in lines)
    settings = Table("Settings that differ", ("setting", *names), settings_rows(found))
    ends = Table("Where each ended", ("metric", *names), ends_rows(found), range(1, len(names) + 1))
    made = said
    if settings.rows:
        made += Markup("<h4>Settings that differ</h4>") + part("table", settings)
    return made + Markup("<h4>Where each ended</h4>") + part("table", ends)


def comparison_html(found: Comparison) -> Markup:
    """The whole comparison for a notebook."""
    verdicts = Markup(" ").join(Markup("{} {}").format(badge(group.verdict), text(group.name, 60)) for group in found.groups)
    return framed(Markup("<p>{}</p>").format(verdicts) + comparison_pieces(found))
