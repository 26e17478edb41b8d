"""Paths of files, in the spellings of users and of Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from scd_pipeline.declaration.source import is_address, without_file_scheme
from scd_pipeline.deliveries.row_columns import FILE

_GLOB_CHARACTER = re.compile(r"([\[\]{}*?\\])")


def absolute_path(path: str) -> str:
    """Return a local path as absolute; an absolute one and a URL unchanged."""
    return path if path.startswith("/") or is_address(path) else str(Path.cwd() / path)


def normalize_path(path: str) -> str:
    """Return a path or URL in one spelling: local ones absolute without a scheme, no slash doubled or at the end."""
    # Links are not resolved: Spark names a file by the path that it was read from.
    full = path if is_address(path) else os.path.abspath(path)  # noqa: PTH100 (see above)
    return str(PurePosixPath(without_file_scheme(full)))


def normalize_uri(uri: str) -> str:
    """Return a URI that Spark returns to the client in the spelling of `file_column`, which has fewer slashes."""
    return re.sub("^file:/", "/", re.sub("^([A-Za-z0-9+.-]+):///", r"\1:/", uri))


def file_column() -> Column:
    """Return the column `_scd_file`: the URI of a row's file, still percent-encoded."""
    return normalized_file(F.col("_metadata.file_path"))


def normalized_file(uri: Column) -> Column:
    """Return a URI of `_metadata` as the column `_scd_file`."""
    short = F.regexp_replace(uri, "^([A-Za-z0-9+.-]+):///", "$1:/")
    return F.regexp_replace(short, "^file:/", "/").alias(FILE)


def row_order_column() -> Column:
    """Return the position of a row in its file: rows are in order in each block of the file, which one task reads."""
    return F.struct(F.col("_metadata.file_block_start").alias("block"), F.monotonically_increasing_id().alias("row"))


def owning_path(uri: str, paths: Mapping[str, str]) -> str | None:
    """Return the path that a file belongs to: its own, or that of a folder that contains it; None without either.

    Args:
        uri: The URI of the file, percent-encoded.
        paths: The candidates by their normalized spelling.
    """
    file = PurePosixPath(normalize_path(unquote(uri)))
    return next((paths[str(path)] for path in (file, *file.parents) if str(path) in paths), None)


def is_pattern(path: str) -> bool:
    """Return whether Spark reads a path as a glob pattern: it has glob characters, and nothing here has that name."""
    return bool(_GLOB_CHARACTER.search(path)) and not os.path.lexists(path)


def escape_glob(path: str) -> str:
    """Return a path that Spark reads literally unless it is a pattern."""
    return path if is_pattern(path) else _GLOB_CHARACTER.sub(r"\\\1", path)


def exists_for_spark(spark: SparkSession, path: str) -> bool:
    """Return whether the server sees anything at the path."""
    try:
        return bool(spark.read.format("binaryFile").load(path).schema)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
