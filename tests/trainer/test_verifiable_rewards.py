"""Rewards that can be checked: what passes, what does not, and what a response cannot get by with."""

from __future__ import annotations

import time

import pytest

pytestmark = pytest.mark.full


def test_exact_match_takes_the_final_answer() -> None:
    from verifiable_rewards import exact_match

    said = ["Paris", "So the answer is: Paris.", r"\boxed{Lyon} no, \boxed{Paris}", "#### Paris", "London", "Paris or London", ""]
    assert exact_match([""] * 7, said, ["Paris"] * 7) == [1, 1, 1, 1, 0, 0, 0]


def test_number_takes_the_last_number() -> None:
    from verifiable_rewards import number

    said = ["3 + 4 = 7", "It is 1,234.50 in all", "-2", "7.0000001", "seven", "8", "1e3"]
    assert number([""] * 7, said, [7, "1234.5", "-2", "7", 7, "7", 1000]) == [1, 1, 1, 1, 0, 0, 1]
    with pytest.raises(ValueError, match="hold a number"):
        number([""], ["7"], ["seven"])


def test_json_schema() -> None:
    pytest.importorskip("jsonschema")
    from verifiable_rewards import json_schema

    schema = {"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}}
    good = ['{"name": "fox"}', '```json\n{"name": "fox", "age": 3}\n```']
    bad = ['{"age": 3}', '{"name": "fox", "age": "3"}', "fox", "[" * 9999]
    assert json_schema([""] * 6, good + bad, [schema] * 6) == [1, 1, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="no JSON schema"):
        json_schema([""], ["{}"], ['{"type": "nonsense"}'])


def test_regular_expression() -> None:
    from verifiable_rewards import regular_expression

    assert regular_expression([""] * 2, ["<b>x</b>", "x"], [r"^<b>.*</b>$"] * 2) == [1, 0]


GOOD = "def double(x):\n    return 2 * x"
TESTS = "assert double(3) == 6\nassert double(-1) == -2"


def scores(*responses: str, tests: str = TESTS) -> list[float]:
    from verifiable_rewards import code

    return code([""] * len(responses), list(responses), [tests] * len(responses))


def test_code_is_run_and_then_its_tests() -> None:
    fenced = f"Here you are:\n```python\n{GOOD}\n```\nIt doubles."
    assert scores(GOOD, fenced, GOOD.replace("2", "3"), "def double(", "", "print('hello')\n" + GOOD) == [1, 1, 0, 0, 0, 1]
    assert scores("import math\n" + GOOD, tests="import json\n" + TESTS) == [1]


EXITS = ["import sys; sys.exit(0)", "import os; os._exit(0)", "raise SystemExit(0)", "import os; os.write(1, b'1'); os._exit(0)"]
DENIED = [
    "import os; os.fork()",
    "import subprocess; subprocess.run(['true'])",
    "import os; os.system('true')",
    "open('left_behind', 'w').write('x')",
    "x = bytearray(10 ** 10)",
]


def test_a_response_that_leaves_before_its_tests_has_not_passed() -> None:
    assert scores(*EXITS, tests="") == [0.0] * len(EXITS)


def test_processes_files_and_memory_are_limited() -> None:
    assert scores(*(f"{denied}\n{GOOD}" for denied in DENIED)) == [0.0] * len(DENIED)


def test_code_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    import verifiable_rewards

    monkeypatch.setattr(verifiable_rewards, "SECONDS", 1.0)
    began = time.monotonic()
    assert scores("while True:\n    pass", "import time\ntime.sleep(60)") == [0, 0]
    assert time.monotonic() - began < 30
