"""From YAML nodes to a fact; the dimensions that it names are found among those that are declared beside it (S28)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from yaml.nodes import MappingNode, Node

from scd_pipeline.declaration.checks.collect import joined
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact, Role
from scd_pipeline.declaration.names import did_you_mean, display
from scd_pipeline.declaration.source import Feed, Source
from scd_pipeline.declaration.yaml import options
from scd_pipeline.declaration.yaml.options import Kind
from scd_pipeline.declaration.yaml.reader import DimensionReader
from scd_pipeline.errors import DeclarationError


def is_fact(root: Node) -> bool:
    """Whether a document declares a fact."""
    return isinstance(root, MappingNode) and any(getattr(key, "value", None) == "fact" for key, _ in root.value)


# What stands for a part that is missing, or cannot be read, so that the others are looked at all the same.
_NEUTRAL = {"grain": {"row": "string"}, "event_time": "event_time", "source": Source("source", feed=Feed("{date}.csv"))}


class FactReader(DimensionReader):
    """Reads one document that declares a fact.

    `dimensions` are those that are declared without faults, `faulty` the names of the others.
    """

    def __init__(
        self, origin: str, root: Node, dimensions: Mapping[str, Dimension], invalid: Collection[str] = ()
    ) -> None:
        super().__init__(origin, root)
        self.dimensions = dimensions
        self.invalid = invalid
        self.complete = True

    def read_fact(self) -> Fact | None:
        """The fact; None where there are faults, or where a dimension that it names has some."""
        values = self.options("", self.root, options.FACT)
        values["name"] = values.pop("fact", "")
        readers = {"grain": self.types, "dimensions": self.roles, "measures": self.types, "sources": self.sources}
        for option, read in readers.items():
            if option in values:
                values[option] = read(option, values[option])
        sources = values.pop("sources", [])
        if len(sources) > 1:
            self.report("sources", "a fact has one source", "declare a fact for each")
        if len(sources) == 1:
            values["source"] = sources[0]
        self.report_missing({**values, "sources": sources})
        return self.built({"dimensions": {}, **_NEUTRAL, **values})

    def report_missing(self, values: Mapping[str, Any]) -> None:
        """Tell the parts that are not there, or are empty, unless it was told why."""
        for option in ("grain", "event_time", "dimensions", "sources"):
            if values.get(option):
                continue
            if not (self.has_reported(option) or (option == "dimensions" and not self.complete)):
                self.report(option, "is missing", f"write `{option}:`", hide_others=False)
            self.invalid_paths.add(option)

    def has_reported(self, path: str) -> bool:
        """Whether a fault was told of the part, or of a part in it."""
        return any(reported == path or reported.startswith(f"{path}.") for reported in self.invalid_paths)

    def built(self, values: dict[str, Any]) -> Fact | None:
        try:
            fact = Fact(**values, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for validation_error in error.errors:
                self.place(validation_error)
            return None
        return None if self.errors or not self.complete else fact

    def types(self, path: str, node: Node) -> dict[str, str]:
        """Columns with their types; a name alone is text."""
        if not isinstance(node, MappingNode):
            return dict.fromkeys(self.value(path, node, Kind.NAMES) or (), "string")
        return {
            name: self.value(joined(path, name), of, Kind.TEXT) or "string"
            for name, of in self.entries(path, node).items()
        }

    def roles(self, path: str, node: Node) -> dict[str, Role]:
        found = {name: self.role(joined(path, name), of) for name, of in self.entries(path, node).items()}
        return {name: role for name, role in found.items() if role is not None}

    def role(self, path: str, node: Node) -> Role | None:
        values = node if isinstance(node, MappingNode) else None
        reported = (
            self.options(path, values, options.ROLE) if values else {"dimension": self.value(path, node, Kind.TEXT)}
        )
        named = reported.get("dimension")
        if named is None:
            if not self.has_reported(path):
                self.report(path, "names no dimension", "write `dimension:` with its name")
            return None
        if named in self.invalid:
            self.complete = False
            return None
        if named not in self.dimensions:
            problem = f"{display(named)} is not a declared dimension"
            fix = f"{did_you_mean(named, self.dimensions)}; or add its file to `dimensions` of the Dagster component"
            self.report(path, problem, fix)
            return None
        return Role(self.dimensions[str(named)], reported.get("key"))
