"""The plots: their texts, size and legibility, with values of any kind."""

from __future__ import annotations

import base64
import re
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from scd_pipeline.components.load_metadata import examples, plotted_version
from scd_pipeline.components.plots import Version, as_markdown, timeline, versions_per_delivery
from scd_pipeline.declaration import Begin, Dimension, Fact, Source
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.load.run import LoadResult

MAX_BYTES = 60_000


def at(*day: int) -> datetime:
    return datetime(*day, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]


def texts(svg: str) -> list[str]:
    """Every text of a plot, in the order in which it is drawn."""
    return [
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")
    ]


HISTORY = [
    Version(1, at(2013, 1, 3), at(2015, 1, 6), {"party": "Democrat", "chamber": "rep"}),
    Version(2, at(2015, 1, 6), at(2019, 1, 3), {"party": "Democrat", "chamber": "sen"}),
    Version(3, at(2020, 1, 3), None, {"party": "Democrat", "chamber": None}),
]


def test_a_timeline_has_a_lane_for_each_attribute_a_time_axis_and_a_caption() -> None:
    """Versions that adjoin and have one value are one band; a gap begins another."""
    labels = texts(timeline("dim_x: history of id 7", HISTORY, "Personal attributes are not shown."))
    assert {"version", "party", "chamber", "business time (UTC)", "dim_x: history of id 7"} <= set(labels)
    assert {"2014", "2018"} <= set(labels), "the time axis"
    assert {"1", "2", "3", "rep", "sen", "NULL"} <= set(labels)
    assert labels.count("Democrat") == 2
    assert any(text.startswith("Equal colors in a lane mean equal values.") for text in labels)
    assert "Personal attributes are not shown." in labels


def test_equal_values_have_one_color_and_others_have_another() -> None:
    values = ["a", "b", "a", None]
    versions = [Version(n + 1, at(2001 + n, 1, 1), at(2002 + n, 1, 1), {"x": v}) for n, v in enumerate(values)]
    svg = timeline("t", versions)
    bands = re.findall(r'<g id="patch_\d+">\s*<path d="[^"]+" [^>]*style="fill: (#\w+)', svg)[-4:]
    assert bands[0] == bands[2]
    assert len(set(bands)) == 3


def test_deliveries_have_axes_with_labels_and_a_count_on_each_side() -> None:
    labels = texts(versions_per_delivery("dim_x", [("2024-01-01", 1200, 0), ("2024-01-02", 3, 2)]))
    assert {"dim_x: versions per delivery", "delivery", "versions closed (left) and opened (right)"} <= set(labels)
    assert {"2024-01-01", "2024-01-02", "closed", "opened", "1,200", "500", "3", "2", "0"} <= set(labels)
    assert not any(text.startswith(("-", "\u2212")) for text in labels), "a count on the left is not negative"


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param([Version(1, None, None, {})], id="no time and no attribute"),
        pytest.param([Version(1, at(2024, 1, 1), None, {"a": "x"})], id="one version"),
        pytest.param(
            [Version(1, at(1, 1, 1), at(1900, 1, 1), {"a": "x"}), Version(2, at(1900, 1, 1), None, {"a": "y"})],
            id="from the first year",
        ),
        pytest.param(
            [Version(1, at(1, 7, 1), at(9998, 6, 1), {"a": "x"}), Version(2, at(9998, 6, 1), None, {"a": "y"})],
            id="to the last year",
        ),
        pytest.param(
            [
                Version(1, at(2024, 1, 1), at(2024, 1, 1, 0, 0, 0, 1), {"a": "x"}),
                Version(2, at(2024, 1, 1, 0, 0, 0, 1), None, {"a": "y"}),
            ],
            id="a microsecond",
        ),
        pytest.param(
            [
                Version(
                    n, at(2000 + n, 1, 1), at(2001 + n, 1, 1), {f"attribute_{i}": f"{n // (i + 1)}" for i in range(30)}
                )
                for n in range(1, 21)
            ],
            id="thirty attributes in twenty versions",
        ),
        pytest.param(
            [
                Version(1, at(2020, 1, 1), at(2021, 1, 1), {"a": "<b>&amp; $x$ $y_1$ \\frac"}),
                Version(2, at(2021, 1, 1), None, {"a": "中文字 \x00\x1b\n\ud83d\ude00 שלום" * 30}),
            ],
            id="letters of any kind",
        ),
    ],
)
def test_a_timeline_of_any_history_is_well_formed_and_small(versions: list[Version]) -> None:
    svg = timeline("dim_x: history of id 7", versions)
    assert "version" in texts(svg)
    assert len(as_markdown(svg, "t")) < MAX_BYTES * 4 / 3


def test_a_timeline_of_many_attributes_has_those_that_differ() -> None:
    values = {f"a{n}": "same" for n in range(20)}
    versions = [
        Version(1, at(2020, 1, 1), at(2021, 1, 1), {**values, "city": "Graz"}),
        Version(2, at(2021, 1, 1), None, {**values, "city": "Wien"}),
    ]
    labels = texts(timeline("t", versions))
    assert {"city", "Graz", "Wien"} <= set(labels)
    assert "a0" not in labels
    assert "20 further attributes are not shown." in labels


def test_a_value_that_does_not_fit_is_in_the_caption() -> None:
    """A band without room has a shortened value or none. A band of the same value with room has the full value."""
    versions = [
        Version(1, at(2020, 1, 1), at(2020, 1, 3), {"a": "short period", "b": "same", "c": "Graz"}),
        Version(2, at(2020, 1, 3), at(2020, 1, 5), {"a": "long period with a long text " * 20, "b": "x", "c": None}),
        Version(3, at(2020, 1, 5), at(2030, 1, 1), {"a": "long period with a long text " * 20, "b": "same", "c": None}),
    ]
    labels = texts(timeline("t", versions))
    (shortened,) = [text for text in labels if text.startswith("long period")]
    assert shortened.endswith("…")
    (caption,) = [text for text in labels if text.startswith("Shortened values: a: short period, long period with")]
    assert caption.endswith("; b: x; c: Graz.")
    assert labels.count("same") == 1


@pytest.mark.parametrize("name", ["2024-01-01", "2024-01-01T00-00-00", "a delivery with a name of its own " * 3])
def test_the_label_of_a_bar_is_the_end_of_the_name(name: str) -> None:
    """Deliveries of one source begin alike."""
    labels = texts(versions_per_delivery("dim_x", [(name, 3, 2)]))
    (label,) = [text for text in labels if len(text) > 8 and name.strip().endswith(text.removeprefix("…"))]
    assert len(label) <= 40


def test_deliveries_of_one_name_are_labeled_with_their_channels() -> None:
    batches = [
        BatchResult(f"crm/{c}/{d}/1", "crm", c, d, "accepted")
        for c, d in (("feed", "a"), ("snapshot", "a"), ("feed", "b"))
    ]
    customer = Dimension("dim_customer", "id", {"city": 2}, Source("crm", snapshot="customers_{date}.csv"))
    markdown = examples(LoadResult("dim_customer", tuple(batches), {}, 1, 1, 0.1), customer)[
        "versions_per_delivery"
    ].value
    plot = base64.b64decode(re.findall(r"base64,([\w+/=]+)", markdown)[0]).decode()
    assert {"crm.feed.a", "crm.snapshot.a", "b"} <= set(texts(plot))


def test_a_table_without_versions_has_no_plot_of_them() -> None:
    source, batch = Source("s", feed="s_{date}.csv"), BatchResult("s/feed/a/1", "s", "feed", "a", "accepted")
    sale = Fact("fct_sale", {"n": "int"}, "at", {"customer": Dimension("d", "id", {"a": 2}, source)}, source)
    for shape in (sale.as_dimension(), Dimension("d", "id", {"a": 1}, source)):
        assert examples(LoadResult(shape.name, (batch,), {}, 1, 1, 0.1), shape) == {}


def test_a_window_from_the_declared_begin_has_no_start() -> None:
    """Otherwise the axis would have no room for the actual times (S29)."""
    source = Source("crm", snapshot="customers_{date}.csv")
    customer = Dimension("d", "id", {"a": 2}, source, begin=Begin("1900-01-01", "2024-01-01"))
    row = {"version": 1, "effective_from": at(1900, 1, 1), "effective_to": None, "a": "x"}
    assert plotted_version(row, ["a"], customer) == Version(1, None, None, {"a": "x"})
    assert plotted_version({**row, "effective_from": at(2024, 2, 1)}, ["a"], customer).start == at(2024, 2, 1)


@pytest.mark.parametrize(
    "svg", [timeline("t", HISTORY, "A caption."), versions_per_delivery("dim_x", [("2024-01-01", 1200, 3)])]
)
def test_a_plot_is_legible_on_light_and_on_dark_pages(svg: str) -> None:
    """It is transparent. Text is on the page, or dark on a band."""
    assert re.search(r'<g id="patch_1">\s*<path [^>]*style="fill: none', svg)
    colors = set(re.findall(r"<text [^>]*fill: (#\w+)", svg))
    assert colors <= {"#727d88", "#22313f"} and "#727d88" in colors
    assert "#000000" not in svg and "#ffffff" not in svg
    for page in ("#ffffff", "#0f1012", "#1a1b1e"):
        assert contrast("#727d88", page) > 4
    bands = re.findall(r'<g id="patch_\d+">\s*<path d="[^"]+" [^>]*style="fill: (#\w+); stroke', svg)
    assert "#22313f" not in colors or min(contrast("#22313f", band) for band in bands) > 4.5


def contrast(color: str, other: str) -> float:
    """Return the contrast ratio of two colors (WCAG 2)."""
    darker, lighter = sorted(map(luminance, (color, other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    """Return the relative luminance of a color (WCAG 2)."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_description_of_a_plot_cannot_break_out_of_the_markdown() -> None:
    assert as_markdown(timeline("t", HISTORY), "a](b)\n[c]").startswith("![a(b) c](data:image/svg+xml;base64,")


def test_the_settings_of_matplotlib_stay_as_they_were(tmp_path: Path) -> None:
    """They do not change the plots."""
    before = timeline("t", HISTORY)
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        settings = dict(mpl.rcParams)
        assert timeline("t", HISTORY) == before
        assert dict(mpl.rcParams) == settings
