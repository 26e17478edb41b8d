"""The files of a new project: declarations with their JSON Schema and a first delivery, a test, a code location."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from scd_pipeline.cli.fact_inference import guess_fact
from scd_pipeline.cli.inference import Sample, guess_declaration, parse_sample
from scd_pipeline.declaration import parse_declarations
from scd_pipeline.declaration.schema import schema_text
from scd_pipeline.errors import UsageError

_SAMPLE_NAME = "customers_2024-01-01.csv"
_SAMPLE = """\
customer_id,name,email,city,credit_limit
1,First Sample,first@example.com,Graz,1000.00
2,Second Sample,second@example.com,Wien,250.50
"""
_SCHEMA = "declaration.schema.json"
_MODELINE = f"# yaml-language-server: $schema={_SCHEMA}\n"
"""The comment by which editors find the JSON Schema of a declaration; its path is relative to the declaration."""
_README = """\
# {project}

Dimensions with their history, by `scd_pipeline`.

| command | effect |
| --- | --- |
| `scd load` | load new deliveries of `declarations/landing` into `warehouse` |
| `scd plan` | show what a load would do |
| `scd status` | show pending deliveries and table lag |
| `scd sql "SELECT * FROM {table}"` | query the tables |
| `scd dev` | serve Dagster's web interface |
| `python -m pytest` | test the declarations |

Run the commands in this folder. The declarations were guessed from samples: check the business key, the types and the
SCD types first. A new delivery is a file `declarations/landing/{delivery}`.

Editors with a YAML language server complete and validate declarations by `declarations/declaration.schema.json`. After
an upgrade of `scd_pipeline`, write it again: `scd json-schema > declarations/declaration.schema.json`.
"""
_PYPROJECT = """\
[project]
name = "{package}"
version = "0.1.0"
requires-python = ">=3.10,<3.13"
dependencies = ["scd_pipeline"]

[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
packages = ["{package}", "{package}.defs"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "{package}"
registry_modules = ["scd_pipeline.components"]
code_location_name = "{package}"
"""
_WORKSPACE = """\
load_from:
  - python_module:
      module_name: {package}.definitions
      working_directory: .
      location_name: {package}
"""
_DEFINITIONS = '''\
"""The Dagster code location."""

from pathlib import Path

import dagster as dg

import {package}.defs

_tree = dg.ComponentTree.from_module(defs_module={package}.defs, project_root=Path(__file__).parent.parent)
# One run is one process with one Spark: parallel steps would each start a JVM.
defs = dg.Definitions.merge(_tree.build_defs(), dg.Definitions(executor=dg.in_process_executor))
'''
_RESOURCE = '''\
"""The warehouse of the assets."""

import dagster as dg

from scd_pipeline.components import WarehouseResource


@dg.definitions
def resources() -> dg.Definitions:
    """Return the resource; SCD_WAREHOUSE names its folder, SCD_REMOTE a Spark Connect server."""
    return dg.Definitions(resources={"warehouse": WarehouseResource.from_env()})
'''
_COMPONENT = """\
type: scd_pipeline.components.ScdDimension
attributes:
  declaration: ../../../declarations
"""
_TEST = '''\
"""The declarations are valid, and Dagster can load them."""

from pathlib import Path

import dagster as dg

from {package}.definitions import defs
from scd_pipeline.declaration import read_declarations

DECLARATIONS = Path(__file__).parent.parent / "declarations"


def test_declarations_are_valid() -> None:
    declared = read_declarations(DECLARATIONS)
    names = [table.name for table in declared.tables]
    assert names == {tables}


def test_code_location_is_loadable() -> None:
    dg.Definitions.validate_loadable(defs)
'''


def write_project(folder: Path, samples: Sequence[Path], *, today: str) -> list[Path]:
    """Write the files of a project, and return their paths.

    Args:
        folder: The folder of the project; created if it does not exist.
        samples: CSV files from which the declarations are guessed; none for a built-in sample.
        today: The date of deliveries whose file name has none.

    Raises:
        UsageError: One of the files exists, or a sample cannot be read; nothing was written.
        DeclarationError: A column of a sample has a reserved name; nothing was written.
    """
    texts = _project_files(folder, samples, today)
    for name in texts:
        if (folder / name).exists():
            raise UsageError("PROJECT_FILE_EXISTS", str(folder / name))
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def _project_files(folder: Path, samples: Sequence[Path], today: str) -> dict[str, str]:
    package = _package_name(folder)
    declared = _declarations(samples, today)
    tables = sorted(Path(name).stem for name in declared if name.endswith(".yaml"))
    delivery = next(name for name in declared if name.endswith(".csv")).rpartition("/")[2]
    pattern = re.sub(r"\d{4}-\d{2}-\d{2}", "YYYY-MM-DD", delivery)
    return {
        **{f"declarations/{name}": text for name, text in declared.items()},
        f"declarations/{_SCHEMA}": schema_text(),
        "README.md": _README.format(project=package, table=tables[0], delivery=pattern),
        "pyproject.toml": _PYPROJECT.format(package=package),
        "workspace.yaml": _WORKSPACE.format(package=package),
        ".gitignore": "warehouse/\n.dagster/\n__pycache__/\n",
        f"{package}/__init__.py": "",
        f"{package}/definitions.py": _DEFINITIONS.format(package=package),
        f"{package}/defs/__init__.py": "",
        f"{package}/defs/warehouse.py": _RESOURCE,
        f"{package}/defs/dimensions/defs.yaml": _COMPONENT,
        "tests/test_project.py": _TEST.format(package=package, tables=json.dumps(tables)),
    }


def _declarations(samples: Sequence[Path], today: str) -> dict[str, str]:
    """Return the declarations and the first deliveries, by their names in the folder of the declarations."""
    deliveries = {path.name: _read_sample(path) for path in samples} or {_SAMPLE_NAME: _SAMPLE}
    parsed = {file: parse_sample(file, text) for file, text in deliveries.items()}
    texts: dict[str, str] = {}
    for file in sorted(parsed, key=lambda file: parsed[file].is_fact):  # facts reference dimensions
        sample, name = parsed[file], f"{parsed[file].table}.yaml"
        # Two files may be samples of one table, of which the last one is used.
        texts[name] = _declaration(sample, file, [text for other, text in texts.items() if other != name])
    for file, sample in parsed.items():
        texts[f"landing/{sample.name}_{sample.date or today}.csv"] = deliveries[file]
    return texts


def _read_sample(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"the text is not UTF-8 (byte {error.start})"
        raise UsageError("SAMPLE_NOT_READABLE", path.name, reason=reason) from error


def _declaration(sample: Sample, file: str, others: Sequence[str]) -> str:
    """Return the declaration that is guessed from a sample.

    Args:
        sample: The sample.
        file: The name of its file in errors.
        others: The declarations of the samples before it, which a fact may reference.

    Raises:
        UsageError: It cannot be guessed.
        DeclarationError: A column has a reserved name.
    """
    path = f"landing/{sample.name}_{sample.placeholder}.csv"
    if sample.is_fact:
        dimensions = parse_declarations("---\n".join(others)).dimensions if others else ()
        declaration = _MODELINE + guess_fact(sample, path, dimensions)
    else:
        declaration = _MODELINE + guess_declaration(sample, path)
    parse_declarations("---\n".join([declaration, *others]), file)
    return declaration


def _package_name(folder: Path) -> str:
    """Return a name for the project's package that no other module has."""
    name = re.sub(r"\W+", "_", folder.resolve().name.lower()).strip("_")
    is_free = name.isidentifier() and name not in (*sys.stdlib_module_names, "scd_pipeline", "dagster", "tests")
    return name if is_free else f"project_{name}"
