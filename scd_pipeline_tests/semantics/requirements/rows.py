"""The requirements of the reference warehouses, from which docs/requirements.md is generated."""

from __future__ import annotations

INTRODUCTION = """
# Requirements

What the reference warehouses need of this package (a casino, federal grants, a timed table of doctors, and histories of
products), and the tests that show it. The [rules](semantics.md) say how the tables behave in general; a row here is one
case, with its values. Options are in [Declaration](reference/declaration.md).

This page is generated from `scd_pipeline_tests/semantics/requirements` by `make docs`; a test fails when it is stale,
when a row has no test that runs in each build and reads tables, or when one test claims more than three rows. Where no
such test is possible, or it takes minutes, the row says so; slow tests run in turn, a part of them in each build.
"""


SECTIONS: dict[str, tuple[str, ...]] = {
    "Tables": tuple(f"F{number}" for number in range(1, 12)),
    "Changes": tuple(f"F{number}" for number in range(12, 34)),
    "Types 3, 4 and 6": tuple(f"F{number}" for number in range(34, 42)),
    "Deliveries, storage and writers": tuple(f"F{number}" for number in range(42, 53)),
    "Audit and facts": tuple(f"F{number}" for number in range(53, 63)),
    "Design and operation": tuple(f"F{number}" for number in range(63, 77)),
    "Options": tuple(f"X{number}" for number in range(1, 24)),
    "Timed tables": tuple(f"V{number}" for number in range(1, 30)),
    "Histories of base tables": tuple(f"H{number}" for number in range(1, 37)),
    "Landing tables and dlt's strategies": tuple(f"D{number}" for number in range(1, 44)),
    "Fact loads": tuple(f"L{number}" for number in range(1, 20)),
}

ROWS: dict[str, str] = {
    "F1": (
        "`dim_country` has type 1: `country_key` BIGINT, `country_code`, `country_name`, `region`, `last_updated`. As "
        "in every dimension and fact, each row also has the reason, the source and the delivery of its change "
        "(`change_reason`, `change_source`, `load_run_id`). The row of the unknown member has no code; every other "
        "row has one: CHECK (`country_code` IS NOT NULL OR `country_key` IN (-1, -2, -3))."
    ),
    "F2": (
        "`dim_player` has type 2 (`tier`, `home_property`, `risk_score` INT) and type 1 (`email`, `phone`): "
        "`player_key` BIGINT, validity window, `current_flag`, `version` INT, reason and source of the change, and a "
        "hash `_hash`; the table properties `delta.autoOptimize.optimizeWrite`, `delta.autoOptimize.autoCompact` and "
        "`delta.enableChangeDataFeed` are true. Only the unknown member has no business key, as in F1."
    ),
    "F3": (
        "One row of `dim_player` has types 0, 1, 2 and 3: `birth_date` has type 0, and `marketing_consent` type 3 with "
        "`previous_marketing_consent`. `marketing_consent_changed_at` is an additional column."
    ),
    "F4": (
        "`dim_account` has type 3: `account_manager`, `previous_manager`, `manager_change_ts`, `last_updated`. Only "
        "the unknown member has no business key, as in F1."
    ),
    "F5": (
        "`dim_machine` in two tables: current rows, and closed versions in `dim_machine_history`. Both have the "
        "columns of a table of type 2, because together they are its rows. There is no `history_id`: the surrogate key "
        "identifies a closed version. Only the unknown member has no business key, as in F1."
    ),
    "F6": (
        "`game_title`, `denomination` and `location` of `dim_machine` have type 2, `manufacturer` has type 1 and "
        "`serial_number` type 0. One line of the declaration changes the table from two tables to one of type 2. It is "
        "for a new table; an existing one is rebuilt."
    ),
    "F7": (
        "`dim_program`: `eligibility_threshold` has type 6 without a column of the latest value, with the previous one "
        "in `previous_eligibility_threshold`; `program_status` (pre-launch, active, sunset) has type 2; "
        "`current_program_name` and `current_admin_agency` have type 1, so that all versions have the latest ones. "
        "`funding_cap_usd` has type 6 with its default columns, so that `current_funding_cap_usd` is an additional "
        "one. Only the unknown member has no business key, as in F1."
    ),
    "F8": (
        "`dim_grant_recipient`: `legal_name`, `parent_org`, `status`, `address` and `risk_tier` have type 2; the key "
        "`recipient_id`, such as a DUNS number or a UEI, is NULL only for the unknown member, as in F1. A recipient "
        "debarred on 2024-03-01 was active on 2024-02-29."
    ),
    "F9": (
        "`dim_compliance_threshold` (CTR, SAR, W-2G) has `ctr_threshold` and `window_hours`, and is regulated: only "
        "type 2 is accepted. Type 0 is rejected too, although it keeps the first value. Only the unknown member has "
        "no business key, as in F1."
    ),
    "F10": (
        "The audit has a row for each transition, with the keys before and after, the changed columns, lossless old "
        "and new values, business time, actor, reason, delivery and correlation id. Business key, change type, times "
        "and actor are not NULL. It has no partitions, not even above 100 M rows: a load with late changes would write "
        "a small file for each of their dates."
    ),
    "F11": (
        "Facts: `fct_slot_play` with `event_id`, `event_ts`, `player_id`, `coin_in`, `coin_out` and the key of the "
        "player, and `fct_cash_transactions` with `event_ts` and `cash_in_amount`. Other columns are measures that "
        "have to be declared, and `scd init` declares them; one that is not declared is reported."
    ),
    "F12": (
        "Type 0: 1990-01-01 stays when 1991-02-02 arrives, and the audit has both values as REFUSED; a first NULL is "
        "filled once."
    ),
    "F13": (
        "Type 1: DE/Germany/Europe becomes EU in the same row with the same key; another country keeps its "
        "`last_updated`."
    ),
    "F14": (
        "NULL to EU and EU to NULL are changes of type 1, and open a version in two tables; NULL to a value and back "
        "are changes of type 3."
    ),
    "F15": (
        "The same delivery again makes no commit of any table, whatever the types and the layout; the same values in a "
        "new delivery make none of the dimension."
    ),
    "F16": "A fact of an old version shows a later correction of a type 1 attribute, and is not loaded again.",
    "F17": (
        "Type 2: the Bronze version ends at 2024-06-01, exactly where the Silver one starts, which has a key of its "
        "own. Bronze retains its key, its reason and its delivery."
    ),
    "F18": "A new email address opens no version, and is in the Bronze and in the Silver version.",
    "F19": (
        "A delete at 2024-09-01 closes the Silver version. The audit has the reason `deleted_in_source`; the row keeps "
        "the reason of its opening, and a query as of 2024-08-01 still returns it."
    ),
    "F20": "A return at 2024-11-01 opens version 3 with a new key, after a gap from 2024-09-01.",
    "F21": (
        "A late Gold at 2024-03-01 splits the Bronze version, and later rows differ in their version number only; a "
        "late Silver at 2024-05-01 moves the start of Silver."
    ),
    "F22": (
        "The hash covers the attributes that open versions: NULL differs from the empty text and from 0, and ('a|b', "
        "'c') from ('a', 'b|c'). A version without any value has a hash too."
    ),
    "F23": (
        "A version is current exactly if its `effective_to` is the open end, which is not NULL by default, in every "
        "version of the table."
    ),
    "F24": "Versions are numbered from 1, in order of time, without holes.",
    "F25": (
        "A change has the reason `source_load`, or the one of its snapshot or of its row in a feed (tier_upgrade, "
        "manual_steward, source_drift), and the name of its source."
    ),
    "F26": "No reader ever sees no or two current versions of an existing entity: both rows are in one commit.",
    "F27": "Several changes of a player in one batch are versions; different ones of one time are rejected.",
    "F28": (
        "A daily check, and each run that includes checks, reports entities with two current versions and sends an "
        "alert. A scheduled load does not include them: the checks read whole tables, and have a job of their own."
    ),
    "F29": "The causes of duplicates: two writers, the restart of a failed run, SQL by hand.",
    "F30": (
        "A command repairs a table from its log, in one commit of each table, audited, with a dry run; rows that the "
        "log does not have are removed, and their values are in the audit, not in the quarantine, which has only "
        "delivered rows. Without a log it keeps the version with the latest `effective_from` and closes the others."
    ),
    "F31": (
        "Surrogate keys are hashes. monotonically_increasing_id, row_number and identity are rejected, also for a "
        "single load: their keys would change with a rebuild."
    ),
    "F32": (
        "Two versions with one 64-bit hash, of one run or with a stored one: the run fails before it writes and names "
        "both. Another `key_salt` helps; an existing table is then dropped and rebuilt from its change log, and its "
        "facts store the new keys."
    ),
    "F33": (
        "A surrogate key never identifies another version: not after a return, a rebuild or a late change, and not if "
        "its version vanished."
    ),
    "F34": (
        "Type 3: managers m1, m2 and m3 since t1, t2 and t3 give (m1, NULL, t1), (m2, m1, t2) and (m3, m2, t3), always "
        "in one row."
    ),
    "F35": "The first manager m1 is in no row any more, but in the audit.",
    "F36": (
        "Two tables: M1 (G1, 0.25, A) at t1 becomes (G1, 1.00, A) at t2. Its closed version has the window [t1, t2) "
        "and the reason `source_load`; M2 is unchanged, with `last_updated` t1."
    ),
    "F37": (
        "A reader of two tables, by the library or the views, never sees a version twice or not at all; a load that is "
        "repeated after a crash stores no closed version twice. A query of the tables themselves may read them between "
        "two commits."
    ),
    "F38": (
        "Of 50 columns, the history of two tables can have only the values of the 5 that change. It has properties of "
        "its own, such as a retention, by `history_table_properties`, and can be in another schema with a location and "
        "grants of its own. Both tables have one audit."
    ),
    "F39": (
        "A query as of a time of two tables has the same result as of one. The layout is slower where queries mix "
        "current and past versions."
    ),
    "F40": (
        "Type 6: versions 100/5000 [t1, t2), 150/5000 [t2, t4) and 150/6000 [t4, OPEN) with previous thresholds NULL, "
        "100 and 150; a new name at t3 is in all of them and opens none."
    ),
    "F41": "A name and a threshold that change together are in one commit, which rewrites no other program.",
    "F42": "A player that a snapshot omits is closed, one that a feed omits is not.",
    "F43": (
        "Only declared columns are loaded; others are reported; old queries have the same results, and no table gets a "
        "column, even if Delta is set to merge schemas."
    ),
    "F44": (
        "A query as of a time has the same result after OPTIMIZE, VACUUM and the expiry of Delta's log: it needs no "
        "time travel, whose four caveats are documented."
    ),
    "F45": (
        "V-Order, `delta.parquet.vorder.enabled`, is passed to the table. Only Microsoft Fabric has it; the checklist "
        "reports it as not applicable unless it is declared. The documentation of Fabric has no property "
        "`delta.vorder.optimization`."
    ),
    "F46": (
        "The layout depends on the size of the table: from 1 M rows on, Z-order by the business key, unless `z_order` "
        "is declared. Only maintenance changes it; a load does no more than combine small files after every 50 "
        "commits. No table is partitioned, neither by `current_flag`, to which at most two tasks would write, nor the "
        "history by year."
    ),
    "F47": (
        "OPTIMIZE runs weekly for types 1 and 2, for type 2 also after a backfill, and monthly for the audit, the "
        "history of two tables and the change log."
    ),
    "F48": (
        "VACUUM runs in the maintenance job, in the pool of the table's loads; with a limit of 1, it never runs during "
        "one of them; a retention below 168 hours is rejected."
    ),
    "F49": "Two writers change one entity at the same time: both changes are versions, one of them is current.",
    "F50": (
        "After a write conflict (append, delete-read, delete-delete, transaction or metadata), a load waits 1.0, 2.1, "
        "4.2 and 8.3 seconds, with jitter, and plans again from the tables as they are then. A changed protocol, an "
        "expired version and a lost executor are retried too, and no other error. The number of attempts of each step, "
        "5, is configurable in the library, on the command line and in Dagster; the waits and the jitter are in the "
        "library."
    ),
    "F51": (
        "After the last attempt, by default the fifth, the run fails and sends an alert. It has not changed the table "
        "that the message names; the next run completes what it left."
    ),
    "F52": (
        "Several sources of a dimension (loyalty, compliance, hotel) have one change log and one writer; a commit by "
        "hand is found and repaired."
    ),
    "F53": (
        "A player who rises, changes the email address, leaves and returns has five transitions in the audit, with the "
        "actor `pipeline:dim_player` or a steward, the delivery and the correlation id."
    ),
    "F54": "The audit is complete after a crash, and the same in any order of arrival.",
    "F55": (
        "Delta rejects updates and deletes of the audit, from which alone the past can be rebuilt. Its retention is "
        "declared in years: any whole number from 1, such as 7 or 10."
    ),
    "F56": (
        "A play of 2019 shows the tier Bronze of that day, not the tier Diamond of today. No join of the package has "
        "current values."
    ),
    "F57": (
        "The last microsecond before 2024-06-01 belongs to version 1, the first one of that day to version 2; "
        "2024-10-01 has no version, so a fact has the key -1, and 2024-12-01 has version 3."
    ),
    "F58": "A join as of event time keeps the number of facts; one without a version has the key -1.",
    "F59": (
        "A join by stored keys equals a join as of event time, row for row. It is faster: the benchmark measured 0.68 "
        "times the time, with three million facts."
    ),
    "F60": "A dimension that was dropped and rebuilt from its log has the keys that its facts have stored.",
    "F61": (
        "A late fact gets the version of its event time; after a late Gold at 2024-03-01, the fact of 2024-03-05 has "
        "the key of Gold. A fact that is loaded before its dimension has the key -1 until it is re-keyed."
    ),
    "F62": (
        "The threshold in force decides: 10,000 and 11,000 are reported on 2026-12-31, and 12,000 but not 11,000 on "
        "2027-01-01. Thresholds of other types have no effect."
    ),
    "F63": "Type 5 is rejected; a regulated attribute has type 2. Six rules lead to a type: 0, 1, 2, 3, 4 or 6.",
    "F64": (
        "Four symptoms of a history without SCD are absent: an old report changes; tiers have no history; a training "
        "set has later values; two writers leave two current versions. The load reports the fifth: a table grows by "
        "each load, because an attribute that always changes has type 2."
    ),
    "F65": (
        "Anti-patterns that other rows exclude: F23, F26, F33, F44, F48, F50, F56. A declaration in which the open end "
        "is NULL has a warning, unless its profile is that of a tool that needs it."
    ),
    "F66": "A version always has a key of its own.",
    "F67": "A table with windows never loses rows of deleted entities; a DELETE by hand is found.",
    "F68": (
        "A load has a warning for each attribute that opens versions of more than a declared share of the entities, by "
        "default of more than half of at least 20 entities. It names an alternative."
    ),
    "F69": (
        "A declaration in which all attributes have one type has a warning, unless it is regulated, has one attribute "
        "only, or declares `single_scd_type`."
    ),
    "F70": "There is no dimension without an audit.",
    "F71": "An option that partitions a dimension, by date or otherwise, is rejected: no table is partitioned.",
    "F72": "Checklist, design: types documented, business sign-off, compliance sign-off, surrogate strategy, sentinel.",
    "F73": (
        "Checklist, build: SCD2 columns, hash, retry, one owner, audit with actor and reason, deletes. The evidence of "
        "the last one is the day on which the audit last recorded a delete; that none was loaded yet is no failure."
    ),
    "F74": (
        "Checklist, performance: Z-order, OPTIMIZE weekly, retention of VACUUM and its pool, fitting partitions, "
        "V-Order (n/a)."
    ),
    "F75": (
        "Checklist, quality: daily checks of duplicates, NULL ends and overlaps, late facts, an as-of query against a "
        "known KPI."
    ),
    "F76": (
        "Checklist, operation: runbooks of duplicate repair and of backfill and rebuild, audit retention, alerts, link "
        "to the product card."
    ),
    "X1": "The open end is 9999-12-31 23:59:59, NULL, or another time, such as 2999-12-31.",
    "X2": "The current version has the flag `current_flag`, one of another name, such as `is_current`, or none.",
    "X3": (
        "The window has the columns `effective_from` and `effective_to`, or others. A player has the same history and "
        "keys in the profiles default, dlt and elevata. No profile names the surrogate key, which has its own option."
    ),
    "X4": "The columns of type 3 have default names, or declared ones for each attribute.",
    "X5": "Type 6 has a column `current_<name>`, or none; a type 1 attribute may have such a name.",
    "X6": "The previous value of type 6 is that of the version before, or the last different one.",
    "X7": "Business time comes from the row, from the delivery, or the delivery is rejected.",
    "X8": "Surrogate keys are deterministic BIGINT.",
    "X9": "The attributes of types 2 and 6 are compared; a hash of the source can be the only one.",
    "X10": (
        "A type 1 attribute has its latest value in every version; or each version keeps the value of its opening, or "
        "the latest one before its end."
    ),
    "X11": "A snapshot closes what it omits, a feed does not, and a snapshot with a scope only in its scope.",
    "X12": (
        "A delete closes a version; by `deleted_rows`, it also opens one that is marked as deleted, or a table without "
        "windows removes the row."
    ),
    "X13": "A key that returns gets a new version, with a gap.",
    "X14": "Several rows of one key in one batch become versions.",
    "X15": (
        "Different rows of one time are rejected, unless the declaration orders them: by a column, by their order in "
        "the file (the first or the last one wins), or so that a delete wins."
    ),
    "X16": "The audit says INSERT, UPDATE, OVERWRITE, LOGICAL_DELETE or REFUSED, or new, changed and deleted.",
    "X17": "A version names the delivery that opened it; the audit names the one that closed it.",
    "X18": (
        "Every column of a dimension comes from the deliveries and none from the clock; in the audit, `change_ts` "
        "does, and `recorded_at` is the time of the commit. There is no `history_id`: the surrogate key, a hash, "
        "identifies a closed version."
    ),
    "X19": "A fact without a version has the key -1.",
    "X20": "A column that is not declared is reported and not loaded.",
    "X21": "A time without a zone is read in the declared zone, by default UTC.",
    "X22": (
        "Type 7 is a table with a log of timed SQL statements that a read applies up to a chosen time: V1 to V29. "
        "Type 7 of textbooks is another one: a fact has keys for the value then and the value now."
    ),
    "X23": (
        "`dim_machine` has two tables, or one of type 2, by `history_table`. It is for a new table; an existing one is "
        "rebuilt."
    ),
    "V1": (
        "The base of `doctors` has the columns `number` INT, `first_name`, `last_name` and `extra_field`; its file "
        "lacks `extra_field`, which is `fishfingers and custard` in all rows."
    ),
    "V2": "With an empty log, or without one, a read has the doctors 1 to 11.",
    "V3": "A read now has ten rows: 1, 3, 4, 5 and 7 to 12; 12 has the names of 2.",
    "V4": "A read at 2014-01-01 has eleven rows: 1 and 3 to 12.",
    "V5": "A read at `raw` or -1 has the rows of the base.",
    "V6": "The empty text is the time of the read.",
    "V7": "A statement of 2999 is visible only to the reader whose time it is; another session sees today's rows.",
    "V8": (
        "A statement applies at and after its millisecond: at 1409529600000 there are ten rows, at 1409529599999 "
        "eleven, and at 0 only the UPDATE applies."
    ),
    "V9": (
        "A time is milliseconds since 1970, a date, or a date and time with an optional offset, in the log and for a "
        "read: 2014-09-01T00:00:00+02:00 is 1409522400000. Another form is rejected, in the log with its line."
    ),
    "V10": "A time without an offset is in the declared zone, UTC by default.",
    "V11": "A time applies to all statements up to the next one; statements before the first one have the time 0.",
    "V12": (
        "Each statement sees the result of the ones before it: if 2 becomes 12, and then 12 is deleted, the row is "
        "deleted. Statements apply in order of their times, and of equal times in order of the log."
    ),
    "V13": "The name of the table is free, and the same in all statements; another name is rejected with its line.",
    "V14": (
        "An unknown column, a type that does not fit, invalid SQL, INSERT, MERGE, DDL and SELECT are rejected with "
        "their line. No statement is skipped."
    ),
    "V15": (
        "Statements have several lines, any case, `;` and `--` in strings, blank lines and comments; the last "
        "semicolon may be omitted."
    ),
    "V16": (
        "A statement has several SETs, arithmetic, CASE, AND, OR, NOT, IN, BETWEEN, LIKE and IS NULL, or no WHERE, and "
        "sets NULL. A condition that is NULL hits no row."
    ),
    "V17": "An aggregate or a subquery, which would need all rows, is rejected; the base may have several files.",
    "V18": "The log is the file `.updates` in the folder of the data, or a declared one.",
    "V19": "Joins, aggregates and look-ups at a time read it as any table; afterwards all files of the base are equal.",
    "V20": "A row that is added to the base later is hit as well; the rows that each statement hits are counted.",
    "V21": (
        "Columns are int, bigint, float, double, boolean, string, decimal, date, timestamp, binary and nested; a text "
        "may have more than 32,767 characters."
    ),
    "V22": "Avro, Parquet, CSV, JSON and Delta give the same rows.",
    "V23": (
        "A read is one pass, without a database beside it; statements on columns that are not read are not evaluated, "
        "and a row passes only through those that may hit it. 10,000 statements give the exact rows. A query in SQL "
        "evaluates all statements. The ratios to a read of the base are in Performance."
    ),
    "V24": (
        "In Dagster, the rows of a read as of now are stored as a Delta table. They equal a read at the same time, "
        "which a check verifies, and a change of log or base starts a run."
    ),
    "V25": (
        "The statements up to a time are folded into a new base. Reads at this time or later have the same rows, reads "
        "before it are rejected; a reader sees the old base and log or the new ones, and a killed fold changes nothing."
    ),
    "V26": "A read has one state of the log, and of a Delta base, while both change.",
    "V27": (
        "A timed table with a business key is a source of a dimension: as of every time of a statement, the dimension "
        "has the rows of a read at this time. An earlier statement that is appended later changes all later versions."
    ),
    "V28": "Statements have an author and a reason, and the number of rows that they hit.",
    "V29": "A plain package is installed, and one setting is the time: `SCD_TIME`, or `--time`.",
    "H1": "The history of each table is declared, `rc_product_hist` for `rc_product`, without SQL.",
    "H2": (
        "A history has `rc_product_hist_key` BIGINT, `rc_product_key`, each declared column of the table with its "
        "type, `version_started_at`, `version_ended_at`, `version_state`, `load_run_id`, `loaded_at` and `row_hash`; "
        "also `version`, `change_reason` and `change_source`. If nothing is declared but the key, each column of the "
        "table is in the history, except its own `load_run_id` and `loaded_at`, which are reported."
    ),
    "H3": "`rc_product_hist_key` is another one for each version, and the same after a late run or in another table.",
    "H4": "`version_ended_at` is NULL in the current version; with `open_end` it is a time.",
    "H5": (
        "From A, B, C with the price 1 in the first run, and A with 2, B and D with 1 in the second: both versions of "
        "A are `changed`, B and D are `new`, and C is `deleted`, closed at the second run."
    ),
    "H6": "A third run with the same rows writes nothing, not even a `load_run_id`.",
    "H7": "If C is in the fourth run again, it has a second version from then on, which is `new`, after a gap.",
    "H8": "A:1 was opened by the first run and closed by the second: its row has the one, the audit has both.",
    "H9": "The same run again makes no commit of any table.",
    "H10": (
        "A run that is killed between its steps is completed by the next one, whatever the time of that is: A:2 begins "
        "at the time of the killed run."
    ),
    "H11": "A run with an earlier time is in effect up to the next one: no window is empty or inverted.",
    "H12": "Closed, changed, deleted and new versions of a run are in one commit; no version of the table overlaps.",
    "H13": (
        "A hash of the table itself, `row_hash`, decides what opens a version, and the history shows it. Without one, "
        "the hash is computed from all columns that open versions; a new column without values opens no version and "
        "changes no hash."
    ),
    "H14": "A key that the base lacks is closed, and no row is removed. The retire guard (S27) holds.",
    "H15": (
        "A history is not truncated, and runs in order leave closed versions as they are. A late delivery does change "
        "them, since windows do not depend on the order of arrival (S14); the audit keeps what was known before."
    ),
    "H16": (
        "`{{ load_timestamp }}` and `{{ load_run_id }}` in an expression are the time of the delivery, and its source, "
        "channel and name: the same in all its rows, and in each retry. Single braces, unknown names and placeholders "
        "in quotes are rejected, and so is one that would open a version in each delivery."
    ),
    "H17": (
        "A renamed attribute has the old values under the new name alone, and no new versions, also when it is renamed "
        "twice. A late delivery with a former name provides it; if it has both names, the current one counts."
    ),
    "H18": "A column that is renamed without it is a retired and a new one; the load reports both and guesses nothing.",
    "H19": (
        "A column that disappears stays in the table with its values, opens no version, and is retired: `retired_at` "
        "is stored with the table, in the comment of the column, in `scd status` and in Dagster's metadata."
    ),
    "H20": "If the column comes back, the same attribute continues.",
    "H21": "A column that refers to another table is one as any other: it stays when the reference is deleted.",
    "H22": "A delivery that lacks a column of the business key is rejected.",
    "H23": (
        "A dropped history is rebuilt from its change log: windows, keys, hashes and runs are generated again, and "
        "business values are the same."
    ),
    "H24": (
        "A history gets another name with `former_name`: the next load copies its tables with all rows, keys, windows, "
        "audit and quarantine, a later load completes the copies of a killed one, and facts keep their keys. Both "
        "names end in `_hist`; any other is rejected."
    ),
    "H25": (
        "A source names the assets of Dagster that write its base: in a run of both, the history is loaded after the "
        "base and reads the version that the run wrote. If the base fails, it is not loaded."
    ),
    "H26": (
        "A type that is wider than the stored one widens the column in place: the stored rows, their hashes and their "
        "keys stay, and no version opens. Any other type is rejected with both types."
    ),
    "H27": (
        "A source column may have any name, with reserved words, blanks, quotes, dots, capitals and letters of any "
        "alphabet, in CSV, JSON, Parquet and Delta. An attribute's name may be a reserved word and have quotes and "
        "letters of any alphabet, but no blank, dot, backtick or character that Delta forbids: `columns` maps such a "
        "name to another one."
    ),
    "H28": (
        "Another reader of Delta returns the same versions. No SQL is generated for DuckDB, PostgreSQL or SQL Server: "
        "they read the table."
    ),
    "H29": (
        "A product has one open version or none, windows do not overlap, versions are numbered in order, and the hash "
        "belongs to the row: checks hold after each run, and report damaged rows."
    ),
    "H30": "Loads and plans run without Dagster; the same deliveries have the same plan.",
    "H31": "A plan counts the versions to close and to open, and writes nothing.",
    "H32": (
        "The same deliveries have windows from the times of their changes, if `effective_at` names the column, or else "
        "from the times of the deliveries."
    ),
    "H33": "The states have other words by `change_types`, which are also those of the audit.",
    "H34": (
        "A base that retains deleted rows flags them in a column that `deletes` of its snapshots names: a flagged row "
        "closes the version of its entity, as if the base lacked it, and counts for the retire guard. NULL is no flag."
    ),
    "H35": "The state as of a time, as known now and as it was known before the second run.",
    "H36": (
        "Closed versions over the declared age are in an archive, also those of an existing table: reads as of any "
        "time and the facts are as before, whenever a run is killed and whoever reads during it."
    ),
    "D1": (
        "A merge has the strategy `delete_insert`, which is the default, or `upsert`. `scd2` is rejected with the "
        "declaration of the dimension to write instead, and any other strategy with those that exist."
    ),
    "D2": (
        "A merge without a primary key or a merge key is rejected: it would only append, which `disposition: append` "
        "declares."
    ),
    "D3": (
        "`delete_insert`: the rows of a delivery are reduced to one for each primary key and replace the stored rows "
        "whose primary key or merge key occurs in the delivery."
    ),
    "D4": (
        "An issue and its comments are in two tables, over which Delta has no transaction. No reader meets an issue "
        "without its comments or the reverse, whenever a load is killed."
    ),
    "D5": (
        "A compound primary key compares by its parts: ('a', 'bc') is not ('ab', 'c'). A row with NULL in a part is "
        "quarantined."
    ),
    "D6": (
        "With the merge key `batch_day`, d1 with {a, b}, d2 with {c} and d1 with {a2} leave {a2, c}. Today's rows, "
        "loaded three times, are those of the last time."
    ),
    "D7": "Different rows of a key that nothing orders reject the delivery with the keys; identical rows are one row.",
    "D8": "`dedup_sort` with `desc` leaves the row with the highest value of a key, `asc` that with the lowest.",
    "D9": (
        "With `desc` on `metadata_modified`, (1, 01-01, A), (1, 01-02, B), (2, 01-01, C), (2, 01-01, D) leave "
        "(1, 2024-01-02, B) and (2, 2024-01-01, C): of equal values the first row of the file remains."
    ),
    "D10": (
        "Eight lists of records in two overlapping pages of 100 each, passed to a load with the disposition, the key "
        "and the table, have each id once."
    ),
    "D11": "Records are loaded into the table that each names, with one copy of an id in each table.",
    "D12": (
        "Only new rows, by `created_at` from 1970-01-01T00:00:00Z on: older rows are skipped, rows that equal the "
        "highest loaded value are neither lost nor loaded twice, and the state outlives the process, whenever it is "
        "killed."
    ),
    "D13": "`hard_delete` on a boolean column: true deletes; false and NULL do not.",
    "D14": "`hard_delete` on a column of another type: any value that is not NULL deletes, also '' and 0.",
    "D15": (
        "With a primary key, a load each: (1, foo, false) leaves foo, (1, bar, NULL) bar, and (1, foo, true) nothing. "
        "A row with the key and the flag alone deletes too."
    ),
    "D16": (
        "With a merge key: after foo and bar under id 1, a row of id 1 whose `deleted_at_ts` is 2024-02-22 12:34:56 "
        "leaves neither."
    ),
    "D17": (
        "With `dedup_sort` on `lsn`, the last row of a key decides: foo 1, baz 3 and the deleted bar 2 of id 1 leave "
        "(1, baz, 3); foo 1 and the deleted bar 2 of id 2 leave nothing."
    ),
    "D18": "A delete of an unknown key changes nothing, and the table gets no commit.",
    "D19": (
        "The delete of a row removes its rows in the child tables of both levels, by the key of the root row, which "
        "each of them has."
    ),
    "D20": (
        "There is no setting like dlt's `root_key`, because each child row has the key of its root. A snapshot of the "
        "ads with the status DISAPPROVED, and after it a feed of those with PAUSED: the ads, their labels and the "
        "users of the labels are there of both."
    ),
    "D21": (
        "There is no index, as dlt has one on its row ids. A lookup by business key skips files by their minimum and "
        "maximum of the key: of 16 files with 640 keys it reads all as they were loaded. After maintenance has "
        "arranged the rows by the key, it reads one of at least 8."
    ),
    "D22": (
        "With `business_key: whole_row` and `profile: dlt` a table has `_dlt_valid_from`, `_dlt_valid_to`, the columns "
        "of the source, `_dlt_id` with the hash of the row, and a surrogate key; the end of an open window is NULL."
    ),
    "D23": (
        "The example of dlt, to the microsecond: rows (1, foo, 1) and (2, bar, 2) at 2024-04-09 18:27:53.734235, "
        "foo_updated at 22:13:07.943703, and an extract without customer 2 at 2024-04-10 06:45:22.847403."
    ),
    "D24": (
        "A row that is deleted and inserted again has two windows. `_dlt_id` with `_dlt_valid_from`, and the surrogate "
        "key alone, identify one of them."
    ),
    "D25": (
        "With the natural key as the scope of a snapshot, an extract of customer 1 alone closes the former row of "
        "customer 1 and retires no other customer."
    ),
    "D26": (
        "A source goes from increments to full extracts when its declaration does: then absent rows are retired. No "
        "mode is stored that an omitted option would keep."
    ),
    "D27": (
        "With a partition as the scope, a reloaded partition closes only its own rows: a, b at 2024-01-02 "
        "03:03:35.854305, c, d at 2024-01-03 03:01:11.943703, and a, bb at 10:30:05.750356 close b alone."
    ),
    "D28": "A delivery without rows that names the partition in its scope closes the rows of that partition.",
    "D29": "A scope of several columns is compared column by column.",
    "D30": (
        "The window's columns can have the names `from` and `to`. Two equal names, or the name of another column, are "
        "rejected."
    ),
    "D31": (
        "The open end is NULL if it is omitted or None, and 9999-12-31 00:00:00 as text, date or datetime. A change of "
        "it is rejected for an existing table."
    ),
    "D32": (
        "The boundary of the windows is the time of the delivery, as text with a zone, date or datetime; also one that "
        "is earlier than an open start. Without a time, the name of the delivery has to be a date: no clock is read."
    ),
    "D33": (
        "With `row_version: true`, the source's `row_hash` decides which rows are the same, and other columns open "
        "nothing. `_dlt_id` is the same at each load. A row without `row_hash` is a bad row, a delivery without the "
        "column is rejected."
    ),
    "D34": (
        "The hash of a row consists of all columns in any order: an added column that is NULL in all rows changes no "
        "row, a value in it does."
    ),
    "D35": (
        "The same rows in frames of Spark, pandas and Arrow have the same hashes, with NULL, NaN, times with a zone "
        "and nullable integers. NaN is a value in an attribute of floats; in any other column of pandas it is NULL."
    ),
    "D36": (
        "A changed open end, profile, name of a column or business key of an existing table is rejected with each "
        "option before anything is written; a changed channel or scope applies from the next delivery on. A load of a "
        "landing table by its name cannot have other options than its first load."
    ),
    "D37": (
        "A child table has no columns of windows, and its keys are unique. Its views have the window of the version, "
        "by the key of the root row."
    ),
    "D38": "A time of the last change and a version number order the changes of a key, in any order of the rows.",
    "D39": "A value that differs only in a nested field opens a version of the root.",
    "D40": "Identical rows of an extract are one row. With a business key, different rows of one entity reject it.",
    "D41": (
        "An upsert replaces the row of its primary key, adds a row with a new one, and deletes with `hard_delete`, in "
        "one commit; rows that the delivery lacks or repeats are not written."
    ),
    "D42": (
        "An upsert without a primary key or with a merge key is rejected, and so is a delivery with different rows of "
        "one key."
    ),
    "D43": "Delta is the only destination, on any storage that Spark writes to, and everything is stored in it.",
    "L1": (
        "A load replaces the whole fact, the scopes that change, or the rows that change: as declared, or by default "
        "depending on the numbers of rows, with thresholds from `python -m benchmarks.fact_strategies`. Each way leads "
        "to the same rows in one commit."
    ),
    "L2": "A whole reload leaves exactly the delivered facts. Until its commit, readers have the earlier ones.",
    "L3": "A reader in a loop sees all old or all new facts: two row counts, and no error.",
    "L4": "Nothing of a load that was killed reaches the table of the fact before the next load completes it.",
    "L5": "A reload of a day or a partition leaves the files of the other days as they are.",
    "L6": "Several days change in one commit: for a reader in a loop, the sum over all days is constant.",
    "L7": (
        "A row outside of the announced days is a bad row. A delivery that has no rows of an announced day is "
        "rejected, unless the source declares that such a day is emptied."
    ),
    "L8": "Increments for old days leave all existing files as they are, and the table is readable throughout.",
    "L9": "No fact exists twice after a delivery that is passed twice or retried.",
    "L10": "A late row of an old day is added to that day, with the surrogate key of its event time.",
    "L11": (
        "If a load of all facts, of a day or of increments is killed, readers have the last complete state, and the "
        "next load completes it."
    ),
    "L12": (
        "`scd withdraw` undoes one load of a fact in one commit, with its author and reason in `fct_y_batches`. Other "
        "loads and other facts keep their rows, and later loads continue. A retry does not load the delivery again; a "
        "load that allows `withdrawn` does. RESTORE is not used."
    ),
    "L13": (
        "Before anything is published, a delivery has to have the declared columns, and the number of rows and the "
        "exact sums that its source declares; bad rows count as rows, so that the loaded ones are the delivered ones "
        "without the quarantined ones. Otherwise it is rejected with both numbers. The keys of the others are resolved "
        "in the commit that publishes them."
    ),
    "L14": (
        "Facts have the surrogate keys of their event time, also after a late change of a dimension, whether all "
        "facts, a day or increments are loaded."
    ),
    "L15": (
        "`fct_y_dimension_versions` shows the table version and the commit of each dimension that a load of a fact has "
        "used, with its run and its batches."
    ),
    "L16": (
        "Scheduled loads run in a declared window, by a clock that tests replace: a run begins no further step after "
        "its end, and fails with an alert; a run whose last step ends later sends an alert too. All tables stay "
        "complete, and the next run continues."
    ),
    "L17": (
        "A load with `load_cores` divides each step of its queries into as many tasks at most, embedded and over Spark "
        "Connect. Spark divides the memory for sorts and joins among the tasks that run, so that this limits it too. "
        "`python -m benchmarks.queries_beside_loads` measures a query without and during loads, with all cores and "
        "with a share of them."
    ),
    "L18": (
        "The deliveries of missed nights, loaded at once, lead to the same rows of a fact as a load each night, with "
        "dimensions that change in between."
    ),
    "L19": "Compaction after a load changes no row for a reader. There are no indexes that have to be disabled.",
}

SLOW = "F16 F26 F41 F44 F54 F56 H1 H3 H4 H9 H10 H11 H24 H30 H33 D19 D20 L12 L14 L15 L16 L18"
"""Rows that need many loads, so that all of their tests, or all of them on tables, are slow."""
NO_TABLE: dict[str, str] = {
    "F46": "A layout that depends on millions of rows or fifty commits takes minutes: the tests on tables are slow.",
    "F47": "When a job runs is a schedule in Dagster; what OPTIMIZE does to a table is F46.",
    "F50": "Conflicts and waits of real writers take minutes: the test on tables is slow. Their order has no table.",
    "F63": "A declaration that is rejected has no table.",
    "F69": "A warning about a declaration has no table.",
    "F71": "A declaration that is rejected has no table; that created tables have no partitions is F10.",
    "F72": "The demos, loaded and evaluated, take minutes: the tests on tables are slow. Their rules need no table.",
    "F74": "As F72.",
    "F75": "As F72.",
    "F76": "As F72.",
    "D1": "A declaration that is rejected has no table.",
    "D2": "A declaration that is rejected has no table.",
    "D43": "A destination that does not exist has no table.",
    "L17": "Which settings a session has during a load has no table; the times of queries are those of a benchmark.",
    **dict.fromkeys(SLOW.split(), "It needs many loads: the tests on tables are slow."),
}
"""Why no test that runs in each build shows a row on tables."""
