"""The documentation site builds without a warning, its links lead somewhere, and it fetches nothing from the web."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import rldk
from rldk.cli.main import COMMANDS
from rldk.detectors.table import DETECTORS

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
RESOURCES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data", "link": "href"}


@dataclass
class Page(HTMLParser):
    """The anchors of a page, where it leads, and what a browser would load with it."""

    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        if RESOURCES.get(tag) in named and named.get("rel") not in ("canonical", "prev", "next"):
            self.resources.append(named[RESOURCES[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocstrings")  # of the extra `docs`
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {}
    for path in site.rglob("*.html"):
        if path.name != "404.html":  # its addresses begin at the root of a server
            found[path] = Page()
            found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_every_page_of_docs_is_built(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert sources and [str(path) for path in sources if not (site / path).is_file()] == []
    assert not list(site.rglob("*.py"))


def test_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.resources]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            lost = parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors
            if lost or not target.is_file():
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_the_reference_is_complete(site: Path, pages: dict[Path, Page]) -> None:
    """Every command, every function of `import rldk` and every detector has its place, with its text."""
    assert {f"rldk-{name}" for name in COMMANDS} <= pages[site / "commands.html"].anchors
    assert {f"rldk.{name}" for name in rldk.__all__ if name != "__version__"} <= pages[site / "api.html"].anchors
    assert "Judge the runs of a file" in (site / "api.html").read_text(encoding="utf-8")
    linked = set(pages[site / "symptoms.html"].links)
    assert {f"detectors/{kind.type}.html" for kind in DETECTORS} <= linked


def test_nothing_is_fetched_from_the_web(site: Path, pages: dict[Path, Page]) -> None:
    outside = [
        f"{path.relative_to(site)}: {resource}"
        for path, page in pages.items()
        for resource in page.resources
        if urlsplit(resource).netloc
    ]
    assert outside == []
    styles = [path.name for path in site.rglob("*.css") if "url(http" in path.read_text() or "@import" in path.read_text()]
    assert styles == []
    diagrams = [path.name for path in pages if 'class="mermaid"' in path.read_text()]
    assert diagrams == [], "their script would be loaded from the web"
