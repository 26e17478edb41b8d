"""Helpers that keep a declaration frozen, hashable and picklable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class FrozenMapping(Mapping[str, V], Generic[V]):
    """A mapping that cannot change; equal to any mapping of the same items."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


def set_frozen_fields(target: object, **values: Any) -> None:
    """Set fields of a frozen dataclass, for its constructor only."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


def as_tuple(value: Any) -> Any:
    """Return one name or a list of names as a tuple; anything else unchanged, for the checks to reject."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, (list, tuple)) else value
