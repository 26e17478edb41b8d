"""Files and folders at a path with a placeholder: those that match it, and those whose names nearly match."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scd_pipeline.declaration.path_times import FORMS, PathTime, form_expression, path_time
from scd_pipeline.declaration.source import placeholders, split_placeholder
from scd_pipeline.deliveries.entries import Entry, Folder, folder_at
from scd_pipeline.deliveries.files import as_text

_ANY_NAME = r"[^/]*[^/\s][^/]*"
_HIDDEN = (".", "_")
"""How the names of files and folders begin that writers have not completed, or that are not data."""
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE_LIKE = re.compile(rf"(?:[0-9]|[TZ :._+-]|{_MONTHS})+", re.IGNORECASE)
_FEWEST_DIGITS = 6
"""A date has at least as many digits, as 24-1-31 or 2024-01 has; fewer are the number of something else."""
# The suffixes of copies, as browsers, file managers and log rotation write them: before the suffix of the format, and
# after it.
_COPY = re.compile(r"[ ._-]*(?:\([0-9]+\)|copy[ ._-]*\(?[0-9]*\)?)$", re.IGNORECASE)
_COPY_AT_END = r"(?:\.[0-9]{1,3}| ?\([0-9]+\))?"


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A file or folder at a path with a placeholder.

    Attributes:
        entry: The file or folder.
        name: The name of its delivery: the time in its default form, or the text in place of `{delivery}`.
        time: The time in the path; None for `{delivery}`.
    """

    entry: Entry
    name: str
    time: PathTime | None


@dataclass(frozen=True, slots=True)
class NearMatch:
    """A file or folder whose name differs by the form of the date, the case or the suffix of a copy.

    Or a file whose path is that of a folder with deliveries.

    Attributes:
        entry: The file or folder.
        value: The text in place of the placeholder.
        matches_form: Whether this text has the declared form, so that something else differs.
    """

    entry: Entry
    value: str
    matches_form: bool


@dataclass(frozen=True, slots=True)
class PathListing:
    """The files and folders that match a path, and those that nearly match, in order of their paths."""

    matches: tuple[PathMatch, ...]
    near_matches: tuple[NearMatch, ...]


def list_paths(pattern: str) -> PathListing:
    """Return the files and folders at a path with one placeholder; the folder is listed once.

    Names of files and folders that begin with `.` or `_` are ignored, also in place of the placeholder.

    Raises:
        SourceDataError: BUCKET_MISSING or STORE_FAILS: An object store does not list the folder.
    """
    (text,) = placeholders(pattern)
    head, tail = pattern.rstrip("/").split("{" + text + "}", 1)
    placeholder, form = split_placeholder(text)
    value = form_expression(form) if placeholder in FORMS else _ANY_NAME
    exact = re.compile(f"{re.escape(head)}(?P<value>{value}){re.escape(tail)}")
    is_like = _is_date_like if placeholder in FORMS else bool
    within = "." if "/" in form else "[^/]"
    relaxed = re.compile(f"{re.escape(head)}(?P<value>{within}+?){re.escape(tail)}{_COPY_AT_END}", re.IGNORECASE)
    folder = folder_at(head[: head.rfind("/") + 1])
    depth = (form + tail).count("/") + 1
    matches, near_matches = [], []
    for entry in folder.entries(depth):
        if entry.name.startswith(_HIDDEN):
            continue
        match = exact.fullmatch(entry.path)
        if match and head.endswith("/") and match["value"].startswith(_HIDDEN):
            continue
        if match:
            time = path_time(match) if placeholder in FORMS else None
            matches.append(PathMatch(entry, time.name if time else as_text(match["value"]), time))
        elif (match := relaxed.fullmatch(entry.path)) and is_like(match["value"]):
            near_matches.append(NearMatch(entry, match["value"], bool(re.fullmatch(value, match["value"]))))
    if placeholder in FORMS:
        near_matches += _files_in_place_of_folders(folder, head, value, form, tail)
    return PathListing(tuple(matches), tuple(sorted(near_matches, key=lambda near: near.entry.path)))


def _files_in_place_of_folders(folder: Folder, head: str, value: str, form: str, tail: str) -> list[NearMatch]:
    """Return the files whose names match the folder with the placeholder; none if it is in the name of the file."""
    end, separator, _ = tail.partition("/")
    if not separator:
        return []
    pattern = re.compile(f"{re.escape(head)}(?P<value>{value}){re.escape(end)}")
    files = (entry for entry in folder.entries(form.count("/") + 1) if entry.is_file())
    matches = ((file, pattern.fullmatch(file.path)) for file in files)
    return [NearMatch(file, match["value"], matches_form=True) for file, match in matches if match]


def _is_date_like(text: str) -> bool:
    """Return whether a text has only what dates and times have, perhaps with the suffix of a copy."""
    text = _COPY.sub("", text)
    return bool(_DATE_LIKE.fullmatch(text)) and sum(map(str.isdigit, text)) >= _FEWEST_DIGITS


def example_path(pattern: str) -> str:
    """Return a path from the name with its placeholder on, with an example for this, such as `users_2024-01-31.csv`."""
    (text,) = placeholders(pattern)
    placeholder, form = split_placeholder(text)
    example = _EXAMPLE.sub(lambda match: _EXAMPLE_DIGITS[match[1]], form) if placeholder in FORMS else "<name>"
    head, tail = pattern.split("{" + text + "}", 1)
    return f"{head.rpartition('/')[2]}{example}{tail}"


_EXAMPLE = re.compile("%([YymdHMS])")
_EXAMPLE_DIGITS = {"Y": "2024", "y": "24", "m": "01", "d": "31", "H": "23", "M": "59", "S": "59"}
