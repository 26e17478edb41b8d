"""The landing table that a load names: declared by its first load, and stored with the table (S38)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scd_pipeline.declaration import LandingTable, Source
from scd_pipeline.declaration.frozen import as_tuple
from scd_pipeline.declaration.landing_table import column_types
from scd_pipeline.declaration.mirror import MIRROR, Mirror
from scd_pipeline.delta.stored_declaration import stored_declaration
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.texts import join_names

PASSED = "records"
"""The name of the source of a landing table that a load names: its rows are passed."""
_KEYS = ("primary_key", "merge_key")


def named_landing_table(warehouse: Warehouse, name: str, options: Mapping[str, Any]) -> LandingTable:
    """Return the landing table of this name, with all columns of its rows.

    The first load declares its options, which the table stores. A later one has the stored options; it may repeat them.

    Args:
        warehouse: The warehouse.
        name: The name of the table.
        options: The options of `LandingTable` that the load has: all but `source`, `mirror`, `missing` and texts.

    Raises:
        DeclarationError: The options are invalid.
        UsageError: The table has other options, has another source, or does not exist and no disposition is declared.
    """
    stored = _stored_options(warehouse, name)
    passed = {option: value for option, value in options.items() if value is not None}
    if not stored and "disposition" not in passed:
        raise UsageError("DISPOSITION_MISSING", name)
    changed = [option for option in passed if option in stored and not _is_stored(stored, option, passed[option])]
    if changed:
        texts = [f"{option} from {stored[option]} to {passed[option]}" for option in changed]
        raise UsageError("LANDING_OPTIONS_CHANGED", name, changes=", ".join(texts), options=join_names(changed))
    return _landing_table(name, {**passed, **stored})


def _stored_options(warehouse: Warehouse, name: str) -> dict[str, Any]:
    """Return the options that an existing table stores; none if it does not exist, or has rows of another program."""
    stored = stored_declaration(warehouse, name)
    if stored is None:
        return {}
    if not stored.landing or stored.existence_source != PASSED:
        raise UsageError("DECLARED_TABLE", name, source=stored.existence_source)
    options: dict[str, Any] = json.loads(stored.landing)
    return options


def _is_stored(stored: Mapping[str, Any], option: str, value: Any) -> bool:
    """Return whether an option has the stored value; names of columns without types have the stored types."""
    if option == "columns":
        types = {**stored["columns"], **{name: kind for key in _KEYS for name, kind in stored[key].items()}}
        return value == MIRROR or column_types(value).items() <= types.items()
    if option in _KEYS and not isinstance(value, Mapping):
        return bool(tuple(stored[option]) == as_tuple(value))
    return bool(stored[option] == value)


def _landing_table(name: str, options: Mapping[str, Any]) -> LandingTable:
    is_complete = options["disposition"] == "replace" or bool(options.get("merge_key"))
    source = Source(PASSED, snapshot={}) if is_complete else Source(PASSED, feed={})
    return LandingTable(name, source=source, mirror=Mirror(), missing="null", **{"columns": {}, **options})
