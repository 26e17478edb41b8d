"""The declaration of a table or a query of a database that is read over JDBC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from scd_pipeline.declaration.frozen import FrozenMapping, checked_arguments, frozen_mapping, set_frozen_fields

SECRET_NAMES = re.compile(r"passw|pwd|secret|token|credential", re.IGNORECASE)
"""The names of options whose values may be secret."""
_LOGIN_IN_URL = re.compile(r"//[^/?;]*:[^/?;]*@")
_PARAMETER = re.compile(r"[?&;]([^=&;]*)=")


@checked_arguments
@dataclass(frozen=True, slots=True)
class EnvVar:
    """A value that is read from an environment variable when a load begins; in YAML `{env: NAME}`."""

    env: str


@checked_arguments
@dataclass(frozen=True, slots=True)
class Partitions:
    """How a large table is read by several queries at once, each of a range of a column.

    - `column`: a column of numbers, dates or times
    - `lower`, `upper`: where the ranges begin and end; rows beyond are in the first and the last range
    - `number`: the number of ranges
    """

    column: str = ""
    lower: str | int | float | None = None
    upper: str | int | float | None = None
    number: int = 0


@checked_arguments
@dataclass(frozen=True, slots=True, init=False)
class Jdbc:
    """A table or a query of a database that is read over JDBC.

    - `url`: the address, such as `jdbc:postgresql://db.example.com/shop`, without a login
    - `table`, `query`: the table, or a query in the SQL of the database
    - `user`, `password`: the login; the password is an `EnvVar`
    - `partitions`: how several queries read it at once
    - `options`: other options of Spark's reader, such as `fetchsize`
    """

    url: str | EnvVar = ""
    table: str | None = None
    query: str | None = None
    user: str | EnvVar | None = None
    password: str | EnvVar | None = field(default=None, repr=False)
    partitions: Partitions | None = None
    options: FrozenMapping[str] = field(default_factory=lambda: FrozenMapping({}))

    def __init__(
        self,
        url: str | EnvVar | Mapping[str, str] = "",
        table: str | None = None,
        query: str | None = None,
        user: str | EnvVar | Mapping[str, str] | None = None,
        password: EnvVar | Mapping[str, str] | None = None,
        partitions: Partitions | Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        set_frozen_fields(self, url=_env_var(url), table=table, query=query, user=_env_var(user))
        set_frozen_fields(self, password=_env_var(password), options=frozen_mapping(options))
        set_frozen_fields(self, partitions=_built(Partitions, partitions))

    @property
    def relation(self) -> str:
        """What the queries of the reader select from."""
        return f"({self.query}) scd_rows" if self.query else str(self.table)


def _env_var(declared: Any) -> Any:
    """Return a mapping with the name of a variable as an EnvVar; anything else unchanged, for the checks to reject."""
    return EnvVar(declared["env"]) if isinstance(declared, Mapping) and set(declared) == {"env"} else declared


def as_jdbc(declared: Any) -> Any:
    """Return a mapping of options as a Jdbc; anything else unchanged, for the checks to reject."""
    return _built(Jdbc, declared)


def _built(kind: Any, declared: Any) -> Any:
    names = {each.name for each in fields(kind)}
    return kind(**declared) if isinstance(declared, Mapping) and names.issuperset(declared) else declared


def has_login(url: str) -> bool:
    """Return whether an address contains a login, or a parameter that may be secret."""
    names = _PARAMETER.findall(url)
    return bool(_LOGIN_IN_URL.search(url)) or any(name == "user" or SECRET_NAMES.search(name) for name in names)
