"""Read a table or a query of a database over JDBC, so that each value arrives as the database has it (S26)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from scd_pipeline.declaration import Jdbc
from scd_pipeline.declaration.names import quote_name
from scd_pipeline.errors import first_line

_POSTGRESQL = "jdbc:postgresql:"
_DRIVER = "org.postgresql.Driver"
_POSTGRESQL_OPTIONS = {
    "driver": _DRIVER,
    # Spark writes the time of a condition without its zone.
    "sessionInitStatement": "SET TIME ZONE 'UTC'",
    # All rows at once would have to fit into the memory of a task.
    "fetchsize": "10000",
}
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
"""The message of a cause in the text of an error: the database's own, where Spark's says that there is one."""
_NO_DRIVER = ("ClassNotFoundException", "No suitable driver")
_UNLIMITED = T.DecimalType(38, 18)
"""How Spark reads a number without limits of its digits: the database may have more of them."""


class DatabaseProblem(Exception):
    """A database cannot be read; `code` and `details` are of the rejection of the delivery."""

    def __init__(self, code: str, **details: object) -> None:
        super().__init__(code)
        self.code = code
        self.details = details


def read_database(spark: SparkSession, jdbc: Jdbc, connection: Mapping[str, str]) -> DataFrame:
    """Return the rows of a table or a query; the columns are requested, and the rows are not read yet.

    A number without limits of its digits is text, which a declared type reads without a loss. A time without a zone is
    a TIMESTAMP_NTZ, which is read in the zone of the source.

    Args:
        spark: The session.
        jdbc: The declaration.
        connection: Address and login.

    Raises:
        DatabaseProblem: The driver is missing, or the database returns an error. The message has no secret.
    """
    options = {"preferTimestampNTZ": "true", **_reader_options(jdbc, connection)}
    try:
        frame = spark.read.format("jdbc").options(**options).load()
        unlimited = [field.name for field in frame.schema.fields if field.dataType == _UNLIMITED]
        if not unlimited:
            return frame
        types = ", ".join(f"{quote_name(name)} STRING" for name in unlimited)
        return spark.read.format("jdbc").options(**options, customSchema=types).load()
    except (PySparkException, Py4JJavaError) as error:
        raise _problem(error, connection) from None


def _reader_options(jdbc: Jdbc, connection: Mapping[str, str]) -> dict[str, str]:
    options = {**(_POSTGRESQL_OPTIONS if connection["url"].startswith(_POSTGRESQL) else {}), **jdbc.options}
    options |= {**connection, "dbtable": jdbc.relation}
    if (partitions := jdbc.partitions) is not None:
        options |= {
            "partitionColumn": partitions.column,
            "lowerBound": str(partitions.lower),
            "upperBound": str(partitions.upper),
            "numPartitions": str(partitions.number),
        }
    return options


def _causes(error: Exception) -> Iterator[Exception]:
    """Yield the causes of an error of an embedded session; Spark Connect has them in the text of the error."""
    while (cause := getattr(error, "_cause", None)) is not None:
        yield (error := cause)


def _problem(error: Exception, connection: Mapping[str, str]) -> DatabaseProblem:
    """Return the problem that an error of Spark or the database describes, without the address and the password."""
    message = str(error)
    if any(text in message for text in _NO_DRIVER):
        return DatabaseProblem("DRIVER_MISSING", driver=_DRIVER)
    causes = [error, *_causes(error)]
    of_server = _CAUSE.findall(message)
    reason = of_server[-1] if of_server else first_line(causes[-1])
    for option in ("password", "url"):
        if value := connection.get(option):
            reason = reason.replace(value, f"<{option}>")
    return DatabaseProblem("DATABASE_UNREADABLE", reason=reason)
