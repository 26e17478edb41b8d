"""The rules of the semantics, from which docs/semantics.md is generated.

`decided` has decisions on details. A rule that is not built has no tests.
"""

from __future__ import annotations

from dataclasses import dataclass

INTRODUCTION = """
# Rules

The rules that the tables follow. Tests, docstrings and error messages cite their numbers. Each rule lists the tests
that verify it. Most tests are text tables: the deliveries, and the rows that result. Each of them runs on a simple
reference implementation in plain Python (the [oracle](../scd_pipeline_tests/oracle.py)) and on Spark. The
[glossary](reference/glossary.md) defines the terms, [Declaration](reference/declaration.md) the options.

This page is generated from `scd_pipeline_tests/semantics` by `make docs`; a test fails when it is stale.

In the tables, an empty cell is NULL, `OPEN` is the open end 9999-12-31 23:59:59, and all times are UTC. Deliveries
arrive in the order of their lines. `op` D is a delete.
"""


@dataclass(frozen=True)
class Rule:
    """A rule: its title, its text, decisions on details, and what is not built."""

    title: str
    text: str
    decided: tuple[str, ...] = ()
    missing: str = ""
    built: bool = True


SECTIONS: dict[str, tuple[str, ...]] = {
    "Time": ("S1", "S2", "S3", "S4", "S5"),
    "Attribute types": ("S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S33"),
    "Arrival": ("S14", "S15", "S16", "S17", "S18", "S19", "S20", "S34", "S35", "S36", "S37", "S39"),
    "Audit": ("S21", "S22"),
    "Facts": ("S23", "S24", "S25", "S41"),
    "Bad input": ("S26", "S27", "S28"),
    "Start of history, sources, erasure and platform": ("S29", "S30", "S31", "S32"),
    "Nested values": ("S40",),
    "Histories of existing tables": ("S42",),
    "Landing tables": ("S38",),
}

RULES: dict[str, Rule] = {
    "S1": Rule(
        "Time is UTC",
        """
        All times are UTC with microsecond precision, whatever the time zone of the session, the machine or the file.
        A text or a column without a zone is read in the zone that its source declares, by default UTC.
        """,
        (
            "An expression of a timestamp that would read times without a zone in UTC, although the source has another "
            "zone, rejects the delivery.",
            "A session whose time zone is not UTC is rejected when the warehouse is opened.",
            "Daylight saving time: a local time that is skipped is read an hour later. A local time that occurs twice "
            "is the first of the two, unless it has an offset.",
            "A `timestamp_ntz` attribute is stored as the source wrote it, without conversion. A date that is read "
            "as a timestamp is midnight of that day in the source's zone.",
            "A time of day without a date is not a timestamp. A date in a file's name or a partition is midnight in "
            "UTC, whatever the zone of the source's columns is, unless the channel declares a time of day "
            "(`time_of_day`) or another zone (`delivery_timezone`).",
        ),
    ),
    "S2": Rule(
        "Half-open windows",
        """
        A version is in force from `effective_from` up to, but not including, `effective_to`. The windows of one entity
        do not overlap and are never empty. A gap between two of them means that the entity did not exist in between.
        """,
    ),
    "S3": Rule(
        "At most one current version",
        """
        The version whose window has no end is current, and its `effective_to` is the open end. A deleted entity has
        no current version.
        """,
        (
            "The current version need not be in force yet: a version that is dated in the future is current as soon "
            "as it is loaded, because the clock is not used. A query as of a time returns the versions in force at "
            "that time.",
        ),
    ),
    "S4": Rule(
        "Business time",
        """
        A change is true from the time in its row, if the channel declares such a column (`effective_at`), otherwise
        from the time of its delivery. A delivery that has neither is rejected. The clock is not used: only a snapshot
        that a load reads from a database, and that has no other time, has the time at which it was read.

        A snapshot can have row times (`effective_at`) in addition to its own time. It asserts values at the row times,
        and at its own time which entities are present and which are absent. An entity that is present, but was deleted
        before, returns at the snapshot's time with the values of its row. A row whose time is after its snapshot's own
        time asserts nothing before its own time: an entity that is new or returns then starts at its row's time. So an
        extract that is named by its day can have the changes of that day.

        An absence deletes only an entity whose existence the source had asserted before: by a snapshot with an earlier
        time of its own, or by a feed's change record with an earlier `effective_at`. So a row that the source committed
        late, with a row time before an earlier snapshot, becomes one version that starts at its row time.
        """,
        (
            "If a snapshot with row times has several rows of an entity that returns, the entity has the values of the "
            "row with the highest position up to the snapshot's time.",
            "A row dated after its snapshot asserts the existence of its entity from its own time on. So an absence "
            "between the two times deletes the entity only if its existence had been asserted before, and the entity "
            "exists from the row's time until a later snapshot omits it. The retire guard considers it as present.",
            "The presence of an entity that exists at the snapshot's time changes nothing.",
            "An assertion of existence is in effect until the source asserts otherwise, by an absence or by a feed's "
            "delete. So if several snapshots in a row omit an entity, only the first one deletes it: a late row that "
            "dates its return before the others leaves no further gap. A quarantined row does not assert existence. A "
            "feed's delete takes effect without an assertion before it.",
            "If rows have times, a row without one is a bad row; the delivery's time does not replace it.",
            "A date or time in the name of a file or in a partition is read in the declared form. A delivery is named "
            "by it in the form 2024-01-31 or 2024-01-31T23-59-59, whatever the declared form is.",
        ),
    ),
    "S5": Rule(
        "The order of changes",
        """
        All changes of an entity in one batch take effect, in order of position: business time, then the declared
        sequence (NULL first), then the delivery's name and its channel. At equal time the last change wins for each
        attribute that it provides; a value that is replaced at the same time opens no version. If two rows of one
        position provide different values of an attribute, the whole batch is rejected and the error names the keys,
        unless the channel declares otherwise (`ties`). Rows of one position that do not differ become one change
        record.
        """,
        (
            "A sequence of several columns is ordered by the first of them that differs. The name of a binary log's "
            "file is its number. A number beyond the bits of its column makes a bad row.",
            "Names of deliveries, and revisions, are compared as dates if they are dates, as numbers if they are "
            "whole numbers, otherwise as text. Dates sort before numbers, and numbers before text. `1` and `01` are "
            "different names, and `1` is first.",
            "If a snapshot and a feed of one source have the same name and time, the feed is first, whatever their "
            "revisions. Revisions are not part of the position, because only one revision of a delivery is current.",
            "NULL differs from a value, and a delete differs from an upsert.",
            "`ties: delete_wins`: a delete takes precedence; the other rows of its position have no effect. If no row "
            "is a delete, different values are still rejected.",
            "`ties: last_row`: each attribute has the value of the last row of the file that provides it. If the last "
            "row is a delete, the other rows of its position have no effect; otherwise the deletes among them have "
            "none. The order of these rows is then part of the batch's content.",
            "`ties: first_row`: likewise, with the first row of the file in place of the last one.",
            "`first_row` and `last_row` need rows whose order is the same at each read: those of one file, or of a "
            "pandas DataFrame or a pyarrow Table. With a table the declaration is invalid; several files or a Spark "
            "DataFrame are rejected when they are delivered.",
        ),
    ),
    "S6": Rule(
        "Type 0: the first value is kept",
        """
        Every version has the first value in business time that is not NULL. A later different value changes no row;
        the audit records it once, as REFUSED.
        """,
        (
            "A late delivery with an earlier business time replaces the first value.",
            "Of several changes at one time, the state after all of them counts (S5). So the last of several values of "
            "the earliest time is kept; if it is NULL, the attribute has no value at that time, and the next value "
            "that is not NULL is kept.",
        ),
    ),
    "S7": Rule(
        "Type 1: the latest value",
        """
        Every version has the latest value, including the closed versions. A change opens no version.
        """,
        (
            "A value that is provided while the entity does not exist also overwrites its versions.",
            "`change_reason`, `change_source` and `load_run_id` are those of the change that opened the version. "
            "`last_updated` is the later of the version's start and the last change of a value that every version has "
            "(types 0, 1 and 3, and the current values of type 6).",
            "With `untracked`, each version has a value of its own: the one at its start (`at_open`), or the latest "
            "one before its end (`latest_in_version`), whose last change is part of `last_updated`. A change opens no "
            "version either. A value that is provided while the entity does not exist is in the next version only.",
        ),
    ),
    "S8": Rule(
        "Type 2: a different value opens a version",
        """
        Two values are the same if both are NULL or both are equal, compared column by column: NULL is not the empty
        text. NaN equals NaN, 0.0 equals -0.0, decimals are compared by value, text by its bytes under any collation,
        arrays and structs by their content, maps by their entries in any order and at any depth. VARIANT, geospatial
        types and intervals have no such equality; a declaration with one is invalid.
        """,
        ("A type 2 attribute that was never provided is NULL.",),
    ),
    "S9": Rule(
        "Type 3: the latest value and the one before",
        """
        Every version has the latest value, in `previous_<name>` the value before it, and in `<name>_changed_at` the
        business time of the last change. A change opens no version.
        """,
        (
            "NULL is a value like any other. The first value that is provided is the first change; an equal value is "
            "not a change. If the attribute was never provided, all three columns are NULL.",
        ),
    ),
    "S10": Rule(
        "Type 6: the historical and the latest value",
        """
        A different value opens a version, as with type 2. In addition, every version has the latest value in
        `current_<name>` and, with `previous: true`, the value of the preceding version in `previous_<name>`.
        """,
        (
            "The preceding version is the one with the preceding number, whichever attribute opened it, and across a "
            "gap too. With `previous: last_different_value`, it is the last one with another value.",
        ),
    ),
    "S11": Rule(
        "Type 4: a table layout",
        """
        Type 4 is a table layout, not an attribute type: one table contains the current versions, and
        `<dimension>_history` the closed ones. Together they contain the rows of a type 2 table. Kimball's type 4 is a
        mini-dimension instead.
        """,
        decided=(
            "Both tables have the columns of a type 2 table.",
            "A load commits to the history first. The commit of the dimension then names the commit of the history "
            "that belongs to it, so that no reader sees a version twice or not at all.",
            "With `history_columns: changing`, a value that all versions of an entity have in common is stored once: "
            "in its current version or, if the entity no longer exists, in its last closed one. Readers fill in the "
            "others.",
            "The next load rolls back what a killed load has left in the history.",
        ),
    ),
    "S12": Rule(
        "Type 7: a timed table",
        """
        A timed table is a base (files or a Delta table, with declared columns) and a log of UPDATE and DELETE
        statements, each with its time. A read at a time has the rows of the base after every statement whose time is at
        or before it, in order of their times, then of their positions in the log; each statement sees the result of the
        ones before it. A line `-- time=<value>` is the time of all statements up to the next such line; without one it
        is 1970. A log in which any statement cannot be applied is rejected as a whole. Reading never writes.
        """,
        decided=(
            "A time is milliseconds since 1970, a date, or a date and time with an optional offset; without one it is "
            "in the declared zone, UTC by default. A statement may have a time in the future.",
            "`raw` (also -1) reads the base itself; the log is checked all the same. Without a chosen time, or with an "
            "empty text, the time is that of the read. One read uses one state of the log, and one version of a Delta "
            "base.",
            "Statements are parsed and translated, never executed as text. They are about one row: subqueries, "
            "aggregates and functions whose results differ from read to read are rejected. A condition that is NULL "
            "hits no row.",
            "All statements of a log name one table, by any name. Rows that are added to the base later are hit by the "
            "whole log.",
            "The log is a file `.updates` beside the data, a declared file, or an append-only Delta table with author "
            "and reason.",
            "A log can be folded up to a time: the rows of a read at this time become the base, as a Delta table "
            "`<table>_base` of the warehouse, in one commit with time, author, reason and the folded statements. Reads "
            "at this time or later are unchanged, reads before it are rejected. Statements before it are rejected too. "
            "The declared base and the folded statements stay; they may be removed, but a read after a change of "
            "either is rejected. Without the table `<table>_base`, reads apply the whole log to the declared base.",
            "The rows of a read can be stored in the table `<table>_present`, whose commit has the time of the read: "
            "they equal a read at this time.",
            "A timed table with a business key can be the source of a dimension. The base, from the earliest time of "
            "the dimension on, and each later time of the log are deliveries of a feed: as of the time of every "
            "statement, the dimension has the rows of a read. A time that the log has no longer is withdrawn.",
            "A query of a dimension as of a time (S2) is not type 7: its changes are rows that sources deliver. "
            "Kimball's type 7 is another one, dual type 1 and type 2 keys: a fact has surrogate key and business key, "
            "so that a query joins it with the version of its event time, with the current one, or with both.",
        ),
        missing="A timed table as a source of a dimension is not built.",
    ),
    "S13": Rule(
        "Unchanged values",
        """
        A value that is delivered again without a change opens no version, changes no row of the dimension and causes
        no commit of it.
        """,
        (
            "The change log stores only those change records of a snapshot that differ from what its source had "
            "asserted before; the others can be derived. It stores every change record of a feed.",
        ),
    ),
    "S33": Rule(
        "Tables without windows",
        """
        A dimension whose attributes are all of types 0, 1 and 3 has one row for each entity that ever existed, and no
        columns for windows, versions or `current_flag`. For surrogate keys and joins, the row is in force from
        0001-01-01 on. The row of a deleted entity is kept; `deleted_at: true` adds a column with the time of the
        delete, `deleted_rows: remove` removes the row.
        """,
        (
            "The row names the delivery with which the entity first existed, even after a return.",
            "`deleted_at` is the time of the last delete, and NULL if the entity has returned.",
        ),
    ),
    "S14": Rule(
        "Convergence",
        """
        The rows depend on the declaration and on the set of accepted batches. They do not depend on when, in which
        order, how often or in how many runs the batches arrived. This includes the surrogate keys, which are hashes of
        the business key and `effective_from`. All columns are derived from the batches, none from the clock. If two
        versions have the same surrogate key, or a version has a reserved one such as -1, the run fails before it
        writes, and the error names the versions; a `key_salt` in the declaration resolves the collision.
        """,
        (
            "The key of a version that the dimension does not have any more is not given to another version: the audit "
            "has it. A load compares new keys with it if a stored batch was replaced or withdrawn, or was not later "
            "than all before it, or if deletes remove rows; otherwise no version can have been removed.",
            "`load_run_id` names the delivery, such as `crm/feed/2024-01-31`, without its revision: a revision with "
            "the same content changes no row.",
            "A version has the delivery, the source and the reason of the last change record at its start that "
            "changed a value. Change records of several sources are ordered by position, then by the source's name.",
            "The reason is that of the row, otherwise that of its delivery, otherwise `source_load`. A delete "
            "changes no reason of a version; in the audit its own is `deleted_in_source` if its source gives none.",
        ),
    ),
    "S15": Rule(
        "No change, no commit",
        """
        A load that changes no row of the dimension makes no commit of its table. If the load accepted a batch, the
        change log has a commit that records it. The exception is a table that lacks commits of the log, because the
        load that created them was killed or is still running: it gets a commit without rows, so that the other load
        cannot apply them any more.
        """,
    ),
    "S16": Rule(
        "One commit for each run",
        """
        A run applies its batches to the dimension in one commit, whether it has one batch or backfills many. So S2
        and S3 are true of every version of the Delta table.
        """,
    ),
    "S17": Rule(
        "Killed runs",
        """
        If a run is killed at any moment, the next run applies the commits of the change log that the dimension lacks.
        The tables are then the same as if the run had not been killed, whichever deliveries the next run has.
        """,
        (
            "Each commit of a table records the last commit that it has applied of each table that it is derived from, "
            "and the identity of that table. If that table has lost the commit, or was replaced, the load fails "
            "before it writes, and the error names the fix ([Repair](how-to/repair-tables.md)).",
            "A load also fails before it writes if another program changed the rows of a table.",
            "A run may be killed while it creates a table: the next run creates the table, with all of its properties.",
            "Check and status report data files that were deleted, and the error names what the table is rebuilt from.",
        ),
    ),
    "S18": Rule(
        "Delete and return",
        """
        A delete closes the current version at the time of the delete; no row of a table with windows is removed. When
        an entity returns, a new version opens after a gap, with the next `version` number. A value that a source has
        provided is in effect until that source provides another, even across a delete or before the entity exists.
        """,
        (
            "A delete provides no values, even if its row contains some.",
            "A row of a snapshot that its channel's `deletes` flags counts as absent: its entity is deleted as if the "
            "snapshot omitted it, unless another row of the snapshot has the entity.",
            "With `deleted_rows: new_version`, a delete also opens a version, with `is_deleted` and the values before. "
            "It is current until the entity returns, and facts of that time get its key. Queries of current rows and "
            "of rows as of a time omit it.",
            "The column `version_state`, if a table has it, shows what happened last to a version. A current version "
            "is `new` if the entity did not exist before, and otherwise `changed`. A closed version is `changed` if "
            "the next one follows without a gap, and `deleted` if the entity was deleted at its end. A version that a "
            "delete opened is `deleted`.",
        ),
    ),
    "S19": Rule(
        "Late snapshots",
        """
        A late-arriving snapshot takes effect at its own time: its assertions are in effect from then up to the
        next snapshot of the source. Assertions of later snapshots do not change.
        """,
        (
            "The next snapshot asserts all attributes for which it has a column, including those of which the change "
            "log stored nothing because they were unchanged.",
        ),
    ),
    "S20": Rule(
        "Source columns",
        """
        - A new attribute is added to the table when the declaration names it; earlier versions have NULL in it.
        - An attribute that is renamed, with the old name in `former_names`, keeps its history under the new name.
          A delivery that lacks the column of the new name, such as a late one, is read by the old one; if it has both,
          the old one is undeclared.
        - A retired attribute is no longer read: it keeps its values and opens no versions.
        - A type that is wider than that of the table widens the attribute; any other type is an error (S35).
        - If a delivery lacks the column of an attribute, or one that its expression names, the batch is rejected,
          unless the attribute declares otherwise. With `missing: not_provided` the delivery does not provide the
          attribute, so that its value does not change; with `missing: null` it provides NULL.
        - A column of the key or of the channel may never be missing.
        - An attribute may list several source columns, for deliveries with different names. The first one that a
          delivery has is read.
        - Case does not matter in the names of columns, and `_` stands for characters that the name of an attribute
          cannot have: `Unit_price` is read from `Unit price`, unless the delivery also has a column `Unit_price`.
        - Undeclared columns are reported in the result, and not read: neither their types nor their names, for example
          two that are equal except for case, make a delivery unreadable. Columns that the pipeline derives, such as the
          surrogate keys of a fact, are not read either, even if a delivery has columns with these names.
        """,
        (
            "A wider type is one in which the values have the same text: a whole number of more bytes, and a decimal "
            "with more digits before its point. A struct may also have further fields, after those that it has, which "
            "are NULL in stored values; arrays and maps may have wider elements and values. It changes the columns in "
            "place, without writing rows. A double in place of a float, or more digits after the point, would change "
            "texts and hashes of stored values, and is an error.",
            "One `_` stands for several such characters in a row, and none for those at the beginning and at the end. "
            "Key columns, measures, options of a channel and expressions find columns in the same way, and so do the "
            "fields of a struct, except in JSON, where they have the declared names. If several columns of a delivery "
            "have one such name, none of them is found by it.",
            "A feed with `updates: partial` may lack the column of any attribute, which is then not provided.",
            "A delivered column with the name of one that readers add, such as `_scd_line` or `_metadata`, is "
            "undeclared. If the declaration reads it, the delivery is rejected with its name.",
            "Messages name undeclared columns, except for names that may be values, such as an address or a number: "
            "of these they give the number and the lengths (S31).",
            "The first NULL of an attribute that was not provided before opens no version and is not counted as a "
            "change.",
            "A declaration that no longer names an attribute of the table is rejected: retire the attribute, or name "
            "it in the `former_names` of its successor.",
            "The table stores the former names of its attributes. A former name can be removed from the declaration "
            "once a load has renamed the column, but it cannot be given to another attribute.",
        ),
    ),
    "S36": Rule(
        "Mirrored attributes",
        """
        With `attributes: mirror`, all columns of the source are attributes, except the business key, the columns that
        the declaration of the source reads, and those that `mirror` declares `technical` or that a profile does. They
        have the types of the source and one SCD type, 2 by default; `attributes` declares some of them with other
        options. A load reports each column that it does not read, unless `mirror` declares it.

        - A column that appears becomes an attribute. Its NULL opens no version, a value does.
        - A column that disappears is retired with the time of the delivery (`retired_at`): it keeps its values and
          opens no versions. If it comes back, the same attribute continues.
        - A column that is renamed continues if `former_names` of `mirror` has the old name. Otherwise the old attribute
          is retired and the new one added.
        - A wider type widens the attribute in place (S20). Values of a narrower type fit. A delivery with any other
          type is rejected.
        - A struct, also one inside of arrays and other structs, has the fields of all deliveries. A field that a
          delivery lacks is NULL, and the order of the fields does not matter.
        - A column or a field whose name has characters that the name of an attribute cannot have is mirrored with `_`
          in their place (S20).

        The deliveries in effect decide which attributes exist and which are retired, in order of their times: a late
        delivery that is older than the last one retires nothing.
        """,
        (
            "A load reports which attributes it adds, renames, widens and retires, and which are provided again. The "
            "time of a retirement is stored with the table and in the comment of the column.",
            "Of a dimension with mirrored attributes, an attribute with a declared `type`, or one that `columns` of "
            "the source maps, is an ordinary one: it rejects deliveries without its column (S20), and values are cast.",
            "A `float` column becomes a `double`, which has all of its values, so that it can widen. A column whose "
            "values are all NULL, or empty arrays, and have no type, becomes an attribute with the first delivery that "
            "has one; the same is true of a field inside of a struct.",
            "A `double` attribute accepts whole numbers; a number that it cannot represent is a bad value (S26). A "
            "`decimal` attribute accepts whole numbers and decimals with fewer digits after the point, and gets more "
            "digits before its point if they need them. A column of fractions for an attribute of whole numbers, or "
            "with more digits after the point than the attribute has, rejects the delivery.",
            "pandas stores a column of whole numbers with missing values as floats with NaN. An attribute of whole "
            "numbers accepts it: NaN is NULL, and a fraction is a bad value. The columns of a pandas frame without "
            "rows have no types.",
            "The columns of CSV and JSON files have no types: they become attributes of text.",
            "A column whose name or type no attribute can have rejects the delivery, with the column. So does one that "
            "would be mirrored under the name of another column of the delivery.",
            "The columns of a rejected delivery are no attributes.",
            "A feed with `updates: partial` adds attributes, and retires none.",
        ),
    ),
    "S37": Rule(
        "Whole rows",
        """
        With `business_key: whole_row`, each distinct row is an entity: its presence opens a window, and a snapshot that
        omits it closes the window. Identical rows of one delivery are one row, and NULL is a value. The business key
        is the hash of all attributes of the row, in the column `row_hash` unless another name is declared.

        With `row_version: true`, the business key is a column by which the source identifies the version of a row. Its
        presence opens a window too, so that the other columns need not: of type 0 or 1, they open no versions.
        """,
        (
            "The hash is that of the attributes, in whichever order, without those that are NULL: a column that is "
            "added and is NULL in all rows changes no row. A value in it changes the row, as does a column that "
            "disappears.",
            "A row with a value that cannot be read has no hash: it is a bad row whose key cannot be read, so that its "
            "snapshot closes no window (S27).",
            "The retire guard counts the rows that a snapshot omits less those that it adds: a changed row is both.",
            "A delete of a feed finds the row with the same values.",
        ),
    ),
    "S39": Rule(
        "Cursors",
        """
        A source without deliveries of its own (a table, a query, a list of records) may declare a cursor: a column that
        grows, and a start value. A load reads the rows whose cursor is at or after the highest value loaded. A row
        with an equal value that was loaded before is neither lost nor loaded twice. What a load reads is one delivery,
        and the state of the cursor is stored with its batch, in the commit of its rows.
        """,
        (
            "A delivery is named by its number: the next one of its channel. So a load that is retried after it was "
            "killed, or that began at the same state as one that committed first, changes nothing that was loaded; "
            "rows that were added meanwhile are part of it, or of the next delivery.",
            "The state is the highest value, and a hash of all columns of each row that has it; columns that are NULL "
            "do not count. Of equal rows without a key, as many are loaded as the source has.",
            "If the values are times, the time of a row is that of its cursor, unless `effective_at` is declared: the "
            "history does not depend on how many rows one load reads.",
            "A row whose cursor has no value, or none of the type of the start, rejects the delivery. A row below the "
            "highest value loaded is not read, and a load without new rows writes nothing.",
            "A withdrawn delivery is not read again.",
            "A snapshot of a database is named by the time that is passed to its load.",
        ),
    ),
    "S34": Rule(
        "Revisions, retries and withdrawals",
        """
        A delivery has one or several revisions, each with a number, a time or a text that orders them. The highest
        revision is current and replaces the others completely; these remain in the change log as superseded. The same
        revision with the same content is a retry, which has no effect; with other content it is rejected. A withdrawal
        is a revision that asserts nothing: the tables become what they would be if the delivery had never arrived. A
        higher revision restores the delivery.
        """,
        (
            "The content of a revision is the number of its rows, a hash of them that does not depend on their order, "
            "and the delivery's time and scope.",
            "A lower revision that arrives late is superseded at once, even if the higher one is a withdrawal. If it "
            "was not loaded before and has other content, the result reports it.",
            "The revision of a file, or of a partition of a table, is the time of its last change. Whether it is new "
            "depends on its content: the same content is a retry, whatever its time, even if the delivery was "
            "withdrawn. Other content is a higher revision, even if a clock that is behind gives it a lower time. A "
            "file that is older than the withdrawal of its delivery is not read.",
            "A partition of a Delta table is read again after a commit that changed rows of it. If the table is not "
            "partitioned by the column, that is any commit.",
            "The same content under a higher revision is recorded in the log, and changes no row of the dimension.",
            "A withdrawal without a revision withdraws the current one.",
            "If a revision is rejected, the revision below it remains current.",
        ),
        missing="Corrections by hand, which override the sources, are not built yet.",
    ),
    "S35": Rule(
        "Changed declarations",
        """
        A plan would show a changed SCD type, key or layout, and a load would apply it to the whole history from the
        change log, in one commit. New, renamed, retired and missing attributes and wider types are built (S20), and so
        is a `key_salt` for a new table (S14). Any other difference between the declaration and the table is an error,
        and nothing is read.
        """,
        (
            "A wider type is one in which the values have the same text: a whole number of more bytes, and a decimal "
            "with more digits before its point, and a struct with further fields (S20). It changes the columns in "
            "place, without writing rows. A double instead of a float, or more digits after the point, would change "
            "texts and hashes of stored values, and is an error.",
        ),
        built=False,
    ),
    "S21": Rule(
        "The audit",
        """
        `<dimension>_audit` has a row for each transition of an entity's history: INSERT, UPDATE, OVERWRITE,
        LOGICAL_DELETE and REFUSED, each exactly once. A row has the old and new surrogate key, the changed columns,
        their old and new values as lossless text, the business time, the actor, the reason, the delivery and the
        correlation id. It also has the system time at which it was recorded, which is that of the commit that made the
        change visible, and the version of the dimension's table. If a later batch invalidates or moves a transition,
        one WITHDRAWN row refers to it, and the new transition has a row of its own. The transitions that are not
        withdrawn are the same for any order of the batches.
        """,
        (
            "A delivery is named without its revision, as in `load_run_id`: a revision with the same content changes "
            "nothing (S34).",
            "A value that is provided between a delete and a return is an OVERWRITE if every version has it. The first "
            "INSERT contains all values that were provided before it.",
            "NULL is refused like any other value if a type 0 attribute has a value.",
            "`old_values` and `new_values` contain an attribute that was provided as NULL, but not one that was not "
            "provided.",
            "A repair adds a REPAIRED row for each row of the table that it removes, replaces or adds, with all values "
            "of both, the person and the reason. It is not a transition: it is never withdrawn, and a rebuild (S22) "
            "ignores it.",
        ),
        missing="The change types of redeclaration and erasure come with S31 and S35.",
    ),
    "S22": Rule(
        "Rebuild the past from the audit",
        """
        The audit is append-only; Delta rejects updates and deletes of its rows. From the audit alone, the dimension
        can be rebuilt as it was known at any past system time: from the transitions recorded up to that time, without
        those withdrawn up to that time.
        """,
    ),
    "S23": Rule(
        "Surrogate keys of facts",
        """
        A fact stores the surrogate key of the version whose window contains its event time, or -1 if there is none: its
        business key is NULL or unknown, or the entity did not exist then. Each dimension that a fact references has a
        row for -1, the unknown member (`version` 0, not current, in force at no time, attributes NULL), so that an
        inner join drops no fact; S2 and S3 do not apply to it, and no count includes it. Likewise -2 and -3, for rows
        for which a condition of the role is true (`not_applicable`, `invalid`). With `unknown: infer`, an entity of
        which the dimension has no row gets an inferred member, with its business key and `version` 0, current from the
        declared begin; its first delivery replaces it, so that the rows depend on no order of arrival. A row with a
        NULL event time is a bad row. The grain identifies a row: a duplicate has no effect, a row with other values at
        a later position replaces the earlier one, and a revision replaces the rows of its delivery.
        """,
        (
            "The position of a fact's row is that of its delivery: time, sequence, name and channel. The event time is "
            "a value like any other, so that it can be corrected.",
        ),
    ),
    "S24": Rule(
        "Facts are re-keyed",
        """
        When a late change moves a window, the next run of the fact re-keys the facts inside it, for all its dimensions
        in one commit. After any run of the fact, each stored key equals the result of a fresh as-of join with the
        dimensions that the commit names. Until then the view `<dimension>_keys` of the dimension and its audit, which
        has every surrogate key that was ever assigned, resolves an old key.
        """,
    ),
    "S25": Rule(
        "Readers of facts",
        """
        A reader of a fact table never waits for a load and never sees a partial load: a run writes the table in one
        commit, or not at all.
        """,
    ),
    "S26": Rule(
        "Bad rows",
        """
        A row that cannot be loaded goes to the quarantine with its reason and its batch, and the other rows are loaded.
        Such a row has NULL in the business key, a value that cannot be cast (even inside a nested value), a time that
        is missing or out of bounds, or a key outside the snapshot's scope. If its key can be read, its entity counts
        as present, and the row asserts nothing else. If more than the declared share of a batch is bad
        (`bad_row_limit`, by default 5 %), the batch is rejected before anything is written; the rule can be overridden.
        Fixed rows are delivered in a higher revision, at the position of their delivery.

        A value can be cast only without loss, whatever type it is delivered in: a fraction is not a whole number,
        1.005 is not a `decimal(10,2)`, a time of day and `2024-01-01 junk` are not dates, a number is not a time, a
        floating-point number and bytes that are not UTF-8 are not text; dates and times are of the years 1 to 9999.
        The declaration allows exceptions: `round: true`, and `unit` for a number that counts time since 1970. With
        `on_bad_value: null` a bad value becomes NULL, and its row is loaded.
        """,
        (
            "A bad value inside a nested value makes the whole value bad. Spaces around numbers and times are ignored.",
            "A number in text has a decimal point and no groups of digits, unless `decimal` and `grouping` declare "
            "other separators. A text that does not follow them is bad: with a grouping point 1.5 is not 15. "
            "`true_values` and `false_values` declare the texts of a boolean; others are then bad.",
            "A text or a decimal is read into `double` or `float` as the nearest number, if it has no more significant "
            "digits than the type can distinguish (17 or 9).",
            "In JSON, a number with a fraction or an exponent is a floating-point number. Into a whole number it is "
            "cast by its value, so that 1.0 is 1.",
            "A nested value is read into text as JSON that has all of it. Half of a surrogate pair in JSON, as in "
            '`"\\ud800"`, is not a character, and a bad value.',
            "Bad rows are stored in the change log. Those of a superseded revision are superseded too.",
            "In a feed, a bad row has no effect.",
            "A row for which an expression of the declaration fails is a bad row; the reason names the column.",
            "A row that the channel's condition `rows` excludes has no effect at all: it is counted as filtered, and "
            "is neither a bad row nor present in a snapshot.",
            "A line of a CSV file with fewer or more fields than the header, with a quote that is not doubled, or with "
            "bytes that are not UTF-8, is a bad row, and so is a line of a JSON file that is not an object or has "
            "text after it. Its fields may be in other columns, so its key cannot be read.",
            "A line of a CSV file ends with CR, LF or CRLF. A quoted field may span lines; its line breaks are part of "
            "the value. If one is not closed, the end of the row is unknown: the delivery is rejected, and the error "
            "names file and line.",
            "Blank lines, of spaces and tabs alone, are skipped, and so are the lines that `skip_lines` and "
            "`skip_footer` declare. Every other line is a row or a bad row.",
            "In every format, text or binary data that is not UTF-8 makes a bad row.",
        ),
    ),
    "S27": Rule(
        "The retire guard",
        """
        The retire guard counts the entities in the snapshot's scope whose existence the source had asserted, as of the
        snapshot's time. A snapshot that would retire more than the declared share of them (`retire_guard`) is rejected
        before anything is written, and the error says how to override the guard. The batch then records that a load has
        overridden it. A declared share applies to any
        number of entities, or from `at_least` entities on if that is declared too. The default is a quarter, from 20
        entities on. A run of many batches processes them in order of position, skips a rejected batch, loads the
        others, and reports the rejected one. A snapshot with a row whose key cannot be read retires no entities,
        unless declared otherwise (`unreadable_keys: retire`). The load, the status and the checks report that the
        deletes of the source are off, since when, and why.
        """,
        (
            "Deletes are off if the last snapshot of the existence source, or of a value of its scope, retires no "
            "entities; they are on again after the next one that does.",
            "Quarantined rows count as present, and flagged rows as omitted. The guard does not apply to deletes of a "
            "feed.",
            "If the scope of a snapshot is an attribute, an entity belongs to the scope of the values that the source "
            "has provided last before the snapshot's position, also while it is deleted. A snapshot that omits an "
            "entity of another scope asserts nothing about it; an entity without a value belongs to no scope. So an "
            "entity that moves is not deleted if the file of its new scope comes first. If that of its old scope comes "
            "first, it is deleted, and returns with the other file; at one time, no gap is between the two. Late and "
            "withdrawn batches change the scope to which an entity belonged, and so what later snapshots assert.",
            "A row of a snapshot without a value of an attribute of its scope is a bad row.",
            "The scope of a snapshot is passed with the delivery; otherwise it is the set of distinct values in its "
            "rows, including quarantined rows whose key can be read, unless it is an attribute. A snapshot "
            "without rows and without a passed scope covers no entity.",
        ),
    ),
    "S28": Rule(
        "Invalid declarations",
        """
        A declaration is validated when it is loaded. All errors are reported at once, each with file, line, field and
        fix.
        """,
    ),
    "S29": Rule(
        "Start of history",
        """
        The first version of an entity starts at its first change. With `begin` declared, it starts at the fixed time
        `at` instead if the first change is not later than `for_first_changes_until`, so that older facts have a
        version. A change before the fixed time, or not before the open end, is a bad row.

        With `begin: {column: <attribute>}` it starts at the value of that attribute, a time or a date, if this is
        before its first change. The value is the one that is known at the first change: that of the change itself, or
        one that a source has provided before.
        """,
        (
            "`begin` moves the start of the first version only. `last_updated` still has the time of the change.",
            "A value that is provided after the first change moves no start, so that surrogate keys stay as they are. "
            "NULL has no effect, nor has a value at or after the first change. If a late change becomes the first one, "
            "the value that is known at its time is used.",
            "The open end can be declared; the default is 9999-12-31 23:59:59.",
            "A snapshot at or after the open end is rejected, as it would delete entities at that time. So is a "
            "snapshot whose rows have times if its own time is before the fixed one.",
        ),
    ),
    "S30": Rule(
        "Sources",
        """
        A source may deliver snapshots, a change feed, or both. Each attribute has one source. Exactly one source
        decides whether an entity exists: with several sources, one declares `existence: true`. Absence from the others
        asserts nothing. A feed may provide only some attributes (`updates: partial`), and may declare that NULL means
        "not provided" (`nulls: not_provided`).

        New, NULL and absent are three states. In JSON and in a list of dicts each row has its own fields, whatever
        other rows of the delivery have, so that history does not depend on how rows are batched. A field that a row
        lacks is treated as a column that a delivery lacks (S20): in a feed with `updates: partial`, and with
        `missing: not_provided`, the row does not provide the attribute; with `missing: null` it provides NULL;
        otherwise it is a bad row. An explicit null is the value NULL, unless the feed declares that it means
        "not provided". Placeholders of either can be declared (`not_provided_values`, `null_values`). Formats with
        columns provide each of their columns in each row.
        """,
        (
            "A delete by a source that does not decide existence does not change the dimension.",
            "An attribute with an expression is absent from a row that lacks a field which the expression names. If "
            "the expression is a path, as `data.city` or `data['city']`, a JSON object may lack a field, and a map a "
            "key. A path into an array has a value for each of its objects.",
            "Of the source columns that an attribute lists, the first one that a row has is read.",
            "A row that deletes needs no attributes.",
        ),
    ),
    "S31": Rule(
        "Erasure",
        """
        On request, the values of an entity would disappear from every query and, after the retention time, from the
        files. One part is built: the reasons in the quarantine, and plans, omit the values of attributes declared
        `personal`. Errors, logs, the data that Dagster stores and the statistics in Delta's transaction logs contain no
        value of a personal attribute. A key cannot be personal.
        """,
        built=False,
    ),
    "S32": Rule(
        "Platform capabilities",
        """
        A probe on a scratch table determines once how the Delta of a server can write, and the result is stored in the
        warehouse. If Delta cannot replace rows by their key (`replaceUsing`), a MERGE has the same effect. If neither
        works, the run fails before it writes.
        """,
        (
            "Before a session first uses `replaceUsing`, the stored result is compared with the versions of Spark and "
            "Delta that one of the session's commits names. If they differ, the probe is repeated.",
        ),
    ),
    "S38": Rule(
        "Landing tables",
        """
        A landing table has the rows that its deliveries leave, without history. With `disposition: append` it has the
        rows of every accepted delivery, each once, also equal ones. With `replace` it has the rows of the last delivery
        by position. With `merge` the rows of a delivery replace stored ones by their keys:

        - With `strategy: delete_insert`, the default, the rows of a delivery are reduced to one for each primary key,
          and replace the stored rows whose primary key or merge key occurs in the delivery.
        - With `upsert`, a row replaces the stored row with its primary key; any other row is added. A delivery with
          different rows of one key is rejected.

        `dedup_sort` names a column and `desc` or `asc`: the first row of a key in that order remains, and of rows with
        equal values the first in the file, if the rows have a fixed order. NULL is last. If nothing orders different
        rows of a key, the delivery is rejected with the keys; identical rows are one row. `hard_delete` names a column:
        if it is boolean, true deletes; otherwise any value deletes that is not NULL. A delete finds the row of its
        primary key, and its merge key has no effect; without a primary key it finds all rows of its merge key.

        The rows do not depend on the order of arrival: late, repeated, revised and withdrawn deliveries lead to the
        rows that the deliveries in order of position would have left. A load changes the table in one commit.
        """,
        (
            "A merge without a primary key or a merge key is rejected, as is an upsert with a merge key. "
            "`strategy: scd2` is a dimension: the error has its declaration.",
            "The retire guard (S27) counts the primary keys that a delivery with a merge key removes. Without a "
            "primary key it counts by how much the number of rows decreases: a row with a new value is another row. It "
            "does not apply if rows delete by their merge key, unless the source declares `retire_guard`.",
            "Without a primary key, a row is identified by its values and its number among equal rows of its delivery. "
            "A bad row is quarantined and leaves no stored row in place.",
            "The value of `hard_delete` is read as `columns` of the source declares it, for example NULL for a text of "
            "`null_values`.",
            "A dimension that reads a landing table which removes rows has a business key of its columns, without "
            "expressions.",
            "Of the rows that `dedup_sort` excludes, the result of the load has the number.",
            "A column that a delivery lacks rejects it, unless `missing: null` is declared; a row that deletes needs "
            "no other columns in JSON. With `columns: mirror` the column is NULL in the rows of that delivery.",
        ),
    ),
    "S40": Rule(
        "Child tables",
        """
        With `child_tables`, an attribute that is an array of structs is also published as a table of its own,
        `<dimension>__<attribute>`: one row for each element of the array in each version, with the surrogate key of the
        version, the key of its parent row, and its position. An array of structs in the elements can have a table too.
        No query and no view of this package returns a version without its elements, or elements without their version.
        Deletes and new versions reach all levels. A change of a nested value alone is a change of the attribute.
        """,
        (
            "The attribute keeps the array. An array that is NULL or empty has no rows. The fields of an element that "
            "is NULL are NULL.",
            "The key of a row is the key of its parent row and its position, so the same deliveries in any order give "
            "the same keys (S14).",
            "A child table has no windows: views join them by the surrogate key. To close a version, or to move it to "
            "the history table or the archive (S11, S42), changes no child table.",
            "A load changes the rows of those versions alone that it opens, overwrites or removes. It commits to the "
            "child tables first; the commit of the dimension's table records their commits, and readers read these. A "
            "commit that is not recorded is rolled back by the next writer.",
            "A child table that is declared later, was dropped, or has other columns is rebuilt by the next load from "
            "the stored versions.",
        ),
    ),
    "S41": Rule(
        "Facts by scope",
        """
        A source of a fact may deliver snapshots of a scope: a day, a partition, any column of the grain or a declared
        column. The delivery replaces the facts of its scope in one commit, and touches no file that has none of them;
        without a scope it replaces all facts. A row outside of the scope that a delivery names is a bad row. A scope
        that is named and has no rows is emptied only if the source declares it (`empty_scope: delete`), otherwise the
        delivery is rejected. The retire guard applies (S27).
        """,
        (
            "Snapshots and a feed of one source can be combined, as for dimensions: the feed adds and replaces facts, "
            "and a snapshot also removes those that it omits.",
            "The facts do not depend on the order of arrival of snapshots, increments, revisions and withdrawals "
            "(S14): an older snapshot of a day changes nothing that a later one of this day covers.",
            "A delivery that does not name its scope covers the values that its rows have. A fact that moves to "
            "another day belongs to the day of its last row before a snapshot.",
            "A snapshot without a scope and without rows is rejected in the same way. Rows that are unchanged are not "
            "written.",
            "A delivery of any table may declare control totals: the number of its rows, and exact sums of columns. A "
            "difference rejects it before anything is written.",
        ),
    ),
    "S42": Rule(
        "Archive",
        """
        With `archive_after_years`, closed versions that ended before a given time can be moved to
        `<dimension>_archive`. Each version is in exactly one of the two tables for every query and view of this
        package, at any moment: while versions are moved, and after a run that was killed. The audit, the facts and the
        surrogate keys do not change. A load that changes an archived version moves it back in the commit that changes
        it.
        """,
        (
            "A version that ended exactly at the given time is not moved. Current versions and reserved members never "
            "are.",
            "The commit of the dimension's table records who moved versions, why, and up to which time. A run without "
            "versions to move writes nothing.",
            "An archive can be declared for a new table and for an existing one. The option cannot be removed as long "
            "as the tables exist, and a dimension with a history table (S11) cannot have it.",
            "A value that every version has, as one of type 1, moves the archived versions of its entity back when it "
            "changes. The next archive run moves them again.",
            "If the dimension's table is dropped, a load rebuilds all versions in it, and empties the archive.",
        ),
    ),
}
