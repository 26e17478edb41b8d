"""The pages of the demo, and in plain Python the answers that follow from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Record: TypeAlias = Mapping[str, Any]
Pages: TypeAlias = Mapping[str, Sequence[Record]]
"""The records of each page, by the time at which it was read."""


def issue(number: int, title: str, state: str, updated_at: str) -> Record:
    """Return the record of an issue."""
    return {"id": number, "title": title, "state": state, "updated_at": updated_at}


CRASH = issue(1, "Crash", "open", "2024-01-30T10:00:00Z")
TYPO = issue(2, "Typo", "open", "2024-01-30T11:00:00Z")
SLOW = issue(3, "Slow", "open", "2024-01-31T07:00:00Z")
FIRST: Pages = {
    "2024-01-31T08-00-00": [CRASH, TYPO, {**TYPO, "title": "Typo in README", "updated_at": "2024-01-30T12:00:00Z"}],
    "2024-02-29T08-00-00": [SLOW, {**CRASH, "state": "closed", "updated_at": "2024-02-28T09:00:00Z"}],
}
"""Two pages; the first has an issue twice."""
LATE: Pages = {
    "2024-02-01T08-00-00": FIRST["2024-01-31T08-00-00"],
    "2024-02-10T08-00-00": [{**CRASH, "state": "in progress", "updated_at": "2024-02-09T09:00:00Z"}, SLOW],
    "2024-03-15T08-00-00": [{"id": 2, "deleted": True}],
}
"""A page that repeats one, one that arrives late, and one with a hard delete."""
WITHDRAWN = "2024-03-15T08-00-00"
COMMENTS: Sequence[Record] = [
    {"comment": 1, "issue_id": 1, "written_at": "2024-02-05T00:00:00Z"},
    {"comment": 2, "issue_id": 1, "written_at": "2024-02-20T00:00:00Z"},
    {"comment": 3, "issue_id": 1, "written_at": "2024-03-01T00:00:00Z"},
    {"comment": 4, "issue_id": 2, "written_at": "2024-03-20T00:00:00Z"},
]


def as_lines(records: Sequence[Record]) -> str:
    """Return records as lines of JSON."""
    return "".join(f"{json.dumps(record)}\n" for record in records)


def states(pages: Pages) -> list[tuple[str, dict[int, Record]]]:
    """Return the issues after each page, by their ids, in the order of the pages."""
    issues: dict[int, Record] = {}
    steps = []
    for time in sorted(pages):
        for record in sorted(pages[time], key=lambda each: each.get("updated_at", "")):
            issues = {number: each for number, each in issues.items() if number != record["id"]}
            issues |= {} if record.get("deleted") else {record["id"]: record}
        steps.append((_instant(time), issues))
    return steps


def issues(pages: Pages) -> list[tuple[Any, ...]]:
    """Return the rows of the landing table."""
    last = states(pages)[-1][1]
    return [(number, each["title"], each["state"]) for number, each in sorted(last.items())]


def history(pages: Pages) -> list[tuple[Any, ...]]:
    """Return the state of each issue with its start, and its end or None."""
    steps = states(pages)
    versions = []
    for number in sorted({number for _, each in steps for number in each}):
        changes: list[tuple[str, str | None]] = []
        for time, each in steps:
            state = each[number]["state"] if number in each else None
            if state != (changes[-1][1] if changes else None):
                changes.append((time, state))
        ends = [time for time, _ in changes[1:]]
        versions += [
            (number, state, start, end) for (start, state), end in zip(changes, [*ends, None], strict=True) if state
        ]
    return versions


def comments(pages: Pages) -> list[tuple[Any, ...]]:
    """Return the state of the issue of each comment when it was written; None if the issue did not exist."""
    return [(each["comment"], _state(pages, each["issue_id"], _instant(each["written_at"]))) for each in COMMENTS]


def _state(pages: Pages, number: int, time: str) -> str | None:
    versions = [each for each in history(pages) if each[0] == number]
    return next((state for _, state, start, end in versions if start <= time and (end is None or time < end)), None)


def _instant(text: str) -> str:
    """Return the time in the name of a page or in a record as tables show it."""
    day, _, time = text.rstrip("Z").partition("T")
    return f"{day} {time.replace('-', ':')}"
