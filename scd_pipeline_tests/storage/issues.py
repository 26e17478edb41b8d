"""A dimension with child tables on two levels, and its deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from scd_pipeline import queries
from scd_pipeline.declaration import Attribute, Dimension, Feed, Snapshot, Source
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.delta.warehouse import Warehouse

COMMENTS = "array<struct<text:string,reactions:array<struct<user:string>>>>"
ISSUE = Dimension(
    "dim_issue",
    "id",
    {"title": 2, "comments": Attribute(2, COMMENTS)},
    Source("github", Snapshot(), Feed(effective_at="at", deletes="op = 'D'")),
    child_tables=["comments", "comments.reactions"],
)
CHILDREN = ("dim_issue__comments", "dim_issue__comments__reactions")
Comments = Mapping[str, Sequence[str]]


def snapshot(month: int, issues: Mapping[str, Comments | None], **more: Any) -> Delivery:
    """All issues on the first of a month of 2024: for each the texts of its comments, with the users who reacted."""
    rows = [{"id": key, "title": f"issue {key}", "comments": _comments(comments)} for key, comments in issues.items()]
    at = datetime(2024, month, 1, tzinfo=timezone.utc)
    return Delivery("github", f"2024-0{month}-01", channel="snapshot", at=at, frame=rows, **more)


def feed(name: str, key: str, month: int, comments: Comments | None, **more: Any) -> Delivery:
    """One change of an issue on the first of a month of 2024; without comments it is a delete."""
    row = {
        "id": key,
        "at": f"2024-0{month}-01",
        "op": "D" if comments is None else "U",
        "title": f"issue {key}",
        "comments": _comments(comments),
    }
    return Delivery("github", name, channel="feed", frame=[row], **more)


def _comments(comments: Comments | None) -> list[dict[str, Any]] | None:
    if comments is None:
        return None
    return [{"text": text, "reactions": [{"user": user} for user in users]} for text, users in comments.items()]


def elements(warehouse: Warehouse, dimension: Dimension = ISSUE) -> list[dict[str, Any]]:
    """The elements of both child tables, as `queries.child_table` returns them: outer comments join their reactions."""
    comments = queries.child_table(warehouse, dimension, "comments").toArrow().to_pylist()
    reactions = queries.child_table(warehouse, dimension, "comments.reactions").toArrow().to_pylist()
    users: dict[str, list[str]] = {}
    for row in sorted(reactions, key=lambda row: row["reactions_position"]):
        users.setdefault(row["comments_key"], []).append(row["user"])
    assert users.keys() <= {row["comments_key"] for row in comments}
    return [
        {
            "at": row["comments_position"],
            "text": row["text"],
            "users": " ".join(users.get(row["comments_key"], [])),
            "from": row["effective_from"].replace(tzinfo=None),
            "to": row["effective_to"] and row["effective_to"].replace(tzinfo=None),
        }
        for row in comments
    ]
