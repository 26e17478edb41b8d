"""Check the conditions of the roles of a fact, which are SQL over its columns (S23, S28)."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scd_pipeline.declaration import Fact
from scd_pipeline.errors import UsageError, first_line
from scd_pipeline.frames import empty_frame
from scd_pipeline.history.schema import dimension_schema


def require_valid_conditions(spark: SparkSession, fact: Fact) -> None:
    """Check that each condition of a role is a condition over the columns of the fact, without computing a row.

    Raises:
        UsageError: A condition is invalid, or is of another type; with all of these conditions.
    """
    conditions = {
        f"dimensions.{name}.{option}": text for name, role in fact.roles for option, text in role.conditions.items()
    }
    if not conditions:
        return
    rows = empty_frame(spark, {name: ddl for name, ddl, _ in dimension_schema(fact.as_dimension())})
    problems = [f"{path}: {problem}" for path, text in conditions.items() if (problem := _problem(rows, text))]
    if problems:
        raise UsageError("ROLE_CONDITION", fact.origin or fact.name, problems="; ".join(problems))


def _problem(rows: DataFrame, condition: str) -> str:
    try:
        data_type = rows.select(F.expr(condition)).schema.fields[0].dataType
    except AnalysisException as error:
        return first_line(error)
    is_condition = isinstance(data_type, (T.BooleanType, T.NullType))
    return "" if is_condition else f"{condition} is of type {data_type.simpleString()}"
