"""Generate docs/coming-from/compared.md: `python -m scd_pipeline_tests.semantics.compared.page`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from scd_pipeline_tests.semantics.compared.histories import HISTORIES, MERGES, History, Merge, Outcome, Tool
from scd_pipeline_tests.semantics.compared.peers import RUNS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "coming-from" / "compared.md"

ALL = (*HISTORIES, *MERGES)

_INTRODUCTION = """
# Compared with dlt and dbt snapshots

Small histories, loaded by [dlt](dlt.md), by [dbt snapshots](dbt.md) and by `scd_pipeline`. All rows on this page are
measured: tests load each history with the real tools and compare the rows with this page. `make compare` installs the
tools in environments of their own and compares them again.

Versions: {versions}, all on DuckDB.

Deliveries arrive in the order of their lines, and each one is a load. `no row` is a delivery without rows, `absent` a
column that a delivery does not have, and `1..24` a row for each number. `at` is the time of the delivery. dlt gets it
as `boundary_timestamp`. dbt stores `updated_at` or the time of the run; this page has the time of the delivery in place
of that of its run. All rows have the names of this package, and OPEN is an open end. The [options](#options) of the
tools are at the end. Where dlt has `delete-insert` or `upsert`, this package has a landing table.
"""


def render_page() -> str:
    """Return the text of the page."""
    parts = [_INTRODUCTION.strip().format(versions=_versions()), _summary()]
    parts += [text for history in ALL for text in _history(history)]
    return "\n\n".join([*parts, "## Options", _options(), *_declarations()]) + "\n"


def _versions() -> str:
    """Return the locked versions of the tools."""
    files = sorted({run.tool.environment for run in RUNS}, reverse=True)
    texts = [(ROOT / "benchmarks" / "environments" / f"{name}.txt").read_text(encoding="utf-8") for name in files]
    locked = [match for text in texts for match in re.findall(r"^((?:dlt|dbt)[\w-]*)(?:\[\w+\])?==(\S+)$", text, re.M)]
    return ", ".join(f"{package} {version}" for package, version in locked)


def _summary() -> str:
    lines = ["| history | equal rows | other rows | rule |", "| --- | --- | --- | --- |"]
    for history in ALL:
        equal, other = (_names(each for each in history.outcomes if bool(each.table) is has) for has in (False, True))
        rules = dict.fromkeys(_link(each.rule) for each in history.outcomes if each.rule)
        lines.append(f"| [{history.title}](#{_anchor(history.title)}) | {equal} | {other} | {', '.join(rules)} |")
    return "\n".join(lines)


def _history(history: History | Merge) -> list[str]:
    tables = f"-- deliveries\n{history.deliveries.table}\n\n-- rows\n{history.becomes}"
    return [f"## {history.title}", history.text, _block(tables), *_outcomes(history)]


def _outcomes(history: History | Merge) -> list[str]:
    return [text for outcome in history.outcomes for text in _outcome(outcome)]


def _outcome(outcome: Outcome) -> list[str]:
    rule = f" ({_link(outcome.rule)})" if outcome.rule else ""
    notes = [] if outcome.table else ["equal rows."]
    notes += [outcome.note] if outcome.note else []
    text = f"{_names([outcome])}{rule}: {' '.join(notes)}".rstrip()
    return [text, _block(outcome.table)] if outcome.table else [text]


def _options() -> str:
    tools = dict.fromkeys((run.tool.name, _texts(run.tool)) for run in RUNS)
    lines = ["| tool | options |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {name} | {options} |" for name, options in tools)])


def _texts(tool: Tool) -> str:
    return ", ".join(f"`{name}: {_text(value)}`" for name, value in tool.options.items())


def _text(value: object) -> str:
    return str(value).replace("'", "").replace("True", "true")


def _declarations() -> list[str]:
    """Return the declarations of this package with the histories that they load."""
    parts = []
    for declaration in dict.fromkeys(history.declaration for history in ALL):
        titles = [history.title for history in ALL if history.declaration == declaration]
        links = ", ".join(f"[{title}](#{_anchor(title)})" for title in titles)
        parts += [f"{links}:", f"```yaml\n{inspect.cleandoc(declaration)}\n```"]
    return ["The declarations here, with the histories that they load:", *parts]


def _names(outcomes: Iterable[Outcome]) -> str:
    return ", ".join(tool.name for outcome in outcomes for tool in outcome.tools)


def _link(rule: str) -> str:
    return f"[{rule}](../semantics.md#{rule.lower()})"


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


def main() -> None:
    """Write the page."""
    PAGE.write_text(render_page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
