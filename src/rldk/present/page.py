"""A page of headings with lines below each: text for a terminal, HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from rldk.present.html import text

__all__ = ["Page"]


class Page:
    """Base of what `rldk explain` shows; a page has `parts`."""

    __slots__ = ()

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """The page as headings and what stands below each."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n\n".join("\n".join([heading, *lines]) for heading, lines in self.parts())

    def _repr_html_(self) -> str:
        made = Markup("")
        for number, (heading, lines) in enumerate(self.parts()):
            tag = Markup("h3" if number == 0 else "h4")
            made += Markup("<{0}>{1}</{0}>").format(tag, text(heading))
            made += Markup("").join(Markup("<p>{}</p>").format(text(line, 4000)) for line in lines)
        return str(made)
