"""The asset check of a dimension's checklist: the same as `scd checklist`, evaluated from the running code location.

An item that fails is a warning: people have not decided or set something up, but no data is damaged.

No postponed annotations here: Dagster evaluates those of a check's function.
"""

from collections.abc import Sequence

import dagster as dg

from scd_pipeline.components.code_location import describe_code_location
from scd_pipeline.components.dagster_internals import repository_of_run
from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.declaration import Dimension
from scd_pipeline.environment import Environment
from scd_pipeline.invariants.check_descriptions import CHECK_DESCRIPTIONS, CHECKLIST_IS_COMPLETE
from scd_pipeline.operations.checklist.collect import collect_state
from scd_pipeline.operations.checklist.evaluate import ChecklistResult, evaluate
from scd_pipeline.operations.checklist.state import CodeLocation
from scd_pipeline.operations.dagster_names import pool_name

_NAME = "this code location"


def checklist_check(dimension: Dimension, facts: Sequence[str], *, docs_url: str = "") -> dg.AssetChecksDefinition:
    """Return the check that no item of the checklist fails.

    Args:
        facts: The names of the facts that store surrogate keys of the dimension.
        docs_url: The URL or the folder of the documentation of this package, with the runbooks.
    """

    @dg.asset_check(
        name=CHECKLIST_IS_COMPLETE,
        asset=dimension.name,
        description=CHECK_DESCRIPTIONS[CHECKLIST_IS_COMPLETE].text,
        pool=pool_name(dimension.name),
    )
    def check_items(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        with as_dagster_failure():
            state = collect_state(
                warehouse.open(),
                dimension,
                code_location=_code_location(context),
                facts=facts,
                alert_transports=Environment.from_env().alert_transports,
                docs_url=docs_url,
            )
        results = evaluate(state)
        failed = [result.item for result in results if result.failed]
        records = [_record(result) for result in sorted(results, key=lambda result: not result.failed)]
        return dg.AssetCheckResult(
            passed=not failed,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"failed": ", ".join(failed), "items": dg.MetadataValue.table(records)},
        )

    return check_items


def _code_location(context: dg.AssetCheckExecutionContext) -> CodeLocation | str:
    """Return the code location of the run, or why it has none."""
    repository = repository_of_run(context)
    if repository is None:
        return "the job was executed without a code location"
    return describe_code_location(repository, _NAME)


def _record(result: ChecklistResult) -> dg.TableRecord:
    return dg.TableRecord(
        {"section": result.section, "item": result.item, "result": result.outcome, "evidence": result.evidence}
    )
