"""Faults to put into the engine: what a comparison with the oracle has to notice, each with its rule.

A slot is a shape and a way of loading ("store halves"); with "redeclared" the worlds are those of which some batches
are delivered under the first declaration (S20), else those of which none is.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property

from scd_pipeline_tests.generative.patch import Edit, Patch


@dataclass(frozen=True)
class Fault:
    """A named fault; `slots` are those by which it should show soonest."""

    name: str
    rule: str
    slots: tuple[str, ...]
    edits: tuple[Edit, ...]

    @property
    def known_as(self) -> str:
        """Its name, and what tells it from another fault of that name."""
        return f"{self.name} {zlib.crc32(repr(self).encode()):08x}"

    @cached_property
    def patch(self) -> Patch:
        return Patch(*self.edits)


def _fault(name: str, rule: str, slots: str, *edits: Edit) -> Fault:
    return Fault(name, rule, tuple(slots.split(", ")), edits)


_ORDER = (
    _fault(
        "sequence_ignored",
        "S5",
        "customer pass, machine pass",
        Edit("columns:position", "F.col(SEQUENCE).asc_nulls_first(),", ""),
    ),
    _fault(
        "sequence_null_last",
        "S5",
        "customer pass, machine pass",
        Edit("columns:position", "asc_nulls_first()", "asc_nulls_last()"),
    ),
    _fault(
        "delivery_ignored",
        "S5",
        "customer pass, machine pass",
        Edit("columns:position", "F.col(DELIVERY_RANK).asc(),", ""),
    ),
    _fault(
        "numbers_as_text",
        "S5",
        "customer pass, machine pass",
        Edit("batch:rank", "if _WHOLE_NUMBER.fullmatch(name):", "if False:"),
    ),
    _fault(
        "dates_as_text",
        "S5",
        "customer pass, machine pass",
        Edit("batch:rank", "if _DATE.fullmatch(name):", "if False:"),
    ),
    _fault(
        "channels_reversed",
        "S5",
        "customer pass, machine pass",
        Edit("columns:position", "F.col(CHANNEL).asc()", "F.col(CHANNEL).desc()"),
    ),
    _fault(
        "several_states_at_one_time",
        "S5",
        "country pass, customer pass",
        Edit(
            "history.timeline:at_the_end_of_each_time",
            '.where(F.col("_next").isNull() | (F.col("_next") > F.col(EFFECTIVE_AT)))',
            "",
        ),
    ),
    _fault(
        "merged_from_one_row",
        "S5",
        "machine pass, store pass",
        Edit("history.statements:collapse", "else F.max)", "else F.first)"),
    ),
    _fault(
        "unordered_taken",
        "S5",
        "customer pass, country pass",
        Edit("intake:_unordered", "if not candidates:", "if True:"),
    ),
    _fault(
        "first_row_decides",
        "S5",
        "store pass, machine pass",
        Edit("history.statements:collapse_to_last", "F.max_by(KIND, ROW_ORDER)", "F.min_by(KIND, ROW_ORDER)"),
    ),
    _fault(
        "last_row_decides_for_what_it_does_not_provide",
        "S5",
        "store pass",
        Edit(
            "history.statements:collapse_to_last", "F.when(col(name).isNotNull(), F.col(ROW_ORDER))", "F.col(ROW_ORDER)"
        ),
    ),
    _fault(
        "delete_does_not_win",
        "S5",
        "machine pass",
        Edit("history.statements:without_deleted", ' & F.max(F.col(KIND) == "gone").over(group)', " & F.lit(False)"),
    ),
    _fault(
        "unordered_but_for_one_attribute",
        "S5",
        "partner pass, country pass",
        Edit(
            "history.statements:conflicts",
            "in attribute_types(dimension).items():",
            "in list(attribute_types(dimension).items())[1:]:",
        ),
    ),
    _fault(
        "unordered_deletes_taken",
        "S5",
        "customer pass, player pass",
        Edit("history.statements:conflicts", "differs = F.min(KIND) != F.max(KIND)", "differs = F.lit(False)"),
    ),
)

_SNAPSHOTS = (
    _fault(
        "scope_ignored",
        "scope",
        "store pass, machine pass",
        Edit("history.differences:_places", "if snapshot.scope is None:", "if True:"),
    ),
    _fault(
        "scope_of_others_settles",
        "scope",
        "store halves, customer halves",
        Edit("batch:Batch.covers_all_of", "set(other.scope) <= set(self.scope)", "True"),
    ),
    _fault(
        "scope_of_good_rows_only",
        "scope",
        "machine pass",
        Edit("history.statements:batch_counts", "F.when(F.col(KEY_READABLE) &", 'F.when(F.col("_good") &'),
    ),
    _fault(
        "stopped_revision_takes_the_lower_one_along",
        "S34",
        "customer pass, country pass",
        Edit("intake:Taken.without", "made.entries", "tuple(e for e in self.entries if e.batch.id not in stops)"),
    ),
    _fault(
        "stray_rows_taken",
        "scope",
        "store pass, machine pass",
        Edit(
            "history.statements:_scope_faults",
            "if not isinstance(channel, Snapshot) or not channel.scope:",
            "if True:",
        ),
    ),
    _fault(
        "absent_is_gone_where_nobody_retires",
        "S27",
        "customer pass, country pass",
        Edit(
            "history.differences:_absences",
            'kind = F.when(F.col("_retires"), "gone").otherwise("nothing")',
            'kind = F.lit("gone")',
        ),
    ),
    _fault(
        "unreadable_key_retires",
        "S27",
        "customer pass, country pass",
        Edit("intake:_with_content", '(lenient or not told.get("unreadable"))', "True"),
    ),
    _fault(
        "bad_row_is_absent",
        "S26",
        "customer pass, country pass",
        Edit(
            "intake:Taken.statements",
            "mine = mine.where(F.col(KEY_READABLE))",
            'mine = mine.where(F.col(KEY_READABLE) & (F.col(KIND) != "bad"))',
        ),
    ),
    _fault(
        "present_never_brings_back",
        "S4",
        "partner pass, machine pass",
        Edit("history.timeline:_resolve_presence", '(F.col(KIND) == "present") & ~F.col(ALIVE_BEFORE)', "F.lit(False)"),
    ),
    _fault(
        "present_always_states",
        "S4",
        "partner pass, machine pass",
        Edit("history.timeline:_resolve_presence", " & ~F.col(ALIVE_BEFORE)", ""),
    ),
    _fault(
        "absence_deletes_what_was_never_asserted",
        "S4",
        "partner pass, machine pass",
        Edit("history.differences:deletes", ' & (F.col(ASSERTED_BEFORE) | (F.col(CHANNEL) != "snapshot"))', ""),
    ),
    _fault(
        "delete_of_a_feed_needs_an_assertion",
        "S4",
        "machine pass",
        Edit("history.differences:deletes", ' | (F.col(CHANNEL) != "snapshot")', ""),
    ),
    _fault(
        "row_asserts_at_its_own_time",
        "S4",
        "partner pass, machine pass",
        Edit("history.differences:with_existence", " & F.col(ASSERTED_AT).isNull()", ""),
    ),
    _fault(
        "absence_leaves_existence_asserted",
        "S4",
        "partner pass, machine pass",
        Edit(
            "history.differences:with_existence",
            ', True).when(counts & (F.col(KIND) == "gone"), False)\n    rows',
            ", True)\n    rows",
        ),
    ),
    _fault(
        "present_by_the_lowest_row",
        "S4",
        "partner pass, machine pass",
        Edit("columns:position", 'F.col("_row_at").desc_nulls_first()', 'F.col("_row_at").asc_nulls_first()'),
    ),
    _fault(
        "present_by_the_lowest_sequence",
        "S4",
        "partner pass, machine pass",
        Edit("columns:position", 'F.col("_row_sequence").desc_nulls_last()', 'F.col("_row_sequence").asc_nulls_last()'),
    ),
    _fault(
        "guard_off",
        "S27",
        "customer pass, country pass",
        Edit("spec.source:RetireGuard.rejects", "return existing", "return False and existing"),
    ),
    _fault(
        "guard_counts_the_new",
        "S27",
        "customer pass, country pass, store pass",
        Edit(
            "intake:Taken._guard",
            'in_plain = entry.batch.entities - counts.get("unasserted", 0)',
            "in_plain = entry.batch.entities",
        ),
    ),
    _fault(
        "guard_stops_at_its_share",
        "S27",
        "customer pass, country pass, store pass",
        Edit("spec.source:RetireGuard.rejects", "retired > self.share", "retired >= self.share"),
    ),
    _fault(
        "guard_deaf",
        "S27",
        "customer pass, country pass, store pass",
        Edit("intake:Taken._guard", '"retire guard" in entry.delivery.allow or ', ""),
    ),
    _fault(
        "guard_from_the_end",
        "S27",
        "customer pass, country pass, store pass",
        Edit(
            "intake:Taken.guarded",
            "key=lambda e: e.batch.position)",
            "key=lambda e: e.batch.position, reverse=True)",
        ),
    ),
)

_SOURCES = (
    _fault(
        "any_source_decides",
        "S30",
        "store pass, player pass",
        Edit(
            "history.timeline:running_state",
            "decides = F.col(SOURCE) == dimension.deciding_source.name",
            "decides = F.lit(True)",
        ),
    ),
    _fault(
        "unstated_is_null",
        "S20",
        "customer pass, machine pass",
        Edit(
            "history.statements:_wrapped",
            'F.lit(None).cast(f"struct<v:{data_type.ddl()}>").alias(name)',
            'F.when(~bad & ~F.col("_deleted"), F.struct(F.lit(None).cast(data_type.ddl()).alias("v"))).alias(name)',
        ),
    ),
    _fault(
        "silent_null_is_a_value",
        "S30",
        "machine pass, store pass",
        Edit(
            "history.statements:_wrapped",
            'silent_null = isinstance(channel, Feed) and channel.nulls == "not_stated"',
            "silent_null = False",
        ),
    ),
    _fault(
        "every_null_is_silent",
        "S30",
        "customer pass, country pass",
        Edit(
            "history.statements:_wrapped",
            'silent_null = isinstance(channel, Feed) and channel.nulls == "not_stated"',
            "silent_null = isinstance(channel, Feed)",
        ),
    ),
    _fault(
        "former_columns_unread",
        "S20",
        "customer pass redeclared, country pass redeclared",
        Edit(
            "delta.change_log:ChangeLog.rows",
            "{a.name: [a.name, *a.former_names] for a in self.dimension.attributes}",
            "{a.name: [a.name] for a in self.dimension.attributes}",
        ),
    ),
    _fault(
        "former_names_unread",
        "S20",
        "customer pass redeclared, country pass redeclared",
        Edit(
            "delta.change_log:ChangeLog.rows",
            "renames(self.dimension.attributes, generated=False)",
            "{}",
        ),
    ),
    _fault(
        "former_names_of_batches_unread",
        "S20",
        "country pass redeclared, customer pass redeclared",
        Edit("delta.change_log:ChangeLog._in_new_names", "renamed.get(name, name)", "name"),
    ),
    _fault(
        "bad_value_is_null",
        "S26",
        "customer pass, partner pass",
        Edit("history.casts:cast", "value.isNotNull() & leaf.isNull()", "F.lit(False) & leaf.isNull()"),
    ),
    _fault(
        "any_time_taken",
        "S26",
        "machine pass, player pass",
        Edit("history.statements:_time_faults", "if channel.effective_at:", "if False:"),
    ),
    _fault(
        "microseconds_lost",
        "S1",
        "player pass, machine pass",
        Edit(
            "history.casts:_timestamp",
            'return moment if rules.zone == "UTC" else F.when(_has_zone',
            'return F.date_trunc("second", moment) if rules.zone == "UTC" else F.when(_has_zone',
        ),
    ),
    _fault(
        "reason_of_the_delivery_lost",
        "S14",
        "customer pass, country pass",
        Edit(
            "history.statements:_or_delivery",
            "return F.coalesce(text, told)",
            "return text",
        ),
    ),
    _fault(
        "reason_of_the_delivery_first",
        "S14",
        "customer pass, country pass",
        Edit(
            "history.statements:_or_delivery",
            "F.coalesce(text, told)",
            "F.coalesce(told, text)",
        ),
    ),
)

_REVISIONS = (
    _fault(
        "arrival_decides",
        "S34",
        "customer halves, country halves",
        Edit("intake:_is_lower", "rank(batch.revision) < rank(than.revision)", "False"),
        Edit("batch:standing", "rank(batch.revision) >= rank(rival.revision)", "True"),
    ),
    _fault(
        "superseded_counts",
        "S34",
        "customer halves, country halves",
        Edit("plan.log:counted_rows", " if ignored else rows", " if False else rows"),
    ),
    _fault(
        "withdrawn_counts",
        "S34",
        "customer halves, country halves",
        Edit("batch:standing", "for batch in batches:", "for batch in (b for b in batches if not b.withdrawn):"),
    ),
    _fault(
        "content_is_its_row_count",
        "S34",
        "customer halves, country halves",
        Edit("intake:_with_content", "{told.get('rows') or 0}:{told.get('hash') or 0}", "{told.get('rows') or 0}"),
    ),
    _fault(
        "content_without_its_time",
        "S34",
        "customer halves, country halves, store halves, partner halves",
        Edit("intake:_content", "batch.fingerprint, batch.at, batch.scope", "batch.fingerprint, batch.scope"),
    ),
    _fault(
        "retry_is_a_revision",
        "S34",
        "customer double, country double",
        Edit(
            "intake:_decide",
            "if stands is not None and rank(batch.revision) == rank(stands.revision):",
            "if False:",
        ),
    ),
    _fault(
        "run_id_with_revision",
        "S34",
        "customer pass, country pass",
        Edit("history.timeline:author", "delivery_of(BATCH)", "F.col(BATCH)"),
    ),
)

_LOG = (
    _fault(
        "later_snapshots_not_asked",
        "S19",
        "customer halves, country halves",
        Edit("history.differences:changes", "if not asked:", "if True:"),
    ),
    _fault(
        "asked_snapshot_always_retires",
        "S27",
        "customer halves, country halves",
        Edit("history.differences:_resolved", '.otherwise("nothing")', '.otherwise("gone")'),
    ),
    _fault(
        "silence_not_kept",
        "S27",
        "customer halves, country halves",
        Edit(
            "history.differences:_kept",
            ".otherwise(~F.col(ASSERTED_BEFORE))",
            '.otherwise(~F.col(ASSERTED_BEFORE) | (F.col(KIND) == "nothing"))',
        ),
    ),
    _fault(
        "settled_at_its_own_time",
        "S19",
        "customer halves, country halves",
        Edit("history.differences:_snapshots_to_ask", "last >= bound", "last > bound"),
        Edit("history.differences:_probes", 't >= F.col("_bound")', 't > F.col("_bound")'),
    ),
    _fault(
        "settled_without_all_columns",
        "S20",
        "customer halves, customer pass redeclared",
        Edit("history.differences:_settles", " and columns <= set(snapshot.columns)", ""),
    ),
    _fault(
        "settled_by_who_retires_nobody",
        "S27",
        "customer halves, country halves",
        Edit("history.differences:_settles", "snapshot.retires and ", ""),
    ),
    _fault(
        "settled_by_row_times",
        "S4",
        "partner halves, machine halves",
        Edit("history.differences:_snapshots_to_ask", "source not in row_timed and ", ""),
    ),
    _fault(
        "what_goes_asks_nobody",
        "S34",
        "customer halves, country halves",
        Edit(
            "history.differences:_snapshots_to_ask", "for b in (*intake.new, *intake.removed)]", "for b in intake.new]"
        ),
    ),
    _fault(
        "removed_is_repeated",
        "S34",
        "customer halves, country halves",
        Edit("history.differences:_kept", 'counts = F.col(ORIGIN) != "removed"', "counts = F.lit(True)"),
    ),
    _fault(
        "asked_without_removed",
        "S34",
        "customer halves, country halves",
        Edit("history.differences:_resolved", 'F.col(ORIGIN).isin("stored", "removed")', 'F.col(ORIGIN) == "stored"'),
    ),
    _fault(
        "asked_for_new_only",
        "S34",
        "customer halves, country halves",
        Edit(
            "history.differences:_affected",
            'kept.unionByName(known.where(F.col(ORIGIN) == "removed").select(*names)).distinct()',
            "kept.distinct()",
        ),
    ),
    _fault(
        "rows_of_removed_stay",
        "S34",
        "customer halves, country halves",
        Edit("history.differences:affected_keys", ".unionByName(removed.select(*keys))", ""),
    ),
    _fault(
        "repeats_of_feeds_dropped",
        "S19",
        "customer halves, country halves",
        Edit("history.differences:_kept", '.when((F.col(ORIGIN) == "raw") & ~readable_again, False)', ""),
    ),
    _fault(
        "return_unchanged_is_a_repeat",
        "S18",
        "customer pass, country pass",
        Edit("history.differences:_kept", "repeats = F.col(ASSERTED_BEFORE) & ~differs", "repeats = ~differs"),
    ),
    _fault(
        "null_change_is_a_repeat",
        "S8",
        "customer pass, country pass",
        Edit(
            "history.differences:_differs",
            'comparable(col(name)["v"], data_type).eqNullSafe(comparable(before["v"], data_type))',
            'F.coalesce(comparable(col(name)["v"], data_type) == comparable(before["v"], data_type), F.lit(True))',
        ),
    ),
    _fault(
        "first_null_is_a_repeat",
        "S9",
        "customer pass redeclared, customer halves redeclared",
        Edit("history.differences:_differs", "before.isNull() | ~equal", "~equal"),
    ),
    _fault(
        "history_forgotten",
        "S14",
        "customer halves, country halves",
        Edit(
            "plan.rows:_versions",
            'statements = stored.join(keys, list(dimension.key_names), "left_semi")',
            "statements = stored.limit(0)",
        ),
    ),
    _fault(
        "vanished_rows_stay",
        "S19",
        "customer halves, player halves",
        Edit("history.actions:row_actions", '.when(F.col("_new_key").isNull(), REMOVE)', ""),
    ),
    _fault(
        "null_is_no_overwrite",
        "S8",
        "customer halves, country halves",
        Edit("columns:null_safe_equal", "a.eqNullSafe(b)", "F.coalesce(a == b, F.lit(True))"),
    ),
)

_EXISTENCE = (
    _fault(
        "forgotten_at_a_delete",
        "S18",
        "customer pass, player pass",
        Edit(
            "history.timeline:running_state",
            'F.last(F.when(F.col(KIND) == "values", col(n)), True)',
            'F.last(F.when(F.col(KIND) == "values", col(n)).otherwise(F.struct(col(n)["v"].alias("v"))), True)',
        ),
    ),
    _fault(
        "version_restarts_after_a_delete",
        "S18",
        "customer pass, player pass",
        Edit(
            "history.timeline:open_and_close",
            'numbered = opened.withColumn(VERSION, F.row_number().over(window).cast("int"))',
            'after_gap = (F.lag(_ENDS).over(window) < F.col(EFFECTIVE_AT)).cast("int")\n'
            '    opened = opened.withColumn("_after_gap", after_gap)\n'
            '    opened = opened.withColumn("_life", F.coalesce(F.sum("_after_gap").over(window), F.lit(0)))\n'
            '    life = Window.partitionBy(*entity(dimension), "_life").orderBy(EFFECTIVE_AT)\n'
            '    numbered = opened.withColumn(VERSION, F.row_number().over(life).cast("int"))',
        ),
    ),
    _fault(
        "deleted_at_the_first_time",
        "S33",
        "country pass",
        Edit("history.timeline:without_windows", "F.last(F.struct(_ENDS))", "F.first(F.struct(_ENDS))"),
    ),
    _fault(
        "deleted_rows_stay",
        "S33",
        "partner pass",
        Edit(
            "history.timeline:without_windows",
            'rows.where(F.col(DELETED_AT).isNull()) if dimension.deleted_rows == "remove" else rows',
            "rows",
        ),
    ),
    _fault(
        "begin_ignored",
        "S29",
        "player pass, machine pass",
        Edit("history.timeline:first_begin", "if dimension.begin is None:", "if True:"),
    ),
    _fault(
        "begin_for_every_first_version",
        "S29",
        "player pass, machine pass",
        Edit(
            "history.timeline:first_begin",
            " & (began <= _instant(dimension.begin.for_first_changes_until))",
            "",
        ),
    ),
    _fault(
        "begin_before_its_limit_only",
        "S29",
        "player pass, machine pass",
        Edit("history.timeline:first_begin", "began <= _instant", "began < _instant"),
    ),
    _fault(
        "windows_closed",
        "S2",
        "customer pass, player pass",
        Edit(
            "history.timeline:open_and_close",
            "F.coalesce(F.col(_ENDS), open_end(dimension))",
            'F.coalesce(F.col(_ENDS) - F.expr("INTERVAL 1 MICROSECOND"), open_end(dimension))',
        ),
    ),
)

_ATTRIBUTES = (
    _fault(
        "type_0_takes_the_last",
        "S6",
        "country pass, customer pass",
        Edit("history.timeline:_retained", "F.first(first, ignorenulls=True)", "F.last(first, ignorenulls=True)"),
    ),
    _fault(
        "type_0_takes_null",
        "S6",
        "country pass, customer pass",
        Edit(
            "history.timeline:_retained",
            'F.when(col(attribute.name)["v"].isNotNull(), col(attribute.name))',
            "col(attribute.name)",
        ),
    ),
    _fault(
        "type_1_while_alive",
        "S7",
        "country pass, customer pass",
        Edit(
            "history.timeline:_overwritten",
            "F.last(col(attribute.name))",
            "F.last(F.when(F.col(ALIVE), col(attribute.name)), ignorenulls=True)",
        ),
    ),
    _fault(
        "type_1_opens_versions",
        "S7",
        "customer pass, store pass",
        Edit(
            "history.timeline:visible",
            "dimension.of_type(ScdType.ADD_ROW, ScdType.HYBRID)",
            "dimension.of_type(ScdType.ADD_ROW, ScdType.HYBRID, ScdType.OVERWRITE)",
        ),
    ),
    _fault(
        "type_3_while_alive",
        "S9",
        "country pass, partner pass",
        Edit(
            "history.timeline:_with_previous",
            "begins = col(name).isNotNull()",
            "begins = F.col(ALIVE) & col(name).isNotNull()",
        ),
    ),
    _fault(
        "type_3_without_null",
        "S9",
        "country pass, partner pass",
        Edit("history.timeline:_with_previous", "~value.eqNullSafe(equal_before)", "(value != equal_before)"),
    ),
    _fault(
        "type_3_by_statement",
        "S9",
        "country pass, partner pass",
        Edit("history.timeline:_with_previous", "(before.isNull() | ~value.eqNullSafe(equal_before))", "F.lit(True)"),
    ),
    _fault(
        "type_6_opens_nothing",
        "S10",
        "customer pass, store pass",
        Edit(
            "history.timeline:visible",
            "dimension.of_type(ScdType.ADD_ROW, ScdType.HYBRID)",
            "dimension.of_type(ScdType.ADD_ROW)",
        ),
    ),
    _fault(
        "type_6_previous_by_value",
        "S10",
        "customer pass, player pass",
        Edit(
            "history.timeline:_shown",
            'F.lag(col(name)).over(window)["v"]',
            'F.try_element_at(F.filter(F.collect_list(F.struct(col(name)["v"].alias("v"))).over('
            "window.rowsBetween(Window.unboundedPreceding, -1)), "
            'lambda x, v=col(name)["v"]: ~x["v"].eqNullSafe(v)), F.lit(-1))["v"]',
        ),
    ),
    _fault(
        "last_updated_is_the_opening",
        "S14",
        "customer pass, player pass",
        Edit("history.timeline:open_and_close", 'F.greatest(began, F.col("_last_change"))', "began"),
    ),
    _fault(
        "last_updated_is_the_first_opening",
        "S14",
        "country pass, partner pass",
        Edit("history.timeline:without_windows", 'F.greatest(first_opening, F.col("_last_change"))', "first_opening"),
    ),
    _fault(
        "last_updated_by_type_2",
        "S14",
        "customer pass, store pass",
        Edit("history.timeline:_with_last_change", "if attribute.scd is ScdType.ADD_ROW:", "if False:"),
    ),
    _fault(
        "opened_by_the_first",
        "S14",
        "player pass, store pass",
        Edit(
            "history.timeline:running_state",
            'F.last(F.when(F.col("_changed"), author()), ignorenulls=True).over(window)',
            'F.first(F.when(F.col("_changed"), author()), ignorenulls=True).over('
            "Window.partitionBy(*entity(dimension), EFFECTIVE_AT).orderBy(*position())"
            ".rowsBetween(Window.unboundedPreceding, 0))",
        ),
    ),
    _fault(
        "opened_by_any",
        "S14",
        "player pass, store pass",
        Edit("history.timeline:running_state", 'F.when(F.col("_changed"), author())', "author()"),
    ),
)

_EQUALITY = (
    _fault(
        "map_order_matters",
        "S8",
        "machine pass",
        Edit("columns:comparable", "return F.array_sort(entries)", "return entries"),
    ),
    _fault(
        "nan_is_null",
        "S8",
        "machine pass",
        Edit(
            "columns:comparable",
            "if not has_map(data_type):",
            'if data_type.ddl() == "double":\n        return F.when(~F.isnan(value), value)\n'
            "    if not has_map(data_type):",
        ),
    ),
    _fault(
        "nan_differs",
        "S8",
        "machine pass",
        Edit(
            "columns:comparable",
            "if not has_map(data_type):",
            'if data_type.ddl() == "double":\n'
            '        return F.when(F.isnan(value), F.uuid()).otherwise((value + 0.0).cast("string"))\n'
            "    if not has_map(data_type):",
        ),
    ),
    _fault(
        "negative_zero_differs",
        "S8",
        "machine pass",
        Edit(
            "columns:comparable",
            "if not has_map(data_type):",
            'if data_type.ddl() == "double":\n        return value.cast("string")\n    if not has_map(data_type):',
        ),
    ),
    _fault(
        "case_ignored",
        "S8",
        "customer pass, country pass",
        Edit(
            "columns:comparable",
            "if not has_map(data_type):",
            'if data_type.ddl() == "string":\n        return F.lower(value)\n    if not has_map(data_type):',
        ),
    ),
    _fault(
        "blanks_ignored",
        "S8",
        "customer pass, country pass",
        Edit(
            "columns:comparable",
            "if not has_map(data_type):",
            'if data_type.ddl() == "string":\n        return F.rtrim(value)\n    if not has_map(data_type):',
        ),
    ),
    _fault(
        "empty_text_is_null",
        "S8",
        "customer pass, country pass",
        Edit(
            "history.casts:cast",
            "leaf = _leaf(value, physical, target, rules)",
            'value = F.nullif(value, F.lit("")) if target.ddl() == "string" else value\n'
            "    leaf = _leaf(value, physical, target, rules)",
        ),
    ),
    _fault(
        "key_parts_run_together",
        "S8",
        "partner pass, store pass",
        Edit("columns:key_text", 'F.concat(F.length(text).cast("string"), F.lit(":"), text)', "text"),
    ),
    _fault(
        "key_without_time",
        "S14",
        "customer pass, player pass",
        Edit("history.keys:surrogate_key", ', F.unix_micros(EFFECTIVE_FROM).cast("string")]', "]"),
    ),
)

FAULTS = (*_ORDER, *_SNAPSHOTS, *_SOURCES, *_REVISIONS, *_LOG, *_EXISTENCE, *_ATTRIBUTES, *_EQUALITY)
"""All faults, by what they are about."""
