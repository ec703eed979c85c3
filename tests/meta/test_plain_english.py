"""What people read is plain technical English: phrases that readers stumbled over do not come back.

The list below is the one place for them. Each pattern has the plain alternative, which a failure prints. The strings, docstrings
and comments of the code are searched, and the pages; `docs/contributing.md` explains the idea.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNTED = (
    r"nats|rows?|lines?|paragraphs?|events?|tokens|samples|responses|values?|points?|numbers?|curves?|metrics?|episodes?|incidents?"
)
UNITS = r"token|step|run|checkpoint|row|response|prompt|sequence|second|line|file|metric|event|incident|paragraph|epoch|batch"

TEXT = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
VERBS = r"(?:stands?|has|have|is|was|logs?|holds?|takes?|writes?|needs?|must|that)\b"

PLAIN: dict[str, str] = {
    rf"\b(?:{COUNTED}) an? (?:{UNITS})\b(?! {VERBS})": "per: `nats per token`",
    rf"\bone \w+ an? (?:{UNITS})\b": "one … per …",
    r"\b(?:time|cost|memory) an? (?:step|event|row)\b": "per step",
    r"\bby (?:token|response|sequence)\b(?! (?:or|and)\b)": "per token",
    r"\bfor want of\b": "is not logged, lacks",
    r"\bthat is none\b|\bwhich is none\b": "an unknown …",
    r"\bis not to be had\b|\bare not to be had\b|\bto be had\b": "is not available",
    r"\b(?:is|are|be|was|were) let be\b|\blet be\b": "is ignored",
    r"\btold apart\b|\btells? (?:\w+ ){0,3}apart\b|\btelling (?:\w+ ){0,3}apart\b": "distinguish, separate",
    r"\bcomes? to the same\b": "is equivalent",
    r"\ba step each\b|\ba line each\b|\ba row each\b": "one step each",
    r"\bat a time when\b": "while",
    r"\b(?:rows|steps|times|checks|values) on end\b": "consecutive rows",
    r"\bby right\b": "rightly",
    r"\bfrom which on\b": "from which",
    r"\banew\b": "again, new",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\btells? of\b|\btold of\b": "reports, describes",
    r"\bput down to\b": "attributed to",
    r"\bhalf again\b|\bhalf as (?:much|long|large|many) again\b": "1.5 times",
    r"\bnothing to show for\b": "has not improved",
    r"\b(?:come|comes|came) apart\b": "diverge, collapse",
    r"\bat a stroke\b": "suddenly",
    r"\ball but (?!one\b|the\b|two\b|three\b)": "nearly",
    r"\bgives? (?:it|them|itself) away\b|\bgive away\b": "identifies",
    r"\bto speak of\b": "(leave it out)",
    r"\bbut for\b": "except for",
    r"\b(?:hither|whence|thence|lest|betwixt|whereof|thereof|wherein|therein|heretofore)\b": "a modern word",
    r"\bLook again\b": "Refresh",
    r"\bno place for\b|\bnot placed\b|\bto place:": "unrecognised, map … with",
    r"\bis no log\b": "rldk cannot read …",
    r"\bleft out from here on\b": "has been disabled",
    r"\btraining goes on\b|\brun goes on\b": "training continues",
    r"\beverybody's\b|\bnobody's\b": "(name who)",
    r"\bwhere (?:it is|they are) there\b|\bthat are there\b|\bwhere there is one\b": "if it is logged, if it exists",
    r"\b(?:is|are|was|were) taken for\b": "counts as, is mistaken for",
    r"\b(?:is|are|was|were) taken back\b|\btakes? back\b|\btaking back\b": "is withdrawn, is removed",
    r"\bno wonder\b": "to be expected",
    r"\bas it were\b": "(leave it out)",
    r"\ball the same\b": "still, anyway",
    r"\blately\b": "recently",
    r"\bthe likelier\b": "the more likely",
    r"\bwhat it (?:stands|stood) at\b|\bstood at\b": "its value, was",
    r"\bis of no use\b": "is useless",
    r"\bsays? nothing of\b": "does not describe",
    r"\bso[- ]man(?:y-th|ieth)\b|\b(?:one|every) \w+ in so many\b": "every n-th",
}
"""Pattern (any case) and what to write instead."""

FOUND = {re.compile(pattern, re.IGNORECASE): plain for pattern, plain in PLAIN.items()}
PLACES = (("", "*.md"), ("docs", "**/*.md"), (".github", "**/*.*"))
PAGES = [page for folder, kind in PLACES for page in (ROOT / folder).glob(kind)]
CODE = [
    path
    for folder in ("src/rldk", "trainer", "examples", "benchmarks", "docs", "scripts", "tests/meta")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__)
]
OTHERS = [ROOT / "Makefile", ROOT / "pyproject.toml", *(ROOT / "scripts").glob("*.sh"), *(ROOT / "config").rglob("*.yaml")]


def texts(path: Path) -> list[tuple[int, str]]:
    """What people read of a file, with its line: of code the strings and comments, neighbouring ones joined as they are read."""
    if path.suffix != ".py":
        return [(number, line) for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)]
    found: list[tuple[int, str]] = []
    whole = False
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in TEXT:
            text = token.string.strip("rbfuRBFU").strip("\"'#")
            if whole:
                found[-1] = (found[-1][0], f"{found[-1][1]} {text}")
            else:
                found.append((token.start[0], text))
            whole = True
        elif token.type not in (tokenize.NL, tokenize.INDENT):
            whole = False
    return found


def stumbles(path: Path) -> list[str]:
    """The phrases of a file that are on the list, each with its place and what to write instead."""
    numbers, lines = [], []
    for number, text in texts(path):
        numbers.append(number)
        lines.append(" ".join(text.split()))
    whole = "\n".join(lines)  # no pattern goes on in another line
    return [
        f"{path.relative_to(ROOT)}:{numbers[whole.count(chr(10), 0, match.start())]}: `{match[0]}`: write “{plain}”"
        for pattern, plain in FOUND.items()
        for match in pattern.finditer(whole)
    ]


def test_everything_is_in_plain_english() -> None:
    assert [found for path in (*PAGES, *CODE, *OTHERS) for found in stumbles(path)] == []


def test_a_stumble_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "code.py").write_text('one = "well"\n\n# 0.3 nats\n# a token\ntwo = "all  but"\nthree = "this"\n')
    (tmp_path / "page.md").write_text("One.\nIt is\nlet be; runs are told apart.\n")
    assert stumbles(tmp_path / "code.py") == ["code.py:3: `nats a token`: write “per: `nats per token`”"]
    assert [found.split(": ")[0] for found in stumbles(tmp_path / "page.md")] == ["page.md:3", "page.md:3"]


@pytest.mark.parametrize(
    "text",
    ["0.3 nats a token", "not judged for want of entropy", "a NAME that is none lists them", "runs are told apart", "is let be"],
)
def test_a_stumble_is_found(text: str) -> None:
    assert any(pattern.search(text) for pattern in FOUND)


@pytest.mark.parametrize("text", ["0.3 nats per token", "the rows a run has", "all but one", "a line per run"])
def test_plain_text_passes(text: str) -> None:
    assert not any(pattern.search(text) for pattern in FOUND)
