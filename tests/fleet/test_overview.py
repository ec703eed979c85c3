"""The fleet: what is lost, which settings fail, and one line per incident over all its seeds, with honest statistics."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from rldk.cli.main import main
from rldk.fleet.overview import headline, overview_of
from rldk.functional.small_samples import chance_of_as_many, wilson_interval

pytestmark = pytest.mark.full
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("failed", "runs"), [(0, 1), (0, 20), (3, 3), (7, 20), (1, 1000)])
def test_the_interval_is_that_of_scipy(failed: int, runs: int) -> None:
    expected = stats.binomtest(failed, runs).proportion_ci(method="wilson")
    assert wilson_interval(failed, runs) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("cells", [(3, 3, 0, 3), (5, 6, 10, 40), (0, 5, 2, 5), (10, 10, 0, 90), (2, 4, 4, 4)])
def test_the_chance_is_that_of_scipy(cells: tuple[int, int, int, int]) -> None:
    failed, runs, failed_others, others = cells
    table = [[failed, runs - failed], [failed_others, others - failed_others]]
    assert chance_of_as_many(*cells) == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue)


def row(name: str, failed: bool, **config: Any) -> dict[str, Any]:
    return {
        "name": name, "verdict": "critical" if failed else "healthy", "cause": "kl" if failed else None,
        "cause_title": "KL explosion" if failed else None, "framework": "trl", "events": 100, "seconds": 1000.0,
        "lost_share": 0.5 if failed else 0.0, "onset_step": 40 if failed else None, "ended": 1.7e9, "file_changed": 0,
        **{f"config.{key}": value for key, value in config.items()},
    }  # fmt: skip


def grid(fails: Callable[[float, float], bool], seeds: int = 4) -> list[dict[str, Any]]:
    """Runs over learning rates, KL coefficients and seeds."""
    settings = [(lr, beta, seed) for lr in (1e-6, 1e-5, 3e-5, 1e-4) for beta in (0.0, 0.04) for seed in range(seeds)]
    return [
        row(f"lr{lr:g}-b{beta:g}-s{seed}", fails(lr, beta), learning_rate=lr, kl_coef=beta, seed=seed, model="same")
        for lr, beta, seed in settings
    ]


def test_the_settings_under_which_every_run_fails_are_named() -> None:
    overview = overview_of(grid(lambda lr, beta: lr >= 3e-5 and beta == 0))
    first = overview.configs[0]
    assert (first.condition, first.failed, first.runs, first.failed_others) == ("learning_rate ≥ 3e-05 and kl_coef = 0", 8, 8, 0)
    assert 0.6 < first.interval[0] < 0.7 and first.interval[1] == 1.0, "eight of eight is not certainty"
    assert overview.verdicts == {"critical": 8, "healthy": 24}
    assert overview.lost == pytest.approx(8 * 0.5 / 32)


def test_the_headline_says_what_was_lost_in_time_or_as_a_share() -> None:
    rows = [{**one, "seconds": 3600.0} for one in grid(lambda lr, beta: lr >= 3e-5 and beta == 0)]
    assert headline(overview_of(rows)).endswith("24 healthy; 4.0 h of training (12.5%) came after the first critical")
    few = [{**one, "seconds": None, "lost_share": one["lost_share"] / 1000} for one in rows]
    assert headline(overview_of(few)).endswith("; less than 0.1% of the compute came after the first critical")
    assert headline(overview_of([])) == "0 runs"


def test_chance_is_not_a_finding() -> None:
    rows = grid(lambda lr, beta: False)
    for number in (0, 9, 18, 27):
        rows[number] = {**rows[number], "verdict": "critical", "cause": "kl", "cause_title": "KL", "onset_step": 3}
    assert overview_of(rows).configs == [] and overview_of(rows).compared > 5
    two = [row("a", True, learning_rate=1.0), row("b", False, learning_rate=2.0)]
    assert overview_of(two).configs == [], "two runs tell nothing"


def test_the_seeds_of_one_incident_are_one_line() -> None:
    rows = [*grid(lambda lr, beta: lr == 1e-4 and beta == 0, seeds=3), row("other7", True), row("other8", True)]
    folded = overview_of(rows).incidents
    assert [one.names for one in folded] == [["lr0.0001-b0-s0", "lr0.0001-b0-s1", "lr0.0001-b0-s2"], ["other7", "other8"]]


def test_causes_are_counted_by_week() -> None:
    rows = [row("a", True), {**row("b", True), "ended": None, "file_changed": int(1.6e18)}, row("c", False)]
    (cause,) = overview_of(rows).causes
    assert cause["runs"] == 2 and cause["weeks"] == {"2020-W37": 1, "2023-W46": 1}


def test_no_runs_at_all() -> None:
    overview = overview_of([])
    assert (overview.runs, overview.lost, overview.configs, overview.incidents) == (0, 0.0, [], [])


def test_the_commands(store: Path, capsys: Capture) -> None:
    assert main(["index", str(store)]) == 0
    capsys.readouterr()
    assert main(["fleet", str(store)]) == 0
    out = capsys.readouterr().out
    assert "4 runs: 1 critical, 3 healthy" in out and "No setting stands out" in out and "b/run" in out
    assert main(["fleet", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"critical": 1, "healthy": 3}


def test_a_digest_is_posted_and_handed_to_a_command(store: Path, tmp_path: Path, capsys: Capture) -> None:
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    assert main(["index", str(store)]) == 0
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    copy = tmp_path / "digest.json"
    command = f"{sys.executable} -c 'import sys; open(sys.argv[1], \"w\").write(sys.stdin.read())' {copy}"
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        assert main(["digest", str(store), "--notify", url, "--command", command, "--since", "1"]) == 0
    finally:
        server.shutdown()
        server.server_close()
    assert got[0]["text"].startswith("rldk: 4 runs: 1 critical, 3 healthy") and "(b/run)" in got[0]["text"]
    assert json.loads(copy.read_text())["digest"]["runs"] == 4
    capsys.readouterr()
    assert main(["digest", str(store), "--notify", "http://127.0.0.1:9/none"]) == 2
    assert "could not be sent" in capsys.readouterr().err
    assert main(["digest", str(store), "--since", "0"]) == 2
