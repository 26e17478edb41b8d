"""The declaration of a fact: grain, event time, measures, and the dimensions whose surrogate keys it stores (S23)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from scd_pipeline.declaration.attribute import Attribute, ScdType
from scd_pipeline.declaration.checks.collect import ErrorCollector, field_path
from scd_pipeline.declaration.dimension import Dimension
from scd_pipeline.declaration.frozen import as_tuple, checked_arguments, set_frozen_fields
from scd_pipeline.declaration.key import KeyColumn
from scd_pipeline.declaration.names import COLUMN_NAME_RULE, TABLE_NAME_RULE, is_column_name, is_table_name
from scd_pipeline.declaration.source import Column, Feed, Snapshot, Source
from scd_pipeline.declaration.yaml.options import ROLE
from scd_pipeline.errors import DeclarationError, ValidationError
from scd_pipeline.texts import did_you_mean, short_repr

DELIVERY_TIME = "_scd.at"
"""The time of a row's delivery, as an expression over the columns of the row."""

Report = Callable[[str, str, str, str], None]
WriteStrategy = Literal["increments", "scope", "whole"]
Strategy = Literal["by_size", "increments", "scope", "whole"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)

_TIME_TYPES = ("timestamp", "date")
_DEFAULT_SOURCE = Source("plain")
_UNKNOWN_RULE = "write reserved or infer"


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Role:
    """A dimension in a fact: `<role>_key` is the surrogate key of the version in force at event time.

    Args:
        dimension: The dimension.
        key: The fact's columns with the dimension's business key, in its order; by default those with its names.
        unknown: What a row stores whose entity the dimension does not have: "reserved" for the key of the unknown
            member, "infer" for that of an inferred member, which the load of the fact adds to the dimension.
        not_applicable: SQL over the columns of the fact, true for a row to which the role does not apply: it stores -2.
        invalid: SQL over the columns of the fact, true for a row whose business key is not valid: it stores -3.
        unknown_limit: The largest share of rows with -1 or -3 that passes the check; by default any.

    Raises:
        DeclarationError: `dimension` is not a dimension, `key` is not a list of names, or another argument is of an
            invalid kind.
    """

    dimension: Dimension
    key: tuple[str, ...]
    unknown: Literal["reserved", "infer"] = "reserved"
    not_applicable: str = ""
    invalid: str = ""
    unknown_limit: float | None = None

    def __init__(
        self,
        dimension: Dimension,
        key: str | Sequence[str] | None = None,
        unknown: Literal["reserved", "infer"] = "reserved",
        not_applicable: str = "",
        invalid: str = "",
        unknown_limit: float | None = None,
    ) -> None:
        if not isinstance(dimension, Dimension):
            raise DeclarationError([ValidationError("INVALID_KIND", "role", "dimension", *_not_a_dimension(dimension))])
        names = dimension.key_names if key is None else as_tuple(key)
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            problem = f"{short_repr(key)} is not a name or a list of names"
            raise DeclarationError(
                [ValidationError("INVALID_KIND", "role", "key", problem, "name the fact's columns of the business key")]
            )
        set_frozen_fields(self, dimension=dimension, key=names, unknown=unknown, unknown_limit=unknown_limit)
        set_frozen_fields(self, not_applicable=not_applicable, invalid=invalid)
        errors = ErrorCollector("role")
        errors.check_kinds("", self, ROLE)
        errors.raise_if_any()

    @property
    def infers_members(self) -> bool:
        """Whether an entity that the dimension does not have gets an inferred member."""
        return self.unknown == "infer"

    @property
    def conditions(self) -> dict[str, str]:
        """The declared conditions of rows that store the key of a reserved member, by option, the first one first."""
        declared = {"not_applicable": self.not_applicable, "invalid": self.invalid}
        return {option: text for option, text in declared.items() if text}

    @property
    def key_options(self) -> tuple[tuple[str, str], ...]:
        """The options that decide which key a row stores, without those that have their defaults."""
        return (*((("unknown", self.unknown),) if self.infers_members else ()), *self.conditions.items())


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Fact:
    """A valid declaration of one fact table.

    - `grain`: the columns that identify a row, with types; stored as key columns
    - `event_time`: the column of the event time; one of the grain, or a further column
    - `event_at`: "row" if rows contain the event time, "delivery" if it is the time of their delivery
    - `dimensions`: by role name, a Role or the dimension
    - `measures`: further columns, with types
    - `source`: the source of the rows: by a feed, by snapshots of all rows or of a scope, or by both (S41)
    - `row_key`: the key column of a row; by default the name without a leading `fct_`, and `_row`
    - `strategy`: what a load replaces if stored rows change: the rows that change ("increments"), all rows of each
      scope that has one ("scope"), or the whole table ("whole"); by default it depends on their numbers ("by_size")

    Raises:
        DeclarationError: With every error of the declaration (S28).
    """

    name: str
    grain: tuple[KeyColumn, ...]
    event_time: str
    roles: tuple[tuple[str, Role], ...]
    measures: tuple[tuple[str, str], ...]
    source: Source
    event_at: Literal["row", "delivery"] = "row"
    row_key: str = ""
    owner: str = ""
    description: str = ""
    group: str = ""
    strategy: Strategy = "by_size"
    origin: str = field(default="", compare=False)

    def __init__(
        self,
        name: str,
        grain: Mapping[str, str],
        event_time: str,
        dimensions: Mapping[str, Role | Dimension],
        source: Source,
        measures: Mapping[str, str] | None = None,
        event_at: Literal["row", "delivery"] = "row",
        row_key: str = "",
        owner: str = "",
        description: str = "",
        group: str = "",
        strategy: Strategy = "by_size",
        origin: str = "",
    ) -> None:
        _check_kinds(str(origin or name), grain, event_time, dimensions, source, measures)
        roles = {name: Role(role) if isinstance(role, Dimension) else role for name, role in dimensions.items()}
        key_columns = tuple(KeyColumn(column, data_type) for column, data_type in grain.items())
        set_frozen_fields(self, name=name, grain=key_columns)
        set_frozen_fields(
            self, event_time=event_time, roles=tuple(roles.items()), measures=tuple((measures or {}).items())
        )
        set_frozen_fields(
            self, source=source, event_at=event_at, row_key=row_key or f"{str(name).removeprefix('fct_')}_row"
        )
        set_frozen_fields(self, owner=owner, description=description, group=group, strategy=strategy, origin=origin)
        _check(self)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of all roles, each once."""
        return tuple({role.dimension.name: role.dimension for _, role in self.roles}.values())

    @property
    def scope(self) -> tuple[str, ...]:
        """The columns by whose values snapshots of the fact are delivered; none if a snapshot has all facts (S41)."""
        return self.source.snapshot.scope if self.source.snapshot else ()

    def with_dimensions(self, dimensions: Iterable[Dimension]) -> Fact:
        """Return the fact with these declarations in place of its dimensions with the same names."""
        by_name = {dimension.name: dimension for dimension in dimensions}
        roles = ((name, replace(role, dimension=by_name[role.dimension.name])) for name, role in self.roles)
        fact = copy.copy(self)
        set_frozen_fields(fact, roles=tuple(roles))
        return fact

    def references(self, dimension: Dimension) -> bool:
        """Return whether one of its roles is this dimension, by its name."""
        return any(role.dimension.name == dimension.name for _, role in self.roles)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the surrogate keys, in order of the roles."""
        return tuple(column for _, column, _ in self.keyed_roles)

    @property
    def keyed_roles(self) -> tuple[tuple[str, str, Role], ...]:
        """The roles: the name of each, the column of its surrogate key, and the role itself."""
        return tuple((name, f"{name}_key", role) for name, role in self.roles)

    def as_dimension(self) -> Dimension:
        """Return a dimension whose entities are the fact's rows, with the latest values only.

        It reads deliveries by the rules of dimensions for retries, revisions, late-arriving rows and bad rows. The
        surrogate keys are derived attributes: no delivery provides them.
        """
        columns = dict(self.source.columns)
        if self.event_at == "delivery":
            data_type = _grain_type(self, self.event_time) or _columns(self)[self.event_time]
            # A date is that of the delivery, whatever its time of day is.
            columns[self.event_time] = Column(expression=DELIVERY_TIME, round=data_type == "date")
        source = Source(
            self.source.name,
            snapshot=_snapshot(self.source.snapshot),
            feed=self.source.feed,
            timezone=self.source.timezone,
            columns=columns,
            bad_row_limit=self.source.bad_row_limit,
            retire_guard=self.source.retire_guard,
            overdue_after_hours=self.source.overdue_after_hours,
            upstream=self.source.upstream,
            timed_table=self.source.timed_table,
            landing_table=self.source.landing_table,
        )
        return Dimension(
            self.name,
            {column.name: column.type for column in self.grain},
            {name: _attribute(self, name, data_type) for name, data_type in _columns(self).items()},
            source,
            surrogate_key=self.row_key,
            deleted_rows="remove",
            owner=self.owner,
            description=self.description,
            group=self.group,
            origin=self.origin,
        )


def _snapshot(snapshot: Snapshot | None) -> Snapshot | None:
    """Return how the fact's snapshots are read: unless it is declared otherwise, none of them empties a scope."""
    return snapshot if snapshot is None else replace(snapshot, empty_scope=snapshot.empty_scope or "reject")


def _attribute(fact: Fact, name: str, data_type: str) -> Attribute:
    if name == fact.event_time:
        return Attribute(ScdType.OVERWRITE, data_type, required=True)
    return Attribute(ScdType.OVERWRITE, data_type, derived=name in fact.key_columns)


def _columns(fact: Fact) -> dict[str, str]:
    """Return the type of each column that is not in the grain: event time, business keys, measures, surrogate keys."""
    grain = {column.name for column in fact.grain}
    columns = {fact.event_time: "timestamp"}
    for _, role in fact.roles:
        columns |= {name: column.type for name, column in zip(role.key, role.dimension.business_key, strict=True)}
    columns |= dict(fact.measures)
    columns |= dict.fromkeys(fact.key_columns, "bigint")
    return {name: data_type for name, data_type in columns.items() if name not in grain}


def _not_a_dimension(values: object) -> tuple[str, str]:
    return f"{short_repr(values)} is not a dimension", "give a Dimension, or a Role of one"


def _check_kinds(location: str, grain: Any, event_time: Any, dimensions: Any, source: Any, measures: Any) -> None:
    """Raise one DeclarationError with all arguments of an invalid kind, if there are any."""
    errors = [
        ValidationError(
            "INVALID_KIND", location, name, f"{short_repr(values)} is not a mapping", f"write a mapping of {content}"
        )
        for name, values, content in (
            ("grain", grain, "columns to types"),
            ("dimensions", dimensions, "roles to dimensions"),
            ("measures", measures or {}, "columns to types"),
        )
        if not isinstance(values, Mapping)
    ]
    roles = dimensions.items() if isinstance(dimensions, Mapping) else ()
    errors += [
        ValidationError("INVALID_KIND", location, field_path("dimensions", role), *_not_a_dimension(dimension))
        for role, dimension in roles
        if not isinstance(dimension, (Dimension, Role))
    ]
    if not isinstance(event_time, str):
        errors.append(
            ValidationError(
                "INVALID_KIND",
                location,
                "event_time",
                f"{short_repr(event_time)} is not text",
                "name the column of the time",
            )
        )
    if not isinstance(source, Source):
        errors.append(
            ValidationError(
                "INVALID_KIND", location, "source", f"{short_repr(source)} is not a source", "give a Source with a feed"
            )
        )
    if errors:
        raise DeclarationError(errors)


def _check(fact: Fact) -> None:
    """Raise one DeclarationError with all errors of the fact, if there are any."""
    location = fact.origin or str(fact.name)
    errors: list[ValidationError] = []

    def report(code: str, name: str, problem: str, fix: str) -> None:
        errors.append(ValidationError(code, location, name, problem, fix))

    for check in (
        _check_options,
        _check_strategy,
        _check_source,
        _check_roles,
        _check_members,
        _check_key_columns,
        _check_time,
    ):
        check(fact, report)
    reported = {validation_error.field for validation_error in errors}
    if not reported & {"fact", "grain", "dimensions"}:
        try:
            fact.as_dimension()
        except DeclarationError as error:
            translated = [
                ValidationError(e.code, location, _fact_field(e.field), e.problem, e.fix) for e in error.errors
            ]
            errors += [validation_error for validation_error in translated if validation_error.field not in reported]
    if errors:
        raise DeclarationError(errors)


def _check_options(fact: Fact, report: Report) -> None:
    if not (isinstance(fact.name, str) and is_table_name(fact.name)):
        report("INVALID_NAME", "fact", f"{short_repr(fact.name)} cannot be the name of a table", TABLE_NAME_RULE)
    if not fact.grain:
        report("MISSING_VALUE", "grain", "is missing", "name the columns that identify a row, with their types")
    if not fact.roles:
        report("MISSING_VALUE", "dimensions", "is missing", "name at least one dimension, by its role")
    if fact.event_at not in ("row", "delivery"):
        report("NOT_ALLOWED", "event_at", f"{short_repr(fact.event_at)} is not allowed", "write row or delivery")
    names = {"event_time": fact.event_time, "row_key": fact.row_key}
    names |= {f"dimensions.{name}": name for name, _ in fact.roles}
    for field_name, name in names.items():
        if not (isinstance(name, str) and is_column_name(name)):
            report("INVALID_NAME", field_name, f"{short_repr(name)} cannot be a name", COLUMN_NAME_RULE)


def _check_strategy(fact: Fact, report: Report) -> None:
    if fact.strategy not in STRATEGIES:
        problem = f"{short_repr(fact.strategy)} is not allowed"
        report("NOT_ALLOWED", "strategy", problem, did_you_mean(fact.strategy, STRATEGIES))
    elif fact.strategy == "scope" and not fact.scope:
        problem = "no snapshot of the fact has a scope"
        report("NOT_APPLICABLE", "strategy", problem, "declare the `scope` of the snapshot, or write whole")
    elif fact.strategy == "whole" and fact.scope:
        problem = "a snapshot of a scope replaces no other facts"
        report("NOT_APPLICABLE", "strategy", problem, "write scope or increments, or remove its `scope`")


def _check_source(fact: Fact, report: Report) -> None:
    path, source = f"sources.{fact.source.name}", fact.source
    of_dimensions = ("attributes", "existence", *(() if source.snapshot else ("retire_guard",)))
    for option in of_dimensions:
        if getattr(source, option) != getattr(_DEFAULT_SOURCE, option):
            owners = "snapshots" if option == "retire_guard" else "the sources of dimensions"
            report("NOT_APPLICABLE", f"{path}.{option}", f"is an option for {owners}", "remove it")
    for option in source.stored_tables:
        problem = f"a {option.replace('_', ' ')} is a source of dimensions"
        report("NOT_APPLICABLE", f"{path}.{option}", problem, "write `feed:`")
    if source.stored_tables:
        return
    if not source.channels:
        problem = "a fact is delivered by a feed or by snapshots"
        report("FACT_SOURCE", path, problem, "write `feed:` or `snapshot:` with its path")
    else:
        for name, channel in source.channels:
            _check_channel(f"{path}.{name}", channel, report)


def _check_channel(path: str, channel: Snapshot | Feed, report: Report) -> None:
    if channel.format == "debezium":
        report("NOT_APPLICABLE", f"{path}.format", "debezium is for dimensions only", "write json")
    elif isinstance(channel, Snapshot) and channel.deletes:
        report("NOT_APPLICABLE", f"{path}.deletes", "is an option for snapshots of dimensions", "remove it")
    elif channel.effective_at and not channel.has_cursor:
        report("NOT_APPLICABLE", f"{path}.effective_at", "is an option for dimensions only", "remove it")
    elif isinstance(channel, Feed) and channel.updates != "full":  # a row without its event time has no time (S23)
        problem = "the feed of a fact provides all columns"
        report("NOT_APPLICABLE", f"{path}.updates", problem, "remove `updates` and `nulls`")
    elif channel.placeholder == "delivery":  # a fact has no `effective_at` that could replace it
        problem = "{delivery} is any name, and a fact reads a delivery's time from its name"
        report("PATH_PLACEHOLDER", f"{path}.path", problem, "write {date} or {datetime} in its place")


def _check_roles(fact: Fact, report: Report) -> None:
    grain = {column.name: column.type for column in fact.grain}
    measured = dict(fact.measures)
    types: dict[str, str] = dict(grain)
    for name, role in fact.roles:
        business_key = role.dimension.business_key
        if role.dimension.is_whole_row:
            problem = f"{name} references {role.dimension.name}, whose business key is the hash of a whole row"
            report(
                "ROLE_KEY", "dimensions", problem, "declare a business key there that the fact has, or remove the role"
            )
            continue
        if len(role.key) != len(business_key):
            keys = ", ".join(role.dimension.key_names)
            report(
                "ROLE_KEY", "dimensions", f"{name}.key names {len(role.key)} columns", f"name one for each of {keys}"
            )
            continue
        for column, key in zip(role.key, business_key, strict=True):
            if types.setdefault(column, key.type) != key.type:
                problem = f"{column} is {types[column]} here, and {key.name} of {role.dimension.name} is {key.type}"
                report("ROLE_KEY", f"dimensions.{name}.key", problem, f"declare {column} as {key.type}")
            if column in measured:
                report("NAME_IN_USE", f"measures.{column}", "is a business key of a dimension too", "remove it here")
    if fact.event_time in measured:
        report("NAME_IN_USE", f"measures.{fact.event_time}", "is the event time too", "remove it here")


def _check_members(fact: Fact, report: Report) -> None:
    """Check the options of roles that decide which members rows without a version reference (S23)."""
    for name, role in fact.roles:
        path = field_path("dimensions", name)
        if role.unknown not in ("reserved", "infer"):
            report("NOT_ALLOWED", f"{path}.unknown", f"{short_repr(role.unknown)} is not allowed", _UNKNOWN_RULE)
        elif role.infers_members and not role.dimension.has_windows:
            problem = f"{role.dimension.name} has no windows, and does not keep the rows of deleted entities"
            report("NOT_APPLICABLE", f"{path}.unknown", problem, "remove it")
        if role.unknown_limit is not None and not 0 <= role.unknown_limit <= 1:
            problem = f"{short_repr(role.unknown_limit)} is not between 0 and 1"
            report("OUT_OF_RANGE", f"{path}.unknown_limit", problem, "give a share, such as 0.05 for 5 percent")


def _check_key_columns(fact: Fact, report: Report) -> None:
    """Check that no delivered column has the name of a surrogate key, which would replace its values (S23)."""
    roles = {column.casefold(): name for name, column, _ in fact.keyed_roles}
    delivered = [(f"grain.{column.name}", column.name) for column in fact.grain]
    delivered += [("event_time", fact.event_time), *((f"measures.{name}", name) for name, _ in fact.measures)]
    delivered += [(f"dimensions.{name}.key", column) for name, role in fact.roles for column in role.key]
    for path, column in delivered:
        if role_name := roles.get(str(column).casefold()):
            problem = f"{column} is the column of the surrogate key of role {role_name}"
            report("NAME_IN_USE", path, problem, "give that role another name, or let the source's column have one")


def _check_time(fact: Fact, report: Report) -> None:
    name, fix = fact.event_time, "declare it as timestamp or date"
    for role_name, role in fact.roles:
        types = {column: key.type for column, key in zip(role.key, role.dimension.business_key, strict=False)}
        if (data_type := types.get(name)) not in (None, *_TIME_TYPES):
            problem = f"{name} is a {data_type} in the key of {role_name}"
            report("INVALID_TYPE", "event_time", problem, "let the source have the event time in a column of its own")
            return
    in_grain = _grain_type(fact, name)
    if in_grain not in (None, *_TIME_TYPES):
        report("INVALID_TYPE", f"grain.{name}", f"the event time is a {in_grain}", fix)
    if fact.event_at == "delivery" and name in fact.source.columns:
        problem = "the event time is the time of the delivery"
        field = f"sources.{fact.source.name}.columns.{name}"
        report("NOT_APPLICABLE", field, problem, "remove it, or remove `event_at`")
    if name in fact.source.columns and fact.source.columns[name].not_provided_values:
        problem = f"each row provides {name}, which is the event time"
        field = f"sources.{fact.source.name}.columns.{name}.not_provided_values"
        report("NOT_APPLICABLE", field, problem, "remove it, or write null_values")


def _grain_type(fact: Fact, name: str) -> str | None:
    return next((column.type for column in fact.grain if column.name == name), None)


def _fact_field(field: str) -> str:
    """Return the option of a fact for a field of the dimension that represents it."""
    for option, fact_option in (("business_key", "grain"), ("attributes", "measures"), ("surrogate_key", "row_key")):
        if field == option or field.startswith(f"{option}."):
            return fact_option + field.removeprefix(option)
    return field
