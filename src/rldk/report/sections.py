"""The parts of a report about one run, each as a piece of HTML."""

from __future__ import annotations

from math import isnan

from rldk.core.text import in_words, sentence, short_number
from rldk.judge.incidents.incident import Incident
from rldk.judge.scores.alarms import tone_of
from rldk.present.incidents import last_good, may_also_be, recovered
from rldk.present.verdicts import MAIN_SCORES, at_worst
from rldk.report.case import Case
from rldk.report.checkpoints import SHOWN
from rldk.report.markup import badge, table, text

__all__ = [
    "anomalies", "checkpoints", "coverage", "incident", "machine", "scores", "settings", "verdict",
]  # fmt: skip

_PARTS_OF = {"training_stability": "training_stability_overall"}


def verdict(case: Case, level: str = "h1") -> str:
    """The first thing to read: is the run well, and if not, what is it, since when, and where was it still good."""
    judged = case.judgement
    worst = judged.worst
    if worst is not None:
        good = "" if worst.last_good_step is None else f" Last good step: <b>{worst.last_good_step}</b>."
        lead = f"<b>{text(sentence(worst.title))}</b>, first seen at step <b>{worst.step}</b>{recovered(worst)}.{good}"
    else:
        lead = text(sentence(judged.reason)) + "."
    more = f" · {case.skipped} lines skipped" if case.skipped else ""
    notes = "".join(f'<p class="soft">{text(note)}</p>' for note in judged.notes[:20])
    notes = f'<h4 class="soft">Worth knowing</h4>{notes}' if notes else ""
    covered = f"Coverage {judged.coverage.level}: {text(judged.coverage.sentence)}."
    reason = "" if worst is None else f" · {text(judged.reason)}"
    return (
        f'<div class="card verdict {text(judged.verdict)}"><div>{badge(judged.verdict)}'
        f'<{level}>{text(judged.run.run_id, 120)}</{level}><p class="lead">{lead}</p>'
        f'<p class="soft">{text(case.span())} · read as {text(judged.run.framework or judged.run.adapter)}{reason}{more}</p>'
        f'<p class="soft">{covered}</p>{notes}</div>{scores(case)}</div>'
    )


def scores(case: Case) -> str:
    """The three scores as meters, and what they and those of the trackers are made of."""
    found = case.judgement.scores
    if not found:
        return '<p class="soft">No scores: there is no evidence to make them of.</p>'
    worst = case.judgement.worst_scores
    meters = "".join(_meter(sentence(in_words(name)), found.get(name), worst.get(name)) for name in MAIN_SCORES)
    parts = "".join(_parts(case, name) for name in found)
    return f'<div><div class="scores">{meters}</div><details><summary>What the scores are made of</summary><div class="parts">{parts}</div></details></div>'


def _meter(label: str, value: float | None, worst: float | None) -> str:
    if value is None:
        return f'<div class="score"><div><span>{label}</span><span class="soft">no evidence</span></div><div class="meter"></div></div>'
    tone = {"critical": "low", "warning": "middle"}.get(tone_of(value), "")
    lower = f' <span class="soft">{told}</span>' if (told := at_worst(value, worst)) else ""
    return (
        f'<div class="score"><div><span>{label}</span><b>{value:.2f}</b>{lower}</div>'
        f'<div class="meter" role="img" aria-label="{value:.2f} of 1"><i class="{tone}" style="width:{100 * value:.0f}%"></i></div></div>'
    )


def _parts(case: Case, name: str) -> str:
    parts = case.judgement.score_parts.get(_PARTS_OF.get(name, name), {})
    rows = "".join(
        f"<dt>{text(in_words(part))}</dt><dd>{'no evidence' if isnan(value) else f'{value:.2f}'}</dd>"
        for part, value in parts.items()
    )
    return f"<div><b>{text(sentence(in_words(name)))} {case.judgement.scores[name]:.2f}</b><dl>{rows}</dl></div>"


def incident(case: Case, found: Incident, number: int, figures: str, run: int = 1) -> str:
    """An incident as a story: what moved first and what followed, the cause and its rivals, what to do, the last good step."""
    moments = []
    for moment in case.story(found):
        anomaly = moment.anomaly
        when = f"from step {moment.began}" + (f", certain at {anomaly.step}" if anomaly.step != moment.began else "")
        first = " · <b>moved first</b>" if moment.first else ""
        moments.append(
            f'<li class="{anomaly.severity}"><div class="when">{when}{first}</div>'
            f"<b>{text(sentence(in_words(anomaly.type)))}.</b> {text(anomaly.message)}</li>"
        )
    rivals = may_also_be(found)
    return (
        f'<article class="card incident {found.severity}" id="incident-{run}-{number}"><header><span class="number-mark">{number}</span>'
        f"<h3>{text(sentence(found.title))}</h3>{badge(found.severity)}<span class='soft'>at step {found.step}{recovered(found)}</span></header>"
        f'<div class="told"><div><h4>What was seen</h4><ol class="timeline">{"".join(moments)}</ol></div>'
        f'<div class="advice"><h4>What to do</h4><p>{text(found.advice, 800)}</p><h4>Last good step</h4><p>{last_good(found)}</p>'
        + (f"<h4>It may also be</h4><p>{text(rivals)}</p>" if rivals else "")
        + f'</div></div><div class="panels">{figures}</div></article>'
    )


def anomalies(case: Case) -> str:
    """Every anomaly, for those who want all of it."""
    run = case.judgement.run
    rows = [
        (
            str(found.step), badge(found.severity), f"<code>{text(found.type)}</code>", text(found.message),
            short_number(found.value), short_number(found.threshold),
            "stands" if found.cleared_index is None else f"step {run.steps[min(found.cleared_index, len(run) - 1)]}",
        )
        for found in case.judgement.anomalies[:500]
    ]  # fmt: skip
    if not rows:
        return ""
    headings = ("step", "severity", "type", "what was seen", "value", "limit", "until")
    count = len(case.judgement.anomalies)
    head = "The anomaly in full" if count == 1 else f"All {count} anomalies"
    return f"<details><summary>{head}</summary>{table(headings, rows, numbers=(0, 4, 5), caption='Anomalies')}</details>"


def machine(case: Case) -> str:
    """What was found of the machine, which is no part of the verdict; empty where nothing was."""
    found = case.judgement.machine
    rows = "".join(
        f"<li>step {one.step}{'' if one.cleared_index is None else ' (over)'}: {text(one.message)} {text(one.advice)}</li>"
        for one in found[:50]
    )
    return f'<div class="card machine"><h3>Machine (not part of the verdict)</h3><ul>{rows}</ul></div>' if found else ""


def checkpoints(case: Case) -> str:
    """The table of checkpoints; empty where the run left none."""
    if not case.checkpoints:
        return ""
    names = [name for name in SHOWN if any(row.get(name) for row in case.checkpoints)]
    numbers = [
        place for place, name in enumerate(names) if name in ("step", "health_score", "update_ratio", "drift_from_start", "norm")
    ]
    rows = [[_cell(name, row.get(name, "")) for name in names] for row in case.checkpoints]
    return table([SHOWN[name] for name in names], rows, numbers=numbers, caption="Checkpoints")


def _cell(name: str, value: str) -> str:
    if name == "verdict":
        return badge(value)
    try:
        return text(short_number(float(value)) if value and name not in ("checkpoint", "most_moved_layer") else value, 120)
    except ValueError:
        return text(value, 120)


def coverage(case: Case) -> str:
    """What was found in the log under which key, what found no place, and which detectors had to be silent."""
    judged = case.judgement
    covered = judged.run.coverage
    rows = [
        (f"<code>{text(name, 80)}</code>", f"<code>{text(key, 120)}</code>", text(covered.reductions.get(name, "")))
        for name, key in covered.metrics.items()
    ]
    inactive = judged.coverage.inactive
    said = f"<p>Coverage is {judged.coverage.level}: {text(judged.coverage.sentence)}."
    said += " Silence of the others is no sign of health.</p>" if inactive else "</p>"
    if inactive:
        lacking = [
            (f"<code>{text(name)}</code>", ", ".join(f"<code>{text(metric, 60)}</code>" for metric in missing))
            for name, missing in inactive
        ]
        said += f"<details><summary>{len(inactive)} detectors are inactive: a metric is not logged</summary>{table(('detector', 'lacks'), lacking, caption='Inactive detectors')}</details>"
    if rows:
        said += f"<details><summary>{len(rows)} metrics, and the keys they came from</summary>{table(('metric', 'key in the log', 'by'), rows, caption='Metrics')}</details>"
    if covered.unmapped:
        keys = "".join(f"<li><code>{text(key, 80)}</code></li>" for key in covered.unmapped[:200])
        said += (
            f"<details><summary>{len(covered.unmapped)} keys without a place in the catalogue</summary>"
            f'<ul class="keys">{keys}</ul><p class="soft">Say which is which with <code>--field-map KEY=METRIC</code>.</p></details>'
        )
    return said


def settings(case: Case) -> str:
    """What is known of how the run was set up."""
    return table(
        ("setting", "value"), [(text(name, 80), text(value, 300)) for name, value in case.settings()], caption="Configuration"
    )
