"""The reader of a dimension in YAML, which reports each error with the line of its key (S28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from scd_pipeline.declaration.attribute import Attribute
from scd_pipeline.declaration.begin import Begin
from scd_pipeline.declaration.checks.collect import field_path
from scd_pipeline.declaration.checks.database import SECRET
from scd_pipeline.declaration.control_totals import ControlTotals
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.frozen import FrozenMapping
from scd_pipeline.declaration.governance import ExpectedValue, SignOff
from scd_pipeline.declaration.history import history_options
from scd_pipeline.declaration.jdbc import EnvVar, Jdbc, Partitions
from scd_pipeline.declaration.landing_table import LandingTable
from scd_pipeline.declaration.mirror import MIRROR, Mirror
from scd_pipeline.declaration.source import Column, Feed, RetireGuard, Snapshot, Source
from scd_pipeline.declaration.timed_table import TimedTable
from scd_pipeline.declaration.times import TIME_FORM
from scd_pipeline.declaration.yaml import options
from scd_pipeline.declaration.yaml.nodes import (
    MERGE,
    READ_AS,
    TEXT_TAGS,
    UnquotedTime,
    UnreadableScalar,
    foreign_tag,
    is_nothing,
    line_number,
    node_kind,
    node_within_itself,
    parse_scalar,
)
from scd_pipeline.declaration.yaml.options import Kind, Options
from scd_pipeline.errors import DeclarationError, ValidationError
from scd_pipeline.texts import did_you_mean, nearest, short_repr

_CHANNELS: dict[str, tuple[Any, Options]] = {"snapshot": (Snapshot, options.SNAPSHOT), "feed": (Feed, options.FEED)}
_ENTRY = "write `name: value`"
_PLACEHOLDER = "table"
"""The table of a history in place of an invalid name, so that the other parts are checked too."""
_TIMES = (Kind.TIME, Kind.TIME_OR_NULL, Kind.TIME_OR_NUMBER)
_NULL = ("null", "Null", "NULL")
_TUPLES = (Kind.NAMES, Kind.TEXTS)
_KINDS_OF_ITEMS = {Kind.NAMES: Kind.TEXT, Kind.TEXTS: Kind.TEXT, Kind.SEQUENCE: Kind.COMPUTED}


class DimensionReader:
    """The reader of one document; an invalid part is reported and omitted from the dimension.

    Args:
        origin: The name of the file.
        root: The document.
        timed_tables: The timed tables that sources can name, None for an invalid one.
        landing_tables: The landing tables that sources can name, None for an invalid one.
    """

    def __init__(
        self,
        origin: str,
        root: Node,
        timed_tables: Mapping[str, TimedTable | None] = FrozenMapping({}),
        landing_tables: Mapping[str, LandingTable | None] = FrozenMapping({}),
    ) -> None:
        self.origin = origin
        self.root = root
        self.timed_tables = timed_tables
        self.landing_tables = landing_tables
        self.lines = {"": line_number(root)}
        self.errors: list[tuple[int, ValidationError]] = []
        self.invalid_paths: set[str] = set()
        self.is_complete = True

    def read(self) -> Dimension | None:
        """Return the dimension, None if it is invalid."""
        recursive_node = node_within_itself(self.root)
        if recursive_node is not None:
            problem = "an alias refers to its own anchor"
            self.report(
                "UNSUPPORTED_YAML",
                "dimension",
                problem,
                "write the part out",
                hide_others=False,
                line=line_number(recursive_node),
            )
        values = self.dimension_options()
        try:
            dimension = Dimension(**values, origin=f"{self.origin}:{self.lines['']}")
        except DeclarationError as error:
            for validation_error in error.errors:
                self.report_built(validation_error)
            return None
        return dimension if self.is_complete and not self.errors else None

    def report_built(self, validation_error: ValidationError) -> None:
        """Report an error of the built declaration, unless it follows from one that was reported."""
        field = self.name_option if validation_error.field == "name" else validation_error.field
        if not any(field == path or field.startswith(f"{path}.") for path in self.invalid_paths):
            self.report(validation_error.code, field, validation_error.problem, validation_error.fix, hide_others=False)

    @property
    def name_option(self) -> str:
        """The option with the name of the table."""
        return "history_of" if "history_of" in self.lines and "dimension" not in self.lines else "dimension"

    def report(
        self, code: str, path: str, problem: str, fix: str, hide_others: bool = True, line: int | None = None
    ) -> None:
        line = line or self.line(path)
        self.errors.append((line, ValidationError(code, f"{self.origin}:{line}", path, problem, fix)))
        if hide_others:
            self.invalid_paths.add(path)

    def line(self, path: str) -> int:
        """Return the line of the key, or of the nearest enclosing key that exists."""
        while path not in self.lines:
            path = path.rpartition(".")[0]
        return self.lines[path]

    # Parts of the declaration

    def dimension_options(self) -> dict[str, Any]:
        if not isinstance(self.root, MappingNode):
            fix = "begin with `dimension: <name>`"
            self.report("INVALID_KIND", "dimension", f"is {node_kind(self.root)}; expected a declaration", fix)
            self.invalid_paths |= set(options.DIMENSION)
            return {"name": ""}
        values = self.options("", self.root, options.DIMENSION)
        if "dimension" in values:
            values["name"] = values.pop("dimension")
        readers = {
            "business_key": self.key,
            "sources": self.sources,
            "attributes": self.attributes,
            "mirror": self.mirror,
            "sign_offs": self.sign_offs,
            "expected_values": self.expected_values,
            "table_properties": self.table_properties,
            "history_table_properties": self.table_properties,
        }
        for option, read in readers.items():
            if option in values:
                values[option] = read(option, values[option])
        if "attributes" in self.invalid_paths:
            values["attributes"] = None  # not empty, which would be a dimension of keys alone
        if "begin" in values:
            values["begin"] = self.begin(self.options("begin", values["begin"], options.BEGIN))
        for option, names in (("column_names", options.TABLE_COLUMNS), ("change_types", options.CHANGE_TYPES)):
            if option in values:
                values[option] = self.options(option, values[option], names)
        return {**self.history_options(values.pop("history_of", None)), **values}

    def history_options(self, table: str | None) -> dict[str, Any]:
        """Return the options of a history unless the document has others; an empty name for any other dimension."""
        if "history_of" not in self.lines:
            return {"name": ""}
        attributes = {} if {"attributes", "mirror"} & self.lines.keys() else {"attributes": MIRROR}
        return {**history_options(table or _PLACEHOLDER), **attributes}

    def begin(self, values: dict[str, Any]) -> Begin:
        paths = {"begin", "begin.at", "begin.column"}
        if not {"at", "column"} & values.keys() and not self.invalid_paths & paths:
            self.report("MISSING_VALUE", "begin.at", "is missing", f"{TIME_FORM}, or give `column`")
        return Begin(**values)

    def sign_offs(self, path: str, node: Node) -> dict[str, SignOff]:
        empty = {"by": "", "date": ""}
        return {
            role: SignOff(**{**empty, **self.options(field_path(path, role), section, options.SIGN_OFF)})
            for role, section in self.options(path, node, options.SIGN_OFFS).items()
        }

    def expected_values(self, path: str, node: Node) -> dict[str, ExpectedValue]:
        empty = {"as_of": "", "expression": "", "value": None}
        return {
            name: ExpectedValue(**{**empty, **self.options(field_path(path, name), section, options.EXPECTED_VALUE)})
            for name, section in self.entries(path, node).items()
        }

    def table_properties(self, path: str, node: Node) -> dict[str, Any]:
        entries = self.entries(path, node)
        values = {name: self.value(field_path(path, name), value, Kind.SCALAR) for name, value in entries.items()}
        return {name: value for name, value in values.items() if value is not None}

    def key(self, path: str, node: Node) -> Any:
        if not isinstance(node, MappingNode):
            return self.value(path, node, Kind.NAMES) or ()
        columns = self.entries(path, node)
        return {name: self.key_type(field_path(path, name), data_type) for name, data_type in columns.items()}

    def key_type(self, path: str, node: Node) -> Any:
        if isinstance(node, MappingNode) and any(key.value == "personal" for key, _ in node.value):
            fix = "a key remains after an erasure: choose one that is not personal, and write only its type"
            self.report("PERSONAL_KEY", path, "a business key cannot be personal", fix)
            return "string"
        return self.value(path, node, Kind.TEXT) or "string"

    def attributes(self, path: str, node: Node) -> Any:
        if isinstance(node, ScalarNode) and node.value == MIRROR:
            return MIRROR
        return {name: self.attribute(field_path(path, name), value) for name, value in self.entries(path, node).items()}

    def attribute(self, path: str, node: Node) -> Any:
        if not isinstance(node, MappingNode):
            return self.value(path, node, Kind.SCALAR)
        values = self.options(path, node, options.ATTRIBUTE)
        if "column_names" in values:
            field = field_path(path, "column_names")
            values["column_names"] = self.options(field, values["column_names"], options.ATTRIBUTE_COLUMNS)
        return Attribute(**{"scd": None, **values})

    def mirror(self, path: str, node: Node, allowed: Options = options.MIRROR) -> Mirror:
        values = self.options(path, node, allowed)
        if "former_names" in values:
            field = field_path(path, "former_names")
            entries = self.entries(field, values["former_names"])
            names = {name: self.value(field_path(field, name), each, Kind.NAMES) for name, each in entries.items()}
            values["former_names"] = {name: each for name, each in names.items() if each is not None}
        return Mirror(**values)

    def sources(self, path: str, node: Node) -> list[Source]:
        return [self.source(field_path(path, name), name, value) for name, value in self.entries(path, node).items()]

    def source(self, path: str, name: str, node: Node) -> Source:
        values = self.options(path, node, options.SOURCE)
        for kind, (channel, _) in _CHANNELS.items():
            if kind in values:
                values[kind] = self.channel(field_path(path, kind), values[kind], kind)
            elif field_path(path, kind) in self.invalid_paths:
                values[kind] = channel()
        if "columns" in values:
            values["columns"] = self.columns(field_path(path, "columns"), values["columns"])
        if "retire_guard" in values:
            values |= self.retire_guard(field_path(path, "retire_guard"), values.pop("retire_guard"))
        for option, tables in (("timed_table", self.timed_tables), ("landing_table", self.landing_tables)):
            if option in values:
                values |= self.stored_table(field_path(path, option), values.pop(option), option, tables)
        return Source(name, **values)

    def retire_guard(self, path: str, node: Node) -> dict[str, Any]:
        """Return the argument of the source, read from a share or a mapping; no argument if it is invalid."""
        if isinstance(node, MappingNode):
            return {"retire_guard": RetireGuard(**self.options(path, node, options.RETIRE_GUARD))}
        share = self.value(path, node, Kind.NUMBER)
        return {} if share is None else {"retire_guard": share}

    def stored_table(self, path: str, node: Node, option: str, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Return the argument of the source, read from the name of a table; a feed if the table is invalid."""
        name = self.value(path, node, Kind.TEXT)
        table = tables.get(name or "")
        if table is not None:
            return {option: table}
        if name is not None and name not in tables:
            problem = f"{short_repr(name)} is not a declared {option.replace('_', ' ')}"
            hint = f"{did_you_mean(name, tables)}; or " if tables else ""
            self.report("UNKNOWN_NAME", path, problem, f"{hint}declare it in a file of the same folder")
        self.is_complete = False
        return {"feed": Feed()}

    def channel(self, path: str, node: Node, kind: str) -> Any:
        channel, channel_options = _CHANNELS[kind]
        if not isinstance(node, MappingNode):
            return channel(self.value(path, node, Kind.TEXT))
        values = self.options(path, node, channel_options)
        if "options" in values:
            values["options"] = self.texts(field_path(path, "options"), values["options"])
        if "jdbc" in values:
            values["jdbc"] = self.jdbc(field_path(path, "jdbc"), values["jdbc"])
        if "control_totals" in values:
            field = field_path(path, "control_totals")
            values["control_totals"] = self.control_totals(field, values["control_totals"])
        return channel(**values)

    def control_totals(self, path: str, node: Node) -> ControlTotals:
        values = self.options(path, node, options.CONTROL_TOTALS)
        if "sums" in values:
            values["sums"] = self.texts(field_path(path, "sums"), values["sums"])
        return ControlTotals(**values)

    def types(self, path: str, node: Node) -> dict[str, str]:
        """Return the types of columns; the default is string."""
        if not isinstance(node, MappingNode):
            return dict.fromkeys(self.value(path, node, Kind.NAMES) or (), "string")
        return {
            name: self.value(field_path(path, name), data_type, Kind.TEXT) or "string"
            for name, data_type in self.entries(path, node).items()
        }

    def jdbc(self, path: str, node: Node) -> Jdbc:
        values = self.options(path, node, options.JDBC)
        if "options" in values:
            values["options"] = self.texts(field_path(path, "options"), values["options"])
        if "partitions" in values:
            field = field_path(path, "partitions")
            values["partitions"] = Partitions(**self.options(field, values["partitions"], options.PARTITIONS))
        return Jdbc(**values)

    def texts(self, path: str, node: Node) -> dict[str, str]:
        """Return the texts of a mapping by name, without those that are invalid."""
        entries = self.entries(path, node)
        texts = {name: self.value(field_path(path, name), value, Kind.TEXT) for name, value in entries.items()}
        return {name: text for name, text in texts.items() if text is not None}

    def columns(self, path: str, node: Node) -> dict[str, Any]:
        return {name: self.column(field_path(path, name), value) for name, value in self.entries(path, node).items()}

    def column(self, path: str, node: Node) -> Column:
        if not isinstance(node, MappingNode):
            return Column(self.value(path, node, Kind.NAMES))
        values = self.options(path, node, options.COLUMN)
        return Column(**{options.PYTHON_NAMES.get(option, option): value for option, value in values.items()})

    # Mappings, lists and single values

    def options(self, path: str, node: Node, allowed: Options) -> dict[str, Any]:
        """Return the values of the options; for a section its node."""
        values: dict[str, Any] = {}
        for option, entry in self.correct_names(path, self.entries(path, node), allowed).items():
            field = field_path(path, option)
            if field in self.invalid_paths:
                continue
            kind = allowed[option]
            value = self.section(field, entry) if kind is Kind.SECTION else self.value(field, entry, kind)
            if value is not None:
                values[option] = value
        return values

    def correct_names(self, path: str, entries: Mapping[str, Node], allowed: Options) -> dict[str, Node]:
        """Return the entries by option, and report unknown names.

        A value under a misspelt name is read as that of the most similar option, so that its errors are reported too.
        """
        corrected: dict[str, Node] = {}
        for option, node in entries.items():
            field = field_path(path, option)
            if option in allowed or field in self.invalid_paths:
                corrected[option] = node
                continue
            self.report("UNKNOWN_OPTION", field, f"{short_repr(option)} is not an option here", _hint(option, allowed))
            similar = "" if _is_other_option(option, allowed) else nearest(option, allowed)
            if similar and similar not in entries and similar not in corrected:
                self.lines[field_path(path, similar)] = self.lines[field]
                corrected[similar] = node
        return corrected

    def section(self, path: str, node: Node) -> Node | None:
        if is_nothing(node):
            is_channel = path.rpartition(".")[2] in _CHANNELS
            fix = "write `{}` to pass frames" if is_channel else "add a value"
            self.report("MISSING_VALUE", path, "has no value", f"{fix}, or remove the option")
            return None
        return node

    def entries(self, path: str, node: Node) -> dict[str, Node]:
        """Return the values of a mapping by name, and report names that are not text or occur twice."""
        if not isinstance(node, MappingNode):
            self.report("INVALID_KIND", path, f"is {node_kind(node)}; expected a mapping", "write `name: value`")
            return {}
        tag = foreign_tag(node)
        if tag is not None:
            self.report(
                "UNSUPPORTED_YAML", path, f"tag {short_repr(tag)} is not supported", "remove the tag", hide_others=False
            )
        entries: dict[str, Node] = {}
        for key, value in self.whole_entries(path, node):
            name = self.entry_name(path, key)
            if name is None:
                continue
            field = field_path(path, name)
            if name in entries:
                first = self.lines[field]
                self.report(
                    "NAMED_TWICE",
                    field,
                    f"occurs twice (line {first} has it too)",
                    "remove one",
                    False,
                    line_number(key),
                )
                continue
            self.lines[field] = line_number(key)
            entries[name] = value
        return entries

    def whole_entries(self, path: str, node: MappingNode) -> Iterator[tuple[Node, Node]]:
        """Yield keys and values; a value that a comma in braces has cut into several entries is an error."""
        entries = list(node.value)
        while entries:
            key, value = entries.pop(0)
            pieces = _cut_pieces(value, entries) if node.flow_style else []
            del entries[: max(len(pieces) - 1, 0)]
            if pieces:
                text = ",".join(str(piece.value) for piece in pieces)
                field = field_path(path, key.value)
                self.lines.setdefault(field, line_number(key))
                self.report(
                    "UNQUOTED_TEXT",
                    field,
                    f"{text} is cut off at its comma, which ends a value in braces",
                    f'quote it: "{text}"',
                )
            else:
                yield key, value

    def entry_name(self, path: str, key: Node) -> str | None:
        line = line_number(key)
        if not isinstance(key, ScalarNode):
            self.report(
                "INVALID_KIND", path, f"is {node_kind(key)}; expected a name", "write `name: value`", False, line
            )
            return None
        if key.tag == MERGE:
            self.report(
                "UNSUPPORTED_YAML", path, "`<<` is not supported", "write the options out", hide_others=False, line=line
            )
            return None
        name = str(key.value)
        self.check_name(field_path(path, name), key, line)
        return name

    def check_name(self, path: str, key: ScalarNode, line: int) -> None:
        """Report a name that YAML does not read as text."""
        tag = foreign_tag(key)
        if tag is not None:
            self.report(
                "UNSUPPORTED_YAML", path, f"tag {short_repr(tag)} is not supported", "remove the tag", line=line
            )
        elif is_nothing(key) and not key.value:
            self.report("MISSING_VALUE", path, "a name is missing before the colon", _ENTRY, line=line)
        elif key.tag not in TEXT_TAGS:
            self.report("UNQUOTED_TEXT", path, *_unquoted(key, "a name"), line=line)

    def value(self, path: str, node: Node, kind: Kind) -> Any:
        """Return the value of a node; report an invalid value and return None."""
        tag = foreign_tag(node)
        if tag is not None:
            self.report("UNSUPPORTED_YAML", path, f"tag {short_repr(tag)} is not supported", "remove the tag")
            return None
        if isinstance(node, SequenceNode) and kind in _KINDS_OF_ITEMS:
            items = [self.value(path, item, _KINDS_OF_ITEMS[kind]) for item in node.value]
            return tuple(item for item in items if item is not None)
        if isinstance(node, MappingNode) and kind in (Kind.COMPUTED, Kind.SEQUENCE):
            return Column(**self.options(path, node, options.EXPRESSION))
        if isinstance(node, MappingNode) and kind in (Kind.VARIABLE, Kind.TEXT_OR_VARIABLE):
            return EnvVar(**{"env": "", **self.options(path, node, options.ENV_VAR)})
        if isinstance(node, ScalarNode) and kind is Kind.VARIABLE and not is_nothing(node):
            self.report("SECRET_IN_DECLARATION", path, *SECRET)
            return None
        if not isinstance(node, ScalarNode):
            self.report("INVALID_KIND", path, f"is {node_kind(node)}; expected {kind.value}", f"write {kind.value}")
            return None
        value = self.scalar(path, node, kind)
        return (value,) if kind in _TUPLES and value is not None else value

    def scalar(self, path: str, node: ScalarNode, kind: Kind) -> Any:
        try:
            value = parse_scalar(node)
        except UnreadableScalar as error:
            problem = f"{short_repr(node.value)} looks like {error}, but cannot be read as such"
            self.report("UNQUOTED_TEXT", path, problem, "put it in quotes if it is text")
            return None
        if isinstance(value, UnquotedTime) and kind in (*_TIMES, Kind.SCALAR):
            value = value.text
        if value is None and kind in (Kind.MISSING, Kind.ON_BAD_VALUE, Kind.TIME_OR_NULL) and node.value in _NULL:
            value = "null"  # a choice that YAML reads as no value
        fits = isinstance(value, str) if kind in _TUPLES else kind.accepts(value)
        if fits:
            return value
        if value is None:
            self.report("MISSING_VALUE", path, "has no value", f"write {kind.value}, or remove the option")
        elif kind in (*_TUPLES, Kind.TEXT, Kind.TIME, Kind.TIME_OR_NULL, Kind.COMPUTED, Kind.SEQUENCE):
            is_time = kind in (Kind.TIME, Kind.TIME_OR_NULL)
            problem, fix = _unquoted(node, (Kind.TIME if is_time else kind).value)
            self.report("UNQUOTED_TEXT", path, problem, TIME_FORM if is_time else fix)
        else:
            self.report("INVALID_KIND", path, f"{short_repr(node.value)} is not {kind.value}", f"write {kind.value}")
        return None


def _cut_pieces(value: Node, following: Sequence[tuple[Node, Node]]) -> list[Node]:
    """Return the pieces of a text that commas have cut into entries without a value; none if the text is whole."""
    pieces = [value]
    for key, next_value in following:
        if not (_is_cut(pieces) and is_nothing(next_value) and not next_value.value):
            break
        pieces.append(key)
    return pieces if len(pieces) > 1 and not _is_cut(pieces) else []


def _is_cut(pieces: Sequence[Node]) -> bool:
    """Return whether a plain text opens more brackets of a type than it closes."""
    if not all(isinstance(piece, ScalarNode) and piece.style is None for piece in pieces):
        return False
    text = "".join(str(piece.value) for piece in pieces)
    return text.count("(") + text.count("<") > text.count(")") + text.count(">")


def _is_other_option(option: str, allowed: Options) -> bool:
    """Return whether an unknown option has another meaning elsewhere, so that no similar option is read for it."""
    is_of_source = allowed in (options.SNAPSHOT, options.FEED) and option in options.SOURCE
    return is_of_source or option in options.ALIASES or _is_partitioning(option, allowed)


def _is_partitioning(option: str, allowed: Options) -> bool:
    """Return whether an unknown option of a table would partition it in another tool."""
    return allowed in (options.DIMENSION, options.FACT) and option in options.PARTITIONING


def _hint(option: str, allowed: Options) -> str:
    """Return what to write in place of an unknown option."""
    if allowed in (options.SNAPSHOT, options.FEED) and option in options.SOURCE:
        return f"`{option}` is an option of the source: move it to the level of `snapshot:` and `feed:`"
    if _is_partitioning(option, allowed):
        return "remove it: tables are not partitioned, because partitions by date split a small table into many files"
    equivalent = options.ALIASES.get(option, "")
    if equivalent.partition(":")[0] in allowed:
        return f"did you mean `{equivalent}`?"
    return did_you_mean(option, allowed)


def _unquoted(node: ScalarNode, expected: str) -> tuple[str, str]:
    """Return the problem and the fix of a scalar that YAML does not read as text."""
    return (
        f"{_short(node)} is read as {_read_as(node)}, not as {expected}",
        f'put it in quotes: "{_short(node)}"',
    )


def _read_as(node: ScalarNode) -> str:
    return READ_AS[node.tag.rpartition(":")[2]]


def _short(node: ScalarNode) -> str:
    raw = str(node.value)
    return raw if len(raw) <= 60 and raw.isprintable() else short_repr(raw)
