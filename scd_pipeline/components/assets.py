"""A declared dimension as Dagster assets: its change log, which is the canonical source, and its table.

Both come out of one step, because one load advances both. Partitions have no part in it: a load takes in whatever lies
at the channels' paths, in any order, and what is there already changes nothing (S14, S15).

No postponed annotations here: Dagster reads those of an asset's function as they stand.
"""

import re
from collections.abc import Iterator
from typing import Any

import dagster as dg

from scd_pipeline.components.resources import WarehouseResource
from scd_pipeline.errors import ScdError
from scd_pipeline.history.actions import CLOSE, OPEN, OVERWRITE, REMOVE
from scd_pipeline.history.timeline import dimension_schema
from scd_pipeline.landing import deliveries
from scd_pipeline.load import LoadResult, load
from scd_pipeline.reading import LOG_SUFFIX
from scd_pipeline.spec import Attribute, Dimension, ScdType
from scd_pipeline.texts import summary

_SHOWN_BATCHES = 20
_TYPES = {
    ScdType.RETAIN_ORIGINAL: "type 0: the first value stays",
    ScdType.OVERWRITE: "type 1: the latest value, in every version",
    ScdType.ADD_ROW: "type 2: a different value opens a version",
    ScdType.ADD_ATTRIBUTE: "type 3: the latest value, and the one before it",
    ScdType.HYBRID: "type 6: a different value opens a version, and every version has the latest",
}


def pool(table: str) -> str:
    """The pool in which everything that writes a table waits for its turn."""
    return f"delta/{table}"


def dimension_assets(dimension: Dimension) -> dg.AssetsDefinition:
    """The two assets of a dimension, materialized by one load; needs the resource `warehouse`.

    A stopped batch fails the step after what the others did was recorded; no retry would help.
    """
    log, table = _log_spec(dimension), _table_spec(dimension)

    @dg.multi_asset(
        name=f"load_{_plain(dimension.name)}",
        specs=[log, table],
        pool=pool(dimension.name),
        description=f"Takes in what was delivered for {dimension.name}, and brings its table up to it.",
    )
    def load_dimension(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        result = _load(context, dimension, warehouse)
        yield dg.MaterializeResult(asset_key=log.key, metadata=_log_metadata(result))
        yield dg.MaterializeResult(asset_key=table.key, metadata=_table_metadata(result))
        if result.stopped:
            raise _stopped(result)

    return load_dimension


def _load(context: dg.AssetExecutionContext, dimension: Dimension, warehouse: WarehouseResource) -> LoadResult:
    try:
        found = deliveries(dimension)
        context.log.info(f"{dimension.name}: {len(found)} deliveries found; asking for {warehouse.place}")
        opened = warehouse.open()
        context.log.info(f"Spark {opened.spark.version} is there")
        result = load(opened, dimension, found, run_id=context.run.run_id, progress=context.log.info)
    except ScdError as error:
        raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=error.transient) from error
    context.log.info(summary(result))
    return result


def _stopped(result: LoadResult) -> dg.Failure:
    told = {f"{batch.delivery} ({batch.rule})": f"{batch.error}; {batch.remedy}" for batch in result.stopped}
    names = ", ".join(batch.delivery for batch in result.stopped)
    return dg.Failure(f"stopped: {names}; the others went in", metadata=told, allow_retries=False)


def _log_spec(dimension: Dimension) -> dg.AssetSpec:
    return dg.AssetSpec(
        dimension.name + LOG_SUFFIX,
        description=(
            f"What was stated of {dimension.name}, and by which batches: the canonical source, append-only. "
            f"Sources: {', '.join(source.name for source in dimension.sources)}."
        ),
        metadata={"dagster/table_name": dimension.name + LOG_SUFFIX, "declaration": dimension.origin or "Python"},
        **_common(dimension),
    )


def _table_spec(dimension: Dimension) -> dg.AssetSpec:
    keys = ", ".join(dimension.key_names)
    metadata = {
        "dagster/table_name": dimension.name,
        "dagster/column_schema": column_schema(dimension),
        "business_key": keys,
        "surrogate_key": dimension.surrogate_key,
        "declaration": dimension.origin or "Python",
    }
    text = dimension.description or f"The dimension {dimension.name}."
    return dg.AssetSpec(
        dimension.name,
        deps=[dimension.name + LOG_SUFFIX],
        description=f"{text}\n\nOne row for each version of a `{keys}`.",
        metadata=metadata,
        **_common(dimension),
    )


def _common(dimension: Dimension) -> dict[str, Any]:
    owners = [dimension.owner] if re.fullmatch(r"team:\w+|[^@\s]+@[^@\s]+\.[^@\s]+", dimension.owner) else []
    return {
        "group_name": dimension.group or "dimensions",
        "kinds": {"spark", "delta"},
        "owners": owners,
    }


def _plain(name: str) -> str:
    """A name of letters, digits and underscores, which is all that Dagster takes for a step."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def column_schema(dimension: Dimension) -> dg.TableSchema:
    """The dimension's columns, with what each attribute's type does, for the asset's page."""
    told = {attribute.name: _describe(attribute) for attribute in dimension.attributes}
    told |= {key.name: "business key" for key in dimension.business_key}
    told[dimension.surrogate_key] = "surrogate key: names one version for ever; what facts store"
    columns = [
        dg.TableColumn(name, ddl, description=told.get(name), constraints=dg.TableColumnConstraints(nullable=nullable))
        for name, ddl, nullable in dimension_schema(dimension)
    ]
    return dg.TableSchema(columns)


def _describe(attribute: Attribute) -> str:
    return ". ".join(part for part in (attribute.description, _TYPES[attribute.scd]) if part)


def _log_metadata(result: LoadResult) -> dict[str, Any]:
    outcomes = [batch.outcome for batch in result.batches]
    accepted = [batch for batch in result.batches if batch.outcome == "accepted"]
    sums = {name: sum(getattr(b, name) for b in accepted) for name in ("rows", "bad_rows", "new", "changed", "closed")}
    counts = {f"batches_{name}": outcomes.count(name) for name in ("accepted", "unchanged", "superseded", "stopped")}
    shown = [batch for batch in result.batches if batch.outcome != "unchanged"][-_SHOWN_BATCHES:]
    metadata: dict[str, Any] = {
        **counts,
        **{f"rows_{name}".replace("rows_rows", "rows_read"): n for name, n in sums.items()},
    }
    metadata |= {"delta_version": result.log_version, "seconds": round(result.seconds, 1)}
    if shown:
        metadata["last_batches"] = dg.MetadataValue.table([_record(batch) for batch in shown])
    return metadata


def _record(batch: Any) -> dg.TableRecord:
    names = ("source", "delivery", "outcome", "rows", "bad_rows", "new", "changed", "closed", "rule")
    return dg.TableRecord({name: getattr(batch, name) for name in names})


def _table_metadata(result: LoadResult) -> dict[str, Any]:
    actions = {OPEN: "rows_opened", CLOSE: "rows_closed", OVERWRITE: "rows_overwritten", REMOVE: "rows_removed"}
    counts: dict[str, Any] = {name: result.rows.get(action, 0) for action, name in actions.items()}
    return {**counts, "delta_version": result.table_version, "seconds": round(result.seconds, 1)}
