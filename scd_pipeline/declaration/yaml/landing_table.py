"""The reader of a landing table in YAML (S28)."""

from __future__ import annotations

from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode

from scd_pipeline.declaration.landing_table import LandingTable
from scd_pipeline.declaration.mirror import MIRROR
from scd_pipeline.declaration.source import Feed, Snapshot, Source
from scd_pipeline.declaration.yaml import options
from scd_pipeline.declaration.yaml.reader import DimensionReader
from scd_pipeline.errors import DeclarationError

_SNAPSHOTS = Source("source", snapshot=Snapshot("{date}.csv"))
_FEED = Source("source", feed=Feed("{date}.csv"))


def is_landing_table(root: Node) -> bool:
    """Return whether a document declares a landing table."""
    return isinstance(root, MappingNode) and any(
        getattr(key, "value", None) == "landing_table" for key, _ in root.value
    )


class LandingTableReader(DimensionReader):
    """The reader of one document that declares a landing table."""

    def read_landing_table(self) -> LandingTable | None:
        """Return the landing table, None if it is invalid."""
        values = self.options("", self.root, options.LANDING_TABLE)
        values["name"] = values.pop("landing_table", "")
        readers = {
            "columns": self.landing_columns,
            "primary_key": self.key,
            "merge_key": self.key,
            "dedup_sort": self.texts,
            "mirror": self.landing_mirror,
            "sources": self.sources,
        }
        for option, read in readers.items():
            if option in values:
                values[option] = read(option, values[option])
        sources = values.pop("sources", [])
        if len(sources) > 1:
            self.report("LANDING_SOURCE", "sources", "a landing table has one source", "declare a table for each")
        for option, is_missing in (("disposition", "disposition" not in values), ("sources", not sources)):
            if is_missing and option not in self.invalid_paths:
                self.report("MISSING_VALUE", option, "is missing", f"write `{option}:`", hide_others=False)
                self.invalid_paths.add(option)
        if len(sources) == 1:
            values["source"] = sources[0]
        return self.build({"disposition": "append", "columns": {}, "source": _placeholder(values), **values})

    def build(self, values: dict[str, Any]) -> LandingTable | None:
        try:
            table = LandingTable(**values, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for validation_error in error.errors:
                self.report_built(validation_error)
            return None
        return None if self.errors else table

    def landing_columns(self, path: str, node: Node) -> Any:
        is_mirror = isinstance(node, ScalarNode) and node.value == MIRROR
        return MIRROR if is_mirror else self.types(path, node)

    def landing_mirror(self, path: str, node: Node) -> Any:
        return self.mirror(path, node, options.LANDING_MIRROR)


def _placeholder(values: dict[str, Any]) -> Source:
    """Return a source in place of a missing one, so that the other parts are checked too."""
    is_complete = values.get("disposition") == "replace" or bool(values.get("merge_key"))
    return _SNAPSHOTS if is_complete else _FEED
