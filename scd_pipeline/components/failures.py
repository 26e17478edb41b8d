"""Errors of this package as Dagster failures, which the UI shows by their messages alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.errors import ScdError, value_error_name, value_error_text

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


def load_failure(
    rejected: Mapping[str, BatchResult], unresolved: Mapping[str, Sequence[str]], *, others: int
) -> dg.Failure:
    """Return the failure of a load, whose text begins with the reasons: partition, code, problem and fix.

    Args:
        unresolved: Requested partitions that represent no delivery or several, with the keys of these.
        others: Number of deliveries that were loaded.
    """
    reasons = {key: f"{batch.outcome} [{batch.code}]: {batch.problem}; {batch.fix}" for key, batch in rejected.items()}
    reasons |= {partition: _unresolved_reason(keys) for partition, keys in unresolved.items()}
    lines = [f"{partition}: {reason}" for partition, reason in list(reasons.items())[:_MAX_REASONS]]
    if len(reasons) > _MAX_REASONS:
        lines.append(f"and {len(reasons) - _MAX_REASONS} more deliveries, see the metadata of this event")
    lines.append(f"all other deliveries ({others}) were loaded" if others else "nothing was loaded")
    return dg.Failure("\n".join(lines), metadata=reasons, allow_retries=False)


def _unresolved_reason(keys: Sequence[str]) -> str:
    if keys:
        return f"several deliveries have this name; expected one; materialize {' or '.join(keys)} instead"
    return "missing delivery; expected a delivery of this name at the path of the source; deliver it again"
