"""Column types, parsed from text such as `decimal(12,2)` or `array<struct<a:int,b:string>>`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from scd_pipeline.declaration.names import FORBIDDEN_BY_DELTA, quote_if_needed
from scd_pipeline.errors import DeclarationError, ValidationError
from scd_pipeline.texts import did_you_mean, is_text, short_repr

_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "bool": "boolean",
    "text": "string",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}
PRIMITIVES = (
    "string",
    "int",
    "bigint",
    "smallint",
    "tinyint",
    "double",
    "float",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
)
_NESTED = ("decimal", "array", "map", "struct")
_UNSUPPORTED = {
    "variant": "store it as string, or as a struct of the parts you compare",
    "geometry": "store it as string (WKT) or binary (WKB)",
    "geography": "store it as string (WKT) or binary (WKB)",
    "interval": "store it as a bigint of its smallest unit",
    "void": "give the type that the values have",
    "char": "write string",
    "varchar": "write string",
}
_EQUIVALENTS = {
    "datetime": "timestamp",
    "str": "string",
    "object": "string",
    "uuid": "string",
    "json": "string",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "number": "decimal(precision,scale)",
    "list": "array<type>",
    "dict": "map<type,type>",
}
"""Types of other systems, each with the equivalent type."""
_MAX_DEPTH = 30
INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_MAX_PRECISION = 38
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([^\s<>(),:`]+)|([<>(),:]))")


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without elements, by its canonical name."""

    name: str

    def ddl(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number with `precision` digits, `scale` of them after the decimal point."""

    precision: int
    scale: int

    def ddl(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values of one type."""

    element: DataType

    def ddl(self) -> str:
        return f"array<{self.element.ddl()}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key; compared as sorted entries (S8)."""

    key: DataType
    value: DataType

    def ddl(self) -> str:
        return f"map<{self.key.ddl()},{self.value.ddl()}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields, in order."""

    fields: tuple[tuple[str, DataType], ...]

    def ddl(self) -> str:
        inner = ",".join(f"{quote_if_needed(name)}:{data_type.ddl()}" for name, data_type in self.fields)
        return f"struct<{inner}>"


DataType = Primitive | Decimal | Array | Map | Struct


def leaves(data_type: DataType) -> tuple[DataType, ...]:
    """Return the primitive and decimal types that the type consists of."""
    match data_type:
        case Array(element=element):
            return leaves(element)
        case Map(key=key, value=value):
            return (*leaves(key), *leaves(value))
        case Struct(fields=fields):
            return tuple(leaf for _, inner in fields for leaf in leaves(inner))
        case _:
            return (data_type,)


def parse_type(text: str) -> DataType:
    """Return the type that the text describes.

    Raises:
        DeclarationError: The text is not a type, or values of the type cannot be compared (S8).
    """
    if not isinstance(text, str) or not text.strip() or not is_text(text):
        _reject(text, f"{short_repr(text)} is not a type", f"allowed: {', '.join((*PRIMITIVES, *_NESTED))}")
    parser = _Parser(text)
    data_type = parser.type(0)
    parser.end()
    return data_type


def _reject(text: object, problem: str, fix: str) -> NoReturn:
    raise DeclarationError([ValidationError("INVALID_TYPE", "type", short_repr(text), problem, fix)])


class _Parser:
    """A recursive-descent parser of one type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split(text)
        self.at = 0

    def _split(self, text: str) -> list[str]:
        tokens, at = [], 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                _reject(text, f"{short_repr(text)} is not a type", "close what `` ` `` opens")
            tokens.append(match.group().strip())
            at = match.end()
        return tokens

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next_token(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str, form: str) -> None:
        if self.next_token() != token:
            _reject(self.text, f"{short_repr(self.text)} is not a type", f"write {form}")

    def end(self) -> None:
        if self.at != len(self.tokens):
            rest = " ".join(self.tokens[self.at :])
            _reject(self.text, f"{short_repr(self.text)} has text after the type", f"remove {short_repr(rest)}")

    def type(self, depth: int) -> DataType:
        if depth > _MAX_DEPTH:
            _reject(self.text, f"nested more than {_MAX_DEPTH} deep", "flatten the type")
        option = self.next_token()
        name = _ALIASES.get(option.lower(), option.lower())
        self._reject_unsupported(option, name)
        if name == "decimal":
            return self.decimal()
        if name == "array":
            return self.array(depth)
        if name == "map":
            return self.map(depth)
        return self.struct(depth) if name == "struct" else Primitive(name)

    def _reject_unsupported(self, option: str, name: str) -> None:
        for unsupported, replacement in _UNSUPPORTED.items():
            if name == unsupported:
                _reject(self.text, f"type {option} cannot be the type of a column here", replacement)
        if name not in PRIMITIVES and name not in _NESTED:
            allowed = (*PRIMITIVES, *_NESTED)
            equivalent = _EQUIVALENTS.get(name)
            fix = f"did you mean {equivalent}? allowed: {', '.join(allowed)}" if equivalent else ""
            _reject(self.text, f"{short_repr(option)} is not a type", fix or did_you_mean(name, allowed))

    def decimal(self) -> Decimal:
        form = "decimal(precision,scale), such as decimal(12,2)"
        if self.peek() != "(":
            return Decimal(10, 0)
        self.expect("(", form)
        precision, scale = self.number(form), 0
        if self.peek() == ",":
            self.next_token()
            scale = self.number(form)
        self.expect(")", form)
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            fix = f"precision is 1 to {_MAX_PRECISION}, and scale is 0 to precision"
            _reject(self.text, f"decimal({precision},{scale}) is out of range", fix)
        return Decimal(precision, scale)

    def number(self, form: str) -> int:
        token = self.next_token()
        if not re.fullmatch(r"[0-9]{1,9}", token):
            _reject(self.text, f"{short_repr(token)} is not a count of digits", f"write {form}")
        return int(token)

    def array(self, depth: int) -> Array:
        form = "array<type>, such as array<string>"
        self.expect("<", form)
        element = self.type(depth + 1)
        self.expect(">", form)
        return Array(element)

    def map(self, depth: int) -> Map:
        form = "map<type,type>, such as map<string,int>"
        self.expect("<", form)
        key = self.type(depth + 1)
        self.expect(",", form)
        value = self.type(depth + 1)
        self.expect(">", form)
        if has_map(key):
            _reject(self.text, "the key of a map has a map in it", "use an array of structs as the key")
        return Map(key, value)

    def struct(self, depth: int) -> Struct:
        form = "struct<name:type,...>, such as struct<street:string,number:int>"
        self.expect("<", form)
        fields = [self.field(depth, form)]
        while self.peek() == ",":
            self.next_token()
            fields.append(self.field(depth, form))
        self.expect(">", form)
        names = [name.casefold() for name, _ in fields]
        if len(set(names)) != len(names):
            _reject(self.text, f"{short_repr(self.text)} names a field twice", "give each field its own name")
        return Struct(tuple(fields))

    def field(self, depth: int, form: str) -> tuple[str, DataType]:
        name = self.next_token()
        if not name or name in "<>(),:":
            _reject(self.text, f"{short_repr(self.text)} lacks the name of a field", f"write {form}")
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if not name.isprintable() or set(name) & set(FORBIDDEN_BY_DELTA):
            fix = f"use printable characters, no space and none of {' '.join(FORBIDDEN_BY_DELTA.strip())}"
            _reject(self.text, f"{short_repr(name)} cannot be the name of a field", fix)
        if self.peek() == ":":
            self.next_token()
        return name, self.type(depth + 1)


def common_type(stored: DataType, delivered: DataType) -> DataType | None:
    """Return the type that a column needs for its stored and its delivered values; None if there is no such type.

    A wider type has all values of the stored one, each with the same text (`lossless.to_text`). So a whole number can
    have more bytes, and a decimal more digits before its point. A struct can have more fields, after those that it has;
    they are NULL in stored values. A double has other texts than a float, and digits after the point are part of the
    text: with more of them, hashes of stored values would change. A stored decimal accepts numbers with fewer digits
    after the point. A stored double accepts whole numbers; a number that it cannot represent is a bad value.
    """
    match stored, delivered:
        case Primitive(narrow), Primitive(wide) if narrow in INTEGERS and wide in INTEGERS:
            return max(stored, delivered, key=lambda each: INTEGERS.index(each.name))
        case Primitive("double"), Primitive(whole) if whole in INTEGERS:
            return stored
        case Decimal(), Primitive(whole) if whole in INTEGERS:
            return _common_decimal(stored, Decimal(_DIGITS[whole], 0))
        case Decimal(), Decimal():
            return _common_decimal(stored, delivered)
        case Array(), Array():
            element = common_type(stored.element, delivered.element)
            return element and Array(element)
        case Map(), Map() if stored.key == delivered.key:
            value = common_type(stored.value, delivered.value)
            return value and Map(stored.key, value)
        case Struct(), Struct():
            return _common_struct(stored, delivered)
        case _:
            return stored if stored == delivered else None


def _common_decimal(stored: Decimal, delivered: Decimal) -> Decimal | None:
    """Return a decimal with the stored digits after the point, and as many before it as one of both has."""
    before = max(each.precision - each.scale for each in (stored, delivered))
    has_common = delivered.scale <= stored.scale and before + stored.scale <= _MAX_PRECISION
    return Decimal(before + stored.scale, stored.scale) if has_common else None


def _common_struct(stored: Struct, delivered: Struct) -> Struct | None:
    """Return the stored fields, each with the common type, and after them the delivered ones that are new."""
    added = {name.casefold(): (name, data_type) for name, data_type in delivered.fields}
    fields: list[tuple[str, DataType]] = []
    for name, data_type in stored.fields:
        _, other = added.pop(name.casefold(), (name, data_type))
        common = common_type(data_type, other)
        if common is None:
            return None
        fields.append((name, common))
    return Struct((*fields, *added.values()))


def is_wider(data_type: DataType, other: DataType) -> bool:
    """Return whether a type has all values of another one, each with the same text, and further values."""
    return data_type != other and common_type(other, data_type) == data_type


def nested_columns(name: str, data_type: DataType) -> dict[tuple[str, ...], DataType]:
    """Return the type of a column and of everything inside of it, by its path as Delta's commands have it."""
    inner: tuple[tuple[str, DataType], ...]
    match data_type:
        case Array(element=element):
            inner = (("element", element),)
        case Map(value=value):
            inner = (("value", value),)
        case Struct(fields=fields):
            inner = fields
        case _:
            inner = ()
    columns: dict[tuple[str, ...], DataType] = {(name,): data_type}
    for part, part_type in inner:
        columns |= {(name, *path): each for path, each in nested_columns(part, part_type).items()}
    return columns


def has_map(data_type: DataType) -> bool:
    """Return whether the type is a map or contains one at any depth."""
    match data_type:
        case Map():
            return True
        case Array(element=element):
            return has_map(element)
        case Struct(fields=fields):
            return any(has_map(field) for _, field in fields)
        case _:
            return False
