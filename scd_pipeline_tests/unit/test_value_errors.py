"""Messages of Spark that repeat values of rows are replaced by the name of the error (S31)."""

from __future__ import annotations

import dagster as dg
import pytest
from pyspark.errors import AnalysisException, NumberFormatException

from scd_pipeline.cli.spark_errors import failure_message
from scd_pipeline.components.failures import as_dagster_failure
from scd_pipeline.errors import value_error_name

OF_A_VALUE = NumberFormatException(
    message='[CAST_INVALID_INPUT] The value \'ann@x.at\' of the type "STRING" cannot be cast to "INT". SQLSTATE: 22018'
)
OF_A_CONSTRAINT = AnalysisException(
    message="[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint c violated by row with values: mail : ann@x.at "
    "SQLSTATE: 23001"
)
OF_A_TABLE = AnalysisException(message="[PATH_NOT_FOUND] Path does not exist: /x. SQLSTATE: 42K03")


@pytest.mark.rule("S31")
@pytest.mark.parametrize(
    ("error", "name"),
    [(OF_A_VALUE, "CAST_INVALID_INPUT"), (OF_A_CONSTRAINT, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"), (OF_A_TABLE, None)],
)
def test_an_error_with_a_value_is_recognized_by_its_sqlstate(error: Exception, name: str | None) -> None:
    assert value_error_name(error) == name
    message = str(failure_message(error))
    assert message.startswith(f"[{name or 'PATH_NOT_FOUND'}] ")
    assert "ann@x.at" not in message


@pytest.mark.rule("S31")
def test_dagster_stores_no_value_of_such_an_error() -> None:
    with pytest.raises(dg.Failure) as raised, as_dagster_failure():
        raise OF_A_VALUE
    assert raised.value.description == (
        "[CAST_INVALID_INPUT] Spark cannot process a value of a row (the value is not shown, as it may be personal)"
    )
    assert raised.value.__suppress_context__
    with pytest.raises(AnalysisException), as_dagster_failure():
        raise OF_A_TABLE
