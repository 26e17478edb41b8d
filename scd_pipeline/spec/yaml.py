"""Declarations as YAML: the same words as in Python, one dimension to a document."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scd_pipeline.errors import DeclarationError, Fault
from scd_pipeline.spec.dimension import Dimension
from scd_pipeline.spec.yaml_nodes import documents
from scd_pipeline.spec.yaml_reader import DimensionReader

_SUFFIXES = (".yaml", ".yml")


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

    Errors: DeclarationError with every fault of all files, each with its file and line (S28).
    """
    place = Path(path)
    if not place.is_dir():
        return _parsed([place])
    files = sorted(file for file in place.iterdir() if file.suffix.lower() in _SUFFIXES and file.is_file())
    if not files:
        wrong = "no declaration lies in this folder"
        raise DeclarationError([Fault(str(place), "file", wrong, "put the declarations there, as <name>.yaml")])
    return _parsed(files)


def parse(text: str, origin: str = "<text>") -> tuple[Dimension, ...]:
    """The dimensions that the text declares; `origin` names the text in faults.

    Errors: DeclarationError with every fault of the text, each with its line (S28).
    """
    faults: list[Fault] = []
    dimensions = _read(text, origin, faults)
    return _checked(dimensions, faults)


def _parsed(files: Iterable[Path]) -> tuple[Dimension, ...]:
    faults: list[Fault] = []
    dimensions: list[Dimension] = []
    for file in files:
        text = _text_of(file, faults)
        if text is not None:
            dimensions += _read(text, str(file), faults)
    return _checked(dimensions, faults)


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


def _read(text: str, origin: str, faults: list[Fault]) -> list[Dimension]:
    """The dimensions of the text; its faults are added in the order of their lines."""
    told: list[tuple[int, Fault]] = []

    def tell(line: int, wrong: str, right: str) -> None:
        told.append((line, Fault(f"{origin}:{line}", "syntax", wrong, right)))

    found: list[Dimension] = []
    documented = False
    for root in documents(text, tell):
        documented = True
        reader = DimensionReader(origin, root)
        dimension = reader.read()
        told += reader.faults
        found += [dimension] if dimension is not None else []
    if not documented and not told:
        tell(1, "nothing is declared", "begin with `dimension: <name>`")
    faults += [fault for _, fault in sorted(told, key=lambda one: one[0])]
    return found


def _checked(dimensions: list[Dimension], faults: list[Fault]) -> tuple[Dimension, ...]:
    first: dict[str, Dimension] = {}
    for dimension in dimensions:
        same = first.setdefault(dimension.name.casefold(), dimension)
        if same is not dimension:
            wrong = f"{same.name} is declared at {same.origin} already"
            faults.append(Fault(dimension.origin, "dimension", wrong, "choose another name"))
    if faults:
        raise DeclarationError(faults)
    return tuple(dimensions)
