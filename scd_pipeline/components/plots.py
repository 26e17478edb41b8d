"""Plots for the metadata of a materialization: SVG by matplotlib, embedded in Markdown as a data URI.

Plots are transparent, and have colors that are legible on light and on dark pages: an image does not know the theme of
Dagster's pages, which need not be that of the browser. Text is stored as text, not as outlines: plots stay small, and
the browser chooses a font that contains the characters.
"""

from __future__ import annotations

import base64
import io
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _DOTS = 720, 72
"""Width of a plot in pixels, and pixels per inch of an SVG."""
_FONT_SIZE, _CHARACTER_WIDTH = 11.0, 0.62
"""Size of the font in pixels, and the width of most characters as a share of it."""
_LABEL_WIDTH, _MAX_LANES = 250.0, 12
_PADDING, _ROW, _TOP, _AXIS, _LINE = 14, 26, 36, 46, 14
"""Heights in pixels: padding, a row, the title above the rows, the time axis, and a line of the caption."""
_CAPTION_WIDTH, _CAPTION_LINES = 115, 3
_INK, _INK_ON_BAND = "#727d88", "#22313f"
"""Colors of text and lines: on the page, and on a light band."""
_OPENED, _CLOSED, _NULL, _VERSIONS = "#3f83b8", "#c4622f", "#eef1f4", ("#c3d3e2", "#dfe8f0")
_BANDS = ("#8fb8de", "#f2b880", "#a3cfa0", "#d7a9d3", "#e6d27a", "#93d0cf", "#e59a96", "#c3b4e8", "#bfc7cd", "#c9b199")
_EARLIEST, _LATEST = (datetime(year, 7, 1, tzinfo=timezone.utc) for year in (1, 9998))
"""Limits of the time axis, which leave room for its ticks; a window that begins earlier has no known start."""
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": _FONT_SIZE,
    "text.color": _INK,
    "text.parse_math": False,  # a value may contain two dollar signs
    "text.usetex": False,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.formatter.useoffset": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "scd_pipeline",  # equal plots are equal texts
}


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an entity: its number, its half-open validity window, and the values of the attributes to plot.

    `start` is None if the start of the window is unknown, `end` if the window has the open end.
    """

    number: int
    start: datetime | None
    end: datetime | None
    values: Mapping[str, str | None]


def import_library() -> None:
    """Import the library of the plots in a thread, while the caller waits for Spark: it takes half a second."""
    Thread(target=import_module, args=("matplotlib.figure",), daemon=True).start()


def as_markdown(svg: str, text: str) -> str:
    """Return a plot as Markdown, with `text` as the alternative text for screen readers."""
    data = base64.b64encode(svg.encode()).decode()
    alternative = "".join(character for character in _printable(text) if character not in "[]")
    return f"![{alternative}](data:image/svg+xml;base64,{data})"


def versions_per_delivery(table: str, deliveries: Sequence[tuple[str, int, int]]) -> str:
    """Plot how many versions each delivery opened and closed.

    Args:
        table: The table's name, for the title.
        deliveries: Name, versions opened and versions closed of each, from top to bottom.

    Returns:
        An SVG with a row for each delivery: a bar to the left for closed versions, one to the right for opened ones.
    """
    names = [_shortened(name) for name, _, _ in deliveries]
    counts = {"closed": [-closed for _, _, closed in deliveries], "opened": [opened for _, opened, _ in deliveries]}
    most = max([1, *(abs(count) for sides in counts.values() for count in sides)])

    def draw(axes: Axes) -> None:
        for (label, values), color in zip(counts.items(), (_CLOSED, _OPENED), strict=True):
            axes.barh(range(len(values)), values, color=color, height=0.68, label=label)
            for row, value in enumerate(values):
                _draw_count(axes, row, value, -4 if label == "closed" else 4)
        axes.axvline(0, color=_INK, linewidth=0.8)
        axes.set_xlim(-1.2 * most, 1.2 * most)
        axes.locator_params(axis="x", integer=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
        axes.set_xlabel("versions closed (left) and opened (right)")
        axes.set_ylabel("delivery")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0.1)

    return _plot(f"{table}: versions per delivery", names, draw, "")


def _draw_count(axes: Axes, row: int, value: int, offset: int) -> None:
    """Draw a count at the end of its bar, at a distance of `offset` pixels."""
    side: Literal["left", "right"] = "right" if offset < 0 else "left"
    style = {"xytext": (offset, 0), "textcoords": "offset pixels", "va": "center_baseline", "size": _FONT_SIZE - 1}
    axes.annotate(f"{abs(value):,}", (value, row), ha=side, **style)


def timeline(title: str, versions: Sequence[Version], caption: str = "") -> str:
    """Plot the history of one entity: a lane for each attribute, and in it a band for each value.

    Args:
        title: The title of the plot.
        versions: At least one version, in the order of their windows; all have the same attributes.
        caption: A sentence to add to the caption.

    Returns:
        An SVG. If there are more than twelve attributes, it contains those that differ between versions.
    """
    names, omitted = _lanes(versions)
    rows = ["version", *(_shortened(name) for name in names)]
    axis = _time_axis(versions)
    pixels_per_second = _axes_width(rows) / (axis[1] - axis[0]).total_seconds()
    lanes = [_versions(versions), *(_bands(versions, name) for name in names)]
    drawn = [[_drawn(band, axis, pixels_per_second) for band in lane] for lane in lanes]
    notes = ["Equal colors in a lane mean equal values. In a gap between the bands the entity is deleted."]
    notes += _in_full(names, drawn[1:])
    notes += [f"{omitted} further attributes are not shown."] if omitted else []
    notes += [caption] if caption else []

    def draw(axes: Axes) -> None:
        axes.set_xlim(*axis)
        for row, bands in enumerate(drawn):
            for band in bands:
                _draw_band(axes, row, band)
        if _axis_times(versions):
            _time_ticks(axes)
        else:
            axes.set_xticks([])

    return _plot(title, rows, draw, "\n".join(notes))


# -- the bands of a timeline


@dataclass(frozen=True, slots=True)
class _Band:
    """A time span with one value; `start` is None if it is unknown, `end` if the span has no end."""

    start: datetime | None
    end: datetime | None
    text: str
    color: str


def _lanes(versions: Sequence[Version]) -> tuple[list[str], int]:
    """Return the attributes to plot, and the number of omitted ones."""
    names = list(versions[0].values)
    if len(names) <= _MAX_LANES:
        return names, 0
    differing = [name for name in names if len({version.values[name] for version in versions}) > 1]
    plotted = (differing or names)[:_MAX_LANES]
    return plotted, len(names) - len(plotted)


def _versions(versions: Sequence[Version]) -> list[_Band]:
    return [_Band(v.start, v.end, str(v.number), _VERSIONS[v.number % len(_VERSIONS)]) for v in versions]


def _bands(versions: Sequence[Version], name: str) -> list[_Band]:
    """Return the bands of an attribute; adjoining versions with the same value are one band."""
    values = dict.fromkeys(version.values[name] for version in versions if version.values[name] is not None)
    colors: dict[str | None, str] = {value: _BANDS[number % len(_BANDS)] for number, value in enumerate(values)}
    bands: list[_Band] = []
    for before, version in zip([None, *versions], versions, strict=False):
        value = version.values[name]
        if before is not None and before.end == version.start and before.values[name] == value:
            bands[-1] = _Band(bands[-1].start, version.end, bands[-1].text, bands[-1].color)
        else:
            text = "NULL" if value is None else value
            bands.append(_Band(version.start, version.end, text, colors.get(value, _NULL)))
    return bands


@dataclass(frozen=True, slots=True)
class _DrawnBand:
    """A band with its limits on the time axis, and as much of its text as fits."""

    band: _Band
    start: datetime
    end: datetime
    text: str


def _drawn(band: _Band, axis: tuple[datetime, datetime], pixels_per_second: float) -> _DrawnBand:
    start, end = max(axis[0], band.start or axis[0]), min(axis[1], band.end or axis[1])
    return _DrawnBand(band, start, end, _fitting(band.text, (end - start).total_seconds() * pixels_per_second - 6))


def _draw_band(axes: Axes, row: int, drawn: _DrawnBand) -> None:
    length, color = drawn.end - drawn.start, drawn.band.color
    axes.barh(row, length, left=drawn.start, height=0.78, color=color, edgecolor=_INK, linewidth=0.5)
    if drawn.text:
        center = (drawn.start + length / 2, row)
        axes.text(*center, drawn.text, ha="center", va="center_baseline", color=_INK_ON_BAND)


def _in_full(names: Sequence[str], lanes: Sequence[Sequence[_DrawnBand]]) -> list[str]:
    """Return lines of the caption with the values that do not fit into their bands, in order of time."""
    hidden: dict[str, list[str]] = {}
    for name, lane in zip(names, lanes, strict=True):
        written = {drawn.band.text for drawn in lane if drawn.text == _printable(drawn.band.text)}
        values = dict.fromkeys(drawn.band.text for drawn in lane if drawn.band.text not in written)
        if values:
            hidden[name] = [_fitting(value, _LABEL_WIDTH) for value in values]
    text = "; ".join(f"{name}: {', '.join(values)}" for name, values in hidden.items())
    return (
        textwrap.wrap(f"Shortened values: {text}.", _CAPTION_WIDTH, max_lines=_CAPTION_LINES, placeholder=" …")
        if text
        else []
    )


def _time_axis(versions: Sequence[Version]) -> tuple[datetime, datetime]:
    """Return the first and the last time of the axis, with room for windows that have no start or no end."""
    times = _axis_times(versions)
    first, last = (min(times), max(times)) if times else (_EARLIEST, _LATEST)
    room = max((last - first) / 7, timedelta(microseconds=1)) if last > first else timedelta(days=1)
    has_start = all(version.start in times for version in versions)
    return first if has_start else first - min(room, first - _EARLIEST), last + min(room, _LATEST - last)


def _axis_times(versions: Sequence[Version]) -> list[datetime]:
    """Return the starts and ends of the windows that the axis can show."""
    times = [time for version in versions for time in (version.start, version.end)]
    return [time for time in times if time is not None and _EARLIEST <= time <= _LATEST]


def _time_ticks(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=timezone.utc, minticks=3, maxticks=8)
    axes.xaxis_date(timezone.utc)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=timezone.utc))
    axes.set_xlabel("business time (UTC)")


# -- shared by all plots


def _plot(title: str, rows: Sequence[str], draw: Callable[[Axes], None], caption: str) -> str:
    """Return a plot with labeled rows as SVG, without an effect on matplotlib's global settings."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    below = _AXIS + _LINE * len(caption.splitlines()) + _PADDING / 2
    height = _TOP + _ROW * max(len(rows), 1) + below
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # matplotlib warns about characters that its own font lacks
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(_WIDTH / _DOTS, height / _DOTS), dpi=_DOTS)
        width = _axes_width(rows)
        left = (_WIDTH - width - _PADDING) / _WIDTH
        axes = figure.add_axes((left, below / height, width / _WIDTH, 1 - (below + _TOP) / height))
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
        draw(axes)
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=_INK, alpha=0.3, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        figure.text(
            _PADDING / _WIDTH, 1 - 20 / height, _shortened(title, _WIDTH - 150), size=_FONT_SIZE + 2, weight="bold"
        )
        figure.text(_PADDING / _WIDTH, _LINE / 2 / height, caption, size=_FONT_SIZE - 1, va="bottom")
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    # In points the plot would be a third larger on the page.
    return re.sub(r'(width|height)="([\d.]+)pt"', r'\1="\2"', file.getvalue(), count=2)


def _axes_width(rows: Sequence[str]) -> float:
    """Return the width of the axes: what the labels of the rows leave, in pixels."""
    label = max(_width(name) for name in [*rows, "0" * 6])
    return _WIDTH - label - 30 - 2 * _PADDING


def _printable(text: str) -> str:
    """Return the text as one line without control characters, which an SVG may not contain."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _width(text: str) -> float:
    """Return an estimate of the width of a text in pixels."""
    wide = sum(unicodedata.east_asian_width(character) in "FW" for character in text)
    return _FONT_SIZE * (_CHARACTER_WIDTH * len(text) + (1 - _CHARACTER_WIDTH) * wide)


def _shortened(text: str, pixels: float = _LABEL_WIDTH) -> str:
    """Return the end of a name that is too wide: names of deliveries of one source often have the same start."""
    name = _printable(text)
    start = next((n for n in range(len(name)) if _width(name[n:]) <= pixels), len(name))
    return name if start == 0 else f"…{name[start + 1 :]}"


def _fitting(text: str, pixels: float) -> str:
    """Return as much of a value as fits, or nothing if that is less than two characters."""
    value = _printable(text)
    if _width(value) <= pixels:
        return value
    end = next((n for n in range(len(value), 1, -1) if _width(value[:n]) + _FONT_SIZE <= pixels), 0)
    return f"{value[:end]}…" if end else ""
