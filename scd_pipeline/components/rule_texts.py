"""Texts of the rules that a check verifies, for results whose reader has no address of the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from scd_pipeline.operations.checklist.pages import CLONE_DOCS

_RULE = re.compile(r"^### (S\d+)\. (.+?)\n\n(.+?)\n\n(?=Details:|Example: |Tests:)", re.MULTILINE | re.DOTALL)
"""The number, the title and the statement of a rule on the page of the rules."""


@cache
def rule_texts(folder: Path = CLONE_DOCS) -> Mapping[str, str]:
    """Return title and statement of each rule in Markdown, by its number; none without the page of the rules.

    Args:
        folder: The documentation in a clone.
    """
    page = folder / "semantics.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    return {number: f"**{number}. {title}**\n\n{statement}" for number, title, statement in _RULE.findall(text)}
