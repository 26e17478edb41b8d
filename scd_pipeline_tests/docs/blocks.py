"""The pages of the documentation and their blocks of code.

A comment in the line above a block has the information that the block itself lacks: `<!-- part of: source -->` above a
fragment of YAML, `<!-- exit code: 3 -->` above a command that is expected to fail, and `<!-- not run -->` above one
that does not end by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").rglob("*.md")))

_BLOCK = re.compile(
    r'(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    flags=re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    start: int
    """Position of the block's text in the page."""
    language: str
    title: str
    text: str
    note: str

    @property
    def name(self) -> str:
        """Page and line, for a test's id."""
        line = self.page.read_text(encoding="utf-8")[: self.start].count("\n") + 1
        return f"{self.page.relative_to(ROOT)}:{line}"

    @property
    def section(self) -> str:
        """The heading of the section that the block is in; empty before the first one."""
        headings = re.findall(r"^## (.+)$", self.page.read_text(encoding="utf-8")[: self.start], flags=re.MULTILINE)
        return headings[-1] if headings else ""

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of a block of shell, without comments; a line that ends in a backslash continues."""
        lines = self.text.replace("\\\n", " ").splitlines()
        commands = (re.split(r"\s+#\s", line)[0].strip() for line in lines)
        return tuple(command for command in commands if command and not command.startswith("#"))


def blocks(page: Path, *languages: str) -> tuple[Block, ...]:
    """Return the blocks of a page in order, or only those of the given languages."""
    matches = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    page_blocks = (
        Block(page, match.start("text"), match["language"], match["title"] or "", match["text"], match["note"] or "")
        for match in matches
    )
    return tuple(block for block in page_blocks if not languages or block.language in languages)


def all_blocks(*languages: str, pages: Sequence[Path] = PAGES) -> list[Block]:
    """Return the blocks of all pages in some languages."""
    return [block for page in pages for block in blocks(page, *languages)]
