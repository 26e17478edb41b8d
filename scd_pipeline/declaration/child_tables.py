"""Child tables: the elements of an attribute that is an array of structs, as rows of a table of their own (S40)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scd_pipeline.declaration.types import Array, DataType, Struct

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension

SEPARATOR = "__"
"""Separates the names of a table, an attribute and a field in the name of a child table."""
JOINED_WINDOW = ("effective_from", "effective_to", "current_flag")
"""The generated columns of a version that views join to its rows in a child table."""


@dataclass(frozen=True, slots=True)
class ChildTable:
    """One child table of a dimension.

    Attributes:
        root: The dimension.
        path: The attribute, and the fields of its elements that lead to the array.
        root_key: The column with the surrogate key of the version whose attribute has the element.
        parent_key: The column with the key of the parent row: `root_key` if the array is the attribute itself.
        fields: Name and type of the columns with the fields of an element; an array with a child table has none.
        personal: Whether the attribute is personal.
    """

    root: str
    path: tuple[str, ...]
    root_key: str
    parent_key: str
    fields: tuple[tuple[str, str], ...]
    personal: bool = False

    @property
    def name(self) -> str:
        """The name of the table."""
        return child_name(self.root, ".".join(self.path))

    @property
    def key(self) -> str:
        """The column with the key of a row: the key of its parent row and its position."""
        return _key_column(self.path)

    @property
    def position(self) -> str:
        """The column with the position of an element in its array, from 0."""
        return f"{self.path[-1]}_position"

    @property
    def columns(self) -> tuple[tuple[str, str, bool], ...]:
        """Name, type and nullability of each column."""
        types = {self.root_key: "bigint", self.parent_key: "bigint" if self.parent_key == self.root_key else "string"}
        generated = (*types.items(), (self.key, "string"), (self.position, "int"))
        return (*((name, ddl, False) for name, ddl in generated), *((name, ddl, True) for name, ddl in self.fields))


def child_name(table: str, path: str) -> str:
    """Return the name of the child table of a dimension for the path of an array."""
    return SEPARATOR.join((table, *path.split(".")))


def is_child_name(name: str, table: str) -> bool:
    """Return whether a child table of a dimension can have this name; case is ignored, as in a catalog."""
    return name.casefold().startswith((table + SEPARATOR).casefold())


def child_tables(dimension: Dimension) -> tuple[ChildTable, ...]:
    """Return the child tables of a dimension; a mirrored attribute that no delivery has had yet has none (S36)."""
    attributes = {attribute.name: attribute for attribute in dimension.attributes}
    children = []
    for path in dimension.child_tables:
        name, *inner = path.split(".")
        attribute = attributes.get(name)
        elements = None if attribute is None else element_type(attribute.data_type, inner)
        if attribute is None or elements is None:
            continue
        published = {each.rpartition(".")[2] for each in dimension.child_tables if each.rpartition(".")[0] == path}
        parent_key = _key_column((name, *inner[:-1])) if inner else dimension.surrogate_key
        fields = tuple((field, each.ddl()) for field, each in elements.fields if field not in published)
        children.append(
            ChildTable(dimension.name, (name, *inner), dimension.surrogate_key, parent_key, fields, attribute.personal)
        )
    return tuple(children)


def element_type(data_type: DataType, fields: Sequence[str]) -> Struct | None:
    """Return the type of the elements of an array of structs, or of the array in a field of its elements.

    Args:
        data_type: The type of the attribute.
        fields: The fields that lead from its elements to the array, outermost first.

    Returns:
        None if the type is no array of structs, or an element has no such field.
    """
    if not (isinstance(data_type, Array) and isinstance(data_type.element, Struct)):
        return None
    if not fields:
        return data_type.element
    field = dict(data_type.element.fields).get(fields[0])
    return None if field is None else element_type(field, fields[1:])


def _key_column(path: Sequence[str]) -> str:
    return f"{path[-1]}_key"
