"""The report in a few lines of Markdown, for a pull request or a chat."""

from __future__ import annotations

from collections.abc import Sequence

from rldk.core.text import clean, in_words, sentence, short_number
from rldk.present.incidents import last_good, may_also_be, recovered
from rldk.present.verdicts import MAIN_SCORES, VERDICTS, verdict_words
from rldk.report.case import Case, Passed

__all__ = ["markdown"]

_VALUES = ("reward_mean", "kl_mean", "entropy_mean", "rollout_length_mean")


def markdown(cases: Sequence[Case], passed_over: Sequence[Passed] = (), pictures: Sequence[str] = ()) -> str:
    """A summary: a table of the runs, and each incident in a paragraph. `pictures` are paths to put at its end."""
    if not cases:
        told = ["## rldk: no run could be read", ""]
        return "\n".join([*told, *(f"- {_code(path)}: {_words(reason)}" for path, reason in passed_over[:20])]) + "\n"
    worst = min(cases, key=lambda case: VERDICTS.index(case.judgement.verdict))
    told = [f"## rldk: {verdict_words(worst.judgement.verdict)}", "", *_table(cases)]
    for case in cases:
        told += _incidents(case, named=len(cases) > 1)
        told += _beside(case, named=len(cases) > 1)
    if not any(case.judgement.incidents for case in cases):
        told += ["", "Nothing found." if worst.judgement.verdict == "healthy" else "There was too little to judge by."]
    for path, reason in passed_over[:20]:
        told += ["", f"Not judged: {_code(path)}: {_words(reason)}"]
    told += ["", *(f"![{_words(path.rpartition('/')[2].removesuffix('.png'))}]({_link(path)})" for path in pictures)]
    return "\n".join(told).rstrip() + "\n"


def _table(cases: Sequence[Case]) -> list[str]:
    values = [name for name in _VALUES if any(case.last(name) is not None for case in cases)]
    headings = ["run", "verdict", "events", *map(in_words, MAIN_SCORES), *(f"last `{name}`" for name in values)]
    rows = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for case in cases:
        judged = case.judgement
        scores = [f"{judged.scores[name]:.2f}" if name in judged.scores else "" for name in MAIN_SCORES]
        last = ["" if (value := case.last(name)) is None else short_number(value) for name in values]
        verdict = "**critical**" if judged.verdict == "critical" else verdict_words(judged.verdict)
        rows.append(f"| {' | '.join([_code(judged.run.run_id, 60), verdict, str(len(judged.run)), *scores, *last])} |")
    return rows


def _incidents(case: Case, named: bool) -> list[str]:
    told = []
    for found in case.judgement.incidents:
        where = f" of {_code(case.judgement.run.run_id, 60)}" if named else ""
        told += ["", f"### {_words(sentence(found.title))}: {found.severity} at step {found.step}{recovered(found)}{where}", ""]
        for moment in case.story(found):
            first = " (moved first)" if moment.first else ""
            told.append(f"- from step {moment.began}{first}: {_words(moment.anomaly.message)}")
        told += ["", f"**What to do:** {_words(found.advice, 800)} Last good step: {last_good(found)}."]
        if found.rivals:
            told.append(f"It may also be: {may_also_be(found)}.")
    return told


def _beside(case: Case, named: bool) -> list[str]:
    """What stands beside the verdict: coverage, and findings about the machine."""
    judged = case.judgement
    where = f" of {_code(judged.run.run_id, 60)}" if named else ""
    told = ["", f"Coverage{where} is {judged.coverage.level}: {_words(judged.coverage.sentence)}."]
    told += [f"- Machine, step {one.step}: {_words(one.message)}" for one in judged.machine[:10]]
    return told


def _code(value: object, most: int = 120) -> str:
    """Text of a log as code: no markup, no link, no mention."""
    kept = clean(value, most).replace("`", "'").replace("|", "\\|").strip()
    return f"`{kept or ' '}`"


def _words(value: object, most: int = 400) -> str:
    """A sentence whose markup is harmless; what could be HTML, a link or a mention is set as plain signs."""
    kept = clean(value, most)
    for sign in "\\`*_[]<>|#":
        kept = kept.replace(sign, f"\\{sign}")
    return kept.replace("@", "@\u200b").replace("http", "http\u200b")


def _link(path: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "/._-" else f"%{ord(sign):02X}" for sign in path)
