"""The commands about the logs of timed tables: log append, log fold and log show."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from scd_pipeline.cli.console import report
from scd_pipeline.cli.context import Settings, limit_option, with_output, with_settings
from scd_pipeline.cli.render import Output
from scd_pipeline.cli.rows import Kind, Rows
from scd_pipeline.texts import pluralize

if TYPE_CHECKING:
    from scd_pipeline.delta.commits import StoredRead

_COLUMNS: dict[str, Kind] = {
    "position": "number",
    "time": "text",
    "statement": "text",
    "author": "text",
    "reason": "text",
    "rows": "number",
    "folded": "text",
}


@click.group()
def log() -> None:
    """Append to the log of a timed table, fold it, or show it."""


@log.command()
@click.argument("table", metavar="TABLE")
@click.argument("statement", metavar="STATEMENT")
@click.option("--at", "time", default="", metavar="TIME", help="Time of the statement  [default: now].")
@click.option("--by", "author", required=True, metavar="NAME", help="Author of the statement.")
@click.option("--reason", default="", metavar="TEXT", help="Reason of the statement.")
@with_settings
def append(settings: Settings, *, table: str, statement: str, time: str, author: str, reason: str) -> None:
    """Check an UPDATE or DELETE statement, and append it to the log of a timed table."""
    from scd_pipeline import queries
    from scd_pipeline.timed.append import append_statements
    from scd_pipeline.timed.times import from_millis

    timed, now = settings.declared_timed_table(table), datetime.now(timezone.utc)
    millis = queries.parse_statement_time(timed, time, now, "--at")
    with settings.open() as warehouse:
        appended = append_statements(warehouse, timed, statement, millis=millis, author=author, reason=reason, now=now)
    print(f"{timed.name}: appended {pluralize(len(appended), 'statement')} at {from_millis(millis)}")


@log.command()
@click.argument("table", metavar="TABLE")
@click.option("--until", required=True, metavar="TIME", help="Time of the last statements to fold.")
@click.option("--by", "author", required=True, metavar="NAME", help="Person or program that folds.")
@click.option("--reason", default="", metavar="TEXT", help="Reason of the fold.")
@with_settings
def fold(settings: Settings, *, table: str, until: str, author: str, reason: str) -> None:
    """Write the rows at a time as the new base of a timed table, to which reads apply later statements.

    Reads at an earlier time are rejected from then on. Without statements to fold, nothing is written.
    """
    from scd_pipeline import queries
    from scd_pipeline.timed.fold import fold_log
    from scd_pipeline.timed.times import from_millis

    timed, now = settings.declared_timed_table(table), datetime.now(timezone.utc)
    millis = queries.parse_statement_time(timed, until, now, "--until")
    with settings.open() as warehouse:
        folded = fold_log(warehouse, timed, until=millis, author=author, reason=reason, now=now)
    print(f"{timed.name}: folded {pluralize(folded, 'statement')} up to {from_millis(millis)}")


@log.command()
@click.argument("table", metavar="TABLE")
@click.option("--time", default=None, metavar="TIME", help="Time of the read  [env: SCD_TIME; default: now].")
@limit_option
@with_settings
@with_output
def show(settings: Settings, *, table: str, time: str | None, output: Output) -> None:
    """Show the statements of a log in the order in which they apply.

    `rows` is the number of rows that a statement hits; it is empty for a statement after TIME, and for a folded one.
    `folded` is the time of its fold, and who folded it.
    """
    from scd_pipeline import queries
    from scd_pipeline.timed.folded_base import read_folds
    from scd_pipeline.timed.read import read_state
    from scd_pipeline.timed.times import from_millis

    timed, now = settings.declared_timed_table(table), datetime.now(timezone.utc)
    at = queries.parse_read_time(timed, settings.time(time), now, "--time")
    with settings.open() as warehouse:
        state = read_state(warehouse, timed)
        hits = {each.statement.position: each.rows for each in state.hits(at)}
        folds = read_folds(warehouse, timed)
    records = [
        (
            each.position,
            from_millis(each.millis),
            each.text,
            each.author,
            each.reason,
            hits.get(each.position),
            next((_fold_text(fold) for fold in folds if each.millis <= fold.until), None),
        )
        for each in state.log
    ]
    output.write(Rows.from_records(_COLUMNS, records[: output.limit or None]))
    if output.is_table:
        report(pluralize(len(records), "statement"))


def _fold_text(fold: StoredRead) -> str:
    from scd_pipeline.timed.times import from_millis

    return ": ".join(filter(None, (f"{from_millis(fold.at)} by {fold.author}", fold.reason)))
