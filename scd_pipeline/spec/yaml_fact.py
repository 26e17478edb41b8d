"""From YAML nodes to a fact; the dimensions that it names are found among those that are declared beside it (S28)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yaml.nodes import MappingNode, Node

from scd_pipeline.errors import DeclarationError
from scd_pipeline.spec import words
from scd_pipeline.spec.dimension import Dimension
from scd_pipeline.spec.fact import Fact, Role
from scd_pipeline.spec.faults import joined
from scd_pipeline.spec.names import did_you_mean, shown
from scd_pipeline.spec.words import Kind
from scd_pipeline.spec.yaml_reader import DimensionReader


def is_fact(root: Node) -> bool:
    """Whether a document declares a fact."""
    return isinstance(root, MappingNode) and any(getattr(key, "value", None) == "fact" for key, _ in root.value)


class FactReader(DimensionReader):
    """Reads one document that declares a fact."""

    def __init__(self, origin: str, root: Node, dimensions: Mapping[str, Dimension]) -> None:
        super().__init__(origin, root)
        self.dimensions = dimensions

    def read_fact(self) -> Fact | None:
        """The fact; None where there are faults."""
        given = self.words("", self.root, words.FACT)
        name = given.pop("fact", "")
        for word in ("grain", "event_time", "dimensions", "sources"):
            if word not in given:
                self.tell(word, "is missing", f"write `{word}:`", spoils=False)
        roles = self.roles("dimensions", given["dimensions"]) if "dimensions" in given else {}
        sources = self.sources("sources", given.pop("sources")) if "sources" in given else []
        if len(sources) > 1:
            self.tell("sources", "a fact has one source", "declare a fact for each", spoils=False)
        if self.faults or not sources:
            return None
        given["grain"] = self.types("grain", given["grain"])
        given["measures"] = self.types("measures", given["measures"]) if "measures" in given else {}
        return self.built({**given, "name": name, "dimensions": roles, "source": sources[0]})

    def built(self, given: dict[str, Any]) -> Fact | None:
        if self.faults:
            return None
        try:
            return Fact(**given, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for fault in error.faults:
                self.place(fault)
            return None

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
        told = self.words(path, node, words.ROLE) if isinstance(node, MappingNode) else {}
        named = told.get("dimension") if told else self.value(path, node, Kind.TEXT)
        if named not in self.dimensions:
            wrong = f"{shown(named)} is no dimension that is declared here"
            self.tell(path, wrong, did_you_mean(named, self.dimensions))
            return None
        return Role(self.dimensions[str(named)], told.get("key"))
