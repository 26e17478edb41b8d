"""Reading of declarations from YAML files, with one dimension, fact, landing table or timed table in each document."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from yaml.nodes import MappingNode, Node, ScalarNode

from scd_pipeline.declaration.declared import DeclaredTable
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact
from scd_pipeline.declaration.history import history_options
from scd_pipeline.declaration.landing_table import LandingTable
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.declaration.yaml.fact import FactReader, is_fact
from scd_pipeline.declaration.yaml.landing_table import LandingTableReader, is_landing_table
from scd_pipeline.declaration.yaml.nodes import documents
from scd_pipeline.declaration.yaml.reader import DimensionReader
from scd_pipeline.declaration.yaml.timed_table import TimedTableReader, is_timed_table
from scd_pipeline.errors import DeclarationError, ValidationError
from scd_pipeline.texts import is_text, short_repr

_SUFFIXES = (".yaml", ".yml")
_OPTIONS = {Dimension: "dimension", Fact: "fact", LandingTable: "landing_table", TimedTable: "timed_table"}
_Reported: TypeAlias = tuple[int, ValidationError]
"""An error with its line."""
_DAGSTER_FILES = ("defs", "component")
"""Names of Dagster's files, which are in the folders of declarations but do not contain declarations."""


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of a file or a folder."""

    dimensions: tuple[Dimension, ...]
    facts: tuple[Fact, ...] = ()
    timed_tables: tuple[TimedTable, ...] = ()
    landing_tables: tuple[LandingTable, ...] = ()

    @property
    def tables(self) -> tuple[DeclaredTable, ...]:
        """The landing tables, and then the dimensions and the facts, which may read the tables before them."""
        return (*self.landing_tables, *self.dimensions, *self.facts)


def read_dimension(path: str | Path) -> Dimension:
    """Return the only dimension of a file.

    Raises:
        DeclarationError: With every error of the file and its line (S28), or the file does not declare exactly one.
    """
    dimensions = read_dimensions(path)
    if len(dimensions) != 1:
        problem = f"{len(dimensions)} dimensions are declared where one is expected"
        raise DeclarationError(
            [
                ValidationError(
                    "ONE_DIMENSION", str(path), "dimension", problem, "name a file that declares one dimension"
                )
            ]
        )
    return dimensions[0]


def read_dimensions(path: str | Path) -> tuple[Dimension, ...]:
    """Return the dimensions of a file, or of all `.yaml` and `.yml` files in a folder, in order of the file names.

    Files named `defs` and `component` are skipped: they are Dagster's.

    Raises:
        DeclarationError: With every error of all files, each with its file and line (S28).
    """
    return read_declarations(path).dimensions


def _files(path: str | Path) -> list[Path]:
    """Return the file, or the files of the folder.

    Raises:
        DeclarationError: The path is not a path, or the folder has no declarations.
    """
    if not isinstance(path, (str, Path)) or not is_text(str(path)):
        raise DeclarationError(
            [
                ValidationError(
                    "INVALID_KIND", "declarations", "path", f"{short_repr(path)} is not a path", "name a file or folder"
                )
            ]
        )
    location = Path(path)
    try:
        if not location.is_dir():
            return [location]
        files = sorted(file for file in location.iterdir() if _may_declare(file))
    except OSError as error:
        raise DeclarationError([_unreadable(location, error)]) from error
    if not files:
        problem = "the folder has no declarations"
        raise DeclarationError(
            [
                ValidationError(
                    "NOTHING_DECLARED", str(location), "file", problem, "put the declarations there, as <name>.yaml"
                )
            ]
        )
    return files


def _may_declare(file: Path) -> bool:
    """Return whether a file of a folder may have declarations; editors and macOS write hidden files beside them."""
    is_yaml = file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")
    return is_yaml and file.stem not in _DAGSTER_FILES and not file.is_dir()


def read_declarations(path: str | Path, *, dimension_paths: Sequence[str | Path] = ()) -> Declarations:
    """Return the dimensions, facts, landing tables and timed tables that a file, or all files in a folder, declare.

    Args:
        path: The file or folder.
        dimension_paths: Further files or folders, whose dimensions the facts may reference, and whose timed tables the
            dimensions; they are not returned.

    Raises:
        DeclarationError: As for `read_dimensions`, with the errors of all files.
    """
    files = _files(path)
    own = {file.resolve() for file in files}
    further = [file for location in dimension_paths for file in _files(location) if file.resolve() not in own]
    others = {file.resolve(): file for file in further}.values()
    return _checked([_documents_of_file(file) for file in files], [_documents_of_file(file) for file in others])


def parse(text: str, origin: str = "<text>") -> tuple[Dimension, ...]:
    """Return the dimensions that the text declares.

    Args:
        text: The YAML text.
        origin: The name of the text in errors.

    Raises:
        DeclarationError: With every error of the text and its line (S28).
    """
    return parse_declarations(text, origin).dimensions


def parse_declarations(text: str, origin: str = "<text>") -> Declarations:
    """Return the dimensions, facts, landing tables and timed tables that the text declares.

    Raises:
        DeclarationError: As for `parse`.
    """
    return _checked([_documents(text, origin)])


@dataclass(frozen=True, slots=True)
class _Documents:
    """The documents of a text, and the errors of its syntax with their lines."""

    origin: str
    roots: tuple[Node, ...] = ()
    reported: tuple[_Reported, ...] = ()

    @property
    def timed_tables(self) -> list[Node]:
        return [root for root in self.roots if is_timed_table(root)]

    @property
    def landing_tables(self) -> list[Node]:
        return [root for root in self.roots if is_landing_table(root) and not is_timed_table(root)]

    @property
    def facts(self) -> list[Node]:
        return [root for root in self._others if is_fact(root)]

    @property
    def dimensions(self) -> list[Node]:
        return [root for root in self._others if not is_fact(root)]

    @property
    def _others(self) -> list[Node]:
        return [root for root in self.roots if not (is_timed_table(root) or is_landing_table(root))]


@dataclass(slots=True)
class _Parsed:
    """What documents declare.

    Attributes:
        errors: The errors, for each file in order of their lines.
        timed_tables: The timed tables by name, None for an invalid one.
        landing_tables: The landing tables by name, None for an invalid one.
        dimensions: The valid dimensions.
        invalid: The names of the invalid dimensions.
    """

    errors: list[ValidationError] = field(default_factory=list)
    timed_tables: dict[str, TimedTable | None] = field(default_factory=dict)
    landing_tables: dict[str, LandingTable | None] = field(default_factory=dict)
    dimensions: list[Dimension] = field(default_factory=list)
    invalid: set[str] = field(default_factory=set)

    def report(self, reported: Iterable[_Reported]) -> None:
        self.errors += [validation_error for _, validation_error in sorted(reported, key=itemgetter(0))]


def _documents_of_file(file: Path) -> _Documents:
    try:
        return _documents(file.read_bytes().decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        unreadable = ValidationError(
            "UNREADABLE_FILE", f"{file}:{line}", "file", "is not UTF-8 text", "save it as UTF-8"
        )
    except (OSError, ValueError) as error:
        unreadable = _unreadable(file, error)
    return _Documents(str(file), reported=((0, unreadable),))


def _unreadable(path: Path, error: Exception) -> ValidationError:
    problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    return ValidationError("UNREADABLE_FILE", str(path), "file", problem, "name a readable file or folder")


def _documents(text: str, origin: str) -> _Documents:
    reported: list[_Reported] = []

    def report(line: int, problem: str, fix: str) -> None:
        reported.append((line, ValidationError("SYNTAX", f"{origin}:{line}", "syntax", problem, fix)))

    roots = tuple(documents(text, report))
    if not roots and not reported:
        fix = "begin with `dimension: <name>`"
        reported.append((1, ValidationError("NOTHING_DECLARED", f"{origin}:1", "syntax", "nothing is declared", fix)))
    return _Documents(origin, roots, tuple(reported))


def _read_timed_tables(texts: Iterable[_Documents], parsed: _Parsed) -> list[TimedTable]:
    """Return the valid timed tables of some texts."""
    timed_tables: list[TimedTable] = []
    for origin, root in ((text.origin, root) for text in texts for root in text.timed_tables):
        reader = TimedTableReader(origin, root)
        timed_table = reader.read_timed_table()
        parsed.report(reader.errors)
        parsed.timed_tables[_declared_name(root, "timed_table")] = timed_table
        timed_tables += [timed_table] if timed_table is not None else []
    return timed_tables


def _read_dimensions(texts: Iterable[_Documents], parsed: _Parsed) -> list[Dimension]:
    """Return the valid dimensions of some texts, when all timed tables and landing tables are known."""
    dimensions: list[Dimension] = []
    for text in texts:
        reported = list(text.reported)
        for root in text.dimensions:
            reader = DimensionReader(text.origin, root, parsed.timed_tables, parsed.landing_tables)
            dimension = reader.read()
            reported += reader.errors
            if dimension is not None:
                dimensions.append(dimension)
            else:
                parsed.invalid.add(_dimension_name(root))
        parsed.report(reported)
    return dimensions


def _read_facts(texts: Iterable[_Documents], parsed: _Parsed) -> list[Fact]:
    """Return the valid facts of some texts, when all dimensions are known."""
    by_name = {dimension.name: dimension for dimension in parsed.dimensions}
    facts: list[Fact] = []
    for origin, root in ((text.origin, root) for text in texts for root in text.facts):
        reader = FactReader(origin, root, parsed.timed_tables, parsed.landing_tables, by_name, parsed.invalid)
        fact = reader.read_fact()
        parsed.report(reader.errors)
        facts += [fact] if fact is not None else []
    return facts


def _read_landing_tables(texts: Iterable[_Documents], parsed: _Parsed) -> list[LandingTable]:
    """Return the valid landing tables of some texts."""
    landing_tables: list[LandingTable] = []
    for origin, root in ((text.origin, root) for text in texts for root in text.landing_tables):
        reader = LandingTableReader(origin, root, parsed.timed_tables)
        landing_table = reader.read_landing_table()
        parsed.report(reader.errors)
        parsed.landing_tables[_declared_name(root, "landing_table")] = landing_table
        landing_tables += [landing_table] if landing_table is not None else []
    return landing_tables


def _dimension_name(root: Node) -> str:
    """Return the name of a document's dimension, empty if it cannot be read."""
    name, base = _declared_name(root, "dimension"), _declared_name(root, "history_of")
    return name or (str(history_options(base)["name"]) if base else "")


def _declared_name(root: Node, option: str) -> str:
    """Return the name of what a document declares, empty if it cannot be read."""
    entries = root.value if isinstance(root, MappingNode) else ()
    scalars = [(key.value, value.value) for key, value in entries if isinstance(value, ScalarNode)]
    return next((value for key, value in scalars if key == option), "")


def _checked(texts: Sequence[_Documents], further: Sequence[_Documents] = ()) -> Declarations:
    """Return what texts declare.

    Dimensions may name timed tables and landing tables of further texts, and facts dimensions of them. Facts of further
    texts are not read.
    """
    parsed = _Parsed()
    _read_timed_tables(further, parsed)
    timed_tables = _read_timed_tables(texts, parsed)
    _read_landing_tables(further, parsed)
    landing_tables = _read_landing_tables(texts, parsed)
    dimensions = _read_dimensions(texts, parsed)
    others = _read_dimensions(further, parsed)
    parsed.dimensions = [*others, *dimensions]
    facts = _read_facts(texts, parsed)
    first: dict[str, DeclaredTable | TimedTable] = {}
    everything: list[DeclaredTable | TimedTable] = [*parsed.dimensions, *facts, *landing_tables, *timed_tables]
    for declared in everything:
        same = first.setdefault(declared.name.casefold(), declared)
        if same is not declared:
            problem = f"{same.name} is declared at {same.origin} already"
            option = _OPTIONS[type(declared)]
            error = ValidationError("NAME_IN_USE", declared.origin, option, problem, "choose another name")
            parsed.errors.append(error)
    for dimension in parsed.dimensions:
        if (other := first.get(dimension.former_name.casefold())) is not None:
            problem = f"{other.name} is declared at {other.origin}"
            fix = "remove that declaration, or the former name"
            parsed.errors.append(ValidationError("NAME_IN_USE", dimension.origin, "former_name", problem, fix))
    for table in timed_tables:
        for same in (first[name.casefold()] for name in table.stored_tables if name.casefold() in first):
            problem = f"its table {same.name} is declared at {same.origin} already"
            error = ValidationError("NAME_IN_USE", table.origin, "timed_table", problem, "choose another name")
            parsed.errors.append(error)
    parsed.errors += _shared_logs(timed_tables)
    if parsed.errors:
        raise DeclarationError(parsed.errors)
    return Declarations(tuple(dimensions), tuple(facts), tuple(timed_tables), tuple(landing_tables))


def _shared_logs(timed_tables: Sequence[TimedTable]) -> list[ValidationError]:
    """Return an error for each timed table whose log is the file of another one, whose statements it would apply."""
    errors: list[ValidationError] = []
    first: dict[str, TimedTable] = {}
    for table in timed_tables:
        same = table if table.log == "table" else first.setdefault(os.path.normpath(table.log_path), table)
        if same is not table:
            problem = f"the log {table.log_path} is that of {same.name}, which is declared at {same.origin}"
            fix = "name another file for one of them, or write `log: table`"
            errors.append(ValidationError("LOG_IN_USE", table.origin, "updates", problem, fix))
    return errors
