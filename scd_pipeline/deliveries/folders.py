"""Columns whose values are in the names of folders, as in `city=Graz/part-0.parquet`, read as text.

Spark infers the types of such columns and reads `city=007` as the number 7. The declared cast decides instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.deliveries.delivery import NO_VALUE
from scd_pipeline.deliveries.paths import escape_glob, normalize_path
from scd_pipeline.deliveries.row_columns import FILE


def load_folders(
    reader: DataFrameReader, paths: Sequence[str], fields: Sequence[T.StructField] | None = None
) -> DataFrame:
    """Return the rows of files or folders, with the values in the names of folders as text.

    Args:
        reader: A reader.
        paths: The paths.
        fields: The columns; by default those that Spark infers from one of the files.
    """
    locations = [escape_glob(path) for path in paths]
    frame = (reader.schema(T.StructType(list(fields))) if fields else reader).load(locations)
    names = folder_columns(frame, paths)
    if not names:
        return frame
    fields = [
        T.StructField(field.name, T.StringType()) if field.name in names else field for field in frame.schema.fields
    ]
    return reader.schema(T.StructType(fields)).load(locations)


def folder_columns(frame: DataFrame, paths: Sequence[str]) -> list[str]:
    """Return the columns of a frame whose values are in the names of the folders below its paths."""
    names = folder_names(frame, paths)
    return [name for name in frame.columns if name.casefold() in names] if names else []


def folder_names(frame: DataFrame, paths: Sequence[str]) -> dict[str, str]:
    """Return the columns whose values are in the names of the folders below paths, by their names without case.

    Args:
        frame: A frame that reads the files.
        paths: The paths.
    """
    if all(_has_no_folders(Path(path)) for path in paths):
        return {}
    depth = max(len(_parts(path)) for path in paths)
    folders = {folder for uri in frame.inputFiles() for folder in _parts(unquote(uri))[depth:-1]}
    names = sorted(unquote(folder.partition("=")[0]) for folder in folders if "=" in folder)
    return {name.casefold(): name for name in names}


def _has_no_folders(path: Path) -> bool:
    """Return whether a path is a file of this machine, or a folder of it without other folders."""
    return path.is_file() or (path.is_dir() and not any(each.is_dir() for each in path.glob("*")))


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(normalize_path(path)).parts


def with_folder_values(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Set columns to the values in the folders of `_scd_file`."""
    return rows.withColumns({name: _folder_value(name) for name in names}) if names else rows


def _folder_value(name: str) -> Column:
    # The name of a folder is percent-encoded by its writer, and all of it once more in the URI.
    encoded = quote(quote(name, safe=""), safe="")
    escaped = F.regexp_extract(FILE, f"(?i)^.*/({re.escape(quote(name))}|{re.escape(encoded)})=([^/]*)/", 2)
    value = _decoded(_decoded(escaped))
    return F.when(value != NO_VALUE, value)


def _decoded(text: Column) -> Column:
    """Return a percent-encoded text decoded, as it is if it is not encoded."""
    return F.coalesce(F.try_url_decode(F.replace(text, F.lit("+"), F.lit("%2B"))), text)
