"""README and docs as data: links, headings, and shell blocks with their needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from commands import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS = {"time", "gdb", "gpu", "network", "build", "terminal"}
_FENCE = re.compile(r"^```", re.MULTILINE)
_BLOCK = re.compile(r"(?:<!-- needs: (?P<needs>.*?) -->\n)?^```sh\n(?P<text>.*?)^```$", re.M | re.S)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
_STATUS = re.compile(r"# exit status (\d+)")


@dataclass(frozen=True)
class Line:
    """One command of a block, and the exit status that the page promises."""

    command: str
    status: int


@dataclass(frozen=True)
class Block:
    """A shell block of a page."""

    page: Path
    number: int  # of its first line in the page
    needs: str  # "" if the block runs everywhere
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.number}"


def blocks() -> list[Block]:
    """The shell blocks of all pages, in order."""
    return [block for page in PAGES for block in _blocks(page)]


def links(page: Path) -> list[str]:
    """The relative links of a page, with their anchors."""
    targets = [match["target"] for match in _LINK.finditer(_prose(page))]
    return [target for target in targets if "://" not in target]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        number = text.count("\n", 0, match.start("text")) + 1
        joined = match["text"].replace("\\\n", " ")
        lines = tuple(_line(line) for line in joined.splitlines() if line.strip())
        yield Block(page, number, match["needs"] or "", lines)


def _line(text: str) -> Line:
    status = _STATUS.search(text)
    return Line(text.strip(), int(status[1]) if status else 0)


def _prose(page: Path) -> str:
    # code may hold what looks like a link or a heading
    return "".join(_FENCE.split(page.read_text())[::2])
