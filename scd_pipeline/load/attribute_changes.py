"""What a load changes in the attributes of a dimension: new, renamed, wider and retired ones (S20, S36)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from scd_pipeline.declaration import Attribute, Dimension
from scd_pipeline.declaration.times import canonical_time
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.history.batch import Batch, batches_in_effect, rank
from scd_pipeline.history.snapshots import business_times


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """A change of one attribute by a load.

    Attributes:
        attribute: The present name.
        change: What changes.
        detail: The type of an added attribute, both types of a wider one, the former name of a renamed one, and the
            time at which one was retired; empty for one that is provided again.
    """

    attribute: str
    change: Literal["added", "renamed", "widened", "retired", "provided again"]
    detail: str = ""

    def __str__(self) -> str:
        return f"attribute {self.attribute}: {self.change} {self.detail}".rstrip()


def attribute_changes(stored: StoredDeclaration | None, dimension: Dimension) -> tuple[AttributeChange, ...]:
    """Return how the attributes differ from those that the table stores; those of a new table are not new.

    The measures and roles of a fact are no attributes.

    Args:
        stored: The stored declaration; None without a table.
        dimension: The declaration, as `with_retirement` returns it.
    """
    if dimension.is_of_fact:
        return ()
    if stored is None:
        return tuple(_retirement(each) for each in dimension.attributes if each.retired_at)
    return tuple(change for attribute in dimension.attributes for change in _changes(stored, attribute))


def _changes(stored: StoredDeclaration, attribute: Attribute) -> list[AttributeChange]:
    names = [name for name in (attribute.name, *attribute.former_names) if name in stored.attributes]
    if not names:
        return [AttributeChange(attribute.name, "added", f"as {attribute.type}")]
    (name, *_), changes = names, list[AttributeChange]()
    if name != attribute.name:
        changes.append(AttributeChange(attribute.name, "renamed", f"from {name}"))
    if (before := stored.attributes[name].type) != attribute.type:
        changes.append(AttributeChange(attribute.name, "widened", f"from {before} to {attribute.type}"))
    if stored.retired_at.get(name, "") != attribute.retired_at:
        changes.append(_retirement(attribute))
    return changes


def _retirement(attribute: Attribute) -> AttributeChange:
    if attribute.retired_at:
        return AttributeChange(attribute.name, "retired", f"at {attribute.retired_at}")
    return AttributeChange(attribute.name, "provided again")


def with_retirement(dimension: Dimension, batches: Sequence[Batch]) -> Dimension:
    """Return the dimension with the time since which no delivery provides an attribute, for each that is retired.

    A mirrored attribute is retired if the last delivery lacks its column; any other one if it is declared so.
    Deliveries of a feed with partial updates do not matter, because they may lack any column. The result depends on
    which deliveries are in effect, and not on when they arrived (S14).

    Args:
        dimension: The declaration, with the attributes of all deliveries.
        batches: Every batch of the change log.
    """
    partial = {source.name for source in dimension.sources if source.feed and source.feed.updates == "partial"}
    in_effect = [each for each in batches_in_effect(list(batches)) if each.is_snapshot or each.source not in partial]
    ordered = sorted((batch for batch in in_effect if business_times(batch)), key=_position)
    may_retire = {a.name for a in (*dimension.mirrored_attributes, *(a for a in dimension.attributes if a.retired))}
    times = {name: _retired_at(name, ordered) for name in may_retire}
    attributes = tuple(replace(a, retired_at=times.get(a.name, "")) for a in dimension.attributes)
    return replace(dimension, attributes=attributes) if times else dimension


def _position(batch: Batch) -> tuple[datetime, str, str, str]:
    """Return the position of the last row of a batch."""
    return (max(business_times(batch)), rank(batch.delivery), batch.channel, rank(batch.revision))


def _retired_at(name: str, ordered: Collection[Batch]) -> str:
    """Return the time, as ISO text, of the first batch after the last one with an attribute; empty if that is last."""
    retiring = None
    for batch in ordered:
        if name in batch.columns:
            retiring = None
        elif retiring is None:
            retiring = batch
    return "" if retiring is None else str(canonical_time(min(business_times(retiring))))
