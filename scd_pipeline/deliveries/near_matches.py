"""Files that are not deliveries, although their names nearly match the path of a channel."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from scd_pipeline.declaration.path_times import FORMS, has_time_of_day, suggested_form
from scd_pipeline.declaration.source import placeholders, split_placeholder
from scd_pipeline.deliveries.files import as_text
from scd_pipeline.deliveries.path_matches import NearMatch, example_path
from scd_pipeline.errors import LoadWarning
from scd_pipeline.texts import first_names


@dataclass(frozen=True, slots=True)
class NearMatches:
    """The near matches of one channel.

    Attributes:
        table: The dimension or fact.
        source, channel: The source and the channel.
        pattern: The declared path.
        files: The files or folders.
    """

    table: str
    source: str
    channel: str
    pattern: str
    files: tuple[NearMatch, ...]

    @property
    def names(self) -> list[str]:
        """The names of the files or folders."""
        return [as_text(file.entry.name) for file in self.files]

    def warning(self) -> LoadWarning:
        """Return the warning that names the files, the expected names and the fix."""
        details = {
            "files": first_names(self.names),
            "path": self.pattern,
            "example": example_path(self.pattern),
            "form": self._form(),
        }
        return LoadWarning("NEAR_MATCH", f"{self.table}.{self.source}.{self.channel}", details)

    def _form(self) -> str:
        """Return the advice to declare the form of the dates; empty if they have the declared one, or several."""
        (text,) = placeholders(self.pattern)
        form = suggested_form([file.value for file in self.files if not file.matches_form])
        if form is None or split_placeholder(text)[0] not in FORMS:
            return ""
        placeholder = "{" + ("datetime" if has_time_of_day(form) else "date") + f":{form}" + "}"
        declared = self.pattern.replace("{" + text + "}", placeholder)
        return f"declare the form of their dates, as in {declared}, or "


def without_used(near_matches: Iterable[NearMatches], used: Collection[str | None]) -> tuple[NearMatches, ...]:
    """Return the near matches that are not deliveries of other channels, whose paths are in `used`."""
    unused = [
        replace(each, files=tuple(file for file in each.files if file.entry.path not in used)) for each in near_matches
    ]
    return tuple(each for each in unused if each.files)
