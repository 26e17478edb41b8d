"""The rules of the semantics, from which docs/semantics.md is generated.

`decided` has decisions on details. A rule that is not built has no tests.
"""

from __future__ import annotations

from dataclasses import dataclass

INTRODUCTION = """
# Rules

The rules that the tables follow. Tests, docstrings and error messages cite their numbers. Each rule lists the tests
that verify it; most of them are text tables of deliveries and of the rows that result, which are compared with a naive
[oracle](../scd_pipeline_tests/oracle.py) in plain Python and with the engine on Spark. The terms are in the
[glossary](reference/glossary.md), the options in [Declaration](reference/declaration.md).

This page is generated from `scd_pipeline_tests/semantics` by `make docs`; a test fails when it is stale.

In the tables an empty cell is NULL, `OPEN` is the open end 9999-12-31 23:59:59, and all times are UTC. Deliveries
arrive in the order of their lines.
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
    "Arrival": ("S14", "S15", "S16", "S17", "S18", "S19", "S20", "S34", "S35"),
    "Audit": ("S21", "S22"),
    "Facts": ("S23", "S24", "S25"),
    "Bad input": ("S26", "S27", "S28"),
    "Start of history, sources, erasure and platform": ("S29", "S30", "S31", "S32"),
}

RULES: dict[str, Rule] = {
    "S1": Rule(
        "Time is UTC",
        """
        All times are UTC with microsecond precision, whatever the time zone of the session, the machine or the file.
        A text or a column without a zone is read in the zone that its source declares, by default UTC.
        """,
        (
            "A session whose time zone is not UTC is rejected when the warehouse is opened.",
            "When the clocks go forward, a time in the gap is read an hour later. When they go back, a time that "
            "occurs twice is the first of the two, unless it has an offset.",
            "A `timestamp_ntz` attribute is not an instant: it keeps what the source wrote. A date that is read as a "
            "time is its midnight in the source's zone.",
            "A time of day without a date is not a time. A date in a file's name is its midnight in UTC, whatever "
            "the zone of the source's columns is.",
        ),
    ),
    "S2": Rule(
        "Half-open windows",
        """
        A version is in force from `effective_from` on, up to but not at `effective_to`. The windows of one entity do
        not overlap and are never empty. A gap between two of them means that the entity did not exist then.
        """,
    ),
    "S3": Rule(
        "One current version at most",
        """
        The version whose window has no end is current, and its `effective_to` is the open end. A deleted entity has
        no current version.
        """,
        (
            "Current is not the same as in force: a change that is dated in the future is current at once, as the "
            "clock is not used. A query as of a time returns the versions in force then.",
        ),
    ),
    "S4": Rule(
        "Business time",
        """
        A change is true from the time in its row, if the channel declares such a column (`effective_at`), otherwise
        from the time of its delivery. A delivery that has neither is rejected. The clock is never used.

        A snapshot whose rows have times of their own asserts values at those times, and at its own time which
        entities are present and which are absent. An entity that is present but would be deleted by then returns at
        that time, with the values of its row. An absence deletes only an entity whose existence its source had
        asserted before: by a snapshot with an earlier time of its own, or by a feed's change record with an earlier
        `effective_at`. So a row that its source committed late, dated before an earlier snapshot, is one version from
        its own time on.
        """,
        (
            "If such a snapshot has several rows of an entity that returns, the row with the highest position counts.",
            "A snapshot with row times asserts nothing at its own time about an entity that exists anyway.",
            "Existence is asserted until the source asserts otherwise, by an absence or by a feed's delete: a late row "
            "of an entity that was deleted and returns has no gap either. A quarantined row asserts no existence, and "
            "a feed's delete needs no assertion before it.",
            "If rows have times, a row without one is a bad row; the delivery's time does not replace it.",
        ),
    ),
    "S5": Rule(
        "The order of changes",
        """
        All changes of an entity in one batch become history, in order of position: time, then the declared sequence
        (NULL first), then the delivery's name and its channel. At equal time the last change wins for each attribute
        that it provides; a value that was true for no time has no version. If two rows give one attribute different
        values and nothing orders them, the whole batch is rejected and the error names the keys, unless the channel
        declares otherwise (`ties`). Rows that agree are one change record.
        """,
        (
            "Names of deliveries, and revisions, are compared as dates if they are dates, as numbers if they are "
            "whole numbers, otherwise as text. Dates sort before numbers, and numbers before text. `1` and `01` are "
            "two names, and `1` is first.",
            "If a snapshot and a feed of one source have the same name and time, the feed is first, whatever their "
            "revisions. Only one revision of a delivery is current, so revisions order nothing.",
            "NULL and a value are different values. A delete and an upsert also contradict each other.",
            "`ties: delete_wins`: a delete wins over the other rows of its position, which have no effect. Without a "
            "delete among them, different values are still rejected.",
            "`ties: last_row`: the last row of the file wins, for each attribute that it provides; for the others the "
            "last row that provides them. If it is a delete, the others have no effect; if it is not, deletes of "
            "its position have none. The order of such rows is then part of what a batch contains.",
            "`last_row` needs rows whose order is the same at each read: those of a file, or of a pandas or Arrow "
            "frame. A table is rejected by the declaration; a folder of files or a Spark frame is rejected when it is "
            "delivered.",
        ),
    ),
    "S6": Rule(
        "Type 0: the first value is kept",
        """
        Every version has the first value in business time that is not NULL. A later different value changes nothing,
        and is audited as refused, once.
        """,
        (
            "A late delivery with an earlier business time replaces the first value.",
            "If several values have the first time, the last by position is the first value.",
        ),
    ),
    "S7": Rule(
        "Type 1: the latest value",
        """
        Every version has the latest value, also the closed versions. A change opens no version.
        """,
        (
            "A value that is asserted while the entity does not exist is used as well.",
            "`change_reason`, `change_source` and `load_run_id` are those of the change that opened the version. "
            "`last_updated` is the later of the version's start and the last change of a value that every version has "
            "(types 0, 1 and 3, and the current values of type 6).",
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
        time since which the latest value holds. A change opens no version.
        """,
        (
            "The values are ordered by business time, NULL included, from the first that is provided; an equal value "
            "is not a change. If the attribute was never provided, all three are NULL.",
        ),
    ),
    "S10": Rule(
        "Type 6: the historical and the latest value",
        """
        As type 2. In addition, every version has the latest value in `current_<name>` and, with `previous: true`, the
        value of the preceding version in `previous_<name>`.
        """,
        ("The preceding version is the one with the preceding number, whatever opened it, also across a gap.",),
    ),
    "S11": Rule(
        "Type 4: a table layout",
        """
        Type 4 is a table layout, not an attribute type: one table has the current rows, another the closed versions.
        Together they hold what one type 2 table would hold. Kimball's type 4, a mini-dimension, is something else.
        """,
        built=False,
    ),
    "S12": Rule(
        "Type 7: a query",
        """
        A base table is read together with a log of timed updates and deletes, which are applied up to a chosen time.
        Kimball's type 7, dual type 1 and type 2 keys, is something else.
        """,
        built=False,
    ),
    "S13": Rule(
        "Unchanged values",
        """
        Receiving an unchanged value opens no version, changes no row of the dimension and creates no commit of it.
        """,
        (
            "The change log stores of a snapshot only what differs from what its source had asserted before; the rest "
            "follows from that. It stores every change record of a feed.",
        ),
    ),
    "S33": Rule(
        "Tables without windows",
        """
        A dimension whose attributes are all of types 0, 1 and 3 has one row for each entity that ever existed, and no
        window columns. Its one version begins at 0001-01-01, so that surrogate keys work as in other tables. The row of
        a deleted entity stays; one option adds the time in `deleted_at`, another removes the row.
        """,
        (
            "The row names the delivery that first made the entity exist, also after a return.",
            "`deleted_at` is the time of the last delete, and NULL if the entity has returned.",
        ),
    ),
    "S14": Rule(
        "Convergence",
        """
        The rows depend on the declaration and on the set of accepted batches, not on when, in which order, how often
        or in how many runs these arrived. This includes the surrogate keys, which are hashes of business key and
        `effective_from`. Every column comes from the batches, none from the clock. If two versions get the same key, or
        a version gets a reserved one such as -1, the run stops before it writes and names them; a `key_salt` in the
        declaration resolves the collision.
        """,
        (
            "`load_run_id` names the delivery, as `crm/feed/2024-01-31`, without its revision: an equal revision "
            "changes no row.",
            "A version names the batch, the source and the reason of the last change record at its start that made a "
            "difference; several sources are ordered by position, then by name.",
            "The reason is that of the row, otherwise that of its delivery, otherwise `source_load`.",
        ),
    ),
    "S15": Rule(
        "No change, no commit",
        """
        A load that changes no row of the dimension leaves its table version unchanged. The change log gets a commit
        nevertheless.
        """,
    ),
    "S16": Rule(
        "One commit for each run",
        """
        A run applies its batches to the dimension in one commit, whether it is one batch or a backfill of many. So
        every version of the Delta table satisfies S2 and S3, no matter who reads it and when.
        """,
    ),
    "S17": Rule(
        "Killed runs",
        """
        If a run is killed at any moment, the next run applies what the log has and the dimension lacks. The tables are
        then as if the run had not been killed, whether the next run delivers the same, something else, or nothing.
        """,
        (
            "Each commit of a table records up to which commit it has applied the tables that it is derived from, and "
            "which tables those were. If one of them has lost those commits, or was replaced, the load is rejected "
            "before anything is written, and the error names the fix ([Repair](how-to/repair-tables.md)).",
            "A load is also rejected if another program changed the rows of a table: no commit is made on top of it.",
            "A key list that was lost is rebuilt from the audit, in one commit.",
        ),
    ),
    "S18": Rule(
        "Delete and return",
        """
        A delete closes the current version at the time of the delete; no row of a table with windows is removed. An
        entity that returns gets a new version after a gap, and `version` continues to count. What a source has asserted
        about an entity holds until that source asserts otherwise, also across a delete and before the entity exists.
        """,
        ("A delete provides no values, even if its row contains some.",),
    ),
    "S19": Rule(
        "Late snapshots",
        """
        A late-arriving snapshot takes effect between its neighbours: what it asserts holds from its time to the next
        snapshot, and what later snapshots asserted still holds.
        """,
        (
            "The next snapshot asserts all attributes for which it had a column, also those of which the log stored "
            "nothing because they were unchanged.",
        ),
    ),
    "S20": Rule(
        "Source columns",
        """
        - A new attribute is added to the table when the declaration names it; earlier versions have NULL in it.
        - An attribute that is renamed, with the old name in `former_names`, keeps its history under the new name.
        - A retired attribute is no longer read: it keeps its values and opens no versions.
        - If a delivery lacks the column of an attribute, or one that its expression names, the batch is rejected,
          unless the attribute declares otherwise. With `missing: not_provided` the delivery asserts nothing about the
          attribute, so that its value still holds; with `missing: null` it asserts NULL.
        - A column of the key or of the channel may never be missing.
        - An attribute may name several source columns, as names differ between deliveries: the first that a delivery
          has is read.
        - Undeclared columns are reported with the result, and never read. Columns that the pipeline derives, such as
          the surrogate keys of a fact, are never read either, even if a delivery has columns with these names.
        """,
        (
            "A feed that `updates: partial` may lack any attribute; it is then not provided.",
            "The first NULL of an attribute that was not provided before is not counted as a change.",
            "A declaration that no longer names an attribute of the table is rejected: retire the attribute, or name "
            "it in the `former_names` of its successor.",
            "The table stores the names that an attribute had: a former name may be removed from the declaration once "
            "a load has renamed the column, and is never used for another attribute.",
        ),
    ),
    "S34": Rule(
        "Revisions, retries and withdrawals",
        """
        A delivery has revisions, by a token of its source. The highest one is current and replaces the others
        completely; these stay in the log as superseded. The same revision with the same content is a retry, which has
        no effect; with other content it is rejected. A withdrawal is a revision that asserts nothing: the tables become
        what they would be if the delivery had never arrived. A higher revision restores it.
        """,
        (
            "Content is the number of rows and a hash of them that does not depend on their order; a delivery's time "
            "and scope belong to it.",
            "A lower revision that arrives late is superseded at once, also if the higher one is a withdrawal. If it "
            "was not loaded before and has other content, the result reports it.",
            "The revision of a file, or of a partition of a table, is the time of its last change. Its content "
            "decides: the same content is a retry, whatever its time, also if the delivery was withdrawn; other "
            "content is a higher revision, even if a clock that is behind gives it a lower time. A file that is older "
            "than the withdrawal of its delivery is not read.",
            "The same content under a higher revision is recorded in the log, and changes no row of the dimension.",
            "A revision that is rejected is not accepted: the one below it stays current.",
        ),
        missing="Corrections by a steward, which override the sources, are not built yet.",
    ),
    "S35": Rule(
        "Changed declarations",
        """
        A changed type, key or layout would be shown as a plan, and applied retroactively from the log in one commit.
        New, renamed, retired and missing attributes are built (S20), and so is a `key_salt` for a new table (S14). Any
        other difference between the declaration and the table is rejected before anything is read.
        """,
        built=False,
    ),
    "S21": Rule(
        "The audit",
        """
        `<dimension>_audit` has a row for each transition of an entity's history: INSERT, UPDATE, OVERWRITE,
        LOGICAL_DELETE and REFUSED, each exactly once. A row has the old and new surrogate key, the changed columns,
        their old and new values as lossless text, the time, the actor, the reason, the delivery and the correlation id.
        It also has the time at which it was recorded, which is that of the commit that made the change readable, and
        the version of the dimension's table. If later batches invalidate or move a transition, one WITHDRAWN row names
        it, and what is true instead gets its own row. Any order of the batches leads to the same transitions that are
        not withdrawn.
        """,
        (
            "A delivery is named without its revision, as in `load_run_id`: an equal revision changes nothing (S34).",
            "A value that is asserted while the entity does not exist is an OVERWRITE if every version has it; the "
            "first INSERT contains everything that was asserted before.",
            "NULL is refused like any other value if a type 0 attribute has a value.",
            "`old_values` and `new_values` contain an attribute that was provided as NULL, but not one that was not "
            "provided.",
        ),
        missing="The change types of repair, redeclaration and erasure come with S31 and S35.",
    ),
    "S22": Rule(
        "The past from the audit",
        """
        The audit is append-only; Delta rejects changes and deletes of its rows. From the audit alone the dimension can
        be rebuilt as it was known at any past moment: the rows recorded up to then, minus those withdrawn up to then.
        """,
    ),
    "S23": Rule(
        "Facts find their version",
        """
        A fact stores the surrogate key of the version whose window contains its event time, or -1 if there is none: its
        business key is NULL or unknown, or the entity did not exist then. Each dimension that a fact references has a
        row for -1, the unknown member (`version` 0, not current, in force at no time, attributes NULL), so that an
        inner join loses nothing; it is exempt from S2 and S3 and excluded from all counts. A row with a NULL event time
        is a bad row. The grain is the key of the fact: an identical row is dropped, other values at a later position
        replace the row, and a revision replaces the rows of its delivery.
        """,
        (
            "The position of a fact's row is that of its delivery: time, sequence, name and channel. The event time is "
            "a value like any other, so that it can be corrected.",
        ),
    ),
    "S24": Rule(
        "Facts are re-keyed",
        """
        When a late change moves a window, the facts inside it are re-keyed: after any run of the fact, each stored key
        equals the result of a fresh as-of join, for all its dimensions, in one commit, which records the versions that
        it used. Until then `<dimension>_keys`, the list of every key ever assigned, resolves an old key.
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
        Such a row has NULL in the business key, a value that does not cast (also deep inside another value), a time
        that is missing or out of bounds, or a key outside the snapshot's scope. If its key can be read, the row counts
        as present and asserts nothing: its entity stays as it is. If more than the declared share of a batch is bad
        (`bad_row_limit`, by default 5 %), the batch is rejected before anything is written; the rule can be overridden.
        Fixed rows are delivered in a higher revision, at the position of their delivery.

        A value casts only if its type can hold all of it, whatever type it is delivered in: a fraction is not a whole
        number, 1.005 is not a `decimal(10,2)`, a time of day and `2024-01-01 junk` are not dates, a number is not a
        time, and bytes that are not UTF-8 are not text; dates and times are of the years 1 to 9999. The declaration
        says what may be lost or assumed: `round: true`, and the `unit` of a number that counts time since 1970. An
        attribute with `on_bad_value: null` becomes NULL instead of a bad value, and its row is loaded.
        """,
        (
            "A bad value inside another one makes all of it bad. Spaces around numbers and times are ignored.",
            "A text or a decimal is read into `double` or `float` as the nearest number, if it has no more digits than "
            "the type can tell apart (17 or 9).",
            "Bad rows are rows of the change log, and those of a superseded revision are superseded with it.",
            "In a feed a bad row has no effect at all.",
            "A line of a CSV file with fewer or more fields than the header, with a quote that is not doubled, or with "
            "bytes that are not UTF-8, is a bad row, and so is a line of a JSON file that is not an object or has "
            "text after it. Its fields may be in other columns, so its key counts as one that cannot be read.",
            "A quoted field of a CSV file may span lines. If one is not closed, the rows after it are uncertain: "
            "the delivery is rejected, and the error names file and line.",
            "Text or binary data of any format that is not UTF-8 does not become text; it makes a bad row.",
        ),
    ),
    "S27": Rule(
        "The retire guard",
        """
        The retire guard considers the entities in the snapshot's scope that its source had asserted to exist at the
        snapshot's time. A snapshot that would retire more than the declared share of them (`retire_guard`) is rejected
        before anything is written, and the error says how to override the guard. A declared share applies at any
        size, or from `at_least` entities on if that is declared too. The default is a quarter, and applies if 20 or
        more exist. A rejected batch is not accepted: a run of many proceeds by position, skips the rejected batch,
        loads the others, and names it. A snapshot with a row whose key cannot be read retires no
        entities, unless declared otherwise.
        """,
        (
            "Rows in quarantine count as present. Deletes of a feed are not guarded.",
            "A snapshot's scope is the one that it is delivered with, otherwise the distinct values in its rows, "
            "including quarantined rows whose key can be read. A snapshot without rows whose scope is that of its "
            "rows covers no entity.",
        ),
    ),
    "S28": Rule(
        "Invalid declarations",
        """
        A declaration is validated when it is loaded. All errors are reported at once, each with file, line and field,
        and with what would be valid.
        """,
    ),
    "S29": Rule(
        "Start of history",
        """
        The first version begins at the first change. With `begin` declared, an entity whose first change is at or
        before the limit begins at the fixed time instead, so that older facts find it. A change before the fixed
        time, or at the open end or after it, is a bad row.
        """,
        (
            "Only the first version begins earlier, and `last_updated` still has the time of the change.",
            "The open end can be declared; the default is 9999-12-31 23:59:59.",
            "A snapshot at or after the open end is rejected, as it would delete entities at that time.",
        ),
    ),
    "S30": Rule(
        "Sources",
        """
        A source may deliver snapshots, a change feed, or both. Each attribute has one source. Exactly one source
        decides whether an entity exists, which is declared if there are several; absence from the others asserts
        nothing. A feed may provide only some attributes, and the source declares whether NULL in the feed is a value or
        "not provided".
        """,
        ("A delete by a source that does not decide existence does not change the dimension.",),
    ),
    "S31": Rule(
        "Erasure",
        """
        On request, the values of an entity would disappear from every query and, after the retention time, from the
        files. Only one part is built: values of attributes declared `personal` are left out of the reasons of the
        quarantine and of plans; errors, logs and what Dagster stores contain no value of a row; and a key cannot be
        personal.
        """,
        built=False,
    ),
    "S32": Rule(
        "Platform capabilities",
        """
        What the Delta of a server supports is probed once on a scratch table, and stored with the warehouse. If rows
        cannot be replaced by their key, a MERGE does the same. If neither works, the run is rejected before it writes.
        """,
        (
            "Before a session first replaces rows by their key, the stored result is compared with the Spark and the "
            "Delta that one of its pipeline commits names. If it is of another Delta, this one is probed.",
        ),
    ),
}
