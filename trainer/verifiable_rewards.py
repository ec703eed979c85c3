"""Rewards that can be checked: `--reward verifiable_rewards:number`, with `columns: [answer]` in the data config.

Each is 1 for a response that passes and 0 for one that does not. What it is checked against is a column of the data:

    exact_match          answer    the final answer of the response, letter for letter except for spaces
    number               answer    the last number of the response
    json_schema          schema    the response is JSON of this schema (needs the package `jsonschema`)
    regular_expression   pattern   the pattern is found in the response
    code                 tests     Python in the response, and then these tests, run without an error

`code` runs what the model wrote in a process of its own with limits on time, memory, processes and files. That keeps accidents
from harm. It is not a security boundary: for models that may be hostile, run the trainer in a container or a virtual machine.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["code", "exact_match", "final_answer", "json_schema", "number", "regular_expression"]

SECONDS = 5.0  # for each response, start of the interpreter included
MEGABYTES = 512
FILE_BYTES = 1 << 20

_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_MARKED = re.compile(r"(?:####|answer(?: is)?\s*[:=]?)\s*(.+)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_FENCED = re.compile(r"```(?:\w+)?\n(.*?)```", re.DOTALL)


def exact_match(prompts: Sequence[str], responses: Sequence[str], answer: Sequence[Any], **_: Any) -> list[float]:
    return [float(_words(final_answer(said)) == _words(str(right))) for said, right in zip(responses, answer, strict=True)]


def number(prompts: Sequence[str], responses: Sequence[str], answer: Sequence[Any], **_: Any) -> list[float]:
    scores = []
    for said, right in zip(responses, answer, strict=True):
        found, expected = _last_number(said), _last_number(str(right))
        if expected is None:
            raise ValueError(f"Expected the column `answer` to hold a number, got {right!r:.80}.")
        scores.append(float(found is not None and math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9)))
    return scores


def json_schema(prompts: Sequence[str], responses: Sequence[str], schema: Sequence[Any], **_: Any) -> list[float]:
    try:
        import jsonschema
    except ImportError:
        raise ValueError("The reward json_schema needs a package: pip install jsonschema") from None
    scores = []
    for said, wanted in zip(responses, schema, strict=True):
        try:
            jsonschema.validate(json.loads(_block(said)), json.loads(wanted) if isinstance(wanted, str) else wanted)
            scores.append(1.0)
        except jsonschema.SchemaError as error:
            raise ValueError(f"The column `schema` holds no JSON schema: {error.message}") from None
        except (ValueError, jsonschema.ValidationError, RecursionError):
            scores.append(0.0)
    return scores


def regular_expression(prompts: Sequence[str], responses: Sequence[str], pattern: Sequence[str], **_: Any) -> list[float]:
    return [float(re.search(wanted, said) is not None) for said, wanted in zip(responses, pattern, strict=True)]


def code(prompts: Sequence[str], responses: Sequence[str], tests: Sequence[str], **_: Any) -> list[float]:
    with ThreadPoolExecutor(max_workers=max(1, len(os.sched_getaffinity(0)))) as pool:
        return [float(passed) for passed in pool.map(_passes, map(_block, responses), tests)]


def final_answer(response: str) -> str:
    r"""The final answer of a response: the last `\boxed{…}`, else what follows the last `####` or `answer:`, else all of it."""
    for pattern in (_BOXED, _MARKED):
        if found := pattern.findall(response):
            return found[-1].strip().rstrip(".")
    return response.strip()


def _words(text: str) -> str:
    return " ".join(text.split())


def _last_number(text: str) -> float | None:
    found = _NUMBER.findall(text)
    return float(found[-1].replace(",", "")) if found else None


def _block(response: str) -> str:
    """The last fenced block of a response, or all of it."""
    found = _FENCED.findall(response)
    return found[-1] if found else response


# Runs in the child. The word that says all went well is written to a descriptor of its own after the tests: a response that
# leaves early, by `sys.exit(0)` or otherwise, has not passed.
_RUNNER = """
import os, resource, sys
given = eval(sys.stdin.read())
for name, limit in given["limits"].items():
    resource.setrlimit(getattr(resource, name), (limit, limit))
said = os.dup(1)
nowhere = os.open(os.devnull, os.O_RDWR)
for descriptor in (0, 1, 2):
    os.dup2(nowhere, descriptor)
denied = ("os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec", "subprocess.Popen", "os.kill", "os.killpg")

def guard(event, arguments):
    if event in denied or event == "open" and str(arguments[1]).strip("rbtU") and arguments[0] not in (0, 1, 2):
        raise PermissionError(event)

sys.addaudithook(guard)
scope = {"__name__": "__main__"}
exec(compile(given["code"], "response", "exec"), scope)
exec(compile(given["tests"], "tests", "exec"), scope)
os.write(said, given["word"].encode())
"""


def _passes(text: str, tests: str) -> bool:
    word = secrets.token_hex(8)
    limits = {
        "RLIMIT_CPU": math.ceil(SECONDS), "RLIMIT_AS": MEGABYTES << 20, "RLIMIT_FSIZE": FILE_BYTES, "RLIMIT_NOFILE": 32,
        "RLIMIT_NPROC": 0, "RLIMIT_CORE": 0,
    }  # fmt: skip
    given = repr({"limits": limits, "code": text, "tests": tests, "word": word})
    with tempfile.TemporaryDirectory(prefix="response-") as folder:
        child = subprocess.Popen(
            [sys.executable, "-I", "-c", _RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=folder, env={"PATH": "/usr/bin:/bin"}, start_new_session=True, text=True,
        )  # fmt: skip
        try:
            said, _ = child.communicate(given, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            said = ""
        finally:
            child.kill()
            child.communicate()
    return said == word
