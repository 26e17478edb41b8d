"""The rules of the semantics in the project's own words: what docs/semantics.md is made of.

`decided` says what holds where a rule alone would leave room. A rule that is not built has no tests.
"""

from __future__ import annotations

from dataclasses import dataclass

INTRODUCTION = """
# Semantics

What the tables mean, rule by rule. The numbers are cited by tests, docstrings and error messages. Under each rule
stand the tests that show it: text tables of what is delivered and of what comes of it, each held against a naive
[oracle](../scd_pipeline_tests/oracle.py) in plain Python and against the engine on Spark. Words are explained in the
[glossary](reference/glossary.md), declarations in [declaration.md](reference/declaration.md).

This page is generated from `scd_pipeline_tests/semantics` by `make docs`; a test fails when it is stale.

In the tables an empty cell is NULL, `OPEN` is the open end 9999-12-31 23:59:59, and all times are UTC. Deliveries
arrive in the order of their lines.
"""


@dataclass(frozen=True)
class Rule:
    """A rule: its heading, what it says, what was decided where it leaves room, and what of it is missing."""

    title: str
    text: str
    decided: tuple[str, ...] = ()
    missing: str = ""
    built: bool = True


SECTIONS: dict[str, tuple[str, ...]] = {
    "Time": ("S1", "S2", "S3", "S4", "S5"),
    "How an attribute remembers": ("S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S33"),
    "Arrival": ("S14", "S15", "S16", "S17", "S18", "S19", "S20", "S34", "S35"),
    "Audit": ("S21", "S22"),
    "Facts": ("S23", "S24", "S25"),
    "Bad input": ("S26", "S27", "S28"),
    "Where a history begins, who states what, what may be erased, and the ground": ("S29", "S30", "S31", "S32"),
}

RULES: dict[str, Rule] = {
    "S1": Rule(
        "Time is UTC",
        """
        Every time is an instant in UTC, to the microsecond. Neither the zone of the session nor that of the machine
        or of the process has a say. A text or a column without a zone is read in the zone that its source declares;
        if it declares none, in UTC.
        """,
        (
            "A session whose time zone is not UTC is refused when the warehouse is opened.",
            "Where the clocks go forward, a time in the gap is read an hour later; where they go back, a time that "
            "comes twice is the first of the two. With an offset beside it, it is what the offset says.",
            "A `timestamp_ntz` attribute is no instant: it stays what the source wrote. A date as a time is the "
            "midnight at which it begins in the source's zone.",
            "A time of day without a date is no time. A date in a file's name is the midnight at which it begins in "
            "UTC, whatever zone the source's columns are in.",
        ),
    ),
    "S2": Rule(
        "Half-open windows",
        """
        A version is in force from `effective_from` on, up to but not at `effective_to`. The windows of one entity do
        not overlap and are never empty. Between two of them there may be a gap: the entity did not exist then.
        """,
    ),
    "S3": Rule(
        "One current version at most",
        """
        The version without an end is the current one, and `effective_to` holds the open end there. A deleted entity
        has no current version.
        """,
        (
            "Current is not the same as in force: a change dated in the future is current at once, as nothing asks "
            "the clock. Reading `as_of` a time gives what is in force then.",
        ),
    ),
    "S4": Rule(
        "Whose time it is",
        """
        A change is true from the time that its row gives, where the channel declares such a column (`effective_at`);
        else from the time of its delivery. A delivery that has neither is refused. The wall clock is never asked.

        A snapshot whose rows have times of their own asserts values at those times, and at its own time which
        entities are present and which are absent. An entity that is present but would be deleted by then returns at
        that time, with the values of its row. An absence deletes only an entity whose existence its source had
        asserted before: by a snapshot with an earlier time of its own, or by a feed's change record with an earlier
        `effective_at`. So a row that its source committed late, dated before an earlier snapshot, is one version from
        its own time on.
        """,
        (
            "If such a snapshot has several rows of an entity that returns, the row with the highest position counts.",
            "Of an entity that exists anyway, a snapshot with row times states nothing at its own time.",
            "Existence is asserted until the source asserts otherwise, by an absence or by a feed's delete: a late row "
            "of an entity that was deleted and returns has no gap either. A quarantined row asserts no existence, and "
            "a feed's delete needs no assertion before it.",
            "Where rows should have times, one without is a bad row; the delivery's time does not stand in.",
        ),
    ),
    "S5": Rule(
        "The order of changes",
        """
        All changes in one batch become history, in the order of their positions: time, then the declared sequence
        (none comes first), then the delivery's name and its channel. Of several at one time the last one wins,
        attribute by attribute as far as they state them, and what held for no time is not seen. When nothing orders
        two rows that give one attribute different values, the whole batch is rejected and the keys are named, unless
        the channel declares what decides (`ties`). Rows that agree are one change record.
        """,
        (
            "Names of deliveries, and revisions, are compared as dates where they are dates, as numbers where they "
            "are whole numbers, else as text; dates come before numbers and these before text; `1` and `01` are two "
            "names, the plain one first.",
            "A snapshot and a feed of one source with the same name and time: the feed comes first, whatever their "
            "revisions. Of a delivery one revision counts, so that no revision orders anything.",
            "NULL and a value are different values. A delete and a row that is none contradict each other too.",
            "`ties: delete_wins`: of the rows of one position a delete decides, and the others have no effect. Without "
            "a delete among them, different values are still rejected.",
            "`ties: last_row`: the last row of the file decides, for each attribute that it provides; for the others "
            "the last row that provides them. If it is a delete, the others have no effect; if it is not, deletes of "
            "its position have none. The order of such rows is then part of what a batch contains.",
            "`last_row` needs rows whose order is the same at each read: those of a file, or of a pandas or Arrow "
            "frame. A table is rejected by the declaration; a folder of files or a Spark frame is rejected when it is "
            "delivered.",
        ),
    ),
    "S6": Rule(
        "Type 0: the first value stays",
        """
        The first value in business time that is not NULL stands in every version, for ever. Later values change
        nothing.
        """,
        (
            "First means first in business time: a late delivery that was true earlier takes the place.",
            "Of several values at the first time, the last by position is the first value.",
        ),
    ),
    "S7": Rule(
        "Type 1: the latest value",
        """
        The latest value stands in every version, the closed ones included. It opens no version.
        """,
        (
            "What is stated of an entity while it is gone, or before it exists, counts too.",
            "`change_reason`, `change_source` and `load_run_id` stay those of the version's opening. `last_updated` "
            "is the later of the version's opening and the time since when all values hold that stand in every "
            "version (types 0, 1 and 3, and the current ones of type 6).",
        ),
    ),
    "S8": Rule(
        "Type 2: a different value opens a version",
        """
        Two values are the same if both are NULL or both are equal, column by column: NULL is not the empty text, and
        no column runs over into the next one. NaN is NaN, 0.0 is -0.0, decimals are compared by value, text by its
        bytes under any collation, arrays and structs by their content, maps by their entries in any order and at any
        depth. VARIANT, geospatial types and intervals have no such equality: a declaration with one is refused.
        """,
        ("A type 2 attribute that was never stated counts as NULL.",),
    ),
    "S9": Rule(
        "Type 3: the latest value and the one before",
        """
        Every version shows the latest value, in `previous_<name>` the value before it and in `<name>_changed_at`
        since when the latest one holds. It opens no version.
        """,
        (
            "What counts is the sequence of values by business time, NULL among them, from the first time that the "
            "attribute is stated; stating a value again is no change. Never stated: all three are NULL.",
        ),
    ),
    "S10": Rule(
        "Type 6: the value then and the value now",
        """
        As type 2; and every version has the latest value in `current_<name>` and, where `previous: true` is declared,
        the value of the version before it in `previous_<name>`.
        """,
        ("The version before is the one with the number before, whatever opened it and whatever gap lies between.",),
    ),
    "S11": Rule(
        "Type 4: a layout",
        """
        Type 4 is no type of attribute: it keeps current rows in one table and closed versions in another, which
        together hold what one table would.
        """,
        built=False,
    ),
    "S12": Rule(
        "Type 7: a reading",
        """
        A base table is read together with a log of timed updates and deletes, applied up to a chosen time.
        """,
        built=False,
    ),
    "S13": Rule(
        "Nothing new",
        """
        A value that is stated again opens no version and changes no row of the dimension, and the table gets no
        commit.
        """,
        (
            "Of a snapshot the change log keeps only what differs from what its source had stated before: the rest "
            "can be read off. What a feed states is kept.",
        ),
    ),
    "S33": Rule(
        "Tables without windows",
        """
        A dimension whose attributes are all of types 0, 1 and 3 has one row for each entity that ever existed, and no
        window columns. Inside, its one version began at 0001-01-01, so that surrogate keys work as everywhere. A
        deleted entity keeps its row, by option with the time in `deleted_at`; by another option the row is removed.
        """,
        (
            "The row names the delivery that first made the entity exist, also after a return.",
            "`deleted_at` is the time of the last delete, and NULL for one who is back.",
        ),
    ),
    "S14": Rule(
        "Convergence",
        """
        The rows depend on the declaration and on which batches were accepted, and on nothing else: not on the order
        in which they came, how often, at what hour or in how many runs. That includes the surrogate keys, which are
        hashes of business key and `effective_from`. Every column comes from the batches, none from the clock. Should
        two versions get one key, or a version a reserved one such as -1, the run stops before it writes and names
        them; a `key_salt` in the declaration helps.
        """,
        (
            "`load_run_id` names the delivery, as `crm/feed/2024-01-31`, without its revision: an equal edition "
            "changes no row.",
            "A version names the batch, the source and the reason of the last statement at its opening which made a "
            "difference; of several sources by position, then by the source's name.",
            "The reason is that of the row, else that of its delivery, else `source_load`.",
        ),
    ),
    "S15": Rule(
        "No change, no commit",
        """
        When what comes in changes no row of the dimension, its table version stays what it was. The change log gets
        its commit all the same.
        """,
    ),
    "S16": Rule(
        "One commit for each run",
        """
        What a run takes in goes into the dimension by one commit, be it one batch or a backfill of many. So every
        version of the Delta table, whoever reads it and when, holds S2 and S3.
        """,
    ),
    "S17": Rule(
        "Killed runs",
        """
        A run may be killed at any moment. The next one finds what the log has and the dimension has not, and brings
        it in: everything is then as if nothing had happened. It makes no difference whether that run delivers the
        same again, something else, or nothing.
        """,
        (
            "Each commit of a table records up to which commit it has applied the tables that it is derived from, and "
            "which tables those were. If one of them has lost those commits, or was replaced, the load is rejected "
            "before anything is written, and the error names the way back ([repair.md](how-to/repair-tables.md)).",
            "A load is also rejected if another program changed the rows of a table: no commit is made on top of it.",
            "A list of surrogate keys that was lost is rebuilt from the audit, in one commit.",
        ),
    ),
    "S18": Rule(
        "Delete and return",
        """
        A delete closes the current version at its time; no row of a table with windows is ever removed. One who comes
        back gets a new version after the gap, and `version` counts on. What a source stated of an entity holds until
        the same source states otherwise: also over a delete, and from before the entity exists.
        """,
        ("A delete states no values, though its row may carry some.",),
    ),
    "S19": Rule(
        "Late snapshots",
        """
        A snapshot that comes late is fitted in by its time. It says what was true from then on up to the next
        snapshot, which goes on saying what it said.
        """,
        (
            "The next snapshot says again all attributes for which it had a column, also where nothing of it had to "
            "be kept because it repeated what was known.",
        ),
    ),
    "S20": Rule(
        "Source columns",
        """
        - A new attribute is added to the table by naming it in the declaration; earlier versions have NULL in it.
        - One that is renamed, with the old name in `former_names`, keeps its history under the new name.
        - One that is `retired` is no longer read: it keeps its values and opens no versions.
        - If a delivery lacks the column of an attribute, or one that its expression names, the batch is stopped,
          unless the attribute declares otherwise. With `missing: not_provided` the delivery asserts nothing of the
          attribute, so that its value goes on; with `missing: null` it asserts NULL.
        - A column of the key or of the channel may never be missing.
        - An attribute may name several source columns, as names differ between deliveries: the first that a delivery
          has is read.
        - Columns that are not declared are reported with the result, and never read. Neither are columns that the
          pipeline derives, as the surrogate keys of a fact, whatever a delivery has under their names.
        """,
        (
            "A feed that `updates: partial` may lack any attribute; it is then not provided.",
            "The first NULL of an attribute that was not provided before is not counted as a change.",
            "An attribute that the table has and the declaration no longer names is refused: retire it, or name it "
            "in `former_names` of what it became.",
            "The table remembers the names that an attribute had: a former name may be left out once a load has "
            "renamed the column, and is never given to another attribute.",
        ),
    ),
    "S34": Rule(
        "Revisions, retries and withdrawals",
        """
        A delivery has editions, told apart by a revision of its source; the highest one counts, wholly, and the
        lower ones stay in the log as superseded. The same revision with the same content is a retry, which changes
        nothing; with other content it is refused. A withdrawal is a revision without statements: the tables become
        what they would be had the delivery never come, and a higher revision brings it back.
        """,
        (
            "Content is the number of rows and a hash of them that does not depend on their order; a delivery's time "
            "and scope belong to it.",
            "A lower revision that arrives late is superseded at once, also where the higher one is a withdrawal. If "
            "it was not loaded before and has other content, the result reports it.",
            "The revision of a file, or of a partition of a table, is the time of its last change. Its content "
            "decides: the same content is a retry, whatever its time, also where the delivery was withdrawn; other "
            "content is a higher revision, even if a clock that is behind gives it a lower time. A file that is older "
            "than the withdrawal of its delivery is not read.",
            "The same content under a higher revision is remembered in the log, and changes no row of the dimension.",
            "A revision that is stopped is not accepted: the one below it stands.",
        ),
        missing="Corrections by a steward, which would lie over the sources, are not built yet.",
    ),
    "S35": Rule(
        "Changed declarations",
        """
        A changed type, key or layout would be shown as a plan, and taken into the past from the log by one commit.
        New, renamed, retired and missing attributes are built (S20), and so are surrogate keys with a salt for a new
        table (S14); any other difference between the declaration and the table is refused before anything is read.
        """,
        built=False,
    ),
    "S21": Rule(
        "The audit",
        """
        `<dimension>_audit` has a row for each transition of an entity's history: INSERT, UPDATE, OVERWRITE,
        LOGICAL_DELETE, REFUSED, each exactly once, with the surrogate keys before and after, the columns that changed,
        their old and new values as text that loses nothing, when, by whom, why, from which delivery and with which
        correlation id. Each says when it was recorded, by the commit that made it readable, and in which version of the
        dimension's table. A transition that later batches make untrue, or move, gets one row WITHDRAWN that names it,
        and what is true instead a row of its own. Any order of the batches leaves the same transitions standing.
        """,
        (
            "A delivery is named without its revision, as in `load_run_id`: an equal edition changes nothing (S34).",
            "What a source states of an entity before that exists, or while it is gone, is an OVERWRITE where every "
            "version shows it; the first INSERT tells of everything that was stated.",
            "NULL where a type 0 attribute has a value is refused as any other value is.",
            "A value that was not stated is in no map; one that was stated as NULL is.",
        ),
        missing="The words of repair, redeclaration and erasure come with S31 and S35.",
    ),
    "S22": Rule(
        "The past from the audit",
        """
        The audit is append-only; Delta refuses to change or delete its rows. From it alone the dimension is rebuilt as
        it was known at any past moment: the rows recorded up to then, less those withdrawn up to then.
        """,
    ),
    "S23": Rule(
        "Facts find their version",
        """
        A fact stores the surrogate key of the version whose window holds its event time, or -1 where none does: its
        business key is NULL or unknown, or the entity did not exist then. -1 has a row in each dimension that a fact
        names (`version` 0, not current, in force at no time, attributes NULL), so that an inner join loses nothing; it
        is outside of S2, S3 and all counts. A NULL event time is a bad row. The grain is the fact's key: the same row
        again is dropped, other values at a later position replace it, a revision replaces the rows of its delivery.
        """,
        (
            "The position of a fact's row is its delivery's: time, sequence, name and channel; its event time is a "
            "value like others, so that it can be corrected.",
        ),
    ),
    "S24": Rule(
        "Facts follow late changes",
        """
        When a late change moves a window, the facts inside of it get another key: after any run of the fact each stored
        key is what a fresh as-of join would give, for all its dimensions, in one commit, which tells the versions that
        it used. Until then `<dimension>_keys`, every key that was ever given, resolves an old one.
        """,
    ),
    "S25": Rule(
        "Readers of facts",
        """
        Whoever reads a fact table waits for no load, and never sees half of one: a run makes one commit of it, or none.
        """,
    ),
    "S26": Rule(
        "Bad rows",
        """
        A row that cannot be taken goes to the quarantine with its reason and its batch, and the others go on: NULL in
        the business key, a value that does not cast, be it deep inside another, a time that is missing or out of
        bounds, a key outside of the snapshot's scope. One whose key can be read counts as present, and says nothing:
        its entity stays as it is. If more than the declared share (`bad_row_limit`, 5 % unless told otherwise) of a
        batch is bad, the batch is stopped before anything is written; it can be let through. Mended rows come in by a
        higher revision of their delivery, at its own position.

        A value casts only if its type holds all of it, whatever type it is delivered in: a fraction is no whole number,
        1.005 no `decimal(10,2)`, a time of day no date, `2024-01-01 junk` neither, a number no time, and bytes that are
        not UTF-8 no text; dates and times are of the years 1 to 9999. What may be lost or assumed is declared:
        `round: true`, and the `unit` of a number that counts time since 1970. An attribute with `on_bad_value: null`
        is NULL in place of a bad value, and its row goes on.
        """,
        (
            "A bad value deep inside another makes all of it bad. Spaces around numbers and times do not.",
            "A text or a decimal is read into `double` or `float` as the nearest number, if it has no more digits than "
            "the type can tell apart (17 or 9).",
            "Bad rows are rows of the change log, and those of a superseded revision are superseded with it.",
            "In a feed a bad row has no effect at all.",
            "A line of a CSV file with fewer or more fields than the header, with a quote that is not doubled, or with "
            "bytes that are not UTF-8, is a bad row, and so is a line of a JSON file that is no object or has text "
            "after it. Its fields may be in the wrong columns, so its key counts as one that cannot be read.",
            "A quoted field of a CSV file may span lines. Where one is not closed, the rows after it are uncertain: "
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
        size, or from `at_least` entities on where that is declared too. Where none is declared it is a quarter, and
        applies where 20 or more exist. A rejected batch is not accepted: a run of many goes by position, skips the
        rejected batch, loads the others, and names it. A snapshot with a row whose key cannot be read retires no
        entities, unless declared otherwise.
        """,
        (
            "Rows in quarantine count as present. Deletes that a feed states are not guarded.",
            "A snapshot's scope is what it is delivered with, else the distinct values in its rows, those in "
            "quarantine too if their key can be read; a snapshot without rows that is scoped by its rows speaks of "
            "nobody.",
        ),
    ),
    "S28": Rule(
        "Wrong declarations",
        """
        A declaration is checked when it is loaded. All faults are told at once, each with its file, line and field,
        and with what would be right.
        """,
    ),
    "S29": Rule(
        "Where a history begins",
        """
        The first version begins at the first change. With `begin` declared, an entity whose first change is at or
        before the limit begins at the fixed time instead, so that older facts find it. A change before the fixed
        time, or at the open end or after it, is a bad row.
        """,
        (
            "Only the first version is moved, and `last_updated` goes on telling the time of the change.",
            "The open end can be declared; the default is 9999-12-31 23:59:59.",
            "A snapshot at the open end or after it is stopped: whom it leaves out would be gone by then.",
        ),
    ),
    "S30": Rule(
        "Sources",
        """
        A source may deliver snapshots, a change feed, or both. Each attribute is stated by one source. Exactly one
        source decides whether an entity exists, which has to be declared where there are several; to be left out by
        another says nothing. A feed may state some attributes only, and it is declared for the source whether NULL
        in it is a value or "not stated".
        """,
        ("A delete by a source that does not decide changes nothing of the dimension.",),
    ),
    "S31": Rule(
        "Erasure",
        """
        On request the values of an entity would leave every reading, and in time the files. Only one part is built:
        values of attributes declared `personal` are not repeated in the reasons of the quarantine and are left out
        of plans; errors, logs and what Dagster stores repeat no value of a row; and a key cannot be personal.
        """,
        built=False,
    ),
    "S32": Rule(
        "The ground",
        """
        What a server's Delta can do is tried once on a scratch table, and remembered with the warehouse. Where rows
        cannot be replaced by their key, a MERGE does the same; where neither works, the run is refused before it
        writes.
        """,
        (
            "Before a session first replaces rows by their key, the stored result is compared with the Spark and the "
            "Delta that one of its pipeline commits names. If it is of another Delta, this one is probed.",
        ),
    ),
}
