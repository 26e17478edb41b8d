"""Checks of the control totals that a source declares with its deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.control_totals import CONTROL_FILE_SUFFIXES, ControlTotals, summable_scales
from scd_pipeline.declaration.source import Channel, placeholders, split_placeholder
from scd_pipeline.errors import DeclarationError
from scd_pipeline.texts import did_you_mean, short_repr

if TYPE_CHECKING:
    from scd_pipeline.declaration.dimension import Dimension


def check_control_totals(errors: ErrorCollector, draft: Dimension) -> None:
    """Check the control totals of each channel of a dimension, a fact or a landing table."""
    for source in draft.sources:
        for name, channel in source.channels:
            totals, field = channel.control_totals, f"sources.{source.name}.{name}.control_totals"
            if totals is not None and _is_complete(errors, field, totals):
                _check_sums(errors, f"{field}.sums", totals, draft, source.name)
                _check_path(errors, f"{field}.path", totals, channel)
                if channel.versions or channel.has_cursor:
                    problem = "a load of this channel reads only the rows that are new"
                    errors.add("NOT_APPLICABLE", field, problem, "remove it, or deliver files, partitions or frames")


def _is_complete(errors: ErrorCollector, field: str, totals: Any) -> bool:
    """Return whether these are control totals of texts; collect an error if they are not, or if there are none."""
    if not isinstance(totals, ControlTotals):
        errors.add("INVALID_KIND", field, f"{short_repr(totals)} is not a mapping", "name columns in `rows` and `sums`")
        return False
    sums: Any = totals.sums
    if not isinstance(sums, Mapping):
        errors.add("INVALID_KIND", f"{field}.sums", f"{short_repr(sums)} is not a mapping", "name columns by columns")
        return False
    texts = {"rows": totals.rows, "path": totals.path, **{f"sums.{name}": column for name, column in sums.items()}}
    invalid = {option: text for option, text in texts.items() if not isinstance(text, str | None)}
    for option, text in invalid.items():
        errors.add("INVALID_KIND", f"{field}.{option}", f"{short_repr(text)} is not text", "write a name as text")
    if not totals.rows and not sums:
        errors.add("MISSING_VALUE", field, "has neither `rows` nor `sums`", "name the columns with the control totals")
        return False
    return not invalid


def _check_sums(errors: ErrorCollector, field: str, totals: ControlTotals, draft: Dimension, source: str) -> None:
    """Check that a sum is of a column of whole numbers or decimals, whose sum is exact."""
    try:
        scales = summable_scales(draft, source)
    except DeclarationError:  # another check reports the type that does not parse
        return
    for name in totals.sums:
        if name not in scales:
            problem = f"{short_repr(name)} is not a column of whole numbers or decimals of this source"
            errors.add("UNKNOWN_NAME", field_path(field, name), problem, did_you_mean(name, scales))


def _check_path(errors: ErrorCollector, field: str, totals: ControlTotals, channel: Channel) -> None:
    """Check that the file of the control totals has the placeholder of the deliveries, and a format that is read."""
    if totals.path is None:
        return
    if not totals.path.endswith(CONTROL_FILE_SUFFIXES):
        suffixes = " or ".join(CONTROL_FILE_SUFFIXES)
        errors.add("NOT_ALLOWED", field, f"{short_repr(totals.path)} does not end in {suffixes}", "convert the file")
    names = [split_placeholder(text)[0] for text in placeholders(totals.path)]
    if channel.placeholder is None:
        errors.add("OPTION_REQUIRED", field, "requires a `path` with a placeholder", "name columns of the rows instead")
    elif names != [channel.placeholder]:
        problem = f"does not have the placeholder {{{channel.placeholder}}} of the deliveries once"
        errors.add("PATH_PLACEHOLDER", field, problem, f"write {{{channel.placeholder}}} in its name")
