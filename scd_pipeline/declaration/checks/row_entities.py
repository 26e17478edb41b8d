"""Checks of a dimension whose entities are rows or versions of rows (S37)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scd_pipeline.declaration.checks.collect import ErrorCollector

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension


def check_row_entities(errors: ErrorCollector, draft: Dimension) -> None:
    """Check that one source delivers rows as a whole, and that their hash does not contain personal values (S31)."""
    if not draft.is_whole_row:
        return
    if draft.row_version:
        problem = "the business key is the whole row, whose presence opens a window already"
        errors.add("NOT_APPLICABLE", "row_version", problem, "remove it")
    if not draft.attributes and draft.mirror is None and not errors.has("attributes"):
        problem = "are missing: a row consists of them"
        errors.add("MISSING_VALUE", "attributes", problem, "declare the columns of a row, or write mirror")
    if len(draft.sources) > 1:
        problem = f"the dimension has {len(draft.sources)} sources, of which none delivers whole rows"
        errors.add("NOT_APPLICABLE", "business_key", problem, "name the columns that identify an entity")
    for source in draft.sources:
        if source.feed is not None and source.feed.updates == "partial":
            problem = "without all of its values, a row cannot be identified"
            errors.add("NOT_APPLICABLE", f"sources.{source.name}.feed.updates", problem, "remove it")
    for attribute in draft.attributes:
        if attribute.personal:
            problem = "is personal, and the business key is a hash of it"
            fix = "a key remains after an erasure: name the columns that identify an entity, or remove `personal`"
            errors.add("PERSONAL_KEY", f"attributes.{attribute.name}", problem, fix)
