"""From YAML nodes to a fact; the dimensions that it names are found among those that are declared beside it (S28)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from yaml.nodes import MappingNode, Node

from scd_pipeline.declaration.checks.collect import joined
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact, Role
from scd_pipeline.declaration.names import did_you_mean, shown
from scd_pipeline.declaration.source import Feed, Source
from scd_pipeline.declaration.yaml import options as words
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
        self, origin: str, root: Node, dimensions: Mapping[str, Dimension], faulty: Collection[str] = ()
    ) -> None:
        super().__init__(origin, root)
        self.dimensions = dimensions
        self.faulty = faulty
        self.complete = True

    def read_fact(self) -> Fact | None:
        """The fact; None where there are faults, or where a dimension that it names has some."""
        given = self.words("", self.root, words.FACT)
        given["name"] = given.pop("fact", "")
        readers = {"grain": self.types, "dimensions": self.roles, "measures": self.types, "sources": self.sources}
        for word, read in readers.items():
            if word in given:
                given[word] = read(word, given[word])
        sources = given.pop("sources", [])
        if len(sources) > 1:
            self.tell("sources", "a fact has one source", "declare a fact for each")
        if len(sources) == 1:
            given["source"] = sources[0]
        self.tell_missing({**given, "sources": sources})
        return self.built({"dimensions": {}, **_NEUTRAL, **given})

    def tell_missing(self, given: Mapping[str, Any]) -> None:
        """Tell the parts that are not there, or are empty, unless it was told why."""
        for word in ("grain", "event_time", "dimensions", "sources"):
            if given.get(word):
                continue
            if not (self.has_told(word) or (word == "dimensions" and not self.complete)):
                self.tell(word, "is missing", f"write `{word}:`", spoils=False)
            self.spoilt.add(word)

    def has_told(self, path: str) -> bool:
        """Whether a fault was told of the part, or of a part in it."""
        return any(told == path or told.startswith(f"{path}.") for told in self.spoilt)

    def built(self, given: dict[str, Any]) -> Fact | None:
        try:
            fact = Fact(**given, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for fault in error.faults:
                self.place(fault)
            return None
        return None if self.faults or not self.complete else fact

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
        given = node if isinstance(node, MappingNode) else None
        told = self.words(path, given, words.ROLE) if given else {"dimension": self.value(path, node, Kind.TEXT)}
        named = told.get("dimension")
        if named is None:
            if not self.has_told(path):
                self.tell(path, "names no dimension", "write `dimension:` with its name")
            return None
        if named in self.faulty:
            self.complete = False
            return None
        if named not in self.dimensions:
            wrong = f"{shown(named)} is no dimension that is declared here"
            right = f"{did_you_mean(named, self.dimensions)}; or add its file to `dimensions` of the Dagster component"
            self.tell(path, wrong, right)
            return None
        return Role(self.dimensions[str(named)], told.get("key"))
