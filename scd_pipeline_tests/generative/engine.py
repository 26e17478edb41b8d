"""The engine's side of a scenario: the declaration of its shape, and its batches as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scd_pipeline.declaration import Attribute, Begin, Dimension, Fact, Feed, Role, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.scenarios import Shape, physical_columns, rows_as_records

ARROW = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "array<string>": pa.list_(pa.string()),
    "struct<a:int,b:string>": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "map<string,int>": pa.map_(pa.string(), pa.int32()),
}
EVENT_SEQUENCE = ("file", "pos")
BEFORE = "B"
"""The `op` of the row before a change."""


def fact_declaration(shape: Shape, fact: o.Fact) -> Fact:
    """The oracle's fact as the engine declares it."""
    assert shape.upstream is not None
    types, keys = shape.types.attributes, {column for role in fact.roles for column in role.key}
    roles = {
        role.name: Role(declaration(shape.upstream, role.dim), role.key, "infer" if role.infers else "reserved")
        for role in fact.roles
    }
    return Fact(
        fact.rows.name,
        dict(shape.types.key),
        fact.event_time,
        roles,
        _source(shape, fact.rows.sources[0], several=False),
        {name: kind for name, kind in types.items() if name not in (fact.event_time, *keys)},
    )


def declaration(shape: Shape, dim: o.Dim) -> Dimension:
    """The oracle's dimension as the engine declares it."""
    return Dimension(
        dim.name,
        dict(shape.types.key),
        {attr.name: _attribute(shape, dim, attr) for attr in dim.attrs},
        [_source(shape, source, len(dim.sources) > 1) for source in dim.sources],
        begin=_begin(dim),
        deleted_rows=dim.deleted_rows,  # type: ignore[arg-type]
        deleted_at=dim.deleted_at,
        column_names={"version_state": "version_state"} if dim.version_state else {},
    )


def _begin(dim: o.Dim) -> Begin | None:
    if dim.begin_attr:
        return Begin(column=dim.begin_attr)
    return Begin(*(str(moment) for moment in dim.begin)) if dim.begin else None


def _attribute(shape: Shape, dim: o.Dim, attr: o.Attr) -> Attribute:
    several = len(dim.sources) > 1
    return Attribute(
        attr.scd,
        type=shape.types.attributes[attr.name],
        source=attr.source if several else None,
        former_names=attr.former_names,
        missing="not_provided" if attr.name in shape.optional else "reject",
        previous=attr.previous,  # type: ignore[arg-type]
        untracked=attr.untracked,  # type: ignore[arg-type]
    )


def _source(shape: Shape, source: o.Src, several: bool) -> Source:
    channels = {c.kind: c for c in shape.channels if c.source == source.name}
    snapshot = feed = None
    if "snapshot" in channels:
        timed = channels["snapshot"].has_row_times
        snapshot = Snapshot(
            format="parquet",
            scope=channels["snapshot"].scope,
            effective_at="updated_at" if timed else None,
            sequence="seq" if timed else None,
            ties=source.snapshot_ties,  # type: ignore[arg-type]
            empty_scope=source.empty_scope,  # type: ignore[arg-type]
        )
    if "feed" in channels:
        feed = Feed(
            format="parquet",
            effective_at="updated_at" if channels["feed"].has_row_times else None,
            sequence=list(EVENT_SEQUENCE) if shape.has_events else "seq",
            rows=f"op <> '{BEFORE}'" if shape.has_events else None,
            reason="reason",
            deletes="op = 'D'",
            updates=source.feed_updates,  # type: ignore[arg-type]
            nulls=source.feed_nulls,  # type: ignore[arg-type]
            ties=source.feed_ties,  # type: ignore[arg-type]
        )
    decides = source.decides if several else None
    return Source(source.name, snapshot, feed, existence=decides, bad_row_limit=1.0)


def delivery(batch: o.Batch, shape: Shape, folder: Path) -> Delivery:
    """The batch as a delivery of one file, which is written if it does not exist."""
    path = folder / f"{batch.id.replace('/', '_')}.parquet"
    if not batch.withdrawn and not path.exists():
        columns, records = physical_columns(batch, shape.types), rows_as_records(batch, shape.types)
        if shape.has_events and batch.channel == "feed":
            columns, records = _events(columns, records)
        schema = pa.schema([(name, ARROW[kind]) for name, kind in columns.items()])
        records = [_arrow_record(record) for record in records]
        pq.write_table(pa.Table.from_pylist(records, schema), path)
    return Delivery(
        batch.source,
        batch.delivery,
        channel=batch.channel,
        at=batch.at,
        revision=batch.revision,
        path=None if batch.withdrawn else str(path),
        scope=batch.scope_values if batch.scope_columns else None,
        reason=batch.reason,
        allow=batch.allow,
        totals=batch.totals or None,
        withdrawn=batch.withdrawn,
    )


def _events(
    columns: Mapping[str, str], records: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The rows as events: each after a row of other values that `rows` excludes, its sequence in two columns."""
    events: list[dict[str, Any]] = []
    for record in records:
        number = record["seq"]
        sequence = (None, None) if number is None else divmod(number, 3)
        event = {**record, **dict(zip(EVENT_SEQUENCE, sequence, strict=True))}
        before = {name: "x!" if columns.get(name) == "string" else value for name, value in event.items()}
        events += [{**before, "scenario": record["scenario"], "op": BEFORE}, event]
    kinds = {name: kind for name, kind in columns.items() if name != "seq"}
    return kinds | dict.fromkeys(EVENT_SEQUENCE, "bigint"), events


def _arrow_record(record: Mapping[str, Any]) -> dict[str, Any]:
    maps = {"counts"}
    return {
        name: list(value.items()) if name in maps and isinstance(value, dict) else value
        for name, value in record.items()
    }
