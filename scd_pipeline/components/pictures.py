"""Small pictures for the metadata of a materialization: SVG, which Dagster shows where Markdown holds it as data."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from html import escape

_WIDTH, _BAR, _TOP = 720, 18, 24
_LETTER, _LABEL_LETTERS = 7, (14, 40)
"""How wide a letter is drawn at most, on the whole, and how many of them a label has room for: least and most."""
_OPENED, _CLOSED, _INK, _PALE = "#2f6f9f", "#d1703c", "#22313f", "#8fb4cf"


def as_markdown(svg: str, text: str) -> str:
    """The picture as Markdown, with a text for those who do not see it."""
    data = base64.b64encode(svg.encode()).decode()
    return f"![{text}](data:image/svg+xml;base64,{data})"


def versions_per_batch(batches: Sequence[tuple[str, int, int]]) -> str:
    """Bars per batch: how many versions it opened, to the right, and how many it closed, to the left.

    In: name, opened, closed; in the order in which they are to be shown, from top to bottom.
    """
    most = max([1, *(max(opened, closed) for _, opened, closed in batches)])
    names = [_end_of(name) for name, _, _ in batches]
    label = 12 + _LETTER * max([_LABEL_LETTERS[0], *(len(name) for name in names)])
    room = (_WIDTH - label - 130) / 2
    middle = label + 30 + room
    parts = [_text(label, 16, "closed", _CLOSED, "start"), _text(_WIDTH - 20, 16, "opened", _OPENED, "end")]
    for number, (name, (_, opened, closed)) in enumerate(zip(names, batches, strict=True)):
        y = _TOP + number * (_BAR + 4)
        left, right = room * closed / most, room * opened / most
        parts += [
            _text(label - 8, y + 13, name, _INK, "end"),
            _bar(middle - left, y, left, _CLOSED),
            _bar(middle, y, right, _OPENED),
            _text(middle - left - 4, y + 13, str(closed), _INK, "end"),
            _text(middle + right + 4, y + 13, str(opened), _INK, "start"),
        ]
    return _svg(_TOP + len(batches) * (_BAR + 4) + 6, parts)


def _end_of(name: str) -> str:
    """The end of a name that is too long for a label: deliveries of one source begin alike."""
    most = _LABEL_LETTERS[1]
    return name if len(name) <= most else f"...{name[3 - most :]}"


def timeline(title: str, versions: Sequence[tuple[datetime, datetime | None, str]], until: datetime) -> str:
    """The versions of one entity as a band: when each began and ended, and what it says.

    In: windows in order, the end None where there is none; `until` is where the band of an open window stops.
    """
    first = min([until, *(start for start, _, _ in versions)])
    span = max((until - first).total_seconds(), 1.0)

    def place(moment: datetime) -> float:
        return 12 + (_WIDTH - 24) * min(1.0, max(0.0, (moment - first).total_seconds() / span))

    parts = [_text(12, 16, title, _INK, "start")]
    for number, (start, end, says) in enumerate(versions):
        left, right = place(start), place(end or until)
        y = _TOP + 6 + number * (_BAR + 4)
        parts += [
            _bar(12, y, _WIDTH - 24, "#f2f4f6"),
            _bar(left, y, max(right - left, 2.0), _OPENED if end is None else _PALE),
            _text(16 if left < _WIDTH / 2 else _WIDTH - 16, y + 13, _window(start, end, says), _INK, _side(left)),
        ]
    return _svg(_TOP + 12 + len(versions) * (_BAR + 4), parts)


def _side(left: float) -> str:
    return "start" if left < _WIDTH / 2 else "end"


def _window(start: datetime, end: datetime | None, says: str) -> str:
    return f"{start:%Y-%m-%d} to {f'{end:%Y-%m-%d}' if end else 'now'}: {says}"


def _bar(x: float, y: float, width: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_BAR}" rx="2" fill="{fill}"/>'


def _text(x: float, y: float, text: str, fill: str, anchor: str) -> str:
    shown = text if len(text) <= 90 else f"{text[:87]}..."
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}">{escape(shown)}</text>'


def _svg(height: float, parts: Sequence[str]) -> str:
    style = 'font-family="system-ui, sans-serif" font-size="12"'
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )
