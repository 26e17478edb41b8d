"""Errors of this package as Dagster failures, which the UI shows by their messages alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from scd_pipeline.conditions import ways_to_allow
from scd_pipeline.deliveries.result import BatchResult, undeclared_summary
from scd_pipeline.errors import OVERRIDABLE_RULES, ScdError, value_error_name, value_error_text
from scd_pipeline.operations.dagster_names import load_op_name

_MAX_REASONS = 5
"""Number of rejected or missing deliveries that the headline of a failure lists."""


@contextlib.contextmanager
def as_dagster_failure() -> Iterator[None]:
    """Turn an error of this package into a Dagster failure without retries: repeating the step would not help.

    Dagster stores messages. A message of Spark that repeats values of rows is replaced by the name of the error.
    """
    try:
        yield
    except ScdError as error:
        raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False) from error
    except Exception as error:
        if (name := value_error_name(error)) is None:
            raise
        raise dg.Failure(value_error_text(name), allow_retries=False) from None


def fix_in_dagster(batch: BatchResult, table: str) -> str:
    """Return the fix of a rejected delivery; a rule is overridden by a run configuration for Dagster's launchpad."""
    rule = batch.code.lower()
    if rule not in OVERRIDABLE_RULES:
        return batch.fix
    configuration = f"{{ops: {{{load_op_name(table)}: {{config: {{allow: [{rule}]}}}}}}}}"
    return batch.fix.replace(ways_to_allow(rule), f"by this run configuration in the launchpad: `{configuration}`")


def load_failure(
    table: str, rejected: Mapping[str, BatchResult], unresolved: Mapping[str, Sequence[str]], *, others: int
) -> dg.Failure:
    """Return the failure of a load, whose text begins with the reasons: partition, code, problem and fix.

    Args:
        table: The dimension or fact.
        rejected: The rejected and missing deliveries by partition.
        unresolved: Requested partitions that represent no delivery or several, with the keys of these.
        others: Number of deliveries that were loaded.
    """
    reasons = {key: _rejection_reason(batch, table) for key, batch in rejected.items()}
    reasons |= {partition: _unresolved_reason(keys) for partition, keys in unresolved.items()}
    lines = [f"{partition}: {reason}" for partition, reason in list(reasons.items())[:_MAX_REASONS]]
    if len(reasons) > _MAX_REASONS:
        lines.append(f"and {len(reasons) - _MAX_REASONS} more deliveries, see the metadata of this event")
    lines.append(f"all other deliveries ({others}) were loaded" if others else "nothing was loaded")
    return dg.Failure("\n".join(lines), metadata=reasons, allow_retries=False)


def _rejection_reason(batch: BatchResult, table: str) -> str:
    """Return why a delivery was not accepted, and then its undeclared columns, which may explain a missing one."""
    reason = f"{batch.outcome} [{batch.code}]: {batch.problem}; {fix_in_dagster(batch, table)}"
    return f"{reason}; {undeclared_summary(batch.undeclared)}" if batch.undeclared else reason


def _unresolved_reason(keys: Sequence[str]) -> str:
    if keys:
        return f"several deliveries have this name; expected one; materialize {' or '.join(keys)} instead"
    return "missing delivery; expected a delivery of this name at the path of the source; deliver it again"
