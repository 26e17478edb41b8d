"""The audit table of a dimension: the transitions of each entity with their reason and their system time (S21, S22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scd_pipeline.columns import EFFECTIVE_FROM
from scd_pipeline.declaration import Dimension
from scd_pipeline.declaration.change_types import INSERT, LOGICAL_DELETE, REPAIRED, UPDATE, WITHDRAWN
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.times import EARLIEST_TIME
from scd_pipeline.declaration.types import Array, Map, Primitive, parse_type
from scd_pipeline.delta.schema import APPEND_ONLY_PROPERTIES, renamed_columns, skipping_columns
from scd_pipeline.delta.stored_declaration import StoredDeclaration
from scd_pipeline.delta.table import Table, sql_literal
from scd_pipeline.expressions import col, key_text, timestamp_literal, to_current_names
from scd_pipeline.history.actions import changed_columns
from scd_pipeline.history.lossless import map_entry
from scd_pipeline.history.schema import beginning, dimension_schema
from scd_pipeline.history.transitions import (
    AUDIT_ACTOR,
    AUDIT_REASON,
    CHANGE_TS,
    CHANGE_TYPE,
    CHANGED_COLUMNS,
    NEW_VALUES,
    OLD_VALUES,
    SOURCE_BATCH,
    key_columns,
    transition_schema,
)

AUDIT_ID, RECORDED_AT, RECORDED_VERSION, WITHDRAWS = "audit_id", "recorded_at", "recorded_version", "withdraws"
_CONTENT, _CAUSE, _RECORDED_TS = "_content", "_cause", "_recorded_ts"
_NO_LONGER = "no_longer_true"


@dataclass(frozen=True, slots=True)
class RecordedTransitions:
    """What the audit has of the entities that a step changes.

    Attributes:
        rows: The rows of transitions that may no longer be current, with what withdrew them (`with_change_types`).
        causes: For each business key the batch that changed its history (`source_batch_id`).
    """

    rows: DataFrame
    causes: DataFrame


def audit_schema(dimension: Dimension) -> list[tuple[str, str, bool]]:
    """Return name, type and nullability of the audit's columns, in order."""
    not_null = {CHANGE_TYPE, CHANGE_TS, AUDIT_ACTOR}
    return [
        (AUDIT_ID, "bigint", False),
        *[(key.name, parse_type(key.type).ddl(), False) for key in dimension.business_key],
        *[(name, ddl, name not in not_null) for name, ddl in transition_schema(dimension)],
        (RECORDED_AT, "timestamp", False),
        (RECORDED_VERSION, "bigint", True),
        (WITHDRAWS, "bigint", True),
        (EFFECTIVE_FROM, "timestamp", True),
    ]


def audit_properties(dimension: Dimension) -> dict[str, str]:
    """Return the table properties of the audit."""
    queried = {*dimension.key_names, CHANGE_TYPE, CHANGE_TS, RECORDED_AT}
    columns = [(name, ddl) for name, ddl, _ in audit_schema(dimension) if name in queried]
    return {**APPEND_ONLY_PROPERTIES, **skipping_columns(columns)}


def with_change_types(audit: DataFrame, dimension: Dimension) -> DataFrame:
    """Return rows of the audit with their change types in place of the labels that the table has for them."""
    change_types = {label: change_type for change_type, label in dimension.audit_labels.items()}
    return audit.withColumn(CHANGE_TYPE, _replaced(change_types)) if change_types else audit


def _with_labels(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return rows to append to the audit with the declared labels of their change types."""
    labels = dimension.audit_labels
    return rows.withColumn(CHANGE_TYPE, _replaced(labels)) if labels else rows


def _replaced(new_values: Mapping[str, str]) -> Column:
    """Return the change type with values replaced; others do not change."""
    value = F.col(CHANGE_TYPE)
    for old, new in new_values.items():
        value = F.when(F.col(CHANGE_TYPE) == old, new).otherwise(value)
    return value


def current_transitions(audit: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the audit rows that were not withdrawn, under the current names of the attributes.

    Returns:
        `audit_id`, the business key and `transition_schema`, `recorded_at`, `recorded_version`.
    """
    keys = list(dimension.key_names)
    audit = with_change_types(audit, dimension)
    withdrawn = audit.where(F.col(CHANGE_TYPE) == WITHDRAWN).select(
        *[col(k) for k in keys], F.col(WITHDRAWS).alias(AUDIT_ID)
    )
    transitions = audit.where(~F.col(CHANGE_TYPE).isin(WITHDRAWN, REPAIRED)).drop(WITHDRAWS)
    return _with_current_names(transitions.join(withdrawn, [*keys, AUDIT_ID], "left_anti"), dimension)


def assigned_keys_query(audit: Table, stored: StoredDeclaration) -> str | None:
    """Return the SQL of the surrogate keys that an audit has recorded as assigned, each with its version (S14, S24).

    The columns are the surrogate key, the business key and `effective_from`; a key may have several rows. In a row from
    before the audit had `effective_from`, the version begins at the time of its change or, if that does not have the
    key, at the declared begin (S29). None if the audit does not exist.
    """
    if not (columns := audit.columns()):
        return None
    key, names = quote_name(f"{stored.surrogate_key}_new"), [quote_name(name) for name in stored.key_names]
    start = f"TIMESTAMP '{EARLIEST_TIME}Z'"
    if stored.column_layout.has_windows:
        recorded = [EFFECTIVE_FROM] if EFFECTIVE_FROM in columns else []
        start = f"COALESCE({', '.join([*recorded, *_starts_at_begin(key, names, stored), CHANGE_TS])})"
    opening = ", ".join(sql_literal(stored.change_types.get(name, name)) for name in (INSERT, UPDATE, LOGICAL_DELETE))
    return (
        f"SELECT {key} AS {quote_name(stored.surrogate_key)}, {', '.join(names)}, {start} AS {EFFECTIVE_FROM} "
        f"FROM {audit.identifier} WHERE {CHANGE_TYPE} IN ({opening}) AND {key} IS NOT NULL"
    )


def _starts_at_begin(key: str, names: Sequence[str], stored: StoredDeclaration) -> list[str]:
    """Return possible starts, as SQL, of a version that may begin at the declared begin; the first not NULL applies.

    The change's own time is the start if the key is its hash (`history.keys.surrogate_key`).
    """
    if stored.begin is None:
        return []
    texts = [f"CAST({name} AS STRING)" for name in names]
    parts = [f"COALESCE(CONCAT(CAST(LENGTH({text}) AS STRING), ':', {text}), '-')" for text in texts]
    salt = sql_literal(f"{len(stored.key_salt)}:{stored.key_salt}")
    hashed = f"xxhash64(CONCAT({', '.join([salt, *parts])}, CAST(UNIX_MICROS({CHANGE_TS}) AS STRING)))"
    at_change = f"CASE WHEN {key} = {hashed} THEN {CHANGE_TS} END"
    if len(stored.begin) > 1:
        return [at_change, f"TIMESTAMP '{stored.begin[0]}Z'"]
    (column,) = stored.begin
    ddl = parse_type(stored.attributes[column].type).ddl()
    former = [former for former, name in stored.former_names.items() if name == column]
    values = [f"ELEMENT_AT({NEW_VALUES}, {sql_literal(name)})" for name in (column, *former)]
    return [at_change, *(f"CAST(CAST({value} AS {ddl}) AS TIMESTAMP)" for value in values)]


def recorded_until(audit: DataFrame, moment: Column) -> DataFrame:
    """Return the audit rows that were recorded up to a system time."""
    return audit.where(F.col(RECORDED_AT) <= moment)


def audit_changes(
    current: DataFrame, dimension: Dimension, *, recorded: RecordedTransitions | None, log_commit: int
) -> DataFrame:
    """Return what to append to the audit, so that its transitions become the current ones.

    Args:
        current: The transitions of the present history: business key, `transition_schema`, `effective_from`.
        dimension: The declaration.
        recorded: What the audit has of the same entities; None if it has no transition that they may differ from.
        log_commit: The number of the last log commit of the step. It makes the ids of equal transitions of different
            steps distinct.

    Returns:
        `audit_schema` without `recorded_at` and `recorded_version`, with a WITHDRAWN row for each recorded transition
        that is not current.
    """
    columns = [col(name) for name in (*dimension.key_names, EFFECTIVE_FROM, *dict(transition_schema(dimension)))]
    rows = current.select(*columns)
    if recorded is None:
        rows = rows.withColumn(WITHDRAWS, F.lit(None).cast("bigint"))
    else:
        rows = _differing_rows(rows.withColumn(_CONTENT, _content(dimension)), recorded, dimension)
        rows = rows.drop(_CONTENT, _RECORDED_TS, _CAUSE)
    return rows.withColumn(AUDIT_ID, _audit_id(dimension, log_commit))


def _audit_id(dimension: Dimension, log_commit: int) -> Column:
    """Return a hash that differs between the rows of a step.

    Two rows of one entity with the same type and time have different sources or groups of attributes
    (`build_transitions`), or withdraw different transitions.
    """
    parts = [
        key_text(dimension.key_names),
        F.lit(str(log_commit)),
        F.col(CHANGE_TYPE),
        F.unix_micros(CHANGE_TS).cast("string"),
        F.coalesce(F.col(SOURCE_BATCH), F.lit("")),
        F.coalesce(F.array_join(CHANGED_COLUMNS, ","), F.lit("")),
        F.coalesce(F.col(WITHDRAWS).cast("string"), F.lit("")),
    ]
    return F.xxhash64(*parts)


def recorded_rows(changes: DataFrame, dimension: Dimension, *, at: Column, version: Column) -> DataFrame:
    """Return the rows to append to the audit.

    Args:
        changes: What to append (`audit_changes`).
        dimension: The declaration.
        at: The system time.
        version: The version of the dimension's table that has the current history.

    Returns:
        `audit_schema`.
    """
    rows = _with_labels(changes, dimension)
    rows = rows.withColumns({RECORDED_AT: at, RECORDED_VERSION: version.cast("bigint")})
    return rows.select(*[col(name) for name, _, _ in audit_schema(dimension)])


def repair_rows(
    pairs: DataFrame, dimension: Dimension, *, actor: str, reason: str, at: datetime, version: int
) -> DataFrame:
    """Return an audit row for each row that a repair removes, replaces or adds.

    Args:
        pairs: The rows as they are and as they should be (`actions.differing_pairs`).
        dimension: The declaration.
        actor: The person or program that repairs.
        reason: The reason of the repair.
        at: The system time of the repair.
        version: The version of the dimension's table with the rows as they are.

    Returns:
        `audit_schema`. Old and new values include the generated columns. A part of the business key that is NULL in
        both rows, where the audit cannot have NULL, is `0`, or `0001-01-01` for a time; `old_values` has it as it is.
    """
    old, new = F.col("_old"), F.col("_new")
    types = {name: parse_type(ddl) for name, ddl, _ in dimension_schema(dimension)}
    old_texts, new_texts = (
        F.map_from_entries(F.array(*[map_entry(name, row[name], ddl) for name, ddl in types.items()]))
        for row in (old, new)
    )
    keys = [
        F.coalesce(new[key.name], old[key.name], *_replaced_null(parse_type(key.type).ddl())).alias(key.name)
        for key in dimension.business_key
    ]
    started = [row[EFFECTIVE_FROM] if dimension.has_windows else beginning() for row in (new, old)]
    # The key of another program's table may be a text, which only the values have.
    old_key, new_key = (row[dimension.surrogate_key].try_cast("bigint") for row in (old, new))
    values = dict(zip(key_columns(dimension), (old_key, new_key), strict=True)) | {
        CHANGE_TYPE: F.lit(REPAIRED),
        CHANGED_COLUMNS: changed_columns(dimension),
        OLD_VALUES: F.when(old.isNotNull(), old_texts),
        NEW_VALUES: F.when(new.isNotNull(), new_texts),
        CHANGE_TS: F.coalesce(*started, beginning()),
        EFFECTIVE_FROM: F.when(new_key.isNotNull(), started[0]),
        AUDIT_ACTOR: F.lit(actor),
        AUDIT_REASON: F.lit(reason),
        RECORDED_AT: timestamp_literal(at),
        RECORDED_VERSION: F.lit(version),
    }
    texts = [F.sort_array(F.map_entries(F.col(name))) for name in (OLD_VALUES, NEW_VALUES)]
    rows = pairs.select(*keys, *[value.alias(name) for name, value in values.items()])
    number = F.xxhash64(key_text(dimension.key_names), F.lit(REPAIRED), F.lit(version), F.to_json(F.struct(*texts)))
    rows = _with_labels(rows.withColumn(AUDIT_ID, number), dimension)
    return rows.select(
        *[
            (col(name) if name in rows.columns else F.lit(None)).cast(ddl).alias(name)
            for name, ddl, _ in audit_schema(dimension)
        ]
    )


def _replaced_null(ddl: str) -> list[Column]:
    """Return replacements for a NULL of this type, of which the first that can be cast is used."""
    return [F.lit(text).try_cast(ddl) for text in ("0", "0001-01-01")]


def _differing_rows(current: DataFrame, recorded: RecordedTransitions, dimension: Dimension) -> DataFrame:
    """Return the current transitions that are not recorded, and a WITHDRAWN row for each other recorded one."""
    names = list(dimension.key_names)
    transitions = recorded.rows.where(F.col(CHANGE_TYPE) != REPAIRED)
    pairs = current.join(_recorded_contents(transitions, dimension), [*names, _CONTENT], "full_outer")
    # Every transition has a type, and every recorded one an id.
    differing = pairs.where(F.col(CHANGE_TYPE).isNull() | F.col(WITHDRAWS).isNull())
    differing = differing.join(recorded.causes.withColumnRenamed(SOURCE_BATCH, _CAUSE), names, "left")
    is_withdrawn = F.col(WITHDRAWS).isNotNull()
    values = {
        CHANGE_TYPE: F.lit(WITHDRAWN),
        AUDIT_ACTOR: F.lit(f"pipeline:{dimension.name}"),
        AUDIT_REASON: F.lit(_NO_LONGER),
        CHANGE_TS: F.col(_RECORDED_TS),
        SOURCE_BATCH: F.col(_CAUSE),
    }
    return differing.withColumns({name: F.when(is_withdrawn, v).otherwise(col(name)) for name, v in values.items()})


def _recorded_contents(audit: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the recorded transitions that were not withdrawn, each with its content; the audit is scanned once.

    Returns:
        The business key, `withdraws` (the id of the transition), `_recorded_ts` and `_content`.
    """
    is_withdrawal = F.col(CHANGE_TYPE) == WITHDRAWN
    content = F.when(~is_withdrawal, _content(dimension))
    transition = F.coalesce(F.col(WITHDRAWS), F.col(AUDIT_ID)).alias(WITHDRAWS)
    rows = _with_current_names(audit, dimension).groupBy(*[col(name) for name in dimension.key_names], transition)
    contents = rows.agg(
        F.max(CHANGE_TS).alias(_RECORDED_TS), F.max(content).alias(_CONTENT), F.max(is_withdrawal).alias("_withdrawn")
    )
    return contents.where(~F.col("_withdrawn")).drop("_withdrawn")


def _content(dimension: Dimension) -> Column:
    """Return a 64-bit hash of a transition that does not depend on the declared order of attributes."""
    columns = [_order_independent(name, ddl).alias(name) for name, ddl in transition_schema(dimension)]
    return F.xxhash64(F.to_json(F.struct(*columns)))


def _order_independent(name: str, ddl: str) -> Column:
    """Return a column for JSON: times in microseconds, which JSON would cut off, and names of attributes sorted."""
    match parse_type(ddl):
        case Primitive("timestamp"):
            return F.unix_micros(name)
        case Map():
            return F.sort_array(F.map_entries(name))
        case Array():
            return F.sort_array(name)
        case _:
            return col(name)


def _with_current_names(rows: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the rows with the values of a renamed attribute under its current name (S20)."""
    renamed = renamed_columns(dimension.attributes, generated=True)
    if not renamed:
        return rows
    new_name = to_current_names(renamed)
    return rows.withColumns(
        {
            CHANGED_COLUMNS: F.transform(CHANGED_COLUMNS, new_name),
            OLD_VALUES: F.transform_keys(OLD_VALUES, lambda name, _: new_name(name)),
            NEW_VALUES: F.transform_keys(NEW_VALUES, lambda name, _: new_name(name)),
        }
    )
