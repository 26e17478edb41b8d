"""Delta tables of the benchmark: written, copied, compared."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.data import KEY, OPEN_END, VERSION_COLUMNS, timestamp

SURROGATE_KEY = "customer_key"
PROPERTIES = {"delta.enableDeletionVectors": "true"}
"""The properties of every contestant's table, as the package creates its own."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The count of a table's rows and a checksum that does not depend on their order."""

    count: int
    checksum: str


def checksum(rows: DataFrame) -> Rows:
    """Return count and checksum of all columns, in their order; NULL differs from every value."""
    values = [F.coalesce(F.col(name).cast("string"), F.lit("\0")) for name in rows.columns]
    code = F.xxhash64(*values)
    result = rows.agg(
        F.count("*").alias("count"), F.sum(code.cast("decimal(20,0)")).alias("sum"), F.bit_xor(code).alias("xor")
    ).first()
    assert result is not None
    return Rows(result["count"], f"{result['sum']}/{result['xor']}")


def as_dimension(versions: DataFrame) -> DataFrame:
    """Return versions with the columns that a plain SCD2 table has in addition."""
    return versions.select(
        F.xxhash64(KEY, "effective_from").alias(SURROGATE_KEY),
        *VERSION_COLUMNS,
        (F.col("effective_to") == timestamp(OPEN_END)).alias("current_flag"),
    )


def identifier(path: Path) -> str:
    """Return the table at a path as SQL names it."""
    return f"delta.`{path}`"


def table_properties() -> str:
    """Return the properties of every contestant's table as a clause of SQL."""
    return "TBLPROPERTIES (" + ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.items()) + ")"


def write_table(rows: DataFrame, path: Path) -> None:
    """Create a Delta table with these rows, in one commit of rows."""
    spark = rows.sparkSession
    columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in rows.schema.fields)
    spark.sql(f"CREATE TABLE {identifier(path)} ({columns}) USING delta {table_properties()}")
    rows.write.format("delta").mode("append").save(str(path))


def read_table(spark: SparkSession, path: Path) -> DataFrame:
    """Return the rows of the Delta table at a path."""
    return spark.read.format("delta").load(str(path))


def copy_folder(source: Path, target: Path) -> None:
    """Copy tables: data files, which never change, as links to the same file, everything else as copies."""

    def copy(file: str, to: str) -> object:
        if file.endswith(".parquet") and "_delta_log" not in file:
            os.link(file, to)
        else:
            shutil.copyfile(file, to)
        return to

    shutil.copytree(source, target, symlinks=True, copy_function=copy)


def files(folder: Path) -> Iterator[Path]:
    """Yield all files of a folder and its subfolders."""
    return (path for path in folder.rglob("*") if path.is_file())
