"""Every block of the README is run, parsed, or asked of the command line."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from scd_pipeline.cli import dev
from scd_pipeline.cli.app import parser
from scd_pipeline.components import ScdDimension
from scd_pipeline.declaration import ScdType, describe, parse, parse_declarations
from scd_pipeline.spark import session, setup
from scd_pipeline_tests import servers
from scd_pipeline_tests.docs.blocks import README, blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = README.parent
DECLARATIONS = [text for text in blocks(README, "yaml") if text.startswith("dimension:")]
FACTS = [text for text in blocks(README, "yaml") if text.startswith("fact:")]
INSTANCES = [text for text in blocks(README, "yaml") if text.startswith("concurrency:")]
COMPONENTS = [text for text in blocks(README, "yaml") if text.startswith("type:")]
COMMANDS = [line for text in blocks(README, "") for line in text.splitlines() if line.startswith("scd ")]
TARGETS = [line.split()[1] for text in blocks(README, "") for line in text.splitlines() if line.startswith("make ")]

# Where a Spark Connect server of the tests is there, the example takes it in place of a Java machine of its own.
ON_A_SERVER = (
    "from scd_pipeline.spark import session\nsession.local_spark = lambda **_: session.connect_spark({url!r})\n"
)


@pytest.fixture
def preamble(spark: SparkSession, installation: setup.Installation) -> str:
    """What to run before the example."""
    if not hasattr(spark, "client"):
        return ""
    server = session.find_server(servers.folder(), servers.settings(installation))
    assert server is not None
    return ON_A_SERVER.format(url=server.url)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", pytest.param("America/New_York", marks=pytest.mark.slow)])
def test_the_library_example_shows_the_same_in_every_zone(preamble: str, zone: str, tmp_path: Path) -> None:
    (example,) = blocks(README, "python")
    environ = {**os.environ, "TZ": zone, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", preamble + example],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    lines = {re.sub(r"^\d+\s+", "", line) for line in done.stdout.splitlines()}
    shown = {re.sub(r"\s+", " ", line).strip() for line in lines}
    assert shown == {
        "customer_id email city effective_from effective_to",
        "7 ann@b.com Graz 2024-01-01 2024-02-01",
        "7 ann@b.com Wien 2024-02-01 NaT",
        "8 bob@b.com Linz 2024-02-01 NaT",
        "customer_id city",
        "7 Graz",
    }


def test_a_fact_is_declared_beside_its_dimension() -> None:
    (dimension, *_), (text,) = DECLARATIONS, FACTS
    (fact,) = parse_declarations(f"{dimension}\n---\n{text}").facts
    assert fact.key_columns == ("customer_key", "referrer_key")


def test_every_yaml_block_is_a_declaration_a_component_or_an_instance() -> None:
    known = (DECLARATIONS, FACTS, COMPONENTS, INSTANCES)
    assert sum(len(texts) for texts in known) == len(blocks(README, "yaml"))
    assert all(known)


def test_a_project_of_ones_own_is_told_what_this_one_and_scd_dev_have(tmp_path: Path) -> None:
    (told,) = (yaml.safe_load(text) for text in INSTANCES)
    written = dev.dagster_home({}, tmp_path) / "dagster.yaml"
    for place in (ROOT / "dagster.yaml", written):
        settings = yaml.safe_load(place.read_text(encoding="utf-8"))
        assert settings["run_monitoring"] == told["run_monitoring"]
        assert settings["concurrency"]["pools"] == told["concurrency"]["pools"]


@pytest.mark.parametrize("text", DECLARATIONS)
def test_a_declaration_is_valid_and_survives_being_written(text: str) -> None:
    (dimension,) = parse(text, "README.md")
    assert parse(describe(dimension)) == (dimension,)
    assert {attribute.scd for attribute in dimension.attributes} == set(ScdType)


@pytest.mark.parametrize("text", COMPONENTS)
def test_a_component_takes_its_attributes(text: str) -> None:
    told = yaml.safe_load(text)
    assert told["type"] == f"scd_pipeline.components.{ScdDimension.__name__}"
    assert ScdDimension.resolve_from_yaml(yaml.safe_dump(told["attributes"])).declaration == "customers.yaml"


def test_the_commands_are_shown() -> None:
    assert {line.split()[1] for line in COMMANDS} >= {
        "load",
        "plan",
        "sql",
        "as-of",
        "history",
        "dev",
        "doctor",
        "audit",
        "check",
        "status",
    }


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_one_that_scd_knows(line: str) -> None:
    command = re.split(r"\s{3,}", line)[0]
    assert parser().parse_args(shlex.split(command)[1:]).run


@pytest.mark.parametrize("target", TARGETS)
def test_a_make_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("page", [README, ROOT / "examples" / "congress" / "README.md"])
def test_files_that_a_page_names_are_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
