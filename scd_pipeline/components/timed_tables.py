"""Timed tables: an asset that stores the rows as of now, its check, and the sensor of their log and base.

No postponed annotations here: Dagster evaluates those of the functions of assets, checks and sensors.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from scd_pipeline.components import definition_metadata
from scd_pipeline.components.alerts import alert_from_run
from scd_pipeline.components.check_results import check_description
from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.components.run_requests import Request, has_failed
from scd_pipeline.declaration import TimedTable
from scd_pipeline.declaration.source import is_address, without_file_scheme
from scd_pipeline.deliveries.files import file_fingerprint
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import ScdError
from scd_pipeline.invariants.check_descriptions import STORED_ROWS_EQUAL_READ
from scd_pipeline.operations.dagster_names import check_job_name, pool_name, refresh_sensor_name
from scd_pipeline.queries import parse_statement_time
from scd_pipeline.texts import pluralize
from scd_pipeline.timed.append import append_statements
from scd_pipeline.timed.present import StoredPresent, compare_present, store_present
from scd_pipeline.timed.statements import Statement
from scd_pipeline.timed.times import from_millis

NEXT_STATEMENT = "next_statement_at"
"""The metadata with the time of the first statement that the stored rows do not contain yet, in milliseconds."""


class StoreConfig(dg.Config):
    """Run configuration of the asset of a timed table."""

    statement: str = Field(
        default="",
        description="UPDATE or DELETE statement to append to the log before the rows are stored, as by "
        "`scd log append`. Each run with this configuration appends it.",
    )
    at: str = Field(default="", description="Time of the statement; now by default.")
    by: str = Field(default="", description="Author of the statement; required with a statement.")
    reason: str = Field(default="", description="Reason of the statement.")


def timed_table_asset(table: TimedTable, *, clock: Callable[[], float] = time.time) -> dg.AssetsDefinition:
    """Return the asset of a timed table: its rows as of the run, stored as a Delta table.

    Args:
        table: The timed table.
        clock: Returns the current time, in seconds since 1970.
    """

    @dg.asset(
        name=table.name,
        description=definition_metadata.timed_table_description(table),
        metadata=definition_metadata.timed_table(table),
        group_name=table.group or "timed_tables",
        kinds={"spark", "deltalake"},
        owners=definition_metadata.owners(table),
        pool=pool_name(table.name),
    )
    def store_rows(
        context: dg.AssetExecutionContext, config: StoreConfig, warehouse: WarehouseResource
    ) -> dg.MaterializeResult[Any]:
        now = datetime.fromtimestamp(clock(), timezone.utc)
        with as_dagster_failure():
            opened = warehouse.open()
            if config.statement:
                _append(context, opened, table, config, now)
            stored = store_present(opened, table, now=now, run_id=context.run.run_id)
        return dg.MaterializeResult(metadata=_metadata(stored))

    return store_rows


def _append(
    context: dg.AssetExecutionContext, warehouse: Warehouse, table: TimedTable, config: StoreConfig, now: datetime
) -> None:
    millis = parse_statement_time(table, config.at, now, "at")
    append_statements(
        warehouse, table, config.statement, millis=millis, author=config.by, reason=config.reason, now=now
    )
    context.log.info(f"{table.name}: appended the statement of {config.by} at {from_millis(millis)}")


def _metadata(stored: StoredPresent) -> dict[str, Any]:
    """Return the metadata of a materialization; a statement may contain personal values, so its text is omitted."""
    last = stored.statements[-1:]
    return {
        "dagster/row_count": stored.rows,
        "delta_version": stored.commit.table_version,
        "statements_applied": len(stored.statements),
        **({"last_statement": _text(last[0])} if last else {}),
        **({NEXT_STATEMENT: stored.next_statement.millis} if stored.next_statement else {}),
    }


def _text(statement: Statement) -> str:
    author = f" by {statement.author}" if statement.author else ""
    return f"statement {statement.position}, at {from_millis(statement.millis)}{author}"


def timed_table_check(table: TimedTable, *, docs_url: str = "") -> dg.AssetChecksDefinition:
    """Return the check that the stored rows of a timed table equal the rows of a read at the same time."""

    @dg.asset_check(
        name=STORED_ROWS_EQUAL_READ,
        asset=table.name,
        description=check_description(STORED_ROWS_EQUAL_READ, docs_url, job=check_job_name(table.name)),
        pool=pool_name(table.name),
    )
    def check_rows(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        with as_dagster_failure():
            opened = warehouse.open()
            result = _check_result(opened, table)
        if not result.passed:
            alert_from_run(context.op_execution_context, f"checks of {table.name} failed", str(result.description))
        return result

    return check_rows


def _check_result(warehouse: Warehouse, table: TimedTable) -> dg.AssetCheckResult:
    try:
        differences = compare_present(warehouse, table)
    except ScdError as error:  # such as a log that cannot be applied: the stored rows equal no read
        return dg.AssetCheckResult(passed=False, description=str(error))
    if differences is None:
        return dg.AssetCheckResult(passed=True, description="No rows are stored yet.")
    counts = {"missing_rows": differences.missing, "additional_rows": differences.additional}
    is_equal = not any(counts.values())
    description = (
        f"{table.present_table} lacks {pluralize(differences.missing, 'row')} of a read at "
        f"{from_millis(differences.until)}, and has {differences.additional} that it does not return. Materialize "
        f"{table.name} to replace all of them."
    )
    return dg.AssetCheckResult(passed=is_equal, description=None if is_equal else description, metadata=counts)


def timed_table_sensor(table: TimedTable, job: Any, *, clock: Callable[[], float] = time.time) -> dg.SensorDefinition:
    """Return the sensor that starts a run when log or base have changed, or when the time of a statement has come.

    It watches files and Delta tables in local folders, and reads none of them. A run that fails is requested again:
    after five minutes, then after twice as long each time, up to an hour.
    """

    @dg.sensor(
        name=refresh_sensor_name(table.name),
        job=job,
        minimum_interval_seconds=30,
        description=(
            f"Starts a run of {table.name} when its log or its base has changed, or when the time of a statement has "
            "come. It watches local files and folders."
        ),
    )
    def refresh(context: dg.SensorEvaluationContext, warehouse: WarehouseResource) -> dg.SensorResult:
        now = clock()
        cursor, state = _Cursor.parse(context.cursor), _state(table, warehouse)
        following = _next_statement(context.instance, table)
        is_due = following is not None and following <= now * 1000 and following != cursor.due
        if state != cursor.state or is_due:
            request = Request(f"{table.name}:{int(now * 1000)}")
        elif cursor.request is not None and has_failed(context.instance, cursor.request, now):
            request = cursor.request.next_attempt()
        else:
            return dg.SensorResult(skip_reason="neither log nor base has changed", cursor=cursor.text())
        due = following if is_due else cursor.due
        return dg.SensorResult(
            run_requests=[dg.RunRequest(request.run_key)], cursor=_Cursor(state, due, request).text()
        )

    return refresh


@dataclass(frozen=True)
class _Cursor:
    """The cursor of the sensor."""

    state: str = ""
    """The state of log and base at the last request."""
    due: int | None = None
    """The time of the last statement for which a run was requested when this time had come."""
    request: Request | None = None
    """The last request."""

    @staticmethod
    def parse(text: str | None) -> "_Cursor":
        """Return the stored cursor; an empty one if none is stored, or one of another release."""
        stored = json.loads(text or "{}")
        if stored.keys() != {"state", "due", "request"}:
            return _Cursor()
        request = Request(*stored["request"]) if stored["request"] else None
        return _Cursor(stored["state"], stored["due"], request)

    def text(self) -> str:
        """Return the cursor as Dagster stores it."""
        return json.dumps({"state": self.state, "due": self.due, "request": self.request})


def _state(table: TimedTable, warehouse: WarehouseResource) -> str:
    """Return a text that differs after each change of log or base."""
    log = table.log_path
    if table.log == "table":
        log = "" if warehouse.schema_name else f"{warehouse.path}/{table.log_table}"
    return "; ".join(map(_fingerprint, (log, table.base.path)))


def _fingerprint(path: str) -> str:
    """Return the state of a local file or folder; empty if it does not exist, or is not on this machine."""
    local = without_file_scheme(path)
    if not local or is_address(local):
        return ""
    try:
        return file_fingerprint(Path(local))
    except FileNotFoundError:
        return ""


def _next_statement(instance: dg.DagsterInstance, table: TimedTable) -> int | None:
    """Return the time of the first statement that the last materialization does not contain, in milliseconds."""
    (event,) = instance.fetch_materializations(dg.AssetKey(table.name), limit=1).records or (None,)
    metadata = event.asset_materialization.metadata if event and event.asset_materialization else {}
    value = metadata.get(NEXT_STATEMENT)
    return int(str(value.value)) if value is not None else None
