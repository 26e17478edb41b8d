"""The invariants of whole tables as asset checks: one step asks all of a table, and can be run again at any time.

They are a second look: what would break an invariant is refused before it is committed. One that is broken is told of
as a failed run is; a source that is overdue is a warning.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta, timezone

import dagster as dg

from scd_pipeline.components.alerts import NOT_BY, tell
from scd_pipeline.components.assets import plain, pool
from scd_pipeline.components.resources import WarehouseResource, told_as_failure
from scd_pipeline.components.results import check_result, described
from scd_pipeline.declaration import Dimension, Fact
from scd_pipeline.declaration.tables import LOG_SUFFIX
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.invariants.properties import PROPERTIES, SOURCES_ARE_ON_TIME
from scd_pipeline.operations.check import FACT_RULES, Finding, check_dimension, check_fact, dimension_rules
from scd_pipeline.operations.status import last_deliveries

Ask = Callable[[Warehouse, Collection[str]], Sequence[Finding]]


def dimension_checks(dimension: Dimension, *, docs_url: str = "") -> dg.AssetChecksDefinition:
    """Checks of a dimension's table, its log and its audit.

    Args:
        docs_url: Address at which the folder `docs` of this project is served; the checks link to its rules.
    """
    rules = dimension_rules(dimension)
    return _checks(dimension.name, rules, lambda w, names: check_dimension(w, dimension, names), docs_url)


def fact_checks(fact: Fact, *, docs_url: str = "") -> dg.AssetChecksDefinition:
    """Checks of a fact's keys against its dimensions; `docs_url` as for `dimension_checks`."""
    return _checks(fact.name, FACT_RULES, lambda w, names: check_fact(w, fact, names), docs_url)


def _checks(name: str, rules: Sequence[str], ask: Ask, docs_url: str) -> dg.AssetChecksDefinition:
    specs = [dg.AssetCheckSpec(rule, asset=name, description=described(rule, docs_url)) for rule in rules]

    @dg.multi_asset_check(name=f"check_{plain(name)}", specs=specs, can_subset=True, pool=pool(name))
    def check(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> Iterator[dg.AssetCheckResult]:
        asked = {key.name for key in context.selected_asset_check_keys}
        with told_as_failure():
            found = {finding.rule: finding for finding in ask(warehouse.open(), asked)}
        broken = [finding for finding in found.values() if not finding.passed]
        if broken:
            text = "; ".join(f"{finding.rule}: {finding.count} ({', '.join(finding.keys)})" for finding in broken)
            _tell(context, f"checks of {name} failed", text, f"{len(broken)} checks")
        for rule in [rule for rule in rules if rule in asked]:
            yield check_result(name, rule, found.get(rule), docs_url)

    return check


def _tell(context: dg.AssetCheckExecutionContext, subject: str, text: str, of: str) -> None:
    ways = tell(subject, text, {"run_id": context.run.run_id}, os.environ)
    log = context.log.warning if any(way.startswith(NOT_BY) for way in ways) else context.log.info
    log(f"told of {of}: {', '.join(ways) or 'nobody is named'}")


def overdue_check(
    shape: Dimension, hours: float | None, *, clock: Callable[[], float] = time.time
) -> dg.AssetChecksDefinition | None:
    """Whether each source has delivered in time, by the time of its last delivery that counts.

    In time is within the hours that the source declares, else within `hours`. None where neither says.
    """
    allowed = {of.name: hours if of.overdue_after_hours is None else of.overdue_after_hours for of in shape.sources}
    limits = {name: timedelta(hours=limit) for name, limit in allowed.items() if limit is not None}
    if not limits:
        return None
    log = shape.name + LOG_SUFFIX
    waits = ", ".join(f"{name} at least every {limit / timedelta(hours=1):g} hours" for name, limit in limits.items())

    @dg.asset_check(
        name=SOURCES_ARE_ON_TIME,
        asset=log,
        description=f"{PROPERTIES[SOURCES_ARE_ON_TIME].sentence}: {waits}.",
        pool=pool(shape.name),
    )
    def on_time(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        now = datetime.fromtimestamp(clock(), timezone.utc)
        with told_as_failure():
            last = last_deliveries(warehouse.open(), shape)
        ages = {name: (delivery, now - at) for name, (delivery, at) in last.items() if at is not None}
        late = [name for name, limit in limits.items() if name not in ages or ages[name][1] > limit]
        told = {name: "{}, {} ago".format(*ages[name]) if name in ages else "nothing yet" for name in limits}
        if late:
            text = "; ".join(f"{name}: {told[name]}" for name in late)
            _tell(context, f"{shape.name} is overdue", text, f"{len(late)} sources")
        return dg.AssetCheckResult(passed=not late, severity=dg.AssetCheckSeverity.WARN, metadata=told)

    return on_time
