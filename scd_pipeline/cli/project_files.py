"""The files of a new project: declarations with their JSON Schema and a first delivery, a test, a code location."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
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
_TEMPLATES = Path(__file__).parent / "project_template"
"""The other files of a project, as templates: `package` in a path is the name of the project's package."""


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
    files = _project_files(folder, samples, today)
    for name in files:
        if (folder / name).exists():
            raise UsageError("PROJECT_FILE_EXISTS", str(folder / name))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [folder / name for name in files]


def _project_files(folder: Path, samples: Sequence[Path], today: str) -> dict[str, bytes]:
    package = _package_name(folder)
    contents = {path.name: path.read_bytes() for path in samples} or {_SAMPLE_NAME: _SAMPLE.encode()}
    parsed = {file: _parse_content(file, content) for file, content in contents.items()}
    declared = _declarations(parsed)
    tables = sorted(Path(name).stem for name in declared)
    landing = {f"landing/{sample.name}_{sample.date or today}.csv": contents[file] for file, sample in parsed.items()}
    delivery = next(iter(landing)).rpartition("/")[2]
    pattern = re.sub(r"\d{4}-\d{2}-\d{2}", "YYYY-MM-DD", delivery)
    values = {"package": package, "table": tables[0], "tables": json.dumps(tables), "delivery": pattern}
    templates = {path.relative_to(_TEMPLATES).with_suffix("").as_posix(): path for path in _TEMPLATES.rglob("*.txt")}
    texts = {
        **{f"declarations/{name}": text for name, text in declared.items()},
        f"declarations/{_SCHEMA}": schema_text(),
        ".gitignore": "warehouse/\n.dagster/\n__pycache__/\n",
        f"{package}/__init__.py": "",
        f"{package}/defs/__init__.py": "",
        **{
            re.sub("^package/", f"{package}/", name): template.read_text(encoding="utf-8").format(**values)
            for name, template in sorted(templates.items())
        },
    }
    deliveries = {f"declarations/{name}": content for name, content in landing.items()}
    return {**{name: text.encode() for name, text in texts.items()}, **deliveries}


def _declarations(parsed: Mapping[str, Sample]) -> dict[str, str]:
    """Return the declarations of samples by the names of their files."""
    texts: dict[str, str] = {}
    for file in sorted(parsed, key=lambda file: parsed[file].is_fact):  # facts reference dimensions
        sample, name = parsed[file], f"{parsed[file].table}.yaml"
        # Two files may be samples of one table, of which the last one is used.
        texts[name] = _declaration(sample, file, [text for other, text in texts.items() if other != name])
    return texts


def _parse_content(file: str, content: bytes) -> Sample:
    """Return the sample in a file, in UTF-8 or, if its bytes are not UTF-8, in windows-1252."""
    try:
        return parse_sample(file, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        reason = f"the text is not UTF-8 (byte {error.start}), and not windows-1252"
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError as error:
        raise UsageError("SAMPLE_NOT_READABLE", file, reason=reason) from error
    if "\0" in text:  # UTF-16, for which any bytes are windows-1252
        raise UsageError("SAMPLE_NOT_READABLE", file, reason=reason)
    return parse_sample(file, text, "windows-1252")


def _declaration(sample: Sample, file: str, others: Sequence[str]) -> str:
    """Return the declaration that is guessed from a sample.

    Args:
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
