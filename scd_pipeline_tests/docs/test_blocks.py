"""Every block of code on every page is valid: declarations, components, commands, Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
import pytest
import yaml

from scd_pipeline import Pipeline
from scd_pipeline.cli import dev
from scd_pipeline.components import ScdDimension
from scd_pipeline.declaration import ScdType, describe, parse_declarations
from scd_pipeline.spark import session
from scd_pipeline_tests.docs import commands
from scd_pipeline_tests.docs.blocks import PAGES, README, ROOT, Block, all_blocks

PAGES_WITH_LINKS = (*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("examples/*/README.md"))
EXECUTED_ELSEWHERE = {
    "databases.md": "docs/test_databases.py",
    "landing-tables.md": "landing/test_examples.py",
    "declaration.md": "unit/test_yaml_documentation.py",
    "python.md": "docs/test_readme.py",
    "read-without-spark.md": "docs/test_readme.py",
    "runbooks.md": "docs/test_pages.py",
    "timed-tables.md": "timed/test_example.py",
}
OTHER_PROGRAMS = {"cd", "dg", "export", "mkdir", "pip"}

CUSTOMER = (
    "dimension: dim_customer\nbusiness_key: customer_id\nattributes: {city: 2}\n"
    'sources: {crm: {snapshot: "{date}.csv"}}\n---\n'
)
"""The dimension of a fact that is in a file of its own."""

AROUND = {
    "dimension": ("dimension: dim_x\nbusiness_key: id\n", ""),
    "fact": (
        CUSTOMER + 'fact: fct_sale\ngrain: sale_id\nevent_time: sold_at\nsources: {till: {feed: "{date}.csv"}}\n',
        "",
    ),
    "source": ("dimension: dim_x\nbusiness_key: id\nattributes: {a: 2}\nsources:\n  s:\n", "    "),
}
"""For each kind of fragment, the text of a declaration before it and its indentation."""


def block_id(block: Block) -> str:
    """Return the id of a block's test."""
    return block.name


def is_foreign(block: Block) -> bool:
    """Return whether the block is for another tool."""
    return block.note.startswith("example of: ")


def declaration(block: Block) -> str:
    """Return the declaration in a block; a fragment is completed; empty if the block has none."""
    part = block.note.removeprefix("part of: ")
    if part in AROUND:
        before, indentation = AROUND[part]
        return before + "".join(f"{indentation}{line}" for line in block.text.splitlines(keepends=True))
    if block.text.startswith("fact:"):
        return CUSTOMER + block.text
    return block.text if re.match(r"(#.*\n)*(dimension|history_of|fact|landing_table|timed_table):", block.text) else ""


YAML = [block for block in all_blocks("yaml") if not is_foreign(block)]
DECLARATIONS = [block for block in YAML if declaration(block)]
COMPONENTS = [block for block in YAML if block.text.startswith("type:")]
INSTANCES = [block for block in YAML if block.note == "part of: dagster.yaml"]
RUN_CONFIGURATIONS = [block for block in YAML if block.note == "part of: run configuration"]
SHELL = all_blocks("sh")
PYTHON = [block for block in all_blocks("python") if not is_foreign(block)]


def test_every_block_of_yaml_is_of_a_kind_that_is_tested() -> None:
    tested = [*DECLARATIONS, *COMPONENTS, *INSTANCES, *RUN_CONFIGURATIONS]
    assert [block.name for block in YAML if block not in tested] == []


def test_every_block_has_a_language_that_is_tested_or_shown_as_text() -> None:
    languages = {block.language for block in all_blocks() if not is_foreign(block)}
    assert languages <= {"csv", "json", "python", "sh", "text", "toml", "yaml"}


@pytest.mark.parametrize("block", DECLARATIONS, ids=block_id)
def test_a_declaration_is_valid_and_survives_being_written(block: Block) -> None:
    declared = parse_declarations(declaration(block), block.name)
    tables = [text for text in declaration(block).split("---\n") if text.startswith(("timed_table:", "landing_table:"))]
    for dimension in declared.dimensions:
        described = "---\n".join([describe(dimension), *tables])
        assert parse_declarations(described).dimensions == (dimension,)


def test_the_examples_show_every_type_of_attribute() -> None:
    declared = [parse_declarations(declaration(block)) for block in DECLARATIONS]
    types = {
        attribute.scd for declarations in declared for item in declarations.dimensions for attribute in item.attributes
    }
    assert types == set(ScdType)


@pytest.mark.parametrize("block", COMPONENTS, ids=block_id)
def test_a_component_file_is_valid(block: Block) -> None:
    content = yaml.safe_load(block.text)
    assert content["type"] == f"scd_pipeline.components.{ScdDimension.__name__}"
    attributes = content["attributes"]
    component = ScdDimension.resolve_from_yaml(yaml.safe_dump(attributes))
    assert component.model_dump(include=set(attributes)) == attributes


def test_every_option_of_the_component_is_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "dagster.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [name for name in ScdDimension.model_fields if not any(f"`{name}`" in row for row in rows)] == []


@pytest.mark.parametrize("block", RUN_CONFIGURATIONS, ids=block_id)
def test_run_configuration_names_a_rule_that_can_be_overridden(block: Block) -> None:
    ((step, content),) = yaml.safe_load(block.text)["ops"].items()
    assert step.startswith("load_dim_")
    assert all(commands.accepts(f"scd load --allow '{rule}'") for rule in content["config"]["allow"])


def test_the_settings_of_an_instance_are_those_of_this_project_and_of_scd_dev(tmp_path: Path) -> None:
    (instance,) = (yaml.safe_load(block.text) for block in INSTANCES)
    written = dev.dagster_home({}, tmp_path) / "dagster.yaml"
    for path in (ROOT / "dagster.yaml", written):
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert settings["run_monitoring"] == instance["run_monitoring"]
        assert settings["concurrency"]["pools"] == instance["concurrency"]["pools"]
        assert settings["run_launcher"] == instance["run_launcher"]


@pytest.mark.parametrize("block", SHELL, ids=block_id)
def test_a_command_is_accepted(block: Block) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for command in block.commands:
        program, *arguments = command.split()
        if program == "make":
            assert arguments[0] in targets
        elif program == "scd":
            assert commands.accepts(command), command
        else:
            assert program in OTHER_PROGRAMS, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_in_the_text_exists(page: Path) -> None:
    mentioned = re.findall(r"`scd ([a-z-]+)[^`]*`", page.read_text(encoding="utf-8"))
    assert set(mentioned) <= set(commands.names())


@pytest.mark.parametrize("name", commands.REFERENCES)
def test_a_reference_in_a_page_is_the_one_that_the_code_generates(name: str) -> None:
    assert commands.reference_block(name) in commands.page_text(name), "run python -m scd_pipeline_tests.docs.commands"


def test_a_reference_is_valid_markdown_of_the_width_of_the_help_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal decides nothing, and `<` outside of code is no HTML tag."""
    monkeypatch.setenv("COLUMNS", "200")
    assert max(map(len, commands.reference().splitlines())) <= commands.WIDTH
    assert commands.escape("<a> and `<b>`") == "&lt;a> and `<b>`"


def test_python_is_executed_here_or_elsewhere() -> None:
    assert {block.page.name for block in PYTHON if not block.note} == set(EXECUTED_ELSEWHERE)


@pytest.mark.parametrize("block", [block for block in PYTHON if block.note == "part of: definitions"], ids=block_id)
def test_a_line_of_definitions_runs(block: Block) -> None:
    names: dict[str, Any] = {"__file__": "src/shop/definitions.py"}
    with mock.patch.object(dg, "load_from_defs_folder", autospec=True, return_value=dg.Definitions()):
        exec(block.text, names)
        if "defs" in names:
            assert names["defs"]().executor is dg.in_process_executor


@pytest.mark.parametrize("block", [block for block in PYTHON if block.note == "part of: cluster"], ids=block_id)
def test_a_warehouse_of_a_cluster_is_opened(block: Block) -> None:
    spark = mock.MagicMock()
    spark.conf.get.return_value = "UTC"
    names: dict[str, object] = {}
    with mock.patch.object(session, "open_spark", return_value=spark):
        exec(block.text, names)
    assert isinstance(names["pipeline"], Pipeline)


@pytest.mark.parametrize("page", PAGES_WITH_LINKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_links_to_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_list_for_language_models_has_every_page_of_the_site() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nmarkdown_extensions:")[0])
    sections = [page for entry in site["nav"] for page in entry.values()]
    pages = [page for each in sections for page in ([each] if isinstance(each, str) else map(_only_value, each))]
    links = re.findall(r"\]\(([^)]+\.md)\)", (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8"))
    assert sorted(links) == sorted({*pages} - {"index.md"})


def _only_value(entry: dict[str, str]) -> str:
    (value,) = entry.values()
    return value


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 160


def test_the_files_that_contributing_names_exist() -> None:
    """A name without a folder is that of a file in any of the three packages."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w/.]+\.(?:py|json))`", text))
    packages = ("scd_pipeline", "scd_pipeline_tests", "benchmarks")
    files = {path.relative_to(ROOT).as_posix() for package in packages for path in (ROOT / package).rglob("*.*")}
    missing = {name for name in names if not any(f"/{file}".endswith(f"/{name}") for file in files)}
    assert names
    assert missing == set()
