"""The invariants of whole tables as asset checks: one step asks all of a table, and can be run again at any time.

They are a second look: what would break an invariant is refused before it is committed.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import dagster as dg

from scd_pipeline.check import DESCRIPTIONS, FACT_RULES, Finding, check_dimension, check_fact, dimension_rules
from scd_pipeline.components.assets import plain, pool
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.spec import Dimension, Fact
from scd_pipeline.warehouse import Warehouse

Ask = Callable[[Warehouse, Collection[str]], Sequence[Finding]]


def dimension_checks(dimension: Dimension) -> dg.AssetChecksDefinition:
    """Checks of a dimension's table, its log and its audit."""
    return _checks(dimension.name, dimension_rules(dimension), lambda w, rules: check_dimension(w, dimension, rules))


def fact_checks(fact: Fact) -> dg.AssetChecksDefinition:
    """Checks of a fact's keys against its dimensions."""
    return _checks(fact.name, FACT_RULES, lambda w, rules: check_fact(w, fact, rules))


def _checks(name: str, rules: Sequence[str], ask: Ask) -> dg.AssetChecksDefinition:
    specs = [dg.AssetCheckSpec(rule, asset=name, description=DESCRIPTIONS[rule]) for rule in rules]

    @dg.multi_asset_check(name=f"check_{plain(name)}", specs=specs, can_subset=True, pool=pool(name))
    def check(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> Iterator[dg.AssetCheckResult]:
        asked = {key.name for key in context.selected_asset_check_keys}
        found = {finding.rule: finding for finding in ask(warehouse.open(), asked)}
        for rule in [rule for rule in rules if rule in asked]:
            yield _result(name, rule, found.get(rule))

    return check


def _result(table: str, rule: str, finding: Finding | None) -> dg.AssetCheckResult:
    if finding is None:
        told = {"told": "there is nothing to ask yet"}
        return dg.AssetCheckResult(asset_key=table, check_name=rule, passed=True, metadata=told)
    return dg.AssetCheckResult(
        asset_key=table,
        check_name=rule,
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={"rows": finding.count, **({"keys": "; ".join(finding.keys)} if finding.keys else {})},
    )
