"""The reader of a timed table in YAML (S28)."""

from __future__ import annotations

from typing import Any

from yaml.nodes import MappingNode, Node

from scd_pipeline.declaration.checks.collect import field_path
from scd_pipeline.declaration.timed_table import Base, BaseColumn, TimedTable
from scd_pipeline.declaration.yaml import options
from scd_pipeline.declaration.yaml.options import Kind
from scd_pipeline.declaration.yaml.reader import DimensionReader
from scd_pipeline.errors import DeclarationError


def is_timed_table(root: Node) -> bool:
    """Return whether a document declares a timed table."""
    return isinstance(root, MappingNode) and any(getattr(key, "value", None) == "timed_table" for key, _ in root.value)


class TimedTableReader(DimensionReader):
    """The reader of one document that declares a timed table."""

    def read_timed_table(self) -> TimedTable | None:
        """Return the timed table, None if it is invalid."""
        values = self.options("", self.root, options.TIMED_TABLE)
        values["name"] = values.pop("timed_table", "")
        if "base" in values:
            values["base"] = self.base("base", values["base"])
        elif "base" not in self.invalid_paths:
            self.report("MISSING_VALUE", "base", "is missing", "write `base:` with its path")
        try:
            table = TimedTable(**{"base": Base("base.parquet"), **values}, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for validation_error in error.errors:
                self.report_built(validation_error)
            return None
        return None if self.errors else table

    def base(self, path: str, node: Node) -> Base:
        if not isinstance(node, MappingNode):
            return Base(self.value(path, node, Kind.TEXT) or "base.parquet")
        values: dict[str, Any] = {"path": "", **self.options(path, node, options.BASE)}
        if "columns" in values:
            field = field_path(path, "columns")
            entries = self.entries(field, values["columns"])
            values["columns"] = {
                name: self.base_column(field_path(field, name), each) for name, each in entries.items()
            }
        if "options" in values:
            values["options"] = self.texts(field_path(path, "options"), values["options"])
        return Base(**values)

    def base_column(self, path: str, node: Node) -> BaseColumn:
        if not isinstance(node, MappingNode):
            return BaseColumn(self.value(path, node, Kind.TEXT) or "string")
        return BaseColumn(**{"type": "string", **self.options(path, node, options.BASE_COLUMN)})
