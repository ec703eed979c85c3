"""The report as a short Markdown summary, for a pull request or a chat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rldk.core.text import clean, counted, in_words, sentence, short_number
from rldk.core.verdicts import worst_of
from rldk.present.html import TICKS
from rldk.present.incidents import accepted, last_good, may_also_be, recovered
from rldk.present.verdicts import MAIN_SCORES, counts_in_words, verdict_words
from rldk.report.case import Case, NotJudged
from rldk.report.entry import Row

__all__ = ["markdown"]

_VALUES = ("reward_mean", "kl_mean", "entropy_mean", "rollout_length_mean")


def markdown(
    cases: Sequence[Case], passed_over: Sequence[NotJudged] = (), pictures: Sequence[str] = (), others: Sequence[Row] = ()
) -> str:
    """A table of the runs, and one paragraph per incident. `pictures` are paths of images to show at the end.

    `others` are rows of runs that are only counted.
    """
    if not cases:
        lines = ["## rldk: no run could be read", ""]
        return "\n".join([*lines, *(f"- {_code(path)}: {_words(reason)}" for path, reason in passed_over[:20])]) + "\n"
    worst = worst_of(case.judgement.verdict for case in cases)
    lines = [f"## rldk: {verdict_words(worst)}", "", *_table(cases)]
    for case in cases:
        lines += _incidents(case, named=len(cases) > 1)
        lines += _coverage(case, named=len(cases) > 1)
    if others:
        counts = counts_in_words(Counter(row["verdict"] for row in others), ", ")
        lines += ["", f"And {counted(len(others), 'more run')}: {counts}."]
    if not any(case.judgement.incidents for case in cases):
        lines += ["", "Nothing found." if worst == "healthy" else "There is too little to judge by."]
    for path, reason in passed_over[:20]:
        lines += ["", f"Not judged: {_code(path)}: {_words(reason)}"]
    lines += ["", *(f"![{_words(path.rpartition('/')[2].removesuffix('.png'))}]({_link(path)})" for path in pictures)]
    return "\n".join(lines).rstrip() + "\n"


def _table(cases: Sequence[Case]) -> list[str]:
    values = [name for name in _VALUES if any(case.last(name) is not None for case in cases)]
    headings = ["run", "verdict", "events", *map(in_words, MAIN_SCORES), *(f"last `{name}`" for name in values)]
    rows = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for case in cases:
        judged = case.judgement
        scores = [f"{judged.scores[name]:.2f}" if name in judged.scores else "" for name in MAIN_SCORES]
        last = ["" if (value := case.last(name)) is None else short_number(value) for name in values]
        verdict = "**critical**" if judged.verdict == "critical" else verdict_words(judged.verdict)
        verdict += " (acknowledged)" if judged.open_verdict != judged.verdict else ""
        rows.append(f"| {' | '.join([_code(judged.run.run_id, 60), verdict, str(len(judged.run)), *scores, *last])} |")
    return rows


def _incidents(case: Case, named: bool) -> list[str]:
    lines = []
    for found in case.judgement.incidents:
        where = f" of {_code(case.judgement.run.run_id, 60)}" if named else ""
        known = " (acknowledged)" if case.judgement.acknowledgement_of(found) else ""
        title = f"{_words(sentence(found.title))}: {found.severity} at step {found.step}{recovered(found)}{where}{known}"
        lines += ["", f"### {title}", ""]
        for heading, reason in accepted(found, case.judgement):
            lines += [f"**{heading}:** {_words(reason, 300)}", ""]
        for moment in case.story(found):
            first = " (moved first)" if moment.first else ""
            lines.append(f"- from step {moment.began}{first}: {_words(moment.anomaly.message)}")
        lines += ["", f"**What to do:** {_with_code(found.advice)} Last good step: {last_good(found)}."]
        if found.rivals:
            lines.append(f"It may also be: {may_also_be(found)}.")
    return lines


def _coverage(case: Case, named: bool) -> list[str]:
    """Coverage, and findings about the machine."""
    judged = case.judgement
    where = f" of {_code(judged.run.run_id, 60)}" if named else ""
    lines = ["", f"Coverage{where} is {judged.coverage.level}: {_words(judged.coverage.sentence)}."]
    lines += [f"- Machine, step {one.step}: {_words(one.message)}" for one in judged.machine[:10]]
    return lines


def _code(value: object, most: int = 120) -> str:
    """Text from a log as code, in which nothing is markup, a link or a mention."""
    kept = clean(value, most).replace("`", "'").replace("|", "\\|").strip()
    return f"`{kept or ' '}`"


def _words(value: object, most: int = 400) -> str:
    """A sentence in which everything that could be markup, a link or a mention is escaped."""
    kept = clean(value, most)
    for sign in "\\`*_[]<>|#":
        kept = kept.replace(sign, f"\\{sign}")
    return kept.replace("@", "@\u200b").replace("http", "http\u200b")


def _with_code(advice: str) -> str:
    """Advice with the names that stand between backticks set as code; everything else is escaped."""
    parts = TICKS.split(clean(advice, 800))
    return "".join(_code(part) if number % 2 else _words(part, 800) for number, part in enumerate(parts))


def _link(path: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "/._-" else f"%{ord(sign):02X}" for sign in path)
