"""From YAML nodes to a dimension; each fault is told with the line of its key (S28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from scd_pipeline.declaration.attribute import Attribute
from scd_pipeline.declaration.begin import Begin
from scd_pipeline.declaration.checks.collect import joined
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.names import did_you_mean, nearest, shown
from scd_pipeline.declaration.source import Column, Feed, RetireGuard, Snapshot, Source
from scd_pipeline.declaration.times import TIME_FORM
from scd_pipeline.declaration.yaml import options as words
from scd_pipeline.declaration.yaml.nodes import (
    MERGE,
    READ_AS,
    TEXT_TAGS,
    Stamp,
    Unreadable,
    foreign_tag,
    is_nothing,
    kind_of,
    line_of,
    node_within_itself,
    value_of,
)
from scd_pipeline.declaration.yaml.options import Kind, Words
from scd_pipeline.errors import DeclarationError, Fault

_CHANNELS: dict[str, tuple[Any, Words]] = {"snapshot": (Snapshot, words.SNAPSHOT), "feed": (Feed, words.FEED)}
_ENTRY = "write `name: value`"
_NULL = ("null", "Null", "NULL")


class DimensionReader:
    """Reads one document; a part that cannot be read is told, and left out of what is built."""

    def __init__(self, origin: str, root: Node) -> None:
        self.origin = origin
        self.root = root
        self.lines = {"": line_of(root)}
        self.faults: list[tuple[int, Fault]] = []
        self.spoilt: set[str] = set()

    def read(self) -> Dimension | None:
        """The dimension; None where there are faults."""
        looped = node_within_itself(self.root)
        if looped is not None:
            wrong = "an alias stands inside its own anchor"
            self.tell("dimension", wrong, "write the part out", spoils=False, line=line_of(looped))
        given = self.dimension_words()
        try:
            dimension = Dimension(**given, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for fault in error.faults:
                self.place(fault)
            return None
        return None if self.faults else dimension

    def place(self, fault: Fault) -> None:
        """Take over a fault of the built parts, unless it only follows from one that was told."""
        field = "dimension" if fault.field == "name" else fault.field
        if not any(field == path or field.startswith(f"{path}.") for path in self.spoilt):
            self.tell(field, fault.wrong, fault.right, spoils=False)

    def tell(self, path: str, wrong: str, right: str, spoils: bool = True, line: int | None = None) -> None:
        line = line or self.line(path)
        self.faults.append((line, Fault(f"{self.origin}:{line}", path, wrong, right)))
        if spoils:
            self.spoilt.add(path)

    def line(self, path: str) -> int:
        """The line of the key, or of the nearest key around it that is there."""
        while path not in self.lines:
            path = path.rpartition(".")[0]
        return self.lines[path]

    # Parts of the declaration

    def dimension_words(self) -> dict[str, Any]:
        if not isinstance(self.root, MappingNode):
            right = "begin with `dimension: <name>`"
            self.tell("dimension", f"{kind_of(self.root)} stands where a declaration is expected", right)
            self.spoilt |= set(words.DIMENSION)
            return {"name": ""}
        given = self.words("", self.root, words.DIMENSION)
        given["name"] = given.pop("dimension", "")
        readers = {"business_key": self.key, "sources": self.sources, "attributes": self.attributes}
        for word, read in readers.items():
            if word in given:
                given[word] = read(word, given[word])
        if "attributes" in self.spoilt:
            given["attributes"] = None  # not empty, which would be a dimension of keys alone
        if "begin" in given:
            given["begin"] = self.begin(self.words("begin", given["begin"], words.BEGIN))
        return given

    def begin(self, given: dict[str, Any]) -> Begin:
        if "at" not in given and not self.spoilt & {"begin", "begin.at"}:
            self.tell("begin.at", "is missing", TIME_FORM)
        return Begin(**{"at": "", **given})

    def key(self, path: str, node: Node) -> Any:
        if not isinstance(node, MappingNode):
            return self.value(path, node, Kind.NAMES) or ()
        columns = self.entries(path, node)
        return {name: self.key_type(joined(path, name), of) for name, of in columns.items()}

    def key_type(self, path: str, node: Node) -> Any:
        if isinstance(node, MappingNode) and any(key.value == "personal" for key, _ in node.value):
            right = "a key outlives an erasure: take one that is not personal, and write its type alone"
            self.tell(path, "a business key cannot be personal", right)
            return "string"
        return self.value(path, node, Kind.TEXT) or "string"

    def attributes(self, path: str, node: Node) -> dict[str, Any]:
        return {name: self.attribute(joined(path, name), of) for name, of in self.entries(path, node).items()}

    def attribute(self, path: str, node: Node) -> Any:
        if isinstance(node, MappingNode):
            return Attribute(**{"scd": None, **self.words(path, node, words.ATTRIBUTE)})
        return self.value(path, node, Kind.SCALAR)

    def sources(self, path: str, node: Node) -> list[Source]:
        return [self.source(joined(path, name), name, of) for name, of in self.entries(path, node).items()]

    def source(self, path: str, name: str, node: Node) -> Source:
        given = self.words(path, node, words.SOURCE)
        for kind, (channel, _) in _CHANNELS.items():
            if kind in given:
                given[kind] = self.channel(joined(path, kind), given[kind], kind)
            elif joined(path, kind) in self.spoilt:
                given[kind] = channel()
        if "columns" in given:
            given["columns"] = self.columns(joined(path, "columns"), given["columns"])
        if "retire_guard" in given:
            given |= self.retire_guard(joined(path, "retire_guard"), given.pop("retire_guard"))
        return Source(name, **given)

    def retire_guard(self, path: str, node: Node) -> dict[str, Any]:
        """The argument of the source: a share, or a mapping; none where it cannot be read."""
        if isinstance(node, MappingNode):
            return {"retire_guard": RetireGuard(**self.words(path, node, words.RETIRE_GUARD))}
        share = self.value(path, node, Kind.NUMBER)
        return {} if share is None else {"retire_guard": share}

    def channel(self, path: str, node: Node, kind: str) -> Any:
        channel, known = _CHANNELS[kind]
        if not isinstance(node, MappingNode):
            return channel(self.value(path, node, Kind.TEXT))
        given = self.words(path, node, known)
        if "options" in given:
            field = joined(path, "options")
            options = self.entries(field, given["options"])
            texts = {name: self.value(joined(field, name), value, Kind.TEXT) for name, value in options.items()}
            given["options"] = {name: text for name, text in texts.items() if text is not None}
        return channel(**given)

    def columns(self, path: str, node: Node) -> dict[str, Any]:
        return {name: self.column(joined(path, name), of) for name, of in self.entries(path, node).items()}

    def column(self, path: str, node: Node) -> Column:
        if not isinstance(node, MappingNode):
            return Column(self.value(path, node, Kind.NAMES))
        given = self.words(path, node, words.COLUMN)
        return Column(**{words.PYTHON_NAMES.get(word, word): value for word, value in given.items()})

    # Mappings, lists and single values

    def words(self, path: str, node: Node, known: Words) -> dict[str, Any]:
        """The values by their words; of a part that has words of its own, the node."""
        given: dict[str, Any] = {}
        for word, value in self.correct_names(path, self.entries(path, node), known).items():
            field = joined(path, word)
            if field in self.spoilt:
                continue
            found = self.part(field, value) if known[word] is Kind.PART else self.value(field, value, known[word])
            if found is not None:
                given[word] = found
        return given

    def correct_names(self, path: str, entries: Mapping[str, Node], known: Words) -> dict[str, Node]:
        """Return the entries by the options that are meant; an unknown name is an error.

        The options under a misspelt name are read as those of the option that is most likely meant, so that their
        errors are reported too.
        """
        corrected: dict[str, Node] = {}
        for word, node in entries.items():
            field = joined(path, word)
            if word in known or field in self.spoilt:
                corrected[word] = node
                continue
            self.tell(field, f"{shown(word)} is not a word that stands here", _hint(word, known))
            meant = nearest(word, known)
            if meant and known[meant] is Kind.PART and meant not in entries and meant not in corrected:
                self.lines[joined(path, meant)] = self.lines[field]
                corrected[meant] = node
        return corrected

    def part(self, path: str, node: Node) -> Node | None:
        if is_nothing(node):
            handed_in = path.rpartition(".")[2] in _CHANNELS
            right = "write `{}` where frames are handed in" if handed_in else "say what it is"
            self.tell(path, "has no value", f"{right}, or remove the word")
            return None
        return node

    def entries(self, path: str, node: Node) -> dict[str, Node]:
        """The values of a mapping by their names; names that are no text, or that come again, are told."""
        if not isinstance(node, MappingNode):
            self.tell(path, f"{kind_of(node)} stands where names with values are expected", "write `name: value`")
            return {}
        tag = foreign_tag(node)
        if tag is not None:
            self.tell(path, f"tag {shown(tag)} is not offered", "remove the tag", spoils=False)
        found: dict[str, Node] = {}
        for key, value in self.whole_entries(path, node):
            name = self.entry_name(path, key)
            if name is None:
                continue
            field = joined(path, name)
            if name in found:
                first = self.lines[field]
                self.tell(field, f"is there twice (line {first} has it too)", "remove one", False, line_of(key))
                continue
            self.lines[field] = line_of(key)
            found[name] = value
        return found

    def whole_entries(self, path: str, node: MappingNode) -> Iterator[tuple[Node, Node]]:
        """Yield keys and values; a value that a comma in braces has cut into several entries is an error."""
        rest = iter(node.value)
        for key, value in rest:
            pieces = [value]
            while node.flow_style and _is_cut(pieces):
                following = next(rest, None)
                if following is None:
                    break
                pieces.append(following[0])
            if len(pieces) > 1:
                text = ",".join(str(piece.value) for piece in pieces)
                field = joined(path, key.value)
                self.lines.setdefault(field, line_of(key))
                self.tell(field, f"{text} is cut off at its comma, which ends a value in braces", f'quote it: "{text}"')
            else:
                yield key, value

    def entry_name(self, path: str, key: Node) -> str | None:
        line = line_of(key)
        if not isinstance(key, ScalarNode):
            self.tell(path, f"{kind_of(key)} stands where a name is expected", "write `name: value`", False, line)
            return None
        if key.tag == MERGE:
            self.tell(path, "`<<` is not offered", "write the words out", spoils=False, line=line)
            return None
        name = str(key.value)
        self.check_name(joined(path, name), key, line)
        return name

    def check_name(self, path: str, key: ScalarNode, line: int) -> None:
        """Tell a name that YAML reads as something else than text."""
        tag = foreign_tag(key)
        if tag is not None:
            self.tell(path, f"tag {shown(tag)} is not offered", "remove the tag", line=line)
        elif is_nothing(key) and not key.value:
            self.tell(path, "a name is missing before the colon", _ENTRY, line=line)
        elif key.tag not in TEXT_TAGS:
            self.tell(path, *_unquoted(key, "a name"), line=line)

    def value(self, path: str, node: Node, kind: Kind) -> Any:
        """A value of the kind; None where there is none, which is told."""
        tag = foreign_tag(node)
        if tag is not None:
            self.tell(path, f"tag {shown(tag)} is not offered", "remove the tag")
            return None
        if kind is Kind.NAMES and isinstance(node, SequenceNode):
            names = [self.value(path, item, Kind.TEXT) for item in node.value]
            return tuple(name for name in names if name is not None)
        if not isinstance(node, ScalarNode):
            self.tell(path, f"{kind_of(node)} stands where {kind.value} is expected", f"write {kind.value}")
            return None
        found = self.scalar(path, node, kind)
        return (found,) if kind is Kind.NAMES and found is not None else found

    def scalar(self, path: str, node: ScalarNode, kind: Kind) -> Any:
        try:
            found = value_of(node)
        except Unreadable as error:
            wrong = f"{shown(node.value)} looks like {error}, but cannot be read as such"
            self.tell(path, wrong, "put it in quotes if it is text")
            return None
        if isinstance(found, Stamp) and kind in (Kind.TIME, Kind.SCALAR):
            found = found.text
        if found is None and kind is Kind.CHOICE and node.value in _NULL:
            found = "null"  # a choice that YAML reads as no value
        fits = isinstance(found, str) if kind is Kind.NAMES else kind.accepts(found)
        if fits:
            return found
        if found is None:
            self.tell(path, "has no value", f"write {kind.value}, or remove the word")
        elif kind in (Kind.TEXT, Kind.TIME, Kind.NAMES):
            wrong, right = _unquoted(node, kind.value)
            self.tell(path, wrong, TIME_FORM if kind is Kind.TIME else right)
        else:
            self.tell(path, f"{shown(node.value)} is not {kind.value}", f"write {kind.value}")
        return None


def _is_cut(pieces: Sequence[Node]) -> bool:
    """Return whether a plain text opens more brackets of a type than it closes."""
    if not all(isinstance(piece, ScalarNode) and piece.style is None for piece in pieces):
        return False
    text = "".join(str(piece.value) for piece in pieces)
    return text.count("(") + text.count("<") > text.count(")") + text.count(">")


def _hint(word: str, known: Words) -> str:
    """Return what to write in place of an unknown word."""
    if known in (words.SNAPSHOT, words.FEED) and word in words.SOURCE:
        return f"`{word}` is an option of the source: move it beside `snapshot:` and `feed:`"
    meant = words.MEANT.get(word, "")
    return f"did you mean `{meant}`?" if meant.partition(":")[0] in known else did_you_mean(word, known)


def _unquoted(node: ScalarNode, wanted: str) -> tuple[str, str]:
    """A word that YAML reads as something else than text, and how to write it as text."""
    return (
        f"{_short(node)} is read as {_read_as(node)}, not as {wanted}",
        f'put it in quotes: "{_short(node)}"',
    )


def _read_as(node: ScalarNode) -> str:
    return READ_AS[node.tag.rpartition(":")[2]]


def _short(node: ScalarNode) -> str:
    raw = str(node.value)
    return raw if len(raw) <= 60 and raw.isprintable() else shown(raw)
