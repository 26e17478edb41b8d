"""The reader of a fact in YAML, which references declared dimensions by name (S28)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from yaml.nodes import MappingNode, Node

from scd_pipeline.declaration.checks.collect import field_path
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact, Role
from scd_pipeline.declaration.landing_table import LandingTable
from scd_pipeline.declaration.source import Feed, Source
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.declaration.yaml import options
from scd_pipeline.declaration.yaml.options import Kind
from scd_pipeline.declaration.yaml.reader import DimensionReader
from scd_pipeline.errors import DeclarationError
from scd_pipeline.texts import did_you_mean, short_repr


def is_fact(root: Node) -> bool:
    """Return whether a document declares a fact."""
    return isinstance(root, MappingNode) and any(getattr(key, "value", None) == "fact" for key, _ in root.value)


# Placeholders for parts that are missing or invalid, so that the other parts are checked too.
_PLACEHOLDERS = {
    "grain": {"row": "string"},
    "event_time": "event_time",
    "source": Source("source", feed=Feed("{date}.csv")),
}


class FactReader(DimensionReader):
    """The reader of one document that declares a fact.

    Args:
        origin: The name of the file.
        root: The document.
        timed_tables, landing_tables: As in `DimensionReader`.
        dimensions: The valid dimensions by name.
        invalid: The names of the invalid dimensions.
    """

    def __init__(
        self,
        origin: str,
        root: Node,
        timed_tables: Mapping[str, TimedTable | None],
        landing_tables: Mapping[str, LandingTable | None],
        dimensions: Mapping[str, Dimension],
        invalid: Collection[str] = (),
    ) -> None:
        super().__init__(origin, root, timed_tables, landing_tables)
        self.dimensions = dimensions
        self.invalid = invalid

    def read_fact(self) -> Fact | None:
        """Return the fact; None if it or one of its dimensions is invalid."""
        values = self.options("", self.root, options.FACT)
        values["name"] = values.pop("fact", "")
        readers = {"grain": self.types, "dimensions": self.roles, "measures": self.types, "sources": self.sources}
        for option, read in readers.items():
            if option in values:
                values[option] = read(option, values[option])
        sources = values.pop("sources", [])
        if len(sources) > 1:
            self.report("FACT_SOURCE", "sources", "a fact has one source", "declare a fact for each")
        if len(sources) == 1:
            values["source"] = sources[0]
        self.report_missing({**values, "sources": sources})
        return self.build({"dimensions": {}, **_PLACEHOLDERS, **values})

    def report_missing(self, values: Mapping[str, Any]) -> None:
        """Report the required options that are missing or empty, unless an error of them was reported."""
        for option in ("grain", "event_time", "dimensions", "sources"):
            if values.get(option):
                continue
            if not (self.has_reported(option) or (option == "dimensions" and not self.is_complete)):
                self.report("MISSING_VALUE", option, "is missing", f"write `{option}:`", hide_others=False)
            self.invalid_paths.add(option)

    def has_reported(self, path: str) -> bool:
        """Return whether an error of the field, or of a field in it, was reported."""
        return any(reported == path or reported.startswith(f"{path}.") for reported in self.invalid_paths)

    def build(self, values: dict[str, Any]) -> Fact | None:
        try:
            fact = Fact(**values, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for validation_error in error.errors:
                self.report_built(validation_error)
            return None
        return None if self.errors or not self.is_complete else fact

    def roles(self, path: str, node: Node) -> dict[str, Role]:
        roles = {name: self.role(field_path(path, name), role) for name, role in self.entries(path, node).items()}
        return {name: role for name, role in roles.items() if role is not None}

    def role(self, path: str, node: Node) -> Role | None:
        values = (
            self.options(path, node, options.ROLE)
            if isinstance(node, MappingNode)
            else {"dimension": self.value(path, node, Kind.TEXT)}
        )
        name = values.get("dimension")
        if name is None:
            if not self.has_reported(path):
                self.report("MISSING_VALUE", path, "names no dimension", "write `dimension:` with its name")
            return None
        if name in self.invalid:
            self.is_complete = False
            return None
        if name not in self.dimensions:
            problem = f"{short_repr(name)} is not a declared dimension"
            fix = (
                f"{did_you_mean(name, self.dimensions)}; or put its file into the same folder, or add it to "
                "`dimensions` of the Dagster component"
            )
            self.report("UNKNOWN_NAME", path, problem, fix)
            return None
        return Role(**{**values, "dimension": self.dimensions[str(name)]})
