"""Translation of the expressions of statements into SQL of Spark, with a check of their types (S12).

Only what this module lists is translated. The text is built from the parsed tree: no text of a log reaches Spark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import isinf
from typing import Any, NoReturn, TypeAlias

from sqlglot import exp

from scd_pipeline.declaration.names import quote_name
from scd_pipeline.declaration.types import DataType, Decimal, Primitive, Struct, parse_type
from scd_pipeline.delta.table import sql_literal
from scd_pipeline.errors import DeclarationError
from scd_pipeline.instants import to_instant
from scd_pipeline.texts import did_you_mean
from scd_pipeline.timed.patterns import LikePattern, is_pattern, parse_pattern

Columns: TypeAlias = Mapping[str, DataType]
Resolve: TypeAlias = Callable[[str], str]
"""Returns the text of a reference to a column."""


class Kind(Enum):
    """The kind of a value: values of one kind can be compared and assigned."""

    INTEGER = "whole number"
    DECIMAL = "decimal number"
    FLOAT = "floating-point number"
    STRING = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "timestamp"
    BINARY = "binary"
    NESTED = "nested value"
    NULL = "NULL"


_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), Kind.TIME),
    "string": Kind.STRING,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "binary": Kind.BINARY,
}
_TYPES_OF_NULL = {Kind.INTEGER: "int", Kind.BOOLEAN: "boolean", Kind.STRING: "string"}
"""The types as which Spark reads NULL where it needs one."""
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_CONVERTIBLE = ({*_NUMBERS, Kind.BOOLEAN}, {Kind.DATE, Kind.TIME})
"""The kinds that CAST converts to each other, beside texts, which it converts to and from all others."""
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_NUMBER = re.compile(r"(?P<whole>\d*)(?:\.(?P<fraction>\d*))?(?P<exponent>[eE][+-]?\d+)?", re.ASCII)
_MAX_DIGITS = 38
_ESCAPE = "\\"
"""The escape character of a LIKE without ESCAPE."""
_AFTER = {"\ud7ff": "\ue000", chr(sys.maxunicode): None}
"""The next characters that do not have the next number: no text has surrogates, and there is no later character."""


@dataclass(frozen=True, slots=True)
class Value:
    """An expression as text.

    Attributes:
        text: The SQL.
        kind: The kind of its values.
        data_type: The type, of a column or of a cast.
        literal: The text of a string or of a number, with its sign.
    """

    text: str
    kind: Kind
    data_type: DataType | None = None
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A literal as the bound of an interval: its SQL, and a key that sorts as Spark does."""

    text: str
    key: Any


@dataclass(frozen=True, slots=True)
class Interval:
    """The values from `low` to `high`, with both; None for no bound."""

    low: Bound | None
    high: Bound | None

    def contains(self, column: str) -> str:
        """Return the condition that a column is within the interval."""
        bounds = ((">=", self.low), ("<=", self.high))
        return " AND ".join(f"{column} {operator} {bound.text}" for operator, bound in bounds if bound is not None)


@dataclass(frozen=True, slots=True)
class Term:
    """A condition that can be true only if a value is in one of some intervals.

    Attributes:
        column: The column of the value.
        text: The SQL of the value: of the column, or of the last bytes of its text.
        intervals: The intervals.
        sort_key: Returns the key by which the value sorts if the column has a literal.
    """

    column: str
    text: str
    intervals: tuple[Interval, ...]
    sort_key: Callable[[str], Any]


class ExpressionError(Exception):
    """A part of a statement that cannot be applied.

    Attributes:
        code: The code of the condition.
        node: The part.
        details: The details of the condition.
    """

    def __init__(self, code: str, node: exp.Expression, **details: object) -> None:
        super().__init__(code)
        self.code = code
        self.node = node
        self.details = details


def kind_of(data_type: DataType) -> Kind:
    """Return the kind of the values of a type."""
    if isinstance(data_type, Decimal):
        return Kind.DECIMAL
    return _KINDS[data_type.name] if isinstance(data_type, Primitive) else Kind.NESTED


def find_column(name: str, columns: Columns) -> str | None:
    """Return the column of a name, None if there is none; case is ignored, as Spark does."""
    return next((column for column in columns if column.casefold() == name.casefold()), None)


def reject(node: exp.Expression, problem: str, expected: str) -> NoReturn:
    """Raise the error of a type that does not fit."""
    raise ExpressionError("STATEMENT_TYPE", node, problem=problem, expected=expected)


def require_only(node: exp.Expression, *names: str) -> None:
    """Check that a part has no other arguments than these, which would be ignored."""
    for name, value in node.args.items():
        if value and name not in names:
            part = value[0] if isinstance(value, list) else value
            raise unsupported(part if isinstance(part, exp.Expression) else node, name.strip("_").upper())


def unsupported(node: exp.Expression, what: str = "") -> ExpressionError:
    """Return the error of a part that statements cannot have."""
    name = what or (str(node.this).upper() if isinstance(node, exp.Anonymous) else node.key.upper())
    return ExpressionError("STATEMENT_EXPRESSION", node, expression=name, allowed=", ".join(FUNCTIONS))


class Translator:
    """Translates expressions over the columns of one table.

    Args:
        columns: The types of the columns.
        qualifiers: The names by which a statement may qualify its columns: of its table, and its alias.
        resolve: Returns the text of a reference to a column.
    """

    def __init__(self, columns: Columns, qualifiers: Sequence[str], resolve: Resolve) -> None:
        self.columns = columns
        self.qualifiers = {name.casefold() for name in qualifiers}
        self.resolve = resolve

    def condition(self, node: exp.Expression) -> str:
        """Return a condition.

        Raises:
            ExpressionError: It cannot be applied, or is not boolean.
        """
        return self._boolean(node)

    def assignment(self, column: str, node: exp.Expression) -> str:
        """Return a value as one of the type of a column.

        Raises:
            ExpressionError: It cannot be applied, or its type does not fit the column.
        """
        data_type = self.columns[column]
        value = self._like_time(self.value(node), kind_of(data_type))
        problem = _misfit(value, data_type)
        if problem:
            reject(node, f"the value of {column} is {problem}", f"a value of type {data_type.ddl()}")
        return f"CAST({value.text} AS {data_type.ddl()})"

    def path(self, node: exp.Expression) -> tuple[str, tuple[str, ...], DataType]:
        """Return the column that a reference names, the fields inside of it, and the type.

        Raises:
            ExpressionError: The table has no such column.
        """
        parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else _dotted(node)
        if len(parts) > 1 and parts[0].casefold() in self.qualifiers:
            del parts[0]
        column = find_column(parts[0], self.columns)
        if column is None:
            hint = did_you_mean(parts[0], self.columns)
            raise ExpressionError("STATEMENT_COLUMN", node, column=parts[0], hint=hint)
        data_type, fields = self.columns[column], []
        for part in parts[1:]:
            inner = dict(data_type.fields) if isinstance(data_type, Struct) else {}
            field = find_column(part, inner)
            if field is None:
                raise ExpressionError("STATEMENT_COLUMN", node, column=part, hint=did_you_mean(part, inner))
            data_type = inner[field]
            fields.append(field)
        return column, tuple(fields), data_type

    def value(self, node: exp.Expression) -> Value:
        """Return an expression with its kind.

        Raises:
            ExpressionError: It cannot be applied.
        """
        translate = _TRANSLATIONS.get(type(node))
        if translate is None:
            raise unsupported(node)
        require_only(node, *_ARGUMENTS.get(type(node), ("this", "expression")))
        return translate(self, node)

    def lookup(self, node: exp.Expression) -> tuple[str, list[str]] | None:
        """Return a value and its literals for a condition `column = literal` and alike, else None.

        The condition can be true only if the value is one of the literals. For `column LIKE '%text'`, the value is the
        end of the column.
        """
        suffix = self._suffix(node)
        if suffix is not None:
            return suffix.text, [interval.low.text for interval in suffix.intervals if interval.low is not None]
        others = [node.expression] if isinstance(node, exp.EQ) else node.expressions if isinstance(node, exp.In) else []
        if not (others and isinstance(node.this, exp.Column) and self._are_literals(others)):
            return None
        column, *literals = self._comparable(node.this, *others)
        return column.text, [literal.text for literal in literals]

    def term(self, node: exp.Expression) -> Term | None:
        """Return a condition with the intervals that have all values for which it can be true, None without such."""
        return self._range(node) or self._suffix(node)

    def inner_text(self, node: exp.Expression) -> tuple[str, str] | None:
        """Return the column of a condition `column LIKE '%text%'`, and the begin of the text, else None."""
        column, pattern = _like_pattern(node)
        if not isinstance(column, exp.Column) or pattern.prefix or pattern.suffix or not pattern.inner:
            return None
        return self.value(column).text, pattern.inner

    def _range(self, node: exp.Expression) -> Term | None:
        """Return a condition on the column itself."""
        compared, pairs = _bounds(node)
        literals = [bound for pair in pairs for bound in pair if bound is not None]
        if not (literals and isinstance(compared, exp.Column) and self._are_literals(literals)):
            return None
        column, *values = self._comparable(compared, *literals)
        sort_key = _sort_key(column, values)
        if sort_key is None:
            return None

        def bound(literal: exp.Expression | None) -> Bound | None:
            value = None if literal is None else self.value(literal)
            return None if value is None else Bound(value.text, sort_key(value.literal or ""))

        intervals = tuple(Interval(bound(low), bound(high)) for low, high in pairs)
        return Term(self.path(compared)[0], column.text, intervals, sort_key)

    def _suffix(self, node: exp.Expression) -> Term | None:
        """Return a condition `column LIKE '%text'` on the end of the column.

        The last bytes are compared: the characters of a column may be invalid.
        """
        column, pattern = _like_pattern(node)
        if not isinstance(column, exp.Column) or pattern.prefix or not pattern.suffix:
            return None
        suffix = pattern.suffix.encode()
        end = Bound(f"X'{suffix.hex()}'", suffix)
        text = f"substring(CAST({self.value(column).text} AS binary), -{len(suffix)})"
        interval = Interval(end, end)
        return Term(self.path(column)[0], text, (interval,), lambda literal: literal.encode()[-len(suffix) :])

    def _are_literals(self, nodes: Sequence[exp.Expression]) -> bool:
        return all(self.value(node).literal is not None for node in nodes)

    # Parts

    def _reference(self, node: exp.Expression) -> Value:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            raise unsupported(node.this)
        column, fields, data_type = self.path(node)
        text = ".".join([self.resolve(column), *(quote_name(field) for field in fields)])
        return Value(text, kind_of(data_type), data_type)

    def _literal(self, node: exp.Expression) -> Value:
        text = str(node.this)
        if node.is_string:
            return Value(sql_literal(text), Kind.STRING, literal=text)
        number = _NUMBER.fullmatch(text)
        if number is None:
            raise unsupported(node, "this form of a number")
        if number["exponent"]:
            if isinf(float(text)):
                reject(node, "a number is out of range", "a number of type double")
            return Value(f"{text}D", Kind.FLOAT, literal=text)
        digits = len(number["whole"].lstrip("0") + (number["fraction"] or ""))
        if digits > _MAX_DIGITS:
            reject(node, f"a number has {digits} digits", f"at most {_MAX_DIGITS}")
        kind = Kind.INTEGER if number["fraction"] is None else Kind.DECIMAL
        return Value(text, kind, literal=text)

    def _null(self, node: exp.Expression) -> Value:  # noqa: ARG002 (one signature for all parts)
        return Value("NULL", Kind.NULL)

    def _true_or_false(self, node: exp.Expression) -> Value:
        return Value("TRUE" if node.this else "FALSE", Kind.BOOLEAN)

    def _bytes(self, node: exp.Expression) -> Value:
        return Value(f"X{sql_literal(str(node.this))}", Kind.BINARY)

    def _parenthesis(self, node: exp.Expression) -> Value:
        return self.value(node.this)

    def _negative(self, node: exp.Expression) -> Value:
        value = self._number(node.this)
        literal = None if value.literal is None else f"-{value.literal}".replace("--", "")
        return Value(f"(- {value.text})", value.kind, literal=literal)

    def _arithmetic(self, node: exp.Expression) -> Value:
        left, right = self._number(node.this), self._number(node.expression)
        kind = max(left.kind, right.kind, key=_NUMBERS.index)
        if isinstance(node, exp.Div) and kind is Kind.INTEGER:
            kind = Kind.FLOAT
        return Value(f"({left.text} {_OPERATORS[type(node)]} {right.text})", kind)

    def _comparison(self, node: exp.Expression) -> Value:
        left, right = self._comparable(node.this, node.expression)
        return Value(f"({left.text} {_OPERATORS[type(node)]} {right.text})", Kind.BOOLEAN)

    def _logical(self, node: exp.Expression) -> Value:
        # A chain of hundreds of conditions leans to the left, as a tree that is too deep for recursion.
        terms = [self._boolean(term) for term in _terms(node)]
        return Value(f"({f' {_OPERATORS[type(node)]} '.join(terms)})", Kind.BOOLEAN)

    def _not(self, node: exp.Expression) -> Value:
        return Value(f"(NOT {self._boolean(node.this)})", Kind.BOOLEAN)

    def _in(self, node: exp.Expression) -> Value:
        if not node.expressions:
            raise ExpressionError("STATEMENT_SYNTAX", node, reason="IN has no values")
        values = self._comparable(node.this, *node.expressions)
        return Value(f"({values[0].text} IN ({', '.join(value.text for value in values[1:])}))", Kind.BOOLEAN)

    def _between(self, node: exp.Expression) -> Value:
        value, low, high = self._comparable(node.this, node.args["low"], node.args["high"])
        # Spark evaluates a BETWEEN of hundreds several times slower than these comparisons.
        return Value(f"({value.text} >= {low.text} AND {value.text} <= {high.text})", Kind.BOOLEAN)

    def _like(self, node: exp.Expression, escape: str = _ESCAPE) -> Value:
        value, pattern = self._text(node.this), self._text(node.expression)
        if pattern.literal is not None and not is_pattern(pattern.literal, escape):
            reason = "the escape character of LIKE precedes neither %, _ nor itself"
            raise ExpressionError("STATEMENT_SYNTAX", node, reason=reason)
        negation = "NOT " if node.args.get("negate") else ""
        operator = f"{value.text} {negation}{_OPERATORS[type(node)]} {pattern.text}"
        return Value(f"({operator} ESCAPE {sql_literal(escape)})", Kind.BOOLEAN)

    def _escape(self, node: exp.Expression) -> Value:
        escape = node.expression
        if not (isinstance(node.this, (exp.Like, exp.ILike)) and escape.is_string and len(escape.name) == 1):
            raise unsupported(node)
        return self._like(node.this, escape.name)

    def _is(self, node: exp.Expression) -> Value:
        if isinstance(node.expression, exp.Null):
            return Value(f"({self.value(node.this).text} IS NULL)", Kind.BOOLEAN)
        if not isinstance(node.expression, exp.Boolean):
            raise unsupported(node)
        return Value(f"({self._boolean(node.this)} IS {self.value(node.expression).text})", Kind.BOOLEAN)

    def _case(self, node: exp.Expression) -> Value:
        branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
        subject, default = node.this, node.args.get("default")
        if subject is not None:
            tests = [self._comparison(exp.EQ(this=subject, expression=test)).text for test, _ in branches]
        else:
            tests = [self._boolean(test) for test, _ in branches]
        *results, other = self._alike([*(result for _, result in branches), default or exp.Null()])
        whens = "".join(f" WHEN {test} THEN {r.text}" for test, r in zip(tests, results, strict=True))
        return Value(f"(CASE{whens} ELSE {other.text} END)", _common(results, other))

    def _if(self, node: exp.Expression) -> Value:
        return self._case(
            exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
        )

    def _cast(self, node: exp.Expression) -> Value:
        function = "TRY_CAST" if node.args.get("safe") else "CAST"
        try:
            data_type = parse_type(node.args["to"].sql("spark"))
        except DeclarationError:
            raise unsupported(node, f"{function} AS {node.args['to'].sql('spark')}") from None
        value, kind = self.value(node.this), kind_of(data_type)
        if Kind.NESTED in (value.kind, kind):
            raise unsupported(node, f"{function} of nested values")
        if not _can_cast(value, kind):
            problem = f"a {value.kind.value} is converted to a {kind.value}"
            reject(node, problem, f"a text that is a {kind.value}, or another type")
        return Value(f"{function}({value.text} AS {data_type.ddl()})", kind, data_type)

    def _coalesce(self, node: exp.Expression) -> Value:
        values = self._alike([node.this, *node.expressions])
        return Value(f"coalesce({', '.join(value.text for value in values)})", _common(values))

    def _concat(self, node: exp.Expression) -> Value:
        parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
        return Value(f"concat({', '.join(self._text(part).text for part in parts)})", Kind.STRING)

    def _text_function(self, node: exp.Expression) -> Value:
        return Value(f"{_TEXT_FUNCTIONS[type(node)]}({self._text(node.this).text})", Kind.STRING)

    # Kinds

    def _boolean(self, node: exp.Expression) -> str:
        return self._of_kind(node, Kind.BOOLEAN).text

    def _number(self, node: exp.Expression) -> Value:
        return self._of_kind(node, *_NUMBERS)

    def _text(self, node: exp.Expression) -> Value:
        return self._of_kind(node, Kind.STRING)

    def _of_kind(self, node: exp.Expression, *kinds: Kind) -> Value:
        value = self.value(node)
        if value.kind is Kind.NULL:
            return Value(f"CAST(NULL AS {_TYPES_OF_NULL[kinds[0]]})", kinds[0])
        if value.kind not in kinds:
            expected = "number" if kinds == _NUMBERS else kinds[0].value
            reject(node, f"a {value.kind.value} is used", f"a {expected}")
        return value

    def _comparable(self, *nodes: exp.Expression) -> list[Value]:
        values = self._alike(nodes)
        for node, value in zip(nodes, values, strict=True):
            if value.kind is Kind.NESTED:
                reject(node, "a nested value is compared", "one of its fields, or IS NULL")
        return values

    def _alike(self, nodes: Sequence[exp.Expression]) -> list[Value]:
        """Return values of one kind; a text literal among times is read as one."""
        values = [self.value(node) for node in nodes]
        timed = next((value.kind for value in values if value.kind in (Kind.DATE, Kind.TIME)), None)
        if timed is not None:
            values = [self._like_time(value, timed) for value in values]
        families = {_family(value): value for value in values if value.kind is not Kind.NULL}
        if len(families) > 1:
            first, second, *_ = families.values()
            node = nodes[values.index(second)]
            reject(node, f"a {second.kind.value} is combined with a {first.kind.value}", "values of one type")
        return values

    def _like_time(self, value: Value, kind: Kind) -> Value:
        """Return a text literal as the date or time that it is, if one is expected."""
        if value.kind is not Kind.STRING or value.literal is None or kind not in (Kind.DATE, Kind.TIME):
            return value
        time = to_instant(value.literal)
        if time is None or (kind is Kind.DATE and len(value.literal.strip()) != len("2014-09-01")):
            return value
        return Value(f"CAST({value.text} AS {'date' if kind is Kind.DATE else 'timestamp'})", kind)


def _can_cast(value: Value, kind: Kind) -> bool:
    """Return whether Spark converts a value to another kind, and the text of a literal is a date or time if it must."""
    if value.kind is Kind.STRING and value.literal is not None and kind in (Kind.DATE, Kind.TIME):
        return to_instant(value.literal) is not None
    is_any = value.kind in (kind, Kind.NULL) or Kind.STRING in (value.kind, kind)
    return is_any or any({value.kind, kind} <= kinds for kinds in _CONVERTIBLE)


def _misfit(value: Value, data_type: DataType) -> str:
    """Return what a value is that does not fit the type of a column; empty if it fits."""
    kind = kind_of(data_type)
    if value.kind is Kind.NULL:
        return ""
    if kind is Kind.NESTED:
        return "" if value.data_type == data_type else f"a {value.kind.value}"
    allowed = {
        Kind.FLOAT: _NUMBERS,
        Kind.DECIMAL: (Kind.INTEGER, Kind.DECIMAL),
        Kind.TIME: (Kind.DATE, Kind.TIME),
    }.get(kind, (kind,))
    if value.kind not in allowed:
        return f"a {value.kind.value}"
    return "out of range" if value.literal is not None and not _fits(value.literal, data_type) else ""


def _fits(number: str, data_type: DataType) -> bool:
    """Return whether the literal of a number is within a type."""
    if isinstance(data_type, Decimal):
        whole, _, fraction = number.lstrip("-").partition(".")
        digits = len(whole.lstrip("0"))
        return digits <= data_type.precision - data_type.scale and len(fraction.rstrip("0")) <= data_type.scale
    bits = _BITS.get(data_type.name) if isinstance(data_type, Primitive) else None
    return bits is None or -(1 << (bits - 1)) <= int(number) < 1 << (bits - 1)


def _family(value: Value) -> object:
    """Return what values have in common that can be compared."""
    if value.kind in _NUMBERS:
        return "number"
    if value.kind is Kind.NESTED:
        return value.data_type
    return Kind.TIME if value.kind is Kind.DATE else value.kind


def _common(values: Sequence[Value], *others: Value) -> Kind:
    """Return the kind of one of several values, which are alike."""
    kinds = [value.kind for value in (*values, *others) if value.kind is not Kind.NULL]
    order = [Kind.NULL, *_NUMBERS, Kind.DATE, Kind.TIME]
    return max(kinds, key=lambda kind: order.index(kind) if kind in order else 0, default=Kind.NULL)


def _sort_key(column: Value, literals: Sequence[Value]) -> Callable[[str], Any] | None:
    """Return a function by which literals sort as Spark compares them with a column, None if none is exact.

    Spark compares whole and decimal numbers with each other exactly, all numbers with those of type double as such
    ones, and texts by their bytes.
    """
    if column.kind is Kind.STRING:
        return str.encode
    if column.data_type == Primitive("double"):
        return float
    is_exact = not any(value.kind is Kind.FLOAT for value in (column, *literals))
    return Fraction if is_exact and column.kind in _NUMBERS else None


_Bounds: TypeAlias = tuple[exp.Expression | None, exp.Expression | None]


def _bounds(node: exp.Expression) -> tuple[exp.Expression | None, list[_Bounds]]:
    """Return what a condition compares, and the literals between which it can be true; none if it is another one."""
    column, pattern = _like_pattern(node)
    if column is not None:
        return column, [_prefix_bounds(pattern.prefix)] if pattern.prefix else []
    if isinstance(node, exp.In):
        return node.this, [(each, each) for each in node.expressions]
    if isinstance(node, exp.Between):
        return node.this, [(node.args["low"], node.args["high"])]
    if not isinstance(node, (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
        return None, []
    is_low, is_high = not isinstance(node, (exp.LT, exp.LTE)), not isinstance(node, (exp.GT, exp.GTE))
    return node.this, [(node.expression if is_low else None, node.expression if is_high else None)]


def _like_pattern(node: exp.Expression) -> tuple[exp.Expression | None, LikePattern]:
    """Return what a LIKE compares with a literal, and its pattern; None and an empty one for another condition."""
    like, escape = (node.this, node.expression.name) if isinstance(node, exp.Escape) else (node, _ESCAPE)
    if not isinstance(like, exp.Like) or like.args.get("negate") or not like.expression.is_string:
        return None, LikePattern("", "", "")
    return like.this, parse_pattern(like.expression.name, escape)


def _prefix_bounds(prefix: str) -> _Bounds:
    """Return the first text with a prefix, and a later one than all with it; None if there is no such character."""
    following = _AFTER.get(prefix[-1], chr(min(ord(prefix[-1]) + 1, sys.maxunicode)))
    high = None if following is None else exp.Literal.string(prefix[:-1] + following)
    return exp.Literal.string(prefix), high


def can_fail(condition: exp.Expression) -> bool:
    """Return whether a condition may fail for a row, such as by a division by zero or by a CAST."""
    parts = [*condition.find_all(*_FALLIBLE), *(like.expression for like in condition.find_all(exp.Like, exp.ILike))]
    return any(part.find(exp.Column) is not None for part in parts)


def conjuncts(condition: exp.Expression) -> list[exp.Expression]:
    """Return the conditions that a condition combines by AND, or itself."""
    terms: list[exp.Expression] = []
    pending = [condition]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Paren):
            pending.append(node.this)
        elif isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            terms.append(node)
    return terms


def _terms(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the operands of a chain of ANDs or of ORs."""
    terms = []
    operand = node
    while type(operand) is type(node):
        terms.append(operand.expression)
        operand = operand.this
    yield operand
    yield from reversed(terms)


def _dotted(node: exp.Expression) -> list[str]:
    """Return the parts of a reference to a field inside of several structs."""
    if isinstance(node, exp.Dot):
        return [*_dotted(node.this), node.expression.name]
    if isinstance(node, exp.Column):
        return [part.name for part in node.parts]
    raise unsupported(node)


_TEXT_FUNCTIONS: Mapping[type[exp.Expression], str] = {exp.Upper: "upper", exp.Lower: "lower", exp.Trim: "trim"}
_COMPARISONS: Mapping[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: Mapping[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
}
_FALLIBLE = (*_ARITHMETIC, exp.Neg, exp.Cast, exp.TryCast)
_OPERATORS: Mapping[type[exp.Expression], str] = {
    **_COMPARISONS,
    **_ARITHMETIC,
    exp.And: "AND",
    exp.Or: "OR",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
}
FUNCTIONS = ("CASE", "IF", "CAST", "TRY_CAST", "COALESCE", "CONCAT", "UPPER", "LOWER", "TRIM")
"""The functions that statements can call."""
_ARGUMENTS: Mapping[type[exp.Expression], tuple[str, ...]] = {
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Literal: ("this", "is_string"),
    exp.Div: ("this", "expression", "safe"),
    exp.In: ("this", "expressions"),
    exp.Between: ("this", "low", "high"),
    exp.Like: ("this", "expression", "negate"),
    exp.ILike: ("this", "expression", "negate"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Cast: ("this", "to", "safe"),
    exp.TryCast: ("this", "to", "safe"),
    exp.Coalesce: ("this", "expressions"),
    exp.Concat: ("expressions", "safe"),
    exp.DPipe: ("this", "expression", "safe"),
    **dict.fromkeys(_TEXT_FUNCTIONS, ("this",)),
}
"""The arguments that a part can have, if they are others than `this` and `expression`."""
_TRANSLATIONS: Mapping[type[exp.Expression], Callable[[Translator, exp.Expression], Value]] = {
    exp.Column: Translator._reference,
    exp.Dot: Translator._reference,
    exp.Literal: Translator._literal,
    exp.Null: Translator._null,
    exp.Boolean: Translator._true_or_false,
    exp.HexString: Translator._bytes,
    exp.Paren: Translator._parenthesis,
    exp.Neg: Translator._negative,
    **dict.fromkeys(_ARITHMETIC, Translator._arithmetic),
    **dict.fromkeys(_COMPARISONS, Translator._comparison),
    exp.And: Translator._logical,
    exp.Or: Translator._logical,
    exp.Not: Translator._not,
    exp.In: Translator._in,
    exp.Between: Translator._between,
    exp.Like: Translator._like,
    exp.ILike: Translator._like,
    exp.Escape: Translator._escape,
    exp.Is: Translator._is,
    exp.Case: Translator._case,
    exp.If: Translator._if,
    exp.Cast: Translator._cast,
    exp.TryCast: Translator._cast,  # CAST, TRY_CAST and `::`; exp.Cast is `DATE '2014-09-01'`
    exp.Coalesce: Translator._coalesce,
    exp.Concat: Translator._concat,
    exp.DPipe: Translator._concat,
    **dict.fromkeys(_TEXT_FUNCTIONS, Translator._text_function),
}
