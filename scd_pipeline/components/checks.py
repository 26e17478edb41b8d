"""Asset checks: the invariants of whole tables, and whether sources deliver in time.

One step runs all checks of a table: on a schedule of its own, and whenever they are requested. A load rejects what
would violate an invariant before its commit; the checks verify the stored tables, which other programs can damage. A
violated invariant sends an alert as a failed run does; an overdue source is a warning.

No postponed annotations here: Dagster evaluates those of a check's function.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta, timezone

import dagster as dg

from scd_pipeline.components.alerts import attempts_text, send_alert
from scd_pipeline.components.check_results import check_description, check_result
from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.names import dagster_name, pool_name
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import Environment
from scd_pipeline.invariants.properties import PROPERTIES, SOURCES_ARE_ON_TIME
from scd_pipeline.operations.check import FACT_RULES, CheckResult, check_dimension, check_fact, dimension_rules
from scd_pipeline.operations.status import last_deliveries

Condition = dg.AutomationCondition[dg.AssetCheckKey]
RunChecks = Callable[[Warehouse, Collection[str]], Sequence[CheckResult]]


def dimension_checks(dimension: Dimension, *, docs_url: str = "") -> dg.AssetChecksDefinition:
    """Return the checks of a dimension's table, change log and audit.

    Args:
        dimension: The declaration.
        docs_url: Address of the folder `docs` of this package; the checks link to its rules.
    """
    rules = dimension_rules(dimension)
    return _checks(dimension.name, rules, lambda w, names: check_dimension(w, dimension, names), docs_url)


def fact_checks(fact: Fact, *, docs_url: str = "", condition: Condition | None = None) -> dg.AssetChecksDefinition:
    """Return the checks of a fact's surrogate keys against its dimensions.

    Args:
        fact: The declaration.
        docs_url: As for `dimension_checks`.
        condition: The automation condition of the checks.
    """
    return _checks(fact.name, FACT_RULES, lambda w, names: check_fact(w, fact, names), docs_url, condition)


def _checks(
    table: str, rules: Sequence[str], run_checks: RunChecks, docs_url: str, condition: Condition | None = None
) -> dg.AssetChecksDefinition:
    specs = [
        dg.AssetCheckSpec(
            rule, asset=table, description=check_description(rule, docs_url), automation_condition=condition
        )
        for rule in rules
    ]

    @dg.multi_asset_check(
        name=f"check_{dagster_name(table)}",
        specs=specs,
        can_subset=True,
        pool=pool_name(table),
        description=f"Runs the selected checks of {table} on its stored tables.",
    )
    def check_tables(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
    ) -> Iterator[dg.AssetCheckResult]:
        selected = {key.name for key in context.selected_asset_check_keys}
        with as_dagster_failure():
            results = {result.rule: result for result in run_checks(warehouse.open(), selected)}
        failed = [result for result in results.values() if not result.passed]
        if failed:
            text = "; ".join(f"{result.rule}: {result.count} ({', '.join(result.keys)})" for result in failed)
            _alert(context, f"checks of {table} failed", text)
        for rule in [rule for rule in rules if rule in selected]:
            yield check_result(table, rule, results.get(rule), docs_url)

    return check_tables


def _alert(context: dg.AssetCheckExecutionContext, subject: str, text: str) -> None:
    attempts = send_alert(subject, text, {"run_id": context.run.run_id}, Environment.from_env())
    has_problem = any(attempt.problem for attempt in attempts)
    log = context.log.warning if has_problem else context.log.info
    log(f"alert ({subject}): {attempts_text(attempts)}")


def overdue_check(
    dimension: Dimension, hours: float | None, *, clock: Callable[[], float] = time.time
) -> dg.AssetChecksDefinition | None:
    """Return the check that each source has delivered in time, according to the business time of its last delivery.

    Args:
        dimension: The dimension, or the dimension of the same shape as a fact.
        hours: The time allowed for sources that do not declare their own.
        clock: Returns the current time, in seconds since 1970.

    Returns:
        The check; None if neither `hours` nor a source limits the time.
    """
    allowed = {s.name: hours if s.overdue_after_hours is None else s.overdue_after_hours for s in dimension.sources}
    limits = {name: timedelta(hours=limit) for name, limit in allowed.items() if limit is not None}
    if not limits:
        return None
    intervals = ", ".join(f"{name} every {limit / timedelta(hours=1):g} hours" for name, limit in limits.items())

    @dg.asset_check(
        name=SOURCES_ARE_ON_TIME,
        asset=dimension.name + LOG_SUFFIX,
        description=f"{PROPERTIES[SOURCES_ARE_ON_TIME].sentence}: {intervals}.",
        pool=pool_name(dimension.name),
    )
    def check_last_deliveries(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        now = datetime.fromtimestamp(clock(), timezone.utc)
        with as_dagster_failure():
            last = last_deliveries(warehouse.open(), dimension)
        ages = {name: (delivery, now - at) for name, (delivery, at) in last.items() if at is not None}
        overdue = [name for name, limit in limits.items() if name not in ages or ages[name][1] > limit]
        texts = {name: "{}, {} ago".format(*ages[name]) if name in ages else "no delivery yet" for name in limits}
        if overdue:
            _alert(context, f"{dimension.name} is overdue", "; ".join(f"{name}: {texts[name]}" for name in overdue))
        return dg.AssetCheckResult(passed=not overdue, severity=dg.AssetCheckSeverity.WARN, metadata=texts)

    return check_last_deliveries
