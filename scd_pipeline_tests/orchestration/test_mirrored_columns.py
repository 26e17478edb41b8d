"""The metadata of a load of a mirrored dimension: its columns, and the attributes that change (S36)."""

from __future__ import annotations

from scd_pipeline.components import load_metadata
from scd_pipeline.declaration import Dimension, Source
from scd_pipeline.load.attribute_changes import AttributeChange
from scd_pipeline.load.run import LoadResult

DECLARED = Dimension("dim_x", "id", "mirror", Source("base", snapshot="x_{date}.csv"))
LOADED = DECLARED.with_mirrored({"town": "string", "visits": "int"}, {"visits": "2024-03-01 00:00:00"})


def result(dimension: Dimension, *changes: AttributeChange) -> LoadResult:
    return LoadResult("dim_x", (), {}, 1, 1, 0.1, dimension=dimension, attribute_changes=changes)


def test_the_columns_of_a_mirrored_dimension_are_those_after_the_load() -> None:
    """The description of a retired one has its time."""
    schema = load_metadata.columns(result(LOADED))["dagster/column_schema"]
    described = {column.name: (column.type, column.description) for column in schema.columns}
    text = "Type 2: a different value opens a version"
    assert described["town"] == ("string", f"{text}.")
    assert described["visits"] == ("int", f"{text}. Retired at 2024-03-01 00:00:00: no longer provided.")


def test_a_dimension_with_declared_attributes_has_its_columns_in_the_definition_alone() -> None:
    declared = Dimension("dim_x", "id", {"town": 2}, Source("base", snapshot="x_{date}.csv"))
    assert load_metadata.columns(result(declared)) == {}
    assert load_metadata.attributes(result(declared)) == {}


def test_the_changed_attributes_are_reported_as_text() -> None:
    changes = (AttributeChange("visits", "retired", "at 2024-03-01"), AttributeChange("size", "provided again"))
    text = "attribute visits: retired at 2024-03-01\nattribute size: provided again"
    assert load_metadata.attributes(result(LOADED, *changes)) == {"attribute_changes": text}
