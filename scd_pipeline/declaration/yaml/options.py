"""The options of a declaration and the kinds of their values, which are the same in Python and YAML."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from scd_pipeline.declaration import change_types, column_names
from scd_pipeline.declaration.attribute import MISSING, ON_BAD_VALUE, PREVIOUS
from scd_pipeline.declaration.governance import SIGN_OFF_ROLES
from scd_pipeline.declaration.jdbc import EnvVar
from scd_pipeline.declaration.source import Column


class Kind(enum.Enum):
    """The kind of an option's value, with its description for messages."""

    TEXT = "text"
    TIME = "a time"
    TIME_OR_NULL = "a time or null"
    NAMES = "a name or a list of names"
    TEXTS = "text or a list of texts"
    FLAG = "true or false"
    PREVIOUS = f"one of true, false, {', '.join(PREVIOUS)}"
    NUMBER = "a number"
    NAME_OR_FALSE = "a name, or false for no such column"
    SCALAR = "text, a number, or true or false"
    MISSING = f"one of {', '.join(MISSING)}"
    ON_BAD_VALUE = f"one of {', '.join(ON_BAD_VALUE)}"
    COMPUTED = "a column, or a mapping with an expression"
    SEQUENCE = "a column, a mapping with an expression, or a list of them"
    VARIABLE = "the name of an environment variable, as in {env: DB_PASSWORD}"
    TEXT_OR_VARIABLE = "text, or the name of an environment variable, as in {env: DB_USER}"
    TIME_OR_NUMBER = "a time, a number or text"
    SECTION = "a mapping"

    def accepts(self, value: object) -> bool:
        """Return whether the value is of this kind; a section is checked by its reader."""
        match self:
            case Kind.NAME_OR_FALSE:
                return value is False or isinstance(value, str)
            case Kind.NAMES | Kind.TEXTS:
                return isinstance(value, tuple) and all(isinstance(name, str) for name in value)
            case Kind.SEQUENCE:
                return all(map(Kind.COMPUTED.accepts, value if isinstance(value, tuple) else (value,)))
            case Kind.SECTION:
                return True
        types = _TYPES[self]
        return isinstance(value, types) and (bool in types or not isinstance(value, bool))


_TYPES: Mapping[Kind, tuple[type, ...]] = {
    **dict.fromkeys((Kind.TEXT, Kind.TIME, Kind.TIME_OR_NULL, Kind.MISSING, Kind.ON_BAD_VALUE), (str,)),
    Kind.COMPUTED: (str, Column),
    Kind.VARIABLE: (EnvVar,),
    Kind.TEXT_OR_VARIABLE: (str, EnvVar),
    Kind.TIME_OR_NUMBER: (str, int, float),
    Kind.FLAG: (bool,),
    Kind.PREVIOUS: (bool, str),
    Kind.NUMBER: (int, float),
    Kind.SCALAR: (str, int, float, bool),
}
"""The types of the values of each kind of single values."""

Options = Mapping[str, Kind]

ATTRIBUTE: Options = {
    "scd": Kind.SCALAR,
    "type": Kind.TEXT,
    "source": Kind.TEXT,
    "former_names": Kind.NAMES,
    "retired": Kind.FLAG,
    "missing": Kind.MISSING,
    "on_bad_value": Kind.ON_BAD_VALUE,
    "required": Kind.FLAG,
    "personal": Kind.FLAG,
    "previous": Kind.PREVIOUS,
    "untracked": Kind.TEXT,
    "column_names": Kind.SECTION,
    "regulated": Kind.FLAG,
    "description": Kind.TEXT,
}
COLUMN: Options = {
    "from": Kind.NAMES,
    "format": Kind.TEXT,
    "unit": Kind.TEXT,
    "round": Kind.FLAG,
    "decimal": Kind.TEXT,
    "grouping": Kind.TEXT,
    "true_values": Kind.TEXTS,
    "false_values": Kind.TEXTS,
    "expression": Kind.TEXT,
    "default": Kind.SCALAR,
    "not_provided_values": Kind.TEXTS,
    "null_values": Kind.TEXTS,
}
_CHANNEL: Options = {
    "path": Kind.TEXT,
    "format": Kind.TEXT,
    "options": Kind.SECTION,
    "record_path": Kind.TEXT,
    "skip_lines": Kind.NUMBER,
    "skip_footer": Kind.NUMBER,
    "partition": Kind.TEXT,
    "versions": Kind.FLAG,
    "partition_format": Kind.TEXT,
    "time_of_day": Kind.TEXT,
    "delivery_timezone": Kind.TEXT,
    "effective_at": Kind.COMPUTED,
    "effective_at_format": Kind.TEXT,
    "effective_at_unit": Kind.TEXT,
    "effective_at_round": Kind.FLAG,
    "sequence": Kind.SEQUENCE,
    "sequence_type": Kind.TEXT,
    "ties": Kind.TEXT,
    "reason": Kind.TEXT,
    "actor": Kind.TEXT,
    "correlation_id": Kind.TEXT,
    "rows": Kind.TEXT,
    "deletes": Kind.TEXT,
    "jdbc": Kind.SECTION,
    "control_totals": Kind.SECTION,
}
CONTROL_TOTALS: Options = {"rows": Kind.TEXT, "sums": Kind.SECTION, "path": Kind.TEXT}
EXPRESSION: Options = {"expression": Kind.TEXT}
SNAPSHOT: Options = {**_CHANNEL, "scope": Kind.NAMES, "unreadable_keys": Kind.TEXT, "empty_scope": Kind.TEXT}
FEED: Options = {
    **_CHANNEL,
    "updates": Kind.TEXT,
    "nulls": Kind.TEXT,
    "cursor": Kind.TEXT,
    "start": Kind.TIME_OR_NUMBER,
}
JDBC: Options = {
    "url": Kind.TEXT_OR_VARIABLE,
    "table": Kind.TEXT,
    "query": Kind.TEXT,
    "user": Kind.TEXT_OR_VARIABLE,
    "password": Kind.VARIABLE,
    "partitions": Kind.SECTION,
    "options": Kind.SECTION,
}
PARTITIONS: Options = {
    "column": Kind.TEXT,
    "lower": Kind.TIME_OR_NUMBER,
    "upper": Kind.TIME_OR_NUMBER,
    "number": Kind.NUMBER,
}
ENV_VAR: Options = {"env": Kind.TEXT}
SOURCE: Options = {
    "snapshot": Kind.SECTION,
    "feed": Kind.SECTION,
    "attributes": Kind.NAMES,
    "existence": Kind.FLAG,
    "timezone": Kind.TEXT,
    "columns": Kind.SECTION,
    "bad_row_limit": Kind.NUMBER,
    "retire_guard": Kind.SECTION,
    "overdue_after_hours": Kind.NUMBER,
    "upstream": Kind.NAMES,
    "timed_table": Kind.SECTION,
    "landing_table": Kind.SECTION,
}
RETIRE_GUARD: Options = {"share": Kind.NUMBER, "at_least": Kind.NUMBER}
ATTRIBUTE_COLUMNS: Options = dict.fromkeys(column_names.ATTRIBUTE_COLUMNS, Kind.NAME_OR_FALSE)
TABLE_COLUMNS: Options = dict.fromkeys(column_names.TABLE_COLUMNS, Kind.NAME_OR_FALSE)
CHANGE_TYPES: Options = dict.fromkeys(change_types.CHANGE_TYPES, Kind.TEXT)
BEGIN: Options = {"at": Kind.TIME, "for_first_changes_until": Kind.TIME, "column": Kind.TEXT}
SIGN_OFFS: Options = dict.fromkeys(SIGN_OFF_ROLES, Kind.SECTION)
SIGN_OFF: Options = {"by": Kind.TEXT, "date": Kind.TIME}
EXPECTED_VALUE: Options = {"as_of": Kind.TIME, "expression": Kind.TEXT, "value": Kind.SCALAR}
MIRROR: Options = {"scd": Kind.SCALAR, "technical": Kind.NAMES, "former_names": Kind.SECTION}
LANDING_MIRROR: Options = {option: kind for option, kind in MIRROR.items() if option != "scd"}
DIMENSION: Options = {
    "dimension": Kind.TEXT,
    "history_of": Kind.TEXT,
    "business_key": Kind.SECTION,
    "row_version": Kind.FLAG,
    "sources": Kind.SECTION,
    "attributes": Kind.SECTION,
    "mirror": Kind.SECTION,
    "surrogate_key": Kind.TEXT,
    "key_salt": Kind.TEXT,
    "open_end": Kind.TIME_OR_NULL,
    "profile": Kind.TEXT,
    "regulated": Kind.FLAG,
    "single_scd_type": Kind.FLAG,
    "rapid_change_limit": Kind.NUMBER,
    "z_order": Kind.TEXT,
    "surrogate": Kind.TEXT,
    "history_table": Kind.FLAG,
    "history_columns": Kind.TEXT,
    "column_names": Kind.SECTION,
    "change_types": Kind.SECTION,
    "begin": Kind.SECTION,
    "deleted_rows": Kind.TEXT,
    "deleted_at": Kind.FLAG,
    "owner": Kind.TEXT,
    "description": Kind.TEXT,
    "group": Kind.TEXT,
    "sign_offs": Kind.SECTION,
    "audit_retention_years": Kind.NUMBER,
    "product_card": Kind.TEXT,
    "expected_values": Kind.SECTION,
    "table_properties": Kind.SECTION,
    "history_table_properties": Kind.SECTION,
    "archive_after_years": Kind.NUMBER,
    "former_name": Kind.TEXT,
    "child_tables": Kind.NAMES,
}
ROLE: Options = {
    "dimension": Kind.TEXT,
    "key": Kind.NAMES,
    "unknown": Kind.TEXT,
    "not_applicable": Kind.TEXT,
    "invalid": Kind.TEXT,
    "unknown_limit": Kind.NUMBER,
}
FACT: Options = {
    "fact": Kind.TEXT,
    "grain": Kind.SECTION,
    "event_time": Kind.TEXT,
    "event_at": Kind.TEXT,
    "dimensions": Kind.SECTION,
    "measures": Kind.SECTION,
    "sources": Kind.SECTION,
    "row_key": Kind.TEXT,
    "strategy": Kind.TEXT,
    "owner": Kind.TEXT,
    "description": Kind.TEXT,
    "group": Kind.TEXT,
}
LANDING_TABLE: Options = {
    "landing_table": Kind.TEXT,
    "disposition": Kind.TEXT,
    "strategy": Kind.TEXT,
    "primary_key": Kind.SECTION,
    "merge_key": Kind.SECTION,
    "dedup_sort": Kind.SECTION,
    "hard_delete": Kind.TEXT,
    "sources": Kind.SECTION,
    "columns": Kind.SECTION,
    "mirror": Kind.SECTION,
    "missing": Kind.MISSING,
    "row_key": Kind.TEXT,
    "child_tables": Kind.NAMES,
    "owner": Kind.TEXT,
    "description": Kind.TEXT,
    "group": Kind.TEXT,
}

BASE: Options = {"path": Kind.TEXT, "format": Kind.TEXT, "columns": Kind.SECTION, "options": Kind.SECTION}
BASE_COLUMN: Options = {"type": Kind.TEXT, "default": Kind.SCALAR}
TIMED_TABLE: Options = {
    "timed_table": Kind.TEXT,
    "base": Kind.SECTION,
    "log": Kind.TEXT,
    "updates": Kind.TEXT,
    "timezone": Kind.TEXT,
    "business_key": Kind.NAMES,
    "owner": Kind.TEXT,
    "description": Kind.TEXT,
    "group": Kind.TEXT,
}

# Names of options that are keywords of Python.
PYTHON_NAMES = {"from": "from_"}

# Names of options in other tools, each with the equivalent option.
ALIASES = {
    "optional": "missing: not_provided",
    "row_version_column_name": "attributes: {<column>: {scd: 2, required: true}}",
}

# Names of options in other tools that split a table into folders by the values of a column.
PARTITIONING = ("partition_by", "partition_cols", "partition_columns", "partitioned_by", "partitions")
