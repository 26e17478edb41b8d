"""Warn of attributes whose new values open versions of a large share of the entities.

The counts are those that a load has computed anyway: transitions of the audit, and what each batch in the change log
added and deleted. Such an attribute makes the table grow by most of its entities at each delivery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from scd_pipeline.declaration import Dimension
from scd_pipeline.errors import LoadWarning
from scd_pipeline.history.batch import Batch, batches_in_effect
from scd_pipeline.history.snapshots import business_times
from scd_pipeline.texts import pluralize

_DEFAULT_LIMIT, _MIN_ENTITIES = 0.5, 20
"""The limit if none is declared, and the number of existing entities from which it applies."""
_LAST = datetime.max.replace(tzinfo=timezone.utc)


def existing_entities(stored: Sequence[Batch], appended: Sequence[Batch], dimension: Dimension) -> dict[str, int]:
    """Return how many entities existed before each appended delivery, by `source/channel/delivery`.

    They are the entities that the existence source has added and not deleted, as its batches counted them when they
    were loaded. The number is exact for deliveries that were loaded in order of time.

    Returns:
        The number for each delivery; no deliveries for a dimension without windows, whose entities have one row.
    """
    if not dimension.has_windows:
        return {}
    batches_by_id = {batch.id: batch for batch in (*stored, *appended)}
    source = dimension.existence_source.name

    def growth(batch: Batch) -> int:
        counts = batches_by_id.get(batch.records_batch_id, batch)
        return counts.new - counts.deleted if batch.source == source else 0

    replaced = {batch.delivery_key for batch in appended}
    in_effect = [batch for batch in batches_in_effect(list(stored)) if batch.delivery_key not in replaced]
    existing, before = sum(map(growth, in_effect)), {}
    for batch in sorted(appended, key=lambda batch: min(business_times(batch), default=_LAST)):
        before["/".join(batch.delivery_key)] = max(0, existing)
        existing += growth(batch)
    return before


def rapid_change_warnings(
    dimension: Dimension, versions: Mapping[str, Mapping[str, int]], existing: Mapping[str, int]
) -> tuple[LoadWarning, ...]:
    """Return a warning for each attribute whose new values open versions of too large a share of the entities.

    Args:
        dimension: The declaration with the limit.
        versions: The number of versions that new values of an attribute opened, by delivery and attribute.
        existing: The number of entities that existed before each delivery.

    Returns:
        The warnings in declared order of the attributes, each of the delivery with the largest share.
    """
    warnings = []
    for attribute in (attribute for attribute in dimension.attributes if attribute.opens_versions):
        opened = {delivery: versions.get(delivery, {}).get(attribute.name, 0) for delivery in existing}
        shares = {
            delivery: count / existing[delivery]
            for delivery, count in opened.items()
            if existing[delivery] and _exceeds_limit(dimension, count, existing[delivery])
        }
        if shares:
            delivery = max(shares, key=lambda delivery: shares[delivery])
            details = {
                "versions": pluralize(opened[delivery], "version"),
                "existing": existing[delivery],
                "share": f"{shares[delivery]:.0%}",
                "limit": f"{_limit(dimension):.0%}",
            }
            location = f"{dimension.name}.{attribute.name}: {delivery}"
            warnings.append(LoadWarning("RAPID_CHANGE", location, details))
    return tuple(warnings)


def _limit(dimension: Dimension) -> float:
    return _DEFAULT_LIMIT if dimension.rapid_change_limit is None else dimension.rapid_change_limit


def _exceeds_limit(dimension: Dimension, versions: int, existing: int) -> bool:
    least = _MIN_ENTITIES if dimension.rapid_change_limit is None else 1
    return existing >= least and versions > _limit(dimension) * existing
