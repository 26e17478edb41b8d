"""Declarations as YAML: the same words as in Python, one dimension or fact to a document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from yaml.nodes import MappingNode, Node

from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.fact import Fact
from scd_pipeline.declaration.names import is_text, shown
from scd_pipeline.declaration.yaml.fact import FactReader, is_fact
from scd_pipeline.declaration.yaml.nodes import documents
from scd_pipeline.declaration.yaml.reader import DimensionReader
from scd_pipeline.errors import DeclarationError, Fault

_SUFFIXES = (".yaml", ".yml")
_OF_DAGSTER = ("defs", "component")
"""Files in which Dagster is told of components: they lie beside declarations and are none."""


@dataclass(frozen=True, slots=True)
class Declarations:
    """What is declared together."""

    dimensions: tuple[Dimension, ...]
    facts: tuple[Fact, ...] = ()


def load_dimension(path: str | Path) -> Dimension:
    """The one dimension that a file declares.

    Errors: DeclarationError with every fault of the file, each with its line (S28).
    """
    dimensions = load_dimensions(path)
    if len(dimensions) != 1:
        wrong = f"{len(dimensions)} dimensions are declared where one is expected"
        raise DeclarationError([Fault(str(path), "dimension", wrong, "name a file that declares one dimension")])
    return dimensions[0]


def load_dimensions(path: str | Path) -> tuple[Dimension, ...]:
    """The dimensions of a file, or of all `.yaml` and `.yml` files that lie in a folder, by file name.

    Files named `defs` and `component` are Dagster's.

    Errors: DeclarationError with every fault of all files, each with its file and line (S28).
    """
    return load_declarations(path).dimensions


def _files(path: str | Path) -> list[Path]:
    """Return the file, or the files of the folder.

    Raises:
        DeclarationError: The path is not a path, or the folder has no declarations.
    """
    if not isinstance(path, (str, Path)) or not is_text(str(path)):
        raise DeclarationError([Fault("declarations", "path", f"{shown(path)} is not a path", "name a file or folder")])
    place = Path(path)
    if not place.is_dir():
        return [place]
    files = sorted(file for file in place.iterdir() if _may_declare(file))
    if not files:
        wrong = "no declaration lies in this folder"
        raise DeclarationError([Fault(str(place), "file", wrong, "put the declarations there, as <name>.yaml")])
    return files


def _may_declare(file: Path) -> bool:
    return file.suffix.lower() in _SUFFIXES and file.stem not in _OF_DAGSTER and file.is_file()


def load_declarations(path: str | Path, *, dimensions: Sequence[str | Path] = ()) -> Declarations:
    """Return the dimensions and the facts that a file, or all files in a folder, declare.

    Args:
        path: The file or folder.
        dimensions: Further files or folders, whose dimensions the facts may name; what they declare is not returned.

    Raises:
        DeclarationError: As for `load_dimensions`, with the faults of all files.
    """
    files = _files(path)
    own = {file.resolve() for file in files}
    further = [file for place in dimensions for file in _files(place) if file.resolve() not in own]
    return _parsed(files, {file.resolve(): file for file in further}.values())


def parse(text: str, origin: str = "<text>") -> tuple[Dimension, ...]:
    """The dimensions that the text declares; `origin` names the text in faults.

    Errors: DeclarationError with every fault of the text, each with its line (S28).
    """
    return parse_declarations(text, origin).dimensions


def parse_declarations(text: str, origin: str = "<text>") -> Declarations:
    """The dimensions and the facts that the text declares.  Errors: as of `parse`."""
    faults: list[Fault] = []
    facts: list[tuple[str, Node]] = []
    faulty: set[str] = set()
    dimensions = _read(text, origin, faults, facts, faulty)
    return _checked(dimensions, facts, faults, faulty)


def _parsed(files: Iterable[Path], further: Iterable[Path] = ()) -> Declarations:
    """Return what files declare; their facts may name dimensions of further files, whose facts are not read."""
    faults: list[Fault] = []
    facts: list[tuple[str, Node]] = []
    faulty: set[str] = set()
    dimensions = _dimensions(files, faults, facts, faulty)
    others = _dimensions(further, faults, [], faulty)
    return _checked(dimensions, facts, faults, faulty, others)


def _dimensions(
    files: Iterable[Path], faults: list[Fault], facts: list[tuple[str, Node]], faulty: set[str]
) -> list[Dimension]:
    dimensions: list[Dimension] = []
    for file in files:
        text = _text_of(file, faults)
        if text is not None:
            dimensions += _read(text, str(file), faults, facts, faulty)
    return dimensions


def _text_of(file: Path, faults: list[Fault]) -> str | None:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        faults.append(Fault(f"{file}:{line}", "file", "is not UTF-8 text", "save it as UTF-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        faults.append(Fault(str(file), "file", f"cannot be read ({reason})", "name a readable file or folder"))
    return None


def _read(
    text: str, origin: str, faults: list[Fault], facts: list[tuple[str, Node]], faulty: set[str]
) -> list[Dimension]:
    """The dimensions of the text; its faults are added in the order of their lines, its facts as they stand.

    To `faulty` the names of the dimensions that have faults.
    """
    told: list[tuple[int, Fault]] = []

    def tell(line: int, wrong: str, right: str) -> None:
        told.append((line, Fault(f"{origin}:{line}", "syntax", wrong, right)))

    found: list[Dimension] = []
    documented = False
    for root in documents(text, tell):
        documented = True
        if is_fact(root):
            facts.append((origin, root))
            continue
        reader = DimensionReader(origin, root)
        dimension = reader.read()
        told += reader.faults
        if dimension is not None:
            found.append(dimension)
        else:
            faulty.add(_name_of(root))
    if not documented and not told:
        tell(1, "nothing is declared", "begin with `dimension: <name>`")
    faults += [fault for _, fault in sorted(told, key=lambda one: one[0])]
    return found


def _name_of(root: Node) -> str:
    """What a document's dimension is called, as far as it can be read."""
    entries = root.value if isinstance(root, MappingNode) else ()
    return next((str(of.value) for word, of in entries if word.value == "dimension"), "")


def _checked(
    dimensions: list[Dimension],
    roots: list[tuple[str, Node]],
    faults: list[Fault],
    faulty: Collection[str],
    others: Sequence[Dimension] = (),
) -> Declarations:
    by_name = {dimension.name: dimension for dimension in (*others, *dimensions)}
    facts: list[Fact] = []
    for origin, root in roots:
        reader = FactReader(origin, root, by_name, faulty)
        fact = reader.read_fact()
        faults += [fault for _, fault in sorted(reader.faults, key=lambda one: one[0])]
        facts += [fact] if fact is not None else []
    first: dict[str, Dimension | Fact] = {}
    everything: list[Dimension | Fact] = [*others, *dimensions, *facts]
    for declared in everything:
        same = first.setdefault(declared.name.casefold(), declared)
        if same is not declared:
            wrong = f"{same.name} is declared at {same.origin} already"
            word = "dimension" if isinstance(declared, Dimension) else "fact"
            faults.append(Fault(declared.origin, word, wrong, "choose another name"))
    if faults:
        raise DeclarationError(faults)
    return Declarations(tuple(dimensions), tuple(facts))
