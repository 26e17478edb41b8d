"""The commands that watch over the tables: archive, check, repair and status."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from scd_pipeline.cli.console import progress, report, warn
from scd_pipeline.cli.context import Settings, complete_tables, with_output, with_settings
from scd_pipeline.cli.render import Output, print_table
from scd_pipeline.cli.rows import Kind, Rows, collect, of_kind
from scd_pipeline.exit_codes import ExitCode
from scd_pipeline.texts import join_names, pluralize

if TYPE_CHECKING:
    from scd_pipeline.operations.check import CheckResult
    from scd_pipeline.operations.status import SourceStatus, Status, TableStatus

_CHECK_COLUMNS: dict[str, Kind] = {
    **of_kind("text", "table", "invariant", "result"),
    "violations": "number",
    "keys": "json",
}
_PRINTED_DIFFERENCES = 20
_SOURCE_COLUMNS: dict[str, Kind] = {
    **of_kind("text", "table", "source"),
    "batches": "number",
    "last_delivery": "text",
    "last_at": "instant",
    "age_days": "number",
    **of_kind("json", "pending", "rejected"),
    "quarantined": "number",
    "warnings": "json",
}
_TABLE_COLUMNS: dict[str, Kind] = {
    **of_kind("number", "commits", "log_lag", "audit_lag"),
    "dimensions_ahead": "json",
    "unknown_members": "number",
    "damage": "json",
    "retired_attributes": "json",
}


@click.command()
@click.argument("table", required=False, metavar="[TABLE]", shell_complete=complete_tables)
@with_settings
@with_output
def check(settings: Settings, *, table: str | None, output: Output) -> ExitCode:
    """Check all table invariants and list the violations.

    TABLE is a dimension or a fact. Without it, all declared tables are checked.
    """
    from scd_pipeline.operations.check import check_table

    results: list[CheckResult] = []
    never_loaded: list[str] = []
    declared = settings.declared_tables(table)
    with settings.open() as warehouse:
        for step, item in enumerate(declared, start=1):
            with progress(f"checking {item.name}", step, len(declared)):
                table_results = check_table(warehouse, item)
            results += table_results
            never_loaded += [] if table_results else [item.name]
    _write_check(results, output)
    for name in never_loaded:
        report(f"{name}: nothing to check: it was never loaded")
    outcomes = [result.outcome for result in results]
    failed, warnings = outcomes.count("failed"), outcomes.count("warning")
    summary = f"{pluralize(len(results), 'check')}: {outcomes.count('passed')} passed, {failed} failed"
    _summarize(f"{summary}, {pluralize(warnings, 'warning')}" if warnings else summary, output)
    return ExitCode.FAILED if failed else ExitCode.DONE


@click.command()
@click.argument("dimension", metavar="DIMENSION", shell_complete=complete_tables)
@click.option("--dry-run", is_flag=True, help="Show the rows that differ, and write nothing.")
@click.option(
    "--without-log",
    is_flag=True,
    help="Repair a table of another program, which has no change log: remove overlaps of its versions.",
)
@click.option(
    "--actor", default="", metavar="NAME", help="Person who repairs, for the audit [default: user:NAME of the user]."
)
@click.option(
    "--reason", default="repair", metavar="TEXT", help="Reason of the repair, for the audit [default: repair]."
)
@with_settings
@with_output
def repair(
    settings: Settings, *, dimension: str, dry_run: bool, without_log: bool, actor: str, reason: str, output: Output
) -> ExitCode:
    """Replace the rows of a dimension that differ from its change log.

    Use it if another program has changed rows: afterwards, the table has the rows that a rebuild would give it, and
    loads continue. The audit records each row with its old and new values.
    """
    from scd_pipeline.declaration.names import quote_name
    from scd_pipeline.operations.repair import repair as repair_from_log
    from scd_pipeline.operations.repair_without_log import repair_without_log
    from scd_pipeline.operations.summary import row_summary
    from scd_pipeline.queries import create_views

    declared = settings.declared_dimension(dimension)
    run = repair_without_log if without_log else repair_from_log
    with settings.open(quick=False) as warehouse:
        with progress(f"comparing the rows of {declared.name}"):
            result = run(
                warehouse,
                declared,
                now=datetime.now(timezone.utc),
                actor=actor or f"user:{_user_name()}",
                reason=reason,
                dry_run=dry_run,
            )
            if result.commit is not None:
                create_views(warehouse, [declared.name], settings.declared_facts(dimension), on_failure=warn)
            ordered = result.differences.orderBy(*[quote_name(name) for name in result.differences.columns[1:-1]])
            rows = collect(ordered, _PRINTED_DIFFERENCES if output.is_table else 0)
        if rows.values or not output.is_table:
            output.write_collected(ordered, rows)
    if result.table_version is None:
        counts = ", ".join(f"{count} to {action}" for action, count in result.row_counts.items())
        state = "nothing was written"
    else:
        counts, state = row_summary(result.row_counts), f"table version {result.table_version}"
    rebuilt = f"; {join_names(result.child_tables)} to rebuild" if result.child_tables else ""
    _summarize(f"{declared.name}: {counts or 'no row differs'}{rebuilt}; {state}", output)
    return ExitCode.DONE


@click.command()
@click.argument("dimension", metavar="DIMENSION", shell_complete=complete_tables)
@click.option(
    "--closed-before",
    default="",
    metavar="TIME",
    help="Time before which the moved versions ended  [default: `archive_after_years` of the declaration ago].",
)
@click.option("--by", required=True, metavar="NAME", help="Person who archives, for the metadata of the commit.")
@click.option("--reason", required=True, metavar="TEXT", help="Reason, for the metadata of the commit.")
@with_settings
def archive(settings: Settings, *, dimension: str, closed_before: str, by: str, reason: str) -> None:
    """Move old closed versions of a dimension to its archive.

    Queries and views read the archive too: their results do not change.
    """
    from scd_pipeline.operations.archive import archive as move
    from scd_pipeline.operations.archive import archive_time
    from scd_pipeline.queries import create_views

    declared = settings.declared_dimension(dimension)
    time = archive_time(declared, closed_before or None, now=datetime.now(timezone.utc))
    with settings.open(quick=False) as warehouse, progress(f"archiving versions of {declared.name}"):
        result = move(warehouse, declared, closed_before=time, by=by, reason=reason)
        if result.commit is not None:
            create_views(warehouse, [declared.name], settings.declared_facts(dimension), on_failure=warn)
    print(result)


def _user_name() -> str:
    """Return the name of the user, or its number if it has no account, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _write_check(results: Sequence[CheckResult], output: Output) -> None:
    records = [(r.table, r.check, r.outcome, r.count, list(r.keys)) for r in results]
    rows = Rows.from_records(_CHECK_COLUMNS, records)
    if not output.is_table:
        output.write(rows)
        return
    if rows.values:
        output.write(rows.select(["table", "invariant", "result", "violations"]))
    for result in results:
        if not result.passed:
            print(result)


@click.command()
@with_settings
@click.option(
    "--plan",
    "plan_pending",
    is_flag=True,
    help="Also plan a load of the pending deliveries, and list those that it would reject.",
)
@with_output
def status(settings: Settings, *, plan_pending: bool, output: Output) -> ExitCode:
    """Show last deliveries, pending deliveries and table lag.

    Pending deliveries are listed, but not read. With --plan the command takes about as long as their load.

    The command fails if a table is damaged: until it is repaired, every load of it fails.
    """
    from scd_pipeline.operations.status import status as read_status

    declared = settings.declared_tables()
    with settings.open() as warehouse, progress("reading the tables"):
        current = read_status(warehouse, declared, now=datetime.now(timezone.utc), plan_pending=plan_pending)
    if output.is_table:
        _print_status(current, output)
    else:
        tables = {table.table: table for table in current.tables}
        records = [(*_source_record(source), *_table_record(tables[source.table])) for source in current.sources]
        output.write(Rows.from_records({**_SOURCE_COLUMNS, **_TABLE_COLUMNS}, records))
    _summarize(_status_summary(current), output)
    return ExitCode.FAILED if any(table.damage for table in current.tables) else ExitCode.DONE


def _source_record(source: SourceStatus) -> tuple[object, ...]:
    age = source.age.days if source.age is not None else None
    last = (source.last_delivery or None, source.last, age)
    return (
        source.table,
        source.source,
        source.batches,
        *last,
        list(source.pending),
        None if source.rejected is None else list(source.rejected),
        source.quarantined,
        [str(warning) for warning in source.warnings],
    )


def _table_record(table: TableStatus) -> tuple[object, ...]:
    lag = (table.commits, table.lag, table.audit_lag)
    return (*lag, list(table.dimensions_ahead), table.unknown_members, list(table.damage), dict(table.retired))


def _print_status(current: Status, output: Output) -> None:
    """Print a table of the sources and one of the tables, with what needs attention below each."""
    kinds = {
        **of_kind("text", "table", "source", "last delivery", "age"),
        **of_kind("number", "pending", "rejected", "quarantined"),
    }
    sources = [
        (s.table, s.source, s.last_delivery, _age(s), len(s.pending), _rejected(s), s.quarantined)
        for s in current.sources
    ]
    print_table(Rows.from_records(kinds, sources), sys.stdout, output.terminal_width)
    for source in current.sources:
        for text in source.rejected or ():
            print(f"rejected: {source.table}, {source.source}/{text}")
        for warning in source.warnings:
            print(f"warning: {warning}")
    lag_kinds = {
        **of_kind("text", "table"),
        **of_kind("number", "commits", "log lag", "audit lag"),
        **of_kind("text", "dimensions ahead"),
        **of_kind("number", "unknown members"),
    }
    tables = [
        (t.table, t.commits, t.lag, t.audit_lag, ", ".join(t.dimensions_ahead), t.unknown_members)
        for t in current.tables
    ]
    print_table(Rows.from_records(lag_kinds, tables), sys.stdout, output.terminal_width)
    for table in current.tables:
        for text in table.damage:
            print(f"damaged: {table.table}: {text}")
        for name, time in table.retired.items():
            print(f"retired: {table.table}.{name}: no longer provided since {time}")


def _rejected(source: SourceStatus) -> int | None:
    return None if source.rejected is None else len(source.rejected)


def _age(source: SourceStatus) -> str:
    return pluralize(source.age.days, "day") if source.age is not None else ""


def _status_summary(current: Status) -> str:
    pending = sum(len(source.pending) for source in current.sources)
    rejected = "" if current.rejected_count is None else f"{current.rejected_count} rejected, "
    quarantined = sum(source.quarantined for source in current.sources)
    behind = sum(bool(t.lag or t.audit_lag or t.dimensions_ahead) for t in current.tables)
    damaged = sum(bool(table.damage) for table in current.tables)
    return (
        f"{pluralize(len(current.tables), 'table')}: {pluralize(pending, 'pending delivery')}, {rejected}"
        f"{pluralize(quarantined, 'bad row')} in quarantine, {pluralize(behind, 'table')} behind, {damaged} damaged"
    )


def _summarize(text: str, output: Output) -> None:
    """Print the last line: after a table as a part of it, else as a message."""
    if output.is_table:
        print(text)
    else:
        report(text)
