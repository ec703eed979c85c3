"""The page about being right: method, tables and limits, with the figures of the recorded baseline."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from corpus.blind import agreements  # noqa: E402
from corpus.faults import FAULTS  # noqa: E402
from corpus.settings import SETTINGS  # noqa: E402
from corpus.vocabulary import CAUSES, FAMILIES  # noqa: E402

BASELINE, LABELS = ROOT / "benchmarks/corpus/baseline.json", ROOT / "benchmarks/corpus/labels.json"
ROWS = {
    "told": "FAILING runs detected",
    "visible_told": "FAILING runs detected, without hidden faults",
    "early": "of the detected, before the effect",
    "told_after_onset": "FAILING runs detected at or after the onset",
    "critical": "FAILING runs with a critical",
    "degraded_told": "DEGRADED runs detected",
    "false_critical": "HEALTHY and HARMLESS runs with a critical",
    "false_any": "HEALTHY and HARMLESS runs with any alarm",
    "early_false": "FAILING and DEGRADED runs with an alarm before the fault",
    "alarm_before_onset": "FAILING and DEGRADED runs with an alarm before the onset",
    "family": "right family",
    "cause": "right cause, first",
    "cause_of_two": "right cause, first two",
    "misleading": "misleading advice",
}


def page() -> str:
    figures, labels = json.loads(BASELINE.read_text()), json.loads(LABELS.read_text())
    verdicts, kinds = Counter(one["verdict"] for one in labels), Counter(one["kind"] for one in labels if one["kind"])
    trainers = Counter(SETTINGS[one["run"].split("--")[0]].trainer for one in labels)
    names = {"ppo": "TRL PPO", "grpo": "TRL GRPO", "rloo": "TRL RLOO", "dpo": "TRL DPO", "ours": "`trainer/train_ppo.py`"}
    method = METHOD.format(
        runs=len(labels), healthy=verdicts["HEALTHY"], faulty=sum(kinds.values()), kinds=len(kinds),
        failing=verdicts["FAILING"], degraded=verdicts["DEGRADED"], harmless=verdicts["HARMLESS"],
        agreed=" and ".join(map(str, agreements())), borderline=sum(bool(one.get("borderline")) for one in labels),
        trainers=", ".join(f"{count} with {names[name]}" for name, count in trainers.most_common()),
    )  # fmt: skip
    lines = [*method.splitlines(), "", "## Results", "", *RESULTS.splitlines(), ""]
    for split in ("judge", "tune"):
        for log, said in (
            ("events", "event logs"), ("plain", "the trainers' own logs"), ("few", "the trainers' own logs averaged to twelve rows"),
        ):  # fmt: skip
            lines += [f"### {split}, from {said}", "", *_table(figures[split][log]), ""]
    lines += [*REST.splitlines(), "", "## Faults", "", *FAULT_TABLE.splitlines()]
    lines += [_kind(kind, labels, figures["tune"]["events_by_kind"].get(kind)) for kind in FAULTS]
    lines += [
        "",
        "## Causes",
        "",
        "| cause | meaning |",
        "|---|---|",
        *(f"| `{name}` | {said} |" for name, said in CAUSES.items()),
    ]
    lines += ["", "## Families", "", "| family | what it is about |", "|---|---|"]
    lines += [*(f"| `{name}` | {said} |" for name, said in FAMILIES.items()), ""]
    return "\n".join(lines)


def _table(tools: dict[str, Any]) -> list[str]:
    lines = ["| | " + " | ".join(tools) + " |", "|---|" + "---|" * len(tools)]
    for field, said in ROWS.items():
        lines.append(f"| {said} | " + " | ".join(_share(figures[field]) for figures in tools.values()) + " |")
    delays = [
        "–" if figures["delay_median"] is None else f"{figures['delay_median']:g} / {figures['delay_p90']:g}"
        for figures in tools.values()
    ]
    lines.append("| delay, median / 90 % | " + " | ".join(delays) + " |")
    return [*lines, "| saved | " + " | ".join(f"{figures['saved']:.0%}" for figures in tools.values()) + " |"]


def _share(figure: dict[str, Any]) -> str:
    if not figure["of"]:
        return "–"
    low, high = figure["interval"]
    return f"{figure['count']}/{figure['of']} = **{figure['value']:.0%}** ({low:.0%}–{high:.0%})"


def _kind(kind: str, labels: list[dict[str, Any]], results: dict[str, Any] | None) -> str:
    fault, counts = FAULTS[kind], Counter(one["verdict"] for one in labels if one["kind"] == kind)
    cells = [str(counts[name] or "") for name in ("FAILING", "DEGRADED", "HARMLESS")]
    begins = "mid-run" if fault.mid else "start"
    said = "only in *judge*" if results is None else _detected(results)
    begins += ", hidden" if fault.hidden else ""
    return f"| `{kind}` | `{fault.cause}` | {', '.join(fault.trainers)} | {begins} | {' | '.join(cells)} | {said} |"


def _detected(results: dict[str, Any]) -> str:
    parts = [(results["told"], "FAILING"), (results["degraded_told"], "DEGRADED")]
    told = [f"{share['count']} of {share['of']} {name}" for share, name in parts if share["of"]]
    quiet = results["false_any"]
    return ", ".join([*told, *([f"{quiet['of'] - quiet['count']} of {quiet['of']} HARMLESS silent"] if quiet["of"] else [])])


RESULTS = """\
![FAILING runs detected against HEALTHY and HARMLESS runs with an alarm, for each tool](images/detection.svg)

Shares have their 95 % interval (Wilson). Delays are in updates after the onset: the median, and what nine of ten do not exceed.
*Saved* is the share of a FAILING run that a stop at the first critical would have saved.

The first version of rldk, whose rules were made from simulated streams, read as follows on the same *judge* runs and event logs:
49 % of FAILING runs detected, 29 % with a critical; 10 % of HEALTHY and HARMLESS runs with a critical, 60 % with any alarm; right
cause among two 37 %. The labels were frozen before the rules were rebuilt."""

FAULT_TABLE = """\
The last column has the results of rldk from the event logs of *tune*.

| kind | cause | trainers | begins | FAILING | DEGRADED | HARMLESS | detected in tune |
|---|---|---|---|---|---|---|---|"""

METHOD = """\
# Detection accuracy

A monitor must be silent on healthy runs and raise an alarm on failing ones. This page says how often rldk does both, on real
trainings with known outcomes, beside other tools on the same runs. The tables below are those of the recorded baseline.
`make bench-detection` prints them for the code at hand, within a minute on two cores.

## Method

**The runs.** {runs} real trainings, recorded with this project: {trainers}. TRL is 0.23.1, 1.12.0 or 1.16.0. Tiny models of four shapes learn to answer questions
about colours with pleasant words. Rewards are dense, 0/1, sparse, of several components, length-penalised, or given by a
reward model. Learning rates, KL coefficients (0 included), batch sizes, response lengths and logging intervals (1, 5, 10) vary.
{healthy} runs have no fault. {faulty} have one of {kinds} kinds of fault, from the start or from the middle of the run on. Each
of these has a *twin*: the same setting and seed without the fault. A run and its twin are equal until the fault begins.

**Two logs.** Each run is recorded twice: the trainer's own log, which a user without rldk has, and rldk's event log with its
probes and samples. DPO generates no responses, so its event logs have no samples. Numbers are stored to six significant digits.

**Labels come from outcomes, not from intentions.** About fifteen times per run a probe samples the policy on held-out prompts,
with the same noise in all runs. It measures the true reward (whatever the fault did to the reward that was trained on), the
share of responses that end, the share that are distinct, the KL to the start, the entropy, and the change of the weights. It
shares no code with the detectors. The end of a run, its last four measurements, is compared with that of its twin:

| label | rule | runs |
|---|---|---|
| FAILING | An engineer would stop it. Weights are not finite or the training crashed; more than half of the twin's gain in true reward is missing; fewer than 40 % of responses end, and 25 points fewer than the twin's; fewer than 5 % of responses are distinct, and 35 points fewer than the twin's; more than 3 nats per token from the start, and three times the twin's; or an entropy near that of random words. | {failing} |
| DEGRADED | The user should be told. More than a fifth of the gain is missing at the end, or on average over four consecutive measurements; 25 points fewer responses end; 35 points fewer are distinct; more than 1.5 nats per token from the start, and three times the twin's; or the weights have stopped moving while the twin's move. | {degraded} |
| HARMLESS | A fault without effect, or one whose effect never leaves the range of the seeds. Silence is right. | {harmless} |

A difference in reward must also exceed three times the spread between the seeds of the healthy setting. {borderline} runs would
get another label if all limits were 15 % stricter or looser; `python benchmarks/corpus/label.py --borderline` lists them. The
*onset* is the first update at which a channel leaves the twin's range, in either direction, for two consecutive measurements.
It is known to within the interval of the probe (3 to 13 updates). The update of the injection is stored beside it.

The labels were frozen (`labels.sha256`) before any rule was changed. Two readers labelled thirty random runs each, from the
curves, the samples and healthy runs of the same setting, without knowing the labels; the second had read the rules above. They
agreed with the labels in {agreed} of 30 (`python benchmarks/corpus/blind.py score`).

**Two splits.** Rules are made from *tune*. *judge* has the same kinds of fault with other seeds. The scorer prints only totals for
*judge*. `--reveal` shows its runs once and retires them: they move to *tune*, and new seeds are recorded in their place. That was
done once; in the first round ten kinds of fault and ten causes were in *judge* only. All present runs of *judge* have
been looked at since, and some rules were made with them in view, so its figures are those of known runs. A third of them was scored
once before: 30 of 31 FAILING runs detected from event logs, 28 of 31 from plain logs, and 9 of 12 DEGRADED.

**Other faults, other worlds.** Known kinds of fault flatter a judge. Four times, somebody who did not know the rules therefore trained
runs of TRL on tasks of their own, labelled them by their outcome, and they were judged once: three times with kinds of fault that
nobody here had tried, and once with the mistakes that users make every day. An alarm of any family counts.

| blind test | FAILING | detected: event logs, plain logs | critical | DEGRADED | detected | HEALTHY | with an alarm |
|---|---|---|---|---|---|---|---|
| first: 109 runs, 53 kinds (graders that fail, samplers and optimizers set wrongly) | 52 | 33, 34 | 27, 29 | 14 | 8, 6 | 32 | 3, 2 |
| second: 108 runs, 59 kinds (preemptions, masks, adapters, crashes, caches) | 43 | 26, 20 | 19, 15 | 12 | 5, 3 | 31 | 0, 0 |
| third: 137 runs, 74 kinds (templates, parsers, tokenizers, data, stale samplers, reference and shifted tokens) | 42 | 23, 22 | 19, 18 | 18 | 10, 7 | 36 | 1, 2 |
| fourth: 124 runs, ordinary mistakes (rates, coefficients, lengths, temperatures, batches, rewards with a bug, pairs) | 54 | 42, 36 | 33, 31 | 23 | 13, 11 | 23 | 2, 1 |

Rules that were made afterwards bring the FAILING runs of the first to 44 and 38, with one HEALTHY run alarmed, those of the second to
36 and 26, with none, and those of the third to 30 and 27, with none. Expect the figures of the table on faults that nobody has thought
of. In ten of the 42 of the third a wrong reward was learnt well, so that only the unlogged truth shows it. Nine of the 26 causes
that were named in the second test were wrong, and nine of 23 in the third: "the reward is being exploited" for any large KL, and "the
reward does not depend on the response" for updates that do not follow it. Of the twelve that were missed in the fourth, three had
a wrong reward or wrong pairs that were learnt well, and three a learning rate that is 30 to 100 times too low: a reward that
rises slowly is the same as that of a hard task.

A fifth test has 146 runs of three self-written trainers (PPO, GRPO, REINFORCE) with logs as people write them for themselves: a table,
JSON lines or printed lines with three to ten numbers. Judged once: 41 of 66 FAILING runs detected (27 with a critical), 4 of 14
DEGRADED ones, and no alarm on 36 HEALTHY runs. Without the length, the share of responses
that end and the settings, an exploited reward and a batch that is too small look like learning.

A sixth test has 115 runs of TRL (GRPO, RLOO, DPO, PPO), of which only TRL's own log was kept: mistakes in data, rewards, templates,
resumes, schedules and servers, a fifth of them from the middle on. Judged once: 28 of 44 FAILING runs detected (18 with a critical),
4 of 14 DEGRADED ones, and an alarm on 1 of 34 HEALTHY runs, a critical where a curriculum turned to harder prompts, and on 5 of 23
HARMLESS ones. With the rules that were made afterwards: 31 FAILING runs, the others as before. Of the 13 that are still missed, most
learn a wrong reward or wrong pairs well, or train on other prompts than they are evaluated on.

**Logs of others.** Four people who did not know the rules copied 142 different logs and tables of real runs out of public
repositories and reports (GRPO, PPO, DPO and control tasks; half of them have fewer than fifteen rows), labelled them by their curves
and their authors' words, and the logs were judged once. An alarm of any family counts.

| rows of the log | failed | detected | critical | degraded | detected | sound | with an alarm |
|---|---|---|---|---|---|---|---|
| 20 or more | 10 | 8 | 7 | 6 | 1 | 18 | 1 |
| 10 to 19 | 13 | 3 | 3 | 9 | 1 | 12 | 1 |
| fewer than 10 (most of them "too few to judge") | 19 | 0 | 0 | 7 | 0 | 16 | 0 |

No sound run had a critical. The rules for logs of few rows were made afterwards, on the corpus averaged to 8, 12 and 18 rows; with
them 9, 10 and 3 of the failed runs are detected, 3, 3 and 1 of the degraded, and no sound run has an alarm.

A second collection holds 65 more logs of at least 20 rows, all written by machines, from 43 other repositories. Judged once, with
the rules of that day: 10 of 18 failed runs detected (5 with a critical), 5 of 12 degraded ones, and an alarm on 3 of 21 sound runs,
two of them critical because a KL column that was never filled in counted as a measured zero. With the rules that were made
afterwards: 13 (9 with a critical), 5 and 0. Three of the other five failed by a reward that was wrong and is learnt well, or log a
reward and nothing else.

A third collection holds 55 more. Judged once: 9 of 12 failed runs detected (3 with a critical), 4 of 9 degraded ones, and no alarm on
16 sound runs. Five logs were not read, three of them because their columns were called `rewards_curve` and `kl_curve`. With the rules
that were made afterwards: 10 (6 with a critical), 4 and 0, and two logs that are not read.

A fourth collection holds 40 more, of about 30 repositories. Judged once: 5 of 7 failed runs detected (3 with a critical), 4 of 6
degraded ones, and an alarm on 3 of 13 sound runs, one of them a critical on a task that groups of four responses had solved. Two
logs of preference training were not read by their keys (`rewards_chosen`, `reward_margins`), and no rule looked at held-out pairs.
With the rules that were made afterwards: 6 (all with a critical), 4 and 3, without a critical.

A fifth collection holds 57 more, of some 50 repositories. Judged once: 8 of 11 failed runs detected (5 with a critical), 4 of 12
degraded ones, and an alarm on 4 of 18 sound runs, one of them a critical on a task that scored nothing in its first twelve updates.
Four logs were not read. With the rules that were made afterwards: 8 (5 with a critical), 4 and 2, without a critical, and two logs
that are not read. Most of the degraded runs that are missed have fewer than thirty rows, or log a reward and nothing else.

A sixth collection holds 35 more, of 27 repositories. Judged once: all 4 failed runs detected, each with a critical; 2 of 5 degraded
ones; and no alarm on 10 sound runs. Of 14 that learnt nothing, 3 have a warning. Two logs were not read: the curves of a figure, one
column each.

**What counts.** A run is *detected* if a warning or critical of an accepted family is raised at the injection or later. Accepted
are the families of the fault and those of the channels that left their range. Whoever sees the cause before its effect is right;
how often that happens has a row of its own, and such a detection has a delay of 0. An alarm is *false* on a HEALTHY or HARMLESS
run, and before the injection. Two rows count by the onset instead: an alarm before it is not a detection, even if it names the
cause. *Right family* is that of the first critical, or of the first warning where there is none. *Right cause* is that of the
worst incident; one cause of rldk's may stand for up to four of the vocabulary below. *Misleading* is advice that would make the
run worse, such as "keep this checkpoint, nothing is left to learn" on a failing one. Findings about the machine (throughput,
memory) are left out.

**Peers.** `rlwatch` and `rldoctor` from the registry, each with every input that it takes, under the names it expects; a rolling
z-score (|z| > 4 against the 25 to 50 rows before); the fixed limits of common guides; and CUSUM (k = 0.5, h = 5). Peers have no
families, so any alarm of theirs after the injection counts as a detection. That flatters a tool that raises alarms everywhere;
the rows on HEALTHY and HARMLESS runs show what it is worth. The z-score, the fixed limits and CUSUM know warnings only, and the
first and last need 25 rows before they can say anything. `rldoctor` looks every 25 rows from row 60 on, and at the end."""

REST = """\
## What metrics alone cannot tell

- **A reward that is wrong but consistent.** With the sign flipped from the start, labels swapped, or a reward for the wrong
  thing, every metric is that of a healthy run that learns another task. Only samples or held-out quality show it, and these logs
  have samples of a few responses only. Such kinds of fault are marked *hidden* below and have a row of their own above.
- **A random reward early on.** Until a healthy run would have learnt something, learning nothing is normal.
- **Faults without effect.** A lost optimizer state or an offset of the reward may change nothing that matters. Silence is right
  then, though something is wrong with the configuration.
- **Tiny models are not large ones.** They learn and break within a hundred updates, and their KL and entropy are large. Public
  logs of 0.5–8 B models (`benchmarks/detection/real.py`) are the check against rules that fit tiny models only.
- **One task.** All runs share one small world. Faults of data pipelines, sandboxes, tools and inference servers are not in it.
- **Few runs per kind.** A kind of fault has four runs. Totals carry weight, the rows of the fault table do not.
- **Recordings repeat on one machine only.** There, the same command gives the same log except for times, resources and paths
  (`python benchmarks/corpus/record.py --again 5` records five random runs twice and compares). Another processor rounds
  differently. Then the base models come out slightly different, and so does every run.
- **Configuration shows early.** Where a fault changes the KL coefficient of GRPO in the middle of a run, the event log has the
  new coefficient one update before the first update that uses it.

## How to add a run

1. List the run in `ADDED` of `benchmarks/corpus/settings.py`, with a seed from 100 on. Its twin is recorded beside it. A new kind
   of fault is a row of `FAULTS` in `benchmarks/corpus/faults.py` with `later=True`, a new setting a row of `_LATER_ROWS`. All other
   runs stay as they are.
2. `make corpus` records what is missing. It can be stopped and started again.
3. `python benchmarks/corpus/label.py --draft out/draft.json` labels without freezing, and
   `python benchmarks/corpus/sheet.py out/kind.html --kind NAME --labels out/draft.json` draws the curves. Look at them.
4. `python benchmarks/corpus/label.py` labels the new runs and freezes the labels; runs that have a label keep it. `--counts` prints
   what the corpus has beside what it must have.
5. `python benchmarks/detection/score_corpus.py --write-baseline`, then `make docs`.

A judge of your own is scored by the same functions: `rldk.testing.score_run` and `rldk.testing.total_scores`."""
