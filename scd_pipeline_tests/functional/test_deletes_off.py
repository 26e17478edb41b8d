"""Snapshots with rows whose keys cannot be read delete nothing: load, status, check and Dagster report it (S27)."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from scd_pipeline.cli import app as cli
from scd_pipeline.components import alerts
from scd_pipeline.components.assets import table_assets
from scd_pipeline.components.checks import table_checks
from scd_pipeline.declaration import read_dimension
from scd_pipeline.deliveries.partitions import EVERYTHING
from scd_pipeline_tests.orchestration.code_locations import warehouse_resource

DECLARATION = """\
dimension: dim_x
business_key: id
sources: {s: {bad_row_limit: 0.3, retire_guard: 1, snapshot: "x_{date}.csv"}}
attributes: {city: 2}
"""


def write(folder: Path, day: str, *keys: int, footer: bool) -> None:
    lines = ["id,city", *(f"{key},Graz" for key in keys), *(["", f"({len(keys)} rows affected)"] if footer else [])]
    (folder / f"x_{day}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.slow(30)
@pytest.mark.rule("S27")
def test_deletes_that_are_off_are_reported_until_a_snapshot_deletes(
    spark: SparkSession,
    remote: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(alerts, "send_alert", lambda *_: [])
    settings = {"REMOTE": remote, "WAREHOUSE": str(tmp_path / "warehouse"), "DECLARATIONS": "d.yaml"}
    for name, value in settings.items():
        monkeypatch.setenv(f"SCD_{name}", value)
    (tmp_path / "d.yaml").write_text(DECLARATION, encoding="utf-8")

    def scd(*arguments: str) -> tuple[int, str, list[str]]:
        code, output = cli.main(arguments), capsys.readouterr()
        return code, output.out, output.err.splitlines()

    def warnings() -> list[str]:
        code, _, messages = scd("load")
        assert code == 0
        return [message for message in messages if message.startswith("warning: [DELETES_OFF]")]

    write(tmp_path, "2024-01-01", 1, 2, 3, 4, footer=False)
    assert warnings() == []
    write(tmp_path, "2024-01-02", 1, 2, 3, footer=True)
    write(tmp_path, "2024-01-03", 1, 2, 3, footer=True)
    (warning,) = warnings()
    expected = (
        "[DELETES_OFF] dim_x.s: deletes are off since 2024-01-02 (2 snapshots): the snapshots retire no entities, "
        "because keys of rows cannot be read; 2024-01-03 has 1 row without a readable key, for example: "
    )
    assert warning.startswith(f"warning: {expected}")
    assert "skip_footer" in warning and "rows affected" not in warning
    assert scd("status")[1].count(warning.removeprefix("warning: ")) == 1
    code, out, messages = scd("check", "--format", "json")
    (check,) = [each for each in json.loads(out) if each["invariant"] == "deletes_are_in_effect"]
    assert (code, check["result"], check["keys"]) == (0, "warning", [warning.removeprefix("warning: ")])
    assert messages[-1] == "15 checks: 14 passed, 0 failed, 1 warning"

    dimension = read_dimension(tmp_path / "d.yaml")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("dim_x_deliveries", [EVERYTHING])
        run = dg.materialize(
            [table_assets(dimension), table_checks(dimension)],
            resources={"warehouse": warehouse_resource(spark, str(tmp_path / "warehouse"))},
            instance=instance,
            partition_key=EVERYTHING,
        )
    failed = [each for each in run.get_asset_check_evaluations() if not each.passed]
    assert [(each.check_name, each.severity) for each in failed] == [
        ("deletes_are_in_effect", dg.AssetCheckSeverity.WARN)
    ]
    events = [each.metadata for each in run.asset_materializations_for_node("load_dim_x")]
    (text,) = [each["load/warnings"].value for each in events if "load/warnings" in each]
    # No delivery was new, so that the load has read no row and no reason.
    assert "2024-01-03 has 1 row without a readable key; expected" in str(text)

    skipping = DECLARATION.replace('"x_{date}.csv"', '{path: "x_{date}.csv", skip_footer: 2}')
    (tmp_path / "d.yaml").write_text(skipping, encoding="utf-8")
    write(tmp_path, "2024-01-04", 1, 2, 3, footer=True)
    assert warnings() == []
    assert scd("check")[1].splitlines()[-1] == "15 checks: 15 passed, 0 failed"
