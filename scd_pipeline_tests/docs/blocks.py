"""The blocks of code in a page."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parent.parent.parent / "README.md"


def blocks(page: Path, language: str) -> list[str]:
    """The texts of all fenced blocks of one language; "" for those that name none."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]
