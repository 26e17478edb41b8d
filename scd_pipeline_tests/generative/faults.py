"""Faults of the engine that a comparison with the oracle has to detect, each with the rule that it breaks.

Each is a mutation of one or more functions (`mutations`). A slot is a shape and a way of loading ("store halves"); with
"redeclared", each of its scenarios delivers some batches under the first declaration (S20), otherwise none. With
"changing", closed versions are in a history table that has only the columns that change (S11). A fault that shows in
few random scenarios names a test that detects it instead.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scd_pipeline_tests.generative.journal import ROOT, engine_modules
from scd_pipeline_tests.generative.mutations import (
    Mutated,
    Mutation,
    Patch,
    argument,
    attribute,
    begun,
    call,
    compared,
    comparison,
    comprehension,
    condition,
    dropped,
    item,
    iterable,
    keyword,
    operand,
    renamed,
    replaced,
    returned,
    unchained,
)


@dataclass(frozen=True)
class Fault:
    """A named fault, with the slots in which it should show soonest, or with the id of a test that shows it."""

    name: str
    rule: str
    slots: tuple[str, ...]
    mutated: tuple[Mutated, ...]
    test: str = ""

    @property
    def test_file(self) -> Path:
        """The file of its test."""
        return ROOT / self.test.partition("::")[0]

    @property
    def journal_name(self) -> str:
        """Its name, and a checksum that distinguishes it from an earlier fault of that name, or one of other tests."""
        content = repr(self).encode() + (self.test_file.read_bytes() if self.test else b"")
        return f"{self.name} {zlib.crc32(content):08x}"

    @cached_property
    def patch(self) -> Patch:
        """The mutated functions.

        Raises:
            DoesNotApply: a function does not exist, or its mutation does not fit it.
        """
        return Patch(self.mutated, engine_modules())


def _fault(name: str, rule: str, slots: str, *mutated: Mutated) -> Fault:
    return Fault(name, rule, tuple(slots.split(", ")), mutated)


def _tested(name: str, rule: str, test: str, *mutated: Mutated) -> Fault:
    return Fault(name, rule, (), mutated, f"scd_pipeline_tests/{test}")


def _in(function: str, mutation: Mutation) -> Mutated:
    return Mutated(function, mutation)


_VERSION_OF_EACH_LIFE = """
(
_receiver.withColumn("_number", window.row_number())
.withColumn("_is_return", window.lag(F.col(_END)) < F.col(EFFECTIVE_AT))
.withColumn("_before", window.last(F.when(F.col("_is_return"), F.col("_number") - 1)))
.withColumn(VERSION, (F.col("_number") - F.coalesce(F.col("_before"), F.lit(0))).cast("int"))
)
"""
_FIRST_ORIGIN = """
F.get(
    F.filter(
        F.collect_list(
            F.when(
                F.col("_changed"),
                F.struct(F.col(EFFECTIVE_AT).alias("at"), record_origin().alias("by")),
            )
        ).over(window),
        lambda record: record["at"] == F.col(EFFECTIVE_AT),
    ),
    F.lit(0),
)["by"]
"""


def _compare_as(data_type: str, comparable: str) -> str:
    """Compare the values of one type in another form."""
    return f"if data_type.ddl() == {data_type!r}: return {comparable}"


_ORDER = (
    _fault(
        "sequence_ignored",
        "S5",
        "customer pass, machine pass",
        _in("expressions.position_order", dropped(item("SEQUENCE"))),
    ),
    _fault(
        "sequence_null_last",
        "S5",
        "customer pass, machine pass",
        _in("expressions.position_order", renamed(call("asc_nulls_first"), "asc_nulls_last")),
    ),
    _fault(
        "delivery_ignored",
        "S5",
        "customer pass, machine pass",
        _in("expressions.position_order", dropped(item("DELIVERY_RANK"))),
    ),
    _fault(
        "numbers_as_text",
        "S5",
        "customer pass, machine pass",
        _in("batch.rank", replaced(condition("_is_whole_number"), "False")),
    ),
    _fault(
        "dates_as_text", "S5", "customer pass, machine pass", _in("batch.rank", replaced(condition("_DATE"), "False"))
    ),
    _fault(
        "channels_reversed",
        "S5",
        "customer pass, machine pass",
        _in("expressions.position_order", replaced(item("CHANNEL"), "F.col(CHANNEL).desc()")),
    ),
    _fault(
        "intermediate_states_open_versions",
        "S5",
        "country pass, customer pass",
        _in("timeline.last_state_per_time", unchained(call("where"))),
    ),
    _fault(
        "merged_from_the_first_row",
        "S5",
        "machine pass, store pass",
        _in("ties.merge_ties", replaced(attribute("max"), "F.first")),
    ),
    _fault(
        "unordered_changes_accepted",
        "S5",
        "customer pass, country pass",
        _in("tie_rules.unordered_keys", returned("{}")),
    ),
    _fault(
        "first_row_decides",
        "S5",
        "store pass, machine pass",
        _in("ties.merge_ties_by_row_order", renamed(call("max_by", "KIND"), "min_by")),
    ),
    _fault(
        "first_row_is_read_as_the_last",
        "S5",
        "player pass",
        _in("conform._row_order", begun('if channel.ties == "first_row": return F.col(ROW_ORDER)')),
    ),
    _fault(
        "last_row_decides_for_attributes_not_provided",
        "S5",
        "store pass",
        _in("ties.merge_ties_by_row_order", replaced(call("when"), "_1")),
    ),
    _fault(
        "delete_does_not_win",
        "S5",
        "machine pass",
        _in("ties.drop_deleted_ties", replaced(call("over"), "F.lit(False)")),
    ),
    _fault(
        "unordered_values_of_the_first_attribute_accepted",
        "S5",
        "partner pass, country pass",
        _in("ties.find_conflicts", replaced(call("attribute_types"), "dict(list(_.items())[1:])")),
    ),
    _fault(
        "unordered_deletes_accepted",
        "S5",
        "customer pass, player pass",
        _in("ties.find_conflicts", replaced(comparison("min", "max"), "F.lit(False)")),
    ),
)

_SNAPSHOTS = (
    _fault(
        "scope_ignored",
        "scope",
        "store pass, machine pass",
        _in("snapshots._scope_values", replaced(condition("values"), "True")),
    ),
    _fault(
        "snapshots_cover_keys_of_other_scopes",
        "scope",
        "store halves, customer halves",
        _in("batch.Batch.covers", replaced(comparison("set"), "True")),
    ),
    _fault(
        "scope_of_good_rows_only",
        "scope",
        "machine pass",
        _in(
            "batch_summary._totals",
            replaced(call("col", "KEY_READABLE").inside(operand("is_counted")), "_is_good()"),
        ),
    ),
    _fault(
        "rejected_revision_rejects_the_lower_one",
        "S34",
        "customer pass, country pass",
        _in(
            "intake._rejection",
            replaced(
                call("get", "id"),
                "next((r for i, r in intake.rejections.items() "
                "if i.rpartition('/')[0] == batch.id.rpartition('/')[0]), None)",
            ),
        ),
    ),
    _fault(
        "rows_outside_of_the_scope_accepted",
        "scope",
        "store pass, machine pass",
        _in("conform._scope_problems", returned("[]")),
    ),
    _fault(
        "omitted_is_deleted_where_the_source_does_not_retire",
        "S27",
        "customer pass, country pass",
        _in("differences._absences", replaced(call("otherwise"), 'F.lit("delete")')),
    ),
    _fault(
        "absence_deletes_entities_of_other_scopes",
        "S27",
        "shopper pass",
        _in(
            "attribute_scopes.AttributeScopes.with_scope_before",
            begun("return rows.withColumn(IN_SCOPE_BEFORE, F.lit(True))"),
        ),
    ),
    _fault(
        "former_values_of_an_attribute_scope_are_ignored",
        "S27",
        "shopper pass, shopper halves",
        _in("attribute_scopes.provided_scope_values", replaced(call("collect_set"), "F.array(F.max(_0))")),
    ),
    _fault(
        "unreadable_key_retires",
        "S27",
        "customer pass, country pass",
        _in("accept._with_content", replaced(keyword("retires"), "batch.is_snapshot and decides_existence")),
    ),
    _fault(
        "bad_row_is_absent",
        "S26",
        "customer pass, country pass",
        _in(
            "intake.IntakeResult.change_records",
            replaced(call("where", "KEY_READABLE"), '_.where(F.col(KIND) != "bad")'),
        ),
    ),
    _fault(
        "presence_never_returns_an_entity",
        "S4",
        "partner pass, machine pass",
        _in("timeline._resolve_presence", replaced(call("is_presence"), "F.lit(False)")),
    ),
    _fault(
        "presence_always_provides_values",
        "S4",
        "partner pass, machine pass",
        _in("timeline._resolve_presence", dropped(operand("EXISTED_BEFORE"))),
    ),
    _fault(
        "absence_deletes_without_an_assertion",
        "S4",
        "partner halves, machine halves",
        _in("existence.is_deletion", replaced(operand("ASSERTED_BEFORE"), "F.lit(True)")),
    ),
    _fault(
        "delete_of_a_feed_needs_an_assertion",
        "S4",
        "machine pass",
        _in("existence.is_deletion", dropped(operand("is_delivered_delete"))),
    ),
    _fault(
        "row_asserts_existence_at_its_own_time",
        "S4",
        "partner pass, machine pass",
        _in("existence._is_dated_before_snapshot", returned("F.lit(False)")),
    ),
    _fault(
        "row_dated_after_its_snapshot_is_present_at_the_snapshot",
        "S4",
        "partner pass, machine pass",
        _in("existence.is_presence", dropped(operand("ROW_AT"))),
    ),
    _fault(
        "row_dated_after_its_snapshot_asserts_no_existence",
        "S4",
        "partner pass, machine pass",
        _in("existence._is_dated_before_snapshot", returned("F.col(ASSERTED_AT).isNotNull()")),
    ),
    _fault(
        "absence_leaves_existence_asserted",
        "S4",
        "partner pass, machine pass",
        _in("existence.with_existence", unchained(call("when", "deletes"))),
    ),
    _fault(
        "presence_by_the_earliest_row",
        "S4",
        "partner pass, machine pass",
        _in("expressions.position_order", renamed(call("desc_nulls_first"), "asc_nulls_first")),
    ),
    _tested(
        "presence_by_the_lowest_sequence",
        "S4",
        "semantics/test_s04_business_time.py"
        "::test_an_entity_returns_with_the_values_of_its_row_with_the_highest_position[engine]",
        _in("expressions.position_order", renamed(call("desc_nulls_last"), "asc_nulls_last")),
    ),
    _fault(
        "retire_guard_off", "S27", "customer pass, country pass", _in("source.RetireGuard.rejects", returned("False"))
    ),
    _fault(
        "retire_guard_counts_new_entities",
        "S27",
        "customer pass, country pass, store pass",
        _in("intake.IntakeResult._retire_guard", replaced(attribute("unasserted"), "0")),
    ),
    _fault(
        "retire_guard_rejects_at_its_share",
        "S27",
        "customer pass, country pass, store pass",
        _in("source.RetireGuard.rejects", compared(comparison("share"), ">=")),
    ),
    _fault(
        "retire_guard_ignores_its_override",
        "S27",
        "customer pass, country pass, store pass",
        _in("intake.IntakeResult.rejected_by_retire_guard", dropped(operand("_RETIRE_GUARD"))),
    ),
    _fault(
        "retire_guard_from_the_latest_snapshot",
        "S27",
        "customer pass, country pass, store pass",
        _in("intake.IntakeResult.rejected_by_retire_guard", replaced(call("sorted"), "list(reversed(_))")),
    ),
)

_SOURCES = (
    _fault(
        "every_source_decides_existence",
        "S30",
        "store pass, player pass",
        _in("timeline.with_running_state", replaced(comparison("SOURCE"), "F.lit(True)")),
    ),
    _fault(
        "not_provided_is_null",
        "S20",
        "customer pass, machine pass",
        _in(
            "conform._wrapped",
            replaced(
                call("cast"),
                'F.when(~is_bad & ~F.col("_deleted"), F.struct(F.lit(None).cast(data_type.ddl()).alias("v")))',
            ),
        ),
    ),
    _fault(
        "null_of_a_feed_is_a_value",
        "S30",
        "machine pass, store pass",
        _in("conform._is_null_not_provided", returned("False")),
    ),
    _fault(
        "null_of_a_feed_is_never_a_value",
        "S30",
        "customer pass, country pass",
        _in("conform._is_null_not_provided", dropped(operand("nulls"))),
    ),
    _fault(
        "former_columns_not_read",
        "S20",
        "customer pass redeclared, country pass redeclared",
        _in("change_log.ChangeLog.rows", dropped(item("former_names"))),
    ),
    _fault(
        "former_names_not_read",
        "S20",
        "customer pass redeclared, country pass redeclared",
        _in("change_log.ChangeLog.rows", replaced(call("renamed_columns"), "{}")),
    ),
    _fault(
        "former_names_of_batches_not_read",
        "S20",
        "country pass redeclared, customer pass redeclared",
        _in("change_log.ChangeLog._with_current_names", replaced(call("renamed_columns"), "{}")),
    ),
    _fault(
        "bad_value_is_null",
        "S26",
        "customer pass, partner pass",
        _in("casts.cast", replaced(call("isNull"), "F.lit(False)")),
    ),
    _fault(
        "impossible_times_accepted",
        "S26",
        "machine pass, player pass",
        _in("conform._time_problems", replaced(condition("effective_at"), "False")),
    ),
    _fault(
        "microseconds_lost",
        "S1",
        "player pass, machine pass",
        _in("time_casts._to_timestamp", replaced(call("try_cast"), 'F.date_trunc("second", _)')),
    ),
    _fault(
        "reason_of_the_delivery_lost",
        "S14",
        "customer pass, country pass",
        _in("conform._text_of_row_or_delivery", replaced(call("coalesce"), "_0")),
    ),
    _fault(
        "reason_of_the_delivery_first",
        "S14",
        "customer pass, country pass",
        _in("conform._text_of_row_or_delivery", replaced(call("coalesce"), "F.coalesce(_1, _0)")),
    ),
)

_REVISIONS = (
    _fault(
        "last_to_arrive_is_current",
        "S34",
        "customer halves, country halves",
        _in("revisions.is_lower", returned("False")),
        _in("batch.current_revisions", replaced(comparison("rank"), "True")),
    ),
    _fault(
        "superseded_revisions_read",
        "S34",
        "customer halves, country halves",
        _in("log.records_in_effect", unchained(call("where"))),
    ),
    _fault(
        "withdrawn_revisions_read",
        "S34",
        "customer halves, country halves",
        _in("batch.current_revisions", replaced(iterable(), "[b for b in _ if not b.withdrawn]")),
    ),
    _fault(
        "content_is_its_row_count",
        "S34",
        "customer halves, country halves",
        _in("accept._with_content", replaced(attribute("hash"), "0")),
    ),
    _fault(
        "content_without_its_time",
        "S34",
        "customer halves, country halves, store halves, partner halves",
        _in("revisions.content", dropped(item("at"))),
    ),
    _tested(
        "retry_is_a_revision",
        "S34",
        "semantics/test_s34_revisions.py::test_other_content_under_the_same_revision_is_rejected[engine]",
        _in("decisions._decide", replaced(condition("rank"), "False")),
    ),
    _fault(
        "run_id_with_revision",
        "S34",
        "customer pass, country pass",
        _in("timeline.record_origin", replaced(call("delivery_id"), "F.col(BATCH)")),
    ),
)

_LOG = (
    _fault(
        "later_snapshots_not_rechecked",
        "S19",
        "customer halves, country halves",
        _in("differences.records_to_store", replaced(call("snapshots_to_recheck"), "()")),
    ),
    _fault(
        "rechecked_snapshot_always_retires",
        "S27",
        "customer halves, country halves",
        _in("differences._resolve_rechecks", replaced(argument("otherwise", "NO_OP"), '"delete"')),
    ),
    _tested(
        "no_op_not_stored",
        "S27",
        "semantics/test_s30_sources.py::test_absence_from_another_source_asserts_nothing[engine]",
        _in("differences._without_implied", replaced(argument("otherwise"), '_ | (F.col(KIND) == "no_op")')),
    ),
    _fault(
        "snapshots_of_the_same_time_not_rechecked",
        "S19",
        "customer halves, country halves",
        _in("snapshots.snapshots_to_recheck", compared(comparison("last_change", operator=">="), ">")),
        _in("differences._rechecks", compared(comparison("changes_from", operator=">="), ">")),
    ),
    _tested(
        "snapshot_is_complete_without_all_columns",
        "S20",
        "semantics/test_s19_late_snapshots.py"
        "::test_a_late_value_remains_up_to_the_next_snapshot_that_has_its_column[engine]",
        _in("snapshots._is_complete", dropped(operand("columns"))),
    ),
    _tested(
        "snapshot_is_complete_without_retiring",
        "S27",
        "semantics/test_s19_late_snapshots.py"
        "::test_a_late_value_remains_while_snapshots_of_another_source_omit_the_entity[engine]",
        _in("snapshots._is_complete", dropped(operand("retires"))),
    ),
    _tested(
        "row_timed_snapshot_is_complete",
        "S4",
        "semantics/test_s19_late_snapshots.py::test_a_late_row_ends_at_the_absence_after_a_row_of_a_later_time[engine]",
        _in("snapshots.snapshots_to_recheck", replaced(comprehension("has_row_times"), "set()")),
    ),
    _tested(
        "removed_batches_recheck_nothing",
        "S34",
        "semantics/test_s19_late_snapshots.py"
        "::test_a_snapshot_changes_the_value_that_a_withdrawn_feed_had_changed_before[engine]",
        _in("snapshots.snapshots_to_recheck", dropped(item("removed").inside(comprehension("_span")))),
    ),
    _fault(
        "removed_batch_makes_repeats",
        "S34",
        "customer halves, country halves",
        _in("differences._without_implied", replaced(comparison("ORIGIN", "removed"), "F.lit(True)")),
    ),
    _fault(
        "rechecks_without_removed_batches",
        "S34",
        "customer halves, country halves",
        _in("differences._resolve_rechecks", dropped(argument("isin", "removed"))),
    ),
    _tested(
        "rechecks_of_new_batches_only",
        "S34",
        "semantics/test_s34_revisions.py"
        "::test_an_unchanged_snapshot_becomes_a_change_after_the_one_before_it_is_revised[engine]",
        _in("differences._changed_keys", unchained(call("unionByName"))),
    ),
    _fault(
        "rows_of_removed_batches_stay",
        "S34",
        "customer halves, country halves",
        _in("differences.affected_keys", unchained(call("unionByName"))),
    ),
    _fault(
        "repeats_of_feeds_dropped",
        "S19",
        "customer halves, country halves",
        _in("differences._without_implied", unchained(call("when", "delivered"))),
    ),
    _fault(
        "unchanged_return_is_a_repeat",
        "S18",
        "customer pass, country pass",
        _in("differences._without_implied", dropped(operand("ASSERTED_BEFORE"))),
    ),
    _fault(
        "change_to_null_is_a_repeat",
        "S8",
        "customer pass, country pass",
        _in("differences._differs", replaced(call("eqNullSafe"), "F.coalesce(_receiver == _0, F.lit(True))")),
    ),
    _fault(
        "first_null_is_a_repeat",
        "S9",
        "customer pass redeclared, customer halves redeclared",
        _in("differences._differs", dropped(operand("isNull"))),
    ),
    _fault(
        "earlier_records_ignored",
        "S14",
        "customer halves, country halves",
        _in("rows._records_of", replaced(call("join"), "_receiver.limit(0)")),
    ),
    _fault(
        "vanished_versions_stay",
        "S19",
        "customer halves, player halves",
        _in("rows.plan_row_actions", replaced(comparison("UNCHANGED"), "~F.col(ACTION).isin(REMOVE, UNCHANGED)")),
    ),
    _fault(
        "change_to_null_is_no_overwrite",
        "S8",
        "customer halves, country halves",
        _in("expressions.null_safe_equal", replaced(call("eqNullSafe"), "F.coalesce(_receiver == _0, F.lit(True))")),
    ),
)

_EXISTENCE = (
    _fault(
        "values_forgotten_at_a_delete",
        "S18",
        "customer pass, player pass",
        _in(
            "timeline.with_running_state",
            replaced(
                call("when", "UPSERT").inside(comprehension("attribute_names")),
                '_.otherwise(F.struct(_1["v"].alias("v")))',
            ),
        ),
    ),
    _fault(
        "version_restarts_after_a_delete",
        "S18",
        "customer pass, player pass",
        _in("timeline.open_and_close", replaced(call("withColumn", "VERSION"), _VERSION_OF_EACH_LIFE)),
    ),
    _fault(
        "entity_is_not_new_again",
        "S18",
        "customer pass, machine pass",
        _in("timeline.version_state", replaced(call("lag", "EXISTS"), "F.lag(F.lit(True)).over(window.specification)")),
    ),
    _fault(
        "every_closed_version_is_changed",
        "S18",
        "customer pass, machine pass",
        _in("timeline.version_state", replaced(call("lead", "EXISTS"), "F.lit(True)")),
    ),
    _fault(
        "states_beside_a_change_stay",
        "S14",
        "customer halves, machine halves",
        _in(
            "actions._is_unchanged",
            replaced(call("dimension_schema"), '[column for column in _ if column[0] != "version_state"]'),
        ),
    ),
    _fault(
        "deleted_at_the_first_time",
        "S33",
        "country pass",
        _in("timeline.one_row_per_entity", renamed(call("last"), "first")),
    ),
    _fault(
        "deleted_rows_stay",
        "S33",
        "partner pass",
        _in("timeline.one_row_per_entity", unchained(call("where", "DELETED_AT"))),
    ),
    _fault(
        "begin_ignored",
        "S29",
        "player pass, machine pass",
        _in("schema.version_start", replaced(condition("begin"), "True")),
    ),
    _fault(
        "begin_for_every_first_version",
        "S29",
        "player pass, machine pass",
        _in("schema.version_start", dropped(operand("is_early"))),
    ),
    _fault(
        "begin_before_its_limit_only",
        "S29",
        "player pass, machine pass",
        _in("schema._first_start", compared(comparison("for_first_changes_until"), "<")),
    ),
    _fault(
        "begin_at_a_value_after_the_first_change",
        "S29",
        "store pass",
        _in("schema._first_start", compared(comparison("change_time", "_BEGIN_VALUE"), ">")),
    ),
    _fault(
        "begin_at_the_last_value_of_type_0",
        "S29",
        "store pass",
        _in("schema.with_begin_value", renamed(call("first"), "last")),
    ),
    _fault(
        "windows_closed",
        "S2",
        "customer pass, player pass",
        _in(
            "timeline.open_and_close",
            replaced(call("col", "_END").inside(call("coalesce", "open_end")), '_ - F.expr("INTERVAL 1 MICROSECOND")'),
        ),
    ),
)

_ATTRIBUTES = (
    _fault(
        "type_0_is_the_last_value",
        "S6",
        "country pass, customer pass",
        _in("attribute_values._first_value", renamed(call("first"), "last")),
    ),
    _fault(
        "type_0_is_null_at_first",
        "S6",
        "country pass, customer pass",
        _in("attribute_values._first_value", replaced(call("when"), "_1")),
    ),
    _fault(
        "type_1_only_while_the_entity_exists",
        "S7",
        "country pass, customer pass",
        _in(
            "attribute_values._latest_value",
            replaced(call("last"), 'F.last(F.when(F.col("_exists"), _0), ignorenulls=True)'),
        ),
    ),
    _fault(
        "untracked_value_is_the_latest_of_all_versions",
        "S7",
        "store pass, store halves",
        _in("attribute_values.values_before_end", replaced(call("lead"), "F.col(_LATEST_OF_ALL)")),
    ),
    _fault(
        "type_1_opens_versions",
        "S7",
        "customer pass, store pass",
        _in("timeline.visible_state", replaced(call("of_type"), "(*_, *dimension.of_type(ScdType.OVERWRITE))")),
    ),
    _fault(
        "type_3_only_while_the_entity_exists",
        "S9",
        "country pass, partner pass",
        _in("attribute_values._latest_and_previous", replaced(call("isNotNull"), 'F.col("_exists") & _')),
    ),
    _fault(
        "type_3_without_null",
        "S9",
        "country pass, partner pass",
        _in("attribute_values._latest_and_previous", replaced(call("eqNullSafe"), "(_receiver == _0)")),
    ),
    _fault(
        "type_3_by_record",
        "S9",
        "country pass, partner pass",
        _in("attribute_values._latest_and_previous", replaced(call("eqNullSafe"), "F.lit(False)")),
    ),
    _fault(
        "type_6_opens_nothing",
        "S10",
        "customer pass, store pass",
        _in("timeline.visible_state", dropped(argument("of_type", "HYBRID"))),
    ),
    _fault(
        "type_6_previous_by_value",
        "S10",
        "customer pass, player pass",
        _in("attribute_values.value_changes", replaced(condition("has_last_different_value"), "True")),
        _in("attribute_values._previous_value", replaced(condition("has_last_different_value"), "True")),
    ),
    _fault(
        "type_6_previous_by_version",
        "S10",
        "player pass, player halves",
        _in("attribute_values._previous_value", replaced(condition("has_last_different_value"), "False")),
    ),
    _fault(
        "last_updated_is_the_opening",
        "S14",
        "customer pass, player pass",
        _in("timeline.open_and_close", replaced(call("greatest", "LAST_CHANGE"), "_0")),
    ),
    _fault(
        "last_updated_is_the_first_opening",
        "S14",
        "country pass, partner pass",
        _in("timeline.one_row_per_entity", replaced(call("greatest"), "_0")),
    ),
    _fault(
        "last_updated_by_type_2",
        "S14",
        "customer pass, store pass",
        _in(
            "attribute_values._with_last_change",
            replaced(condition("is_common"), "not (attribute.is_common or attribute.scd is ScdType.ADD_ROW)"),
        ),
    ),
    _fault(
        "opened_by_the_first_record",
        "S14",
        "player pass, store pass",
        _in("timeline.with_running_state", replaced(argument("withColumn", "record_origin"), _FIRST_ORIGIN)),
    ),
    _fault(
        "opened_by_any_record",
        "S14",
        "player pass, store pass",
        _in("timeline.with_running_state", replaced(call("when", "_changed"), "_1")),
    ),
)

_EQUALITY = (
    _fault(
        "map_order_matters", "S8", "machine pass", _in("expressions.to_comparable", replaced(call("array_sort"), "_0"))
    ),
    _fault(
        "nan_is_null",
        "S8",
        "machine pass",
        _in("expressions.to_comparable", begun(_compare_as("double", "F.when(~F.isnan(value), value)"))),
    ),
    _fault(
        "nan_differs",
        "S8",
        "machine pass",
        _in(
            "expressions.to_comparable",
            begun(_compare_as("double", 'F.when(F.isnan(value), F.uuid()).otherwise((value + 0.0).cast("string"))')),
        ),
    ),
    _fault(
        "negative_zero_differs",
        "S8",
        "machine pass",
        _in("expressions.to_comparable", begun(_compare_as("double", 'value.cast("string")'))),
    ),
    _fault(
        "case_ignored",
        "S8",
        "customer pass, country pass",
        _in("expressions.to_comparable", begun(_compare_as("string", "F.lower(value)"))),
    ),
    _fault(
        "blanks_ignored",
        "S8",
        "customer pass, country pass",
        _in("expressions.to_comparable", begun(_compare_as("string", "F.rtrim(value)"))),
    ),
    _fault(
        "empty_text_is_null",
        "S8",
        "customer pass, country pass",
        _in("casts.cast", begun('value = F.nullif(value, F.lit("")) if target.ddl() == "string" else value')),
    ),
    _fault(
        "key_parts_run_together",
        "S8",
        "partner pass, store pass",
        _in("expressions.text_of_parts", replaced(call("concat", "length"), "_2")),
    ),
    _fault(
        "key_without_time", "S14", "customer pass, player pass", _in("keys.surrogate_key", dropped(item("unix_micros")))
    ),
)

_DELETED_VERSIONS = (
    _fault(
        "deletes_open_no_version",
        "S18",
        "player_deleted pass, customer_deleted pass",
        _in("timeline.open_and_close", replaced(condition("has_deleted_versions"), "True")),
    ),
    _fault(
        "version_of_a_delete_without_its_default_reason",
        "S18",
        "player_deleted pass, customer_deleted pass",
        _in("timeline.open_and_close", replaced(call("otherwise"), "F.lit(DEFAULT_REASON)")),
    ),
)

_HISTORY_COLUMNS = (
    _fault(
        "common_values_of_the_first_version_only",
        "S11",
        "customer halves changing, player halves changing",
        _in("last_versions.with_last_flag", renamed(call("desc"), "asc")),
    ),
    _fault(
        "common_values_of_the_current_version_only",
        "S11",
        "customer halves changing, player halves changing",
        _in("last_versions.without_common_values", replaced(call("when"), "F.when(F.lit(False), _1)")),
    ),
    _fault(
        "earlier_version_becomes_the_last_without_common_values",
        "S11",
        "customer halves changing, player halves changing",
        _in("actions.compare_rows", replaced(condition("has_last_flag"), "False")),
    ),
    _fault(
        "common_values_are_not_filled_in",
        "S11",
        "customer halves changing, player halves changing",
        _in("history_table._common_values", returned("{}")),
    ),
)

_FACTS = (
    _fault(
        "facts_of_a_scope_are_not_replaced",
        "S41",
        "sale pass, purchase pass",
        _in("accept._with_content", replaced(keyword("retires"), "False")),
    ),
    _fault(
        "snapshots_of_facts_replace_all_scopes",
        "S41",
        "sale pass, rent pass",
        _in("accept._with_content", replaced(keyword("scope"), "None")),
    ),
    _fault(
        "empty_scope_of_a_fact_accepted",
        "S41",
        "rent pass, purchase pass",
        _in("pending.PendingDelivery.rejects_empty_scope", returned("False")),
    ),
    _fault(
        "scope_is_empty_only_without_any_rows",
        "S41",
        "rent pass",
        _in(
            "pending.PendingDelivery.empty_scope",
            replaced(comprehension("scope"), "(_ if not self.batch.rows else ())"),
        ),
    ),
    _fault(
        "control_totals_not_compared",
        "S41",
        "sale pass",
        _in("control_totals.control_rejection", returned("None")),
    ),
    _fault(
        "control_totals_ignore_their_override",
        "S41",
        "sale pass",
        _in(
            "intake._rejection",
            replaced(attribute("allow"), '(_ - {"control_totals"})'),
        ),
    ),
    _fault(
        "control_totals_count_good_rows_only",
        "S41",
        "sale pass",
        _in("control_totals._difference", replaced(argument("Decimal", "rows"), "content.rows - content.bad_rows")),
    ),
    _fault(
        "row_without_event_time_accepted",
        "S23",
        "sale pass",
        _in("conform._values", replaced(condition("required"), "False")),
    ),
    _fault(
        "withdrawal_leaves_its_rows",
        "S34",
        "sale halves, purchase halves",
        _in(
            "intake.IntakeResult.removed",
            replaced(
                comprehension("accepted"), "[current.get(b.delivery_key) for b in self.accepted if not b.withdrawn]"
            ),
        ),
    ),
    _fault(
        "withdrawal_by_command_has_the_lowest_revision",
        "S34",
        "sale halves, purchase halves",
        _in("revisions._withdraws_current", returned("False")),
    ),
    _fault(
        "command_withdraws_another_delivery",
        "S34",
        "sale halves, purchase halves",
        _in("withdrawals.withdrawal", replaced(argument("replace"), "deliveries[0]")),
    ),
    _fault(
        "inferred_member_is_not_replaced",
        "S23",
        "sale halves",
        _in(
            "rows._recompute",
            replaced(call("join", "left_semi"), '(_.where("version <> 0") if state.dimension.has_windows else _)'),
        ),
    ),
    _fault(
        "entity_with_versions_is_inferred",
        "S23",
        "sale pass",
        _in("inferred_members._with_members", replaced(call("join", "left_anti"), "referenced")),
    ),
    _fault(
        "inferred_members_are_referenced_by_each_role",
        "S23",
        "sale halves",
        _in("role_keys.role_versions", returned("versions")),
    ),
    _fault(
        "facts_are_not_rekeyed",
        "S24",
        "sale halves",
        _in("facts.FactKeys.rows_to_recompute", returned("None")),
    ),
    _fault(
        "version_is_referenced_after_its_beginning_only",
        "S23",
        "rent pass",
        _in("as_of.is_in_force", compared(comparison("_FROM", operator="<="), "<")),
    ),
)

FAULTS = (
    *_ORDER,
    *_SNAPSHOTS,
    *_SOURCES,
    *_REVISIONS,
    *_LOG,
    *_EXISTENCE,
    *_ATTRIBUTES,
    *_EQUALITY,
    *_DELETED_VERSIONS,
    *_HISTORY_COLUMNS,
    *_FACTS,
)
"""All faults, by topic."""
