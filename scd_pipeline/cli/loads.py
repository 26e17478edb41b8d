"""The commands that load: load, plan and withdraw."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from scd_pipeline.cli.console import error, progress, report, warn
from scd_pipeline.cli.context import Settings, complete_tables, with_output, with_settings
from scd_pipeline.cli.render import Output, print_table
from scd_pipeline.cli.rows import Rows, collect, of_kind
from scd_pipeline.declaration import DeclaredTable, Dimension
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.errors import OVERRIDABLE_RULES
from scd_pipeline.exit_codes import ExitCode
from scd_pipeline.texts import pluralize

if TYPE_CHECKING:
    from scd_pipeline.deliveries.delivery import Delivery
    from scd_pipeline.deliveries.discovery import Discovery
    from scd_pipeline.deliveries.result import BatchResult
    from scd_pipeline.delta.warehouse import Warehouse
    from scd_pipeline.load.load_plan import LoadPlan
    from scd_pipeline.load.run import LoadResult

COLUMNS = {
    **of_kind("text", "table", "delivery", "outcome"),
    **of_kind("number", "rows", "new", "changed", "deleted", "bad_rows"),
    **of_kind("number", "nulled_values", "filtered_rows", "undeclared_columns"),
    **of_kind("text", "code", "problem"),
}
_SHOWN_COLUMNS = ("delivery", "outcome", "rows", "new", "changed", "deleted", "bad_rows")


class _Rule(click.Choice[str]):
    """A rule that can be overridden; its name can also be written with hyphens."""

    def __init__(self) -> None:
        super().__init__(OVERRIDABLE_RULES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the rule."""
        return super().convert(str(value).replace("-", "_"), param, ctx)


def load_options(function: Any) -> Any:
    """Add the arguments that choose what to load."""
    table = click.argument("table", required=False, metavar="[TABLE]", shell_complete=complete_tables)
    delivery = click.option(
        "--delivery",
        "names",
        multiple=True,
        metavar="NAME",
        help="Delivery to load, such as 2024-01-31, or crm.snapshot.2024-01-31 for one channel; repeatable  "
        "[default: all].",
    )
    allow = click.option(
        "--allow",
        multiple=True,
        type=_Rule(),
        help="Rule to override for these deliveries; repeatable.",
    )
    return table(delivery(allow(function)))


@click.command()
@load_options
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Attempts of the load of each table, with growing waits after write conflicts  [default: 5].",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time of the command, after which it begins no further step of a load  [default: unlimited].",
)
@with_settings
@with_output
def load(
    settings: Settings,
    *,
    table: str | None,
    names: Sequence[str],
    allow: Sequence[str],
    attempts: int | None,
    time_limit: float | None,
    output: Output,
) -> ExitCode:
    """Load new deliveries into dimensions and facts.

    TABLE is a dimension, a fact or a landing table, or a file or folder of declarations. Without it, all declared
    tables are loaded.
    """
    from scd_pipeline.load.deadline import Deadline
    from scd_pipeline.load.retry import Retry
    from scd_pipeline.load.run import load as load_table
    from scd_pipeline.queries import create_views

    records: list[tuple[object, ...]] = []
    is_rejected = False
    declared, facts = settings.declared_tables(table), settings.declared_facts(table)
    print_declaration_warnings(declared)
    retry = Retry() if attempts is None else Retry(attempts)
    deadline = None if time_limit is None else Deadline(time.monotonic() + time_limit, time.monotonic)
    with settings.open(quick=False) as warehouse:
        variables = settings.environment.variables
        selected = _select_deliveries(declared, warehouse, names, allow, variables)
        for step, (item, available) in enumerate(selected, start=1):
            if _reads_landing_table(item):  # which this command may have loaded
                ((_, available),) = _select_deliveries([item], warehouse, names, allow, variables, requires_names=False)
                if names and not available.deliveries:
                    continue
            deliveries = available.deliveries
            with progress(f"loading {item.name}", step, len(selected)) as task:
                task(f"{item.name}: {pluralize(len(deliveries), 'delivery')}")
                result = load_table(
                    warehouse,
                    item,
                    deliveries,
                    retry=retry,
                    progress=task,
                    warnings=available.warnings,
                    has_facts=any(item in fact.dimensions for fact in facts),
                    deadline=deadline,
                )
                create_views(warehouse, [item.name], facts, on_failure=warn)
            keys = _partition_keys(item, deliveries)
            changed = [
                (key, batch) for key, batch in zip(keys, result.results, strict=True) if batch.outcome != "unchanged"
            ]
            table_records = [_record(item.name, key, batch) for key, batch in changed]
            records += table_records
            _print_result(result, Rows.from_records(COLUMNS, table_records), [batch for _, batch in changed], output)
            is_rejected = is_rejected or bool(result.rejected) or available.has_only_near_matches
    if not output.is_table:
        output.write(Rows.from_records(COLUMNS, records))
    return ExitCode.REJECTED if is_rejected else ExitCode.DONE


def print_declaration_warnings(declared: Sequence[DeclaredTable]) -> None:
    """Print what is valid in the declarations, but rarely intended."""
    for dimension in (item for item in declared if isinstance(item, Dimension)):
        for warning in dimension.warnings:
            warn(str(warning))


def _print_result(result: LoadResult, rows: Rows, batches: Sequence[BatchResult], output: Output) -> None:
    """Print the batches that changed something, and the sums; for programs only the messages."""
    from scd_pipeline.deliveries.result import undeclared_summary
    from scd_pipeline.operations.summary import load_summary

    if output.is_table:
        _print_batches(rows, output)
        if undeclared := sorted({name for batch in batches for name in batch.undeclared}):
            print(f"  {undeclared_summary(undeclared)}")
        if nulled := sum(batch.nulled_values for batch in batches):
            print(f"  bad values set to NULL: {nulled}")
        if filtered := sum(batch.filtered_rows for batch in batches):
            print(f"  filtered rows: {filtered}")
        print(load_summary(result))
    else:
        report(load_summary(result))
    for change in result.attribute_changes:
        report(f"{result.table}: {change}")
    for warning in result.warnings:
        warn(str(warning))
    for batch in result.results:
        if batch.outcome == "rejected":
            error(str(batch))
        elif batch.code:
            warn(str(batch))


def _print_batches(rows: Rows, output: Output) -> None:
    if rows.values:
        print_table(rows.select(_SHOWN_COLUMNS), sys.stdout, output.terminal_width, indent="  ")


@click.command()
@load_options
@click.option(
    "--bad-rows",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=20,
    metavar="[ROWS]",
    help="Show bad rows with their reasons, including those of rejected deliveries; at most ROWS, or 20.",
)
@with_settings
@with_output
def plan(
    settings: Settings,
    *,
    table: str | None,
    names: Sequence[str],
    allow: Sequence[str],
    bad_rows: int | None,
    output: Output,
) -> ExitCode:
    """Show what a load would do, and write nothing.

    TABLE is a dimension, a fact or a landing table, or a file or folder of declarations. Without it, all declared
    tables are planned. A fact gets the surrogate keys that the loads of the planned dimensions would give.
    """
    from scd_pipeline.load.run import plan as plan_load

    records: list[tuple[object, ...]] = []
    is_rejected = False
    declared = settings.declared_tables(table)
    print_declaration_warnings(declared)
    plans: dict[str, LoadPlan] = {}
    with settings.open(quick=False) as warehouse:
        selected = _select_deliveries(declared, warehouse, names, allow, settings.environment.variables)
        for step, (item, available) in enumerate(selected, start=1):
            with progress(f"planning {item.name}", step, len(selected)):
                planned = plan_load(
                    warehouse, item, available.deliveries, dimensions=plans, warnings=available.warnings
                )
            plans[item.name] = planned
            keys = _partition_keys(item, available.deliveries)
            records += [_record(item.name, key, batch) for key, batch in zip(keys, planned.results, strict=True)]
            has_rejected = any(result.outcome == "rejected" for result in planned.results)
            is_rejected = is_rejected or has_rejected or available.has_only_near_matches
            _print_plan(planned, output)
            if bad_rows:
                _print_bad_rows(planned, bad_rows, output)
    if not output.is_table:
        output.write(Rows.from_records(COLUMNS, records))
    return ExitCode.REJECTED if is_rejected else ExitCode.DONE


def _print_plan(planned: LoadPlan, output: Output) -> None:
    """Print the plan, and some of the rows that would change; for programs only the warnings."""
    from scd_pipeline.operations.summary import summary_columns

    if not output.is_table:
        for warning in planned.warnings:
            warn(str(warning))
        return
    print(planned.explain())
    if planned.has_actions:
        examples = collect(planned.examples())
        print("  for example:")
        columns = summary_columns(examples.names, planned.dimension)
        print_table(examples.select(columns), sys.stdout, output.terminal_width, indent="    ")


def _print_bad_rows(planned: LoadPlan, limit: int, output: Output) -> None:
    bad_rows = collect(planned.bad_rows(), limit)
    if not bad_rows.values:
        return
    report(f"{planned.dimension.name}: bad rows{f' (the first {limit})' if bad_rows.has_more else ''}:")
    stream = sys.stdout if output.is_table else sys.stderr
    print_table(bad_rows, stream, output.terminal_width if output.is_table else None, indent="    ")


def _record(table: str, key: str, batch: BatchResult) -> tuple[object, ...]:
    counts = (batch.rows, batch.new, batch.changed, batch.deleted)
    problems = (batch.bad_rows, batch.nulled_values, batch.filtered_rows, len(batch.undeclared))
    return (table, key, batch.outcome, *counts, *problems, batch.code or None, batch.problem or None)


def _partition_keys(item: DeclaredTable, deliveries: Sequence[Delivery]) -> list[str]:
    from scd_pipeline.deliveries.partitions import partition_key

    return [partition_key(delivery, as_dimension(item)) for delivery in deliveries]


def _reads_landing_table(item: DeclaredTable) -> bool:
    return any(source.landing_table is not None for source in as_dimension(item).sources)


def _select_deliveries(
    declared: Sequence[DeclaredTable],
    warehouse: Warehouse,
    names: Sequence[str],
    allow: Sequence[str],
    variables: Mapping[str, str],
    *,
    requires_names: bool = True,
) -> list[tuple[DeclaredTable, Discovery]]:
    """Return the declared tables, each with its deliveries; if deliveries are named, only the tables that may have any.

    Raises:
        UsageError: No table has a delivery of one of the names, and `requires_names`.
    """
    from scd_pipeline.deliveries.discovery import select_by_table
    from scd_pipeline.load.source_deliveries import other_deliveries

    row_dimensions = [as_dimension(item) for item in declared]
    now = datetime.now(timezone.utc)
    others = partial(other_deliveries, warehouse, variables=variables, now=now)
    available = select_by_table(
        row_dimensions, warehouse.spark, names=names, allow=allow, others=others, requires_names=requires_names
    )
    return [
        (item, each)
        for item, each in zip(declared, available, strict=True)
        if each.deliveries or not names or _reads_landing_table(item)
    ]


@click.command()
@click.argument("table", metavar="TABLE", shell_complete=complete_tables)
@click.argument("delivery", metavar="DELIVERY")
@click.option("--by", required=True, metavar="NAME", help="Person who withdraws the delivery, for its batch.")
@click.option("--reason", required=True, metavar="TEXT", help="Reason, for its batch.")
@with_settings
@with_output
def withdraw(settings: Settings, *, table: str, delivery: str, by: str, reason: str, output: Output) -> None:
    """Undo one delivery of a table, and no other.

    TABLE is a dimension, a fact or a landing table; DELIVERY is a name such as 2024-01-31, or crm.snapshot.2024-01-31
    for one channel. The delivery is loaded again only by `scd load --delivery DELIVERY --allow withdrawn`.
    """
    from scd_pipeline.load.run import load as load_table
    from scd_pipeline.operations.withdrawals import withdrawal
    from scd_pipeline.queries import create_views

    declared, facts = settings.declared_table(table), settings.declared_facts(table)
    with settings.open(quick=False) as warehouse, progress(f"withdrawing {delivery} of {declared.name}") as task:
        withdrawn = withdrawal(warehouse, declared, delivery, by=by, reason=reason)
        has_facts = any(declared in fact.dimensions for fact in facts)
        result = load_table(warehouse, declared, [withdrawn], progress=task, has_facts=has_facts)
        create_views(warehouse, [declared.name], facts, on_failure=warn)
    (key,) = _partition_keys(declared, [withdrawn])
    rows = Rows.from_records(COLUMNS, [_record(declared.name, key, batch) for batch in result.results])
    _print_result(result, rows, result.results, output)
    if not output.is_table:
        output.write(rows)
