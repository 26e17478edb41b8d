"""Look up the pages of the documentation that the checklist refers to."""

from __future__ import annotations

import re
from pathlib import Path

REPAIR, REBUILD, LATE_FACTS = "repair of duplicates", "backfill and rebuild", "late facts"
PAGES = {
    REPAIR: "how-to/runbooks.md#repair-duplicates",
    REBUILD: "how-to/runbooks.md#backfill",
    LATE_FACTS: "how-to/facts.md",
}
"""The page of each topic in the documentation of this package, with the section of a runbook."""

CLONE_DOCS = Path(__file__).parents[3] / "docs"
"""The documentation in a clone; an installed package does not contain it."""


def documentation_pages(docs_url: str = "", clone: Path = CLONE_DOCS) -> dict[str, str]:
    """Return the address of the page of each topic, without topics that have none.

    Pages of a folder are read, so that a page or a section that was removed is missing. Pages at a URL are not
    requested, because the checklist needs no network: the setting itself is the evidence.

    Args:
        docs_url: The URL or the folder of the documentation; empty for the one in the clone, if this is a clone.
        clone: The folder of the documentation in a clone.
    """
    location = docs_url.rstrip("/")
    addresses = {topic: f"{location or 'docs'}/{page}" for topic, page in PAGES.items()}
    if "://" in location:
        return addresses
    folder = Path(location) if location else clone
    return {topic: address for topic, address in addresses.items() if _exists(folder, PAGES[topic])}


def _exists(folder: Path, page: str) -> bool:
    """Return whether a folder has a page with its section."""
    name, _, section = page.partition("#")
    file = folder / name
    return file.is_file() and (not section or section in _sections(file.read_text(encoding="utf-8")))


def _sections(text: str) -> set[str]:
    """Return the anchors of the headings of a page in Markdown."""
    headings: list[str] = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {heading.strip().lower().replace(" ", "-") for heading in headings}
