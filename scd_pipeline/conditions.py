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
}
