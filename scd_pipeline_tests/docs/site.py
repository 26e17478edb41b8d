"""Hooks of MkDocs: links in the pages of the site.

This module is loaded in the environment of the site, which has neither Spark nor this package's dependencies.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:scd_pipeline|scd_pipeline_tests|examples|benchmarks)/[^)#]+)\)")
"""A link to a file of the repository that is not a page of the site."""

log = logging.getLogger("mkdocs.hooks.site")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Name files of the repository instead of linking to them.

    The Markdown itself is a part of the site too: `llms.txt` links to it.
    """
    markdown = OUTSIDE.sub(lambda link: _file_title(link, page.file.src_uri), markdown)
    copy = Path(config["site_dir"]) / page.file.src_uri
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(markdown, encoding="utf-8")
    return markdown


def _file_title(link: re.Match[str], page: str) -> str:
    title, path = link.groups()
    if not (ROOT / path).exists():
        log.warning("%s: the file %s does not exist", page, path)
    return title if title == path else f"{title} (`{path}`)"
