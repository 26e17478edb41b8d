"""Reading of declarations from YAML files, with one dimension, fact or timed table in each document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from yaml.nodes import MappingNode, Node

from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.declaration.yaml.fact import FactReader, is_fact
from scd_pipeline.declaration.yaml.nodes import documents
from scd_pipeline.declaration.yaml.reader import DimensionReader
from scd_pipeline.declaration.yaml.timed_table import TimedTableReader, is_timed_table
from scd_pipeline.errors import DeclarationError, ValidationError
from scd_pipeline.texts import is_text, short_repr

_SUFFIXES = (".yaml", ".yml")
_OPTIONS = {Dimension: "dimension", Fact: "fact", TimedTable: "timed_table"}
_DAGSTER_FILES = ("defs", "component")
"""Names of Dagster's files, which are in the folders of declarations but do not contain declarations."""


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of a file or a folder."""

    dimensions: tuple[Dimension, ...]
    facts: tuple[Fact, ...] = ()
    timed_tables: tuple[TimedTable, ...] = ()

    @property
    def tables(self) -> tuple[Dimension | Fact, ...]:
        """The dimensions, and then the facts."""
        return (*self.dimensions, *self.facts)


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
    """Return the dimensions, facts and timed tables that a file, or all files in a folder, declare.

    Args:
        path: The file or folder.
        dimension_paths: Further files or folders, whose dimensions the facts may reference; they are not returned.

    Raises:
        DeclarationError: As for `read_dimensions`, with the errors of all files.
    """
    files = _files(path)
    own = {file.resolve() for file in files}
    further = [file for location in dimension_paths for file in _files(location) if file.resolve() not in own]
    return _parsed(files, {file.resolve(): file for file in further}.values())


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
    """Return the dimensions, facts and timed tables that the text declares.

    Raises:
        DeclarationError: As for `parse`.
    """
    errors: list[ValidationError] = []
    facts: list[tuple[str, Node]] = []
    invalid: set[str] = set()
    dimensions = _read(text, origin, errors, facts, invalid)
    return _checked(dimensions, facts, errors, invalid)


def _parsed(files: Iterable[Path], further: Iterable[Path] = ()) -> Declarations:
    """Return what files declare; their facts may name dimensions of further files, whose facts are not read."""
    errors: list[ValidationError] = []
    facts: list[tuple[str, Node]] = []
    invalid: set[str] = set()
    dimensions = _dimensions(files, errors, facts, invalid)
    others = _dimensions(further, errors, [], invalid)
    return _checked(dimensions, facts, errors, invalid, others)


def _dimensions(
    files: Iterable[Path], errors: list[ValidationError], facts: list[tuple[str, Node]], invalid: set[str]
) -> list[Dimension]:
    dimensions: list[Dimension] = []
    for file in files:
        text = _read_text(file, errors)
        if text is not None:
            dimensions += _read(text, str(file), errors, facts, invalid)
    return dimensions


def _read_text(file: Path, errors: list[ValidationError]) -> str | None:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        errors.append(
            ValidationError("UNREADABLE_FILE", f"{file}:{line}", "file", "is not UTF-8 text", "save it as UTF-8")
        )
    except (OSError, ValueError) as error:
        errors.append(_unreadable(file, error))
    return None


def _unreadable(path: Path, error: Exception) -> ValidationError:
    problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    return ValidationError("UNREADABLE_FILE", str(path), "file", problem, "name a readable file or folder")


def _read(
    text: str, origin: str, errors: list[ValidationError], facts: list[tuple[str, Node]], invalid: set[str]
) -> list[Dimension]:
    """Return the valid dimensions of the text, and add the other results to the given collections.

    Args:
        text: The YAML text.
        origin: The name of the text in errors.
        errors: Receives the errors in order of their lines.
        facts: Receives the documents of facts and timed tables, which are read when all dimensions are known.
        invalid: Receives the names of the invalid dimensions.
    """
    reported: list[tuple[int, ValidationError]] = []

    def report(line: int, problem: str, fix: str) -> None:
        reported.append((line, ValidationError("SYNTAX", f"{origin}:{line}", "syntax", problem, fix)))

    dimensions: list[Dimension] = []
    has_documents = False
    for root in documents(text, report):
        has_documents = True
        if is_fact(root) or is_timed_table(root):
            facts.append((origin, root))
            continue
        reader = DimensionReader(origin, root)
        dimension = reader.read()
        reported += reader.errors
        if dimension is not None:
            dimensions.append(dimension)
        else:
            invalid.add(_dimension_name(root))
    if not has_documents and not reported:
        fix = "begin with `dimension: <name>`"
        reported.append((1, ValidationError("NOTHING_DECLARED", f"{origin}:1", "syntax", "nothing is declared", fix)))
    errors += [validation_error for _, validation_error in sorted(reported, key=itemgetter(0))]
    return dimensions


def _dimension_name(root: Node) -> str:
    """Return the name of a document's dimension, empty if it cannot be read."""
    entries = root.value if isinstance(root, MappingNode) else ()
    return next((str(value.value) for option, value in entries if option.value == "dimension"), "")


def _checked(
    dimensions: list[Dimension],
    roots: list[tuple[str, Node]],
    errors: list[ValidationError],
    invalid: Collection[str],
    others: Sequence[Dimension] = (),
) -> Declarations:
    by_name = {dimension.name: dimension for dimension in (*others, *dimensions)}
    facts: list[Fact] = []
    timed_tables: list[TimedTable] = []
    for origin, root in roots:
        if is_timed_table(root):
            timed_reader = TimedTableReader(origin, root)
            timed_table = timed_reader.read_timed_table()
            timed_tables += [timed_table] if timed_table is not None else []
            reported = timed_reader.errors
        else:
            reader = FactReader(origin, root, by_name, invalid)
            fact = reader.read_fact()
            facts += [fact] if fact is not None else []
            reported = reader.errors
        errors += [validation_error for _, validation_error in sorted(reported, key=itemgetter(0))]
    first: dict[str, Dimension | Fact | TimedTable] = {}
    everything: list[Dimension | Fact | TimedTable] = [*others, *dimensions, *facts, *timed_tables]
    for declared in everything:
        same = first.setdefault(declared.name.casefold(), declared)
        if same is not declared:
            problem = f"{same.name} is declared at {same.origin} already"
            option = _OPTIONS[type(declared)]
            errors.append(ValidationError("NAME_IN_USE", declared.origin, option, problem, "choose another name"))
    for table in timed_tables:
        for same in (first[name.casefold()] for name in table.stored_tables if name.casefold() in first):
            problem = f"its table {same.name} is declared at {same.origin} already"
            errors.append(ValidationError("NAME_IN_USE", table.origin, "timed_table", problem, "choose another name"))
    if errors:
        raise DeclarationError(errors)
    return Declarations(tuple(dimensions), tuple(facts), tuple(timed_tables))
