"""Helpers that keep a declaration frozen, hashable and picklable."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from scd_pipeline.errors import UsageError
from scd_pipeline.texts import join_names, nearest

V = TypeVar("V")
Declared = TypeVar("Declared")


def checked_arguments(declared: type[Declared]) -> type[Declared]:
    """Decorate a class so that a call with arguments that it does not have raises a UsageError with a suggestion.

    Python's TypeError about them would neither suggest the nearest name nor list the others.
    """
    construct: Any = declared.__init__
    signature = inspect.signature(construct)
    names = [name for name in signature.parameters if name != "self"]

    @functools.wraps(construct)
    def wrapper(self: Any, *arguments: Any, **options: Any) -> None:
        try:
            signature.bind(self, *arguments, **options)
        except TypeError as error:
            near = next((near for name in options if name not in names and (near := nearest(name, names))), None)
            hint = f"did you mean {near}? " if near else ""
            raise UsageError(
                "ARGUMENTS", f"{declared.__name__}(...)", reason=str(error), names=join_names(names), hint=hint
            ) from error
        construct(self, *arguments, **options)

    declared.__init__ = wrapper  # type: ignore[method-assign]
    return declared


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


def frozen_mapping(values: Any) -> Any:
    """Return a mapping that cannot change, empty for None; anything else unchanged, for the checks to reject."""
    if values is None:
        return FrozenMapping({})
    return FrozenMapping(values) if isinstance(values, Mapping) else values


def set_frozen_fields(target: object, **values: Any) -> None:
    """Set fields of a frozen dataclass, for its constructor only."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


def as_tuple(value: Any) -> Any:
    """Return one name or a list of names as a tuple; anything else unchanged, for the checks to reject."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, (list, tuple)) else value
