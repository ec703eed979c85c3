"""The mixture: records of several sources, checked, counted, chosen by weight, and written in one order.

The position of a record is a hash of the seed, its source and its content. So the same config and the same files give
the same bytes, on any machine; a record added to one source moves no other; and a limit needs no more memory than
the records it keeps.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from data_config import NEEDED, DataConfig, DataError, Source
from data_sources import Misshapen, Record, iter_records, shape_record
from rldk.core.files import replacing

__all__ = ["Mixture", "SourceReport", "load_records", "mix", "read_prepared", "write_prepared"]

EXAMPLES = 3  # of each defect, in the report


@dataclass
class SourceReport:
    """What happened to the records of one source."""

    name: str
    read: int = 0
    taken: int = 0
    left_out: Counter[str] = field(default_factory=Counter)  # wrong shape, empty, duplicate, too long, over the limit or weight
    examples: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, why: str, where: str = "", count: int = 1) -> None:
        self.left_out[why] += count
        if where and len(self.examples.setdefault(why, [])) < EXAMPLES:
            self.examples[why].append(where)


@dataclass
class Mixture:
    """The chosen records in the order of training, and where they come from."""

    config: DataConfig
    records: list[Record]
    reports: list[SourceReport]

    def table(self) -> str:
        """The report as lines of text."""
        total = max(len(self.records), 1)
        lines = [f"{self.config.stage}: {len(self.records)} records"]
        for report in self.reports:
            share = f"{report.taken / total:6.1%} of the mixture"
            lines.append(f"  {report.name:<16} {report.taken:7d} taken of {report.read:7d} read ({share})")
            for why, count in sorted(report.left_out.items()):
                lines.append(f"    {count:7d} {why}")
                lines += [f"            {example}" for example in report.examples.get(why, [])]
        return "\n".join(lines)


def mix(config: DataConfig) -> Mixture:
    """Read, check and choose; raises `DataError` where a source has too many records of a wrong shape, or none to give."""
    seen: set[bytes] = set()
    kept, reports = [], []
    for source in config.sources:
        report = SourceReport(source.name)
        kept.append(_usable(source, config, seen, report))
        reports.append(report)
    counts = _shares(config, [len(records) for records in kept])
    chosen: list[tuple[bytes, Record]] = []
    for source, records, report, count in zip(config.sources, kept, reports, counts, strict=True):
        for number in range(count):  # from the second pass on, the same records in other places
            key, record = records[number % len(records)]
            # hashed again, since the chosen records of a large source all have small keys
            chosen.append((_digest(key, f"place {number // len(records)}"), {**record, "source": source.name}))
        report.taken = count
        if count < len(records):
            why = "over `max_records`" if source.weight is None else "not needed for the weights"
            report.leave_out(why, count=len(records) - count)
    return Mixture(config, [record for _, record in sorted(chosen, key=lambda pair: pair[0])], reports)


def _usable(source: Source, config: DataConfig, seen: set[bytes], report: SourceReport) -> list[tuple[bytes, Record]]:
    """The good records of a source in its order, at most its limit of them."""
    heap: list[tuple[int, bytes, Record]] = []  # the smallest keys; a heap gives up its largest first, so keys are negated
    for where, raw in iter_records(source):
        report.read += 1
        try:
            record = shape_record(raw, config.stage, source.fields, source.columns, source.system)
        except Misshapen as error:
            report.leave_out("wrong shape", f"{where}: {error}")
            continue
        content = json.dumps(record, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
        texts = list(_texts({key: record[key] for key in NEEDED[config.stage]}))
        if not all(text.strip() for text in texts):
            report.leave_out("empty", where)
        elif config.max_chars is not None and (length := sum(map(len, texts))) > config.max_chars:
            report.leave_out("too long", f"{where}: {length} characters, at most {config.max_chars}")
        elif (mark := _digest(content)) in seen:
            report.leave_out("duplicate", where)
        else:
            seen.add(mark)
            key = _digest(content, f"{config.seed} {source.name}")
            entry = (-int.from_bytes(key, "big"), key, record)
            if source.limit is None or len(heap) < source.limit:
                heapq.heappush(heap, entry)
            else:
                heapq.heappushpop(heap, entry)
                report.leave_out("over `limit`")
    bad = report.left_out["wrong shape"]
    if bad > config.max_bad * report.read:
        raise DataError(
            f"Source {source.name}: {bad} of {report.read} records are of a wrong shape for {config.stage} "
            f"(more than `max_bad` = {config.max_bad:.0%}). First: {'; '.join(report.examples['wrong shape'])}. "
            f"Map its names with `fields: {{{NEEDED[config.stage][0]}: NAME}}`, or leave the source out of {config.path}."
        )
    if not heap:
        why = ", ".join(f"{count} {cause}" for cause, count in report.left_out.items()) or "it is empty"
        raise DataError(f"Source {source.name}: no usable record among the {report.read} of {source.path}: {why}.")
    return [(key, record) for _, key, record in sorted(heap, reverse=True)]


def _shares(config: DataConfig, available: list[int]) -> list[int]:
    """The number of records of each source: by weight if weights are given, as many as the scarcest source allows."""
    most = [count * source.repeat for count, source in zip(available, config.sources, strict=True)]
    if config.sources[0].weight is None:
        weights = [float(count) for count in most]
    else:
        weights = [source.weight or 0.0 for source in config.sources]
    total = min(limit * sum(weights) / weight for limit, weight in zip(most, weights, strict=True))
    if config.max_records is not None:
        total = min(total, config.max_records)
    counts = [min(limit, int(total * weight / sum(weights) + 0.5)) for limit, weight in zip(most, weights, strict=True)]
    if config.max_records is not None:  # if all shares were rounded up
        while sum(counts) > config.max_records:
            counts[counts.index(max(counts))] -= 1
    return counts


def write_prepared(mixture: Mixture, path: Path | None = None) -> Path:
    """Write the mixture and, beside it, the report; both are written completely or not at all."""
    path = path or mixture.config.output
    lines = (json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in mixture.records)
    body = "".join(lines).encode("utf-8", "surrogatepass")
    config = mixture.config
    facts = {
        "stage": config.stage,
        "config": str(config.path),
        "seed": config.seed,
        "records": len(mixture.records),
        "blake2b": blake2b(body, digest_size=16).hexdigest(),
        "sources": [vars(report) for report in mixture.reports],
    }
    report_body = json.dumps(facts, indent=1) + "\n"
    for target, content in ((path, body), (path.with_suffix(".report.json"), report_body.encode())):
        with replacing(target) as part:
            part.write_bytes(content)
    return path


def read_prepared(path: Path, stage: str) -> list[Record]:
    """The records of a prepared file; one of another shape is refused with the keys it has and the keys it needs."""
    needed = (*NEEDED[stage], "source")
    if not path.is_file():
        raise DataError(
            f"No prepared file {path}. `python trainer/prepare_data.py --config …` writes it; "
            f"without --use_prepared the sources are mixed now."
        )
    records = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}:{number} is not JSON: {error}.") from None
            if not isinstance(record, dict) or any(key not in record for key in needed):
                has = sorted(record) if isinstance(record, dict) else type(record).__name__
                raise DataError(f"{path}:{number} is not prepared for {stage}: it has {has}, it needs {list(needed)}.")
            kinds: dict[str, Any] = {"messages": list, "prompt": str | list}
            if wrong := [key for key in NEEDED[stage] if not isinstance(record[key], kinds.get(key, str)) or not record[key]]:
                what = "messages" if stage == "sft" else "text"
                raise DataError(f"{path}:{number}: Expected {wrong} to be {what} and not empty, got {record[wrong[0]]!r:.60}.")
            records.append(record)
    if not records:
        raise DataError(f"{path} is empty. `python trainer/prepare_data.py --config …` writes it again.")
    return records


def _texts(record: Record) -> Iterator[str]:
    for value in record.values():
        if isinstance(value, list):
            yield from (message["content"] for message in value)
        else:
            yield value


def _digest(content: bytes, salt: str = "") -> bytes:
    return blake2b(content, digest_size=16, key=blake2b(salt.encode(), digest_size=16).digest()).digest()


def load_records(config: DataConfig, use_prepared: bool) -> list[Record]:
    """A stage's records: the prepared file, or the mixture made now."""
    return read_prepared(config.output, config.stage) if use_prepared else mix(config).records
