"""The asset check that sources deliver in time.

No postponed annotations here: Dagster evaluates those of a check's function.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import dagster as dg

from scd_pipeline.components.alerts import alert_from_run
from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.invariants.check_descriptions import CHECK_DESCRIPTIONS, SOURCES_ARE_ON_TIME
from scd_pipeline.operations.dagster_names import pool_name
from scd_pipeline.operations.status import last_deliveries


@dataclass(frozen=True)
class OverdueLimits:
    """How long after the business time of its last delivery each source is overdue.

    Attributes:
        dimension: The dimension, or the dimension of the same shape as a fact.
        allowed: The time allowed, by source; sources without a limit are never overdue.
        clock: Returns the current time, in seconds since 1970.
    """

    dimension: Dimension
    allowed: Mapping[str, timedelta]
    clock: Callable[[], float] = time.time

    def evaluate_and_alert(self, context: dg.OpExecutionContext, warehouse: Warehouse) -> dg.AssetCheckResult:
        """Return the result of the check; send an alert if a source is overdue."""
        now = datetime.fromtimestamp(self.clock(), timezone.utc)
        last = last_deliveries(warehouse, self.dimension)
        ages = {name: (delivery, now - at) for name, (delivery, at) in last.items() if at is not None}
        overdue = [name for name, limit in self.allowed.items() if name not in ages or ages[name][1] > limit]
        texts = {name: "{}, {} ago".format(*ages[name]) if name in ages else "no delivery yet" for name in self.allowed}
        if overdue:
            text = "; ".join(f"{name}: {texts[name]}" for name in overdue)
            alert_from_run(context, f"{self.dimension.name} is overdue", text)
        return dg.AssetCheckResult(
            asset_key=self.dimension.name + LOG_SUFFIX,
            check_name=SOURCES_ARE_ON_TIME,
            passed=not overdue,
            severity=dg.AssetCheckSeverity.WARN,
            metadata=texts,
        )


def overdue_limits(
    dimension: Dimension, hours: float | None, *, clock: Callable[[], float] = time.time
) -> OverdueLimits | None:
    """Return the limits of the sources; None if neither `hours` nor a source limits the time.

    Args:
        dimension: The dimension, or the dimension of the same shape as a fact.
        hours: The time allowed for sources that do not declare their own.
        clock: Returns the current time, in seconds since 1970.
    """
    limits = {s.name: hours if s.overdue_after_hours is None else s.overdue_after_hours for s in dimension.sources}
    allowed = {name: timedelta(hours=limit) for name, limit in limits.items() if limit is not None}
    return OverdueLimits(dimension, allowed, clock) if allowed else None


def overdue_check(limits: OverdueLimits) -> dg.AssetChecksDefinition:
    """Return the check that each source has delivered in time, according to the business time of its last delivery."""
    intervals = ", ".join(
        f"{name} every {limit / timedelta(hours=1):g} hours" for name, limit in limits.allowed.items()
    )
    table = limits.dimension.name

    @dg.asset_check(
        name=SOURCES_ARE_ON_TIME,
        asset=table + LOG_SUFFIX,
        description=f"{CHECK_DESCRIPTIONS[SOURCES_ARE_ON_TIME].sentence}: {intervals}.",
        pool=pool_name(table),
    )
    def check_last_deliveries(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        with as_dagster_failure():
            return limits.evaluate_and_alert(context.op_execution_context, warehouse.open())

    return check_last_deliveries
