"""Python dicts as they are printed, read without running anything: `{'loss': 0.1, 'kl': np.float64(0.2), 'lr': nan}`.

Dicts that a console prints over several lines, as `pprint` and `json.dumps(..., indent=2)` do, become one line each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rldk.ingest.formats.console import plain_line

__all__ = ["has_spread_dicts", "joined", "parse_dict"]

_decode = msgspec.json.Decoder().decode
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_WRAPPED = re.compile(
    rb"\b(?:np|numpy|torch)\.\w+\(([^(),]*)\)|\btensor\(([^(),]*)(?:, (?:device|dtype|grad_fn)=[^()]*)?\)"
)
_WORDS = ((b": nan", b': "nan"'), (b": inf", b': "inf"'), (b": -inf", b': "-inf"'), (b": None", b": null"),
          (b": True", b": true"), (b": False", b": false"))  # fmt: skip
_LEXEME = re.compile(
    r"""\s*(?:
        (?P<string>[bru]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
      | (?P<number>[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|inf|nan)(?![\w.]))
      | (?P<name>[a-z_][\w.]*)
      | (?P<mark>[][{}(),:=])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_NAMES = {"None": None, "True": True, "False": False, "null": None, "true": True, "false": False}
_MAX_DEPTH = 16
_MAX_CHARS = 1 << 16
_CLOSING = {"{": "}", "[": "]", "(": ")"}


def parse_dict(line: bytes, start: int) -> tuple[dict[str, Any], int] | None:
    """The dict that begins at `start`, and where it ends; `None` if what is there is not a complete dict of plain values.

    Almost every such dict is JSON except for its quotes and a few words, and is read as JSON; a text with quotes or
    backslashes of its own goes to the careful reader.
    """
    end = line.find(b"}", start, start + _MAX_CHARS) + 1
    if not end:
        return None
    text = line[start:end]
    if b"\\" not in text and b'"' not in text:
        try:
            return _decode(_as_json(text)), end
        except _NOT_JSON:
            pass
        try:
            return _decode(_in_words(text.replace(b"'", b'"'))), end
        except _NOT_JSON:
            pass
    reader = _Reader(line[start : start + _MAX_CHARS].decode("utf-8", "replace"))
    found = reader.read()
    return None if found is None else (found, start + len(reader.text[: reader.position].encode("utf-8", "replace")))


def _as_json(text: bytes) -> bytes:
    """The dict with the quotes of JSON; where numbers stand in quotes, as newer trainers print them, without those."""
    if b"': '" not in text:
        return text.replace(b"'", b'"')
    text = text.replace(b"{'", b'{"').replace(b"': '", b'": ').replace(b"', '", b', "').replace(b"'}", b"}")
    return _in_words(text)


def _in_words(text: bytes) -> bytes:
    """Python's words for numbers that JSON has none for, as texts; and numbers out of `np.float64(…)`."""
    if b"(" in text:
        text = _WRAPPED.sub(rb"\1\2", text)
    for word, token in _WORDS:
        text = text.replace(word, token)
    return text


class _Reader:
    """Reads a literal lexeme by lexeme; anything that is not a literal ends it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def read(self) -> dict[str, Any] | None:
        try:
            value = self._value(0)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def _next(self) -> tuple[str, str]:
        match = _LEXEME.match(self.text, self.position)
        if match is None or match.lastgroup is None:
            raise ValueError("not a literal")
        self.position = match.end()
        return match.lastgroup, match.group(match.lastgroup)

    def _value(self, depth: int, first: tuple[str, str] | None = None) -> Any:
        kind, lexeme = first or self._next()
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        if kind == "string":
            return _unquote(lexeme)
        if kind == "number":
            return float(lexeme)
        if kind == "name":
            return _NAMES[lexeme] if lexeme in _NAMES else self._call(depth)
        if lexeme == "{":
            return self._dict(depth)
        if lexeme in _CLOSING:
            return self._list(_CLOSING[lexeme], depth)
        raise ValueError(f"unexpected {lexeme}")

    def _dict(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (lexeme := self._next())[1] != "}":
            if lexeme[1] == ",":
                continue
            key = self._value(depth + 1, lexeme)
            if self._next()[1] != ":" or isinstance(key, (dict, list)):
                raise ValueError("not a dict")
            found[str(key)] = self._value(depth + 1)
        return found

    def _list(self, closing: str, depth: int) -> list[Any]:
        found = []
        while (lexeme := self._next())[1] != closing:
            if lexeme != ("mark", ","):
                found.append(self._value(depth + 1, lexeme))
        return found

    def _call(self, depth: int) -> Any:
        """`np.float64(0.1)` and `tensor(0.1, device='cuda:0')` stand for their first argument."""
        if self._next()[1] != "(":
            raise ValueError("a name")
        argument = self._value(depth + 1)
        while (lexeme := self._next())[1] != ")":
            if lexeme[1] in _CLOSING:
                self._value(depth + 1, lexeme)
        return argument


def _unquote(text: str) -> str:
    body = text.lstrip("bruBRU")[1:-1]
    return re.sub(r"\\(.)", r"\1", body) if "\\" in body else body


_BEGINS = re.compile(rb"""\{[ \t\r]*\n[^\n]*?["'][^"'\n]{1,200}["']: |\{["'][^"'\n]{1,200}["']: [^\n{}]*,[ \t\r]*\n""")
_OPENS = re.compile(rb"""\{(?:["'][^"']{1,200}["']: [^{}]*,)?$""")
_GOES_ON = re.compile(rb"""(?:["'][^"']{1,200}["']: [^{}]*)?(\}.*)?""")
_PREFIX = re.compile(rb"^\([^()]{0,200}pid=\d{1,20}[^()]{0,200}\)")
_MOST_LINES = 1000
_MOST_BYTES = 1 << 16  # of a line within a dict

Lines = Iterable[tuple[int, bytes]]


def has_spread_dicts(text: bytes) -> bool:
    """Whether a dict begins on one line and goes on with a key on the next."""
    return _BEGINS.search(text) is not None


def joined(lines: Lines) -> Iterator[tuple[int, bytes]]:
    """The lines, with those of one dict as one, which has the number of the first.

    Prefixes that Ray puts before each line are left out within a dict. Where a line does not belong to the dict that has
    begun, or the dict has no end, all lines stay as they are.
    """
    held: list[tuple[int, bytes]] = []
    for number, raw in lines:
        line = plain_line(raw)
        part = _PREFIX.sub(b"", line).strip() if len(line) <= _MOST_BYTES else b""
        if held and part and len(held) < _MOST_LINES and (match := _GOES_ON.fullmatch(part)):
            held.append((number, part))
            if match[1] is not None:
                yield held[0][0], b" ".join(text for _, text in held)
                held = []
            continue
        yield from held
        held = [(number, line.rstrip())] if part and _OPENS.search(part) else []
        if not held:
            yield number, line
    yield from held
