"""Tables of the documentation that decide something: which SCD type, and why time travel does not replace history."""

from __future__ import annotations

import pytest

from scd_pipeline.declaration import parse
from scd_pipeline.errors import DeclarationError
from scd_pipeline_tests.docs.blocks import ROOT
from scd_pipeline_tests.semantics.specification import requirement

DECLARATION = """\
dimension: dim_player
business_key: player_id
history_table: {history_table}
sources: {{loyalty: {{feed: {{path: "p_{{date}}.csv", effective_at: at}}}}}}
attributes: {{tier: {attribute}}}
"""


def table_below(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its header."""
    section = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    lines = [line for line in section.partition("\n#")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@requirement("F63")
def test_six_rules_lead_to_a_type() -> None:
    """Type 0, 1, 3, 6, 4 and 2, each of which can be declared; 5 cannot."""
    types = [answer[0] if "type 4" not in answer else "4" for _, answer in table_below("concepts.md", "Which type")]
    assert types == ["0", "1", "3", "6", "4", "2"]
    for scd in types:
        attribute = "{scd: 6, previous: true}" if scd == "6" else "2" if scd == "4" else scd
        (dimension,) = parse(DECLARATION.format(history_table=str(scd == "4").lower(), attribute=attribute))
        assert int(dimension.attributes[0].scd) == (2 if scd == "4" else int(scd))
        assert dimension.history_table == (scd == "4")
    with pytest.raises(DeclarationError):
        parse(DECLARATION.format(history_table="false", attribute="5"))


@requirement("D43")
def test_the_only_destination_is_documented_and_no_other_one_can_be_declared() -> None:
    features = dict(table_below("reference/elsewhere.md", "Features of other tools that are missing here"))
    assert features["dlt: a list of destinations"].startswith("the only destination is Delta")
    declaration = DECLARATION.format(history_table="false", attribute="2")
    with pytest.raises(DeclarationError, match="destination"):
        parse(f"{declaration}destination: postgres\n")


@requirement("F44")
def test_four_caveats_of_time_travel_are_documented() -> None:
    rows = table_below("reference/elsewhere.md", "Why time travel does not replace history")
    assert [caveat for caveat, _ in rows] == ["retention", "time of the commit", "joins", "cost"]
    assert all(consequence for _, consequence in rows)
