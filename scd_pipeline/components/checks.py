"""Asset checks: the invariants of whole tables, and that no delivery is rejected.

One step runs all checks of a table: on a schedule of its own, and whenever they are requested. A load rejects what
would violate an invariant before its commit; the checks verify the stored tables, which other programs can damage. The
check of deliveries belongs to the asset of the table, not of its change log: users look there first. A violated
invariant sends an alert as a failed run does.

No postponed annotations here: Dagster evaluates those of a check's function.
"""

from collections.abc import Iterator

import dagster as dg

from scd_pipeline.components.check_results import alert_of_failed_checks, check_description, check_result
from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.rejections import deliveries_result
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import DeclaredTable
from scd_pipeline.invariants.check_descriptions import DELIVERIES_ACCEPTED
from scd_pipeline.operations.check import check_names, check_table, checks_of_loads
from scd_pipeline.operations.dagster_names import check_job_name, dagster_name, pool_name

Condition = dg.AutomationCondition[dg.AssetCheckKey]


def table_checks(
    declared: DeclaredTable, *, docs_url: str = "", condition: Condition | None = None
) -> dg.AssetChecksDefinition:
    """Return the checks of a dimension's table, change log and audit, or of a fact's keys against its dimensions.

    Args:
        docs_url: Address of the folder `docs` of this package; the checks link to its rules.
        condition: The automation condition of the checks.
    """
    table, checks = declared.name, check_names(declared)
    by_loads = (*checks_of_loads(declared), DELIVERIES_ACCEPTED)
    descriptions = {
        check: check_description(check, docs_url, job="" if check in by_loads else check_job_name(table))
        for check in (*checks, DELIVERIES_ACCEPTED)
    }
    specs = [
        dg.AssetCheckSpec(check, asset=table, description=description, automation_condition=condition)
        for check, description in descriptions.items()
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
            opened = warehouse.open()
            results = {result.check: result for result in check_table(opened, declared, selected)}
            is_selected = DELIVERIES_ACCEPTED in selected
            deliveries = [deliveries_result(context.instance, opened, declared)] if is_selected else []
        alert_of_failed_checks(context.op_execution_context, table, results.values())
        for check in [check for check in checks if check in selected]:
            yield check_result(table, check, results.get(check), docs_url)
        yield from deliveries

    return check_tables
