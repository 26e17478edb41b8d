"""Errors: exit codes, messages, and that they survive a process boundary."""

from __future__ import annotations

import pickle

import pytest

from scd_pipeline import errors
from scd_pipeline.errors import BatchRejected, DeclarationError, Fault, LoadError, ScdError, exit_code

FAULT = Fault("c.yaml:7", "attributes.city.scd", "9 is not a type of attribute", "write 0, 1, 2, 3 or 6")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DeclarationError([FAULT]), 2),
        (errors.SourceDataError("x"), 3),
        (BatchRejected("crm/2024-01-01", "bad_rows", "12 of 100 rows"), 3),
        (LoadError("x"), 4),
        (errors.ConflictError("x"), 4),
        (errors.SetupError("x"), 5),
        (ScdError("x"), 1),
        (KeyError("x"), 1),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_a_declaration_error_shows_one_fault_per_line() -> None:
    line = "c.yaml:7: attributes.city.scd: 9 is not a type of attribute; write 0, 1, 2, 3 or 6"
    assert str(DeclarationError([FAULT, FAULT])) == f"{line}\n{line}"


def test_a_stopped_batch_tells_how_to_let_it_through() -> None:
    rejected = BatchRejected("crm/2024-01-01", "retire_guard", "30 of 40 entities would be gone")
    assert str(rejected) == (
        "crm/2024-01-01: stopped (retire_guard): 30 of 40 entities would be gone; "
        'deliver the whole snapshot again, or let it through by allow "retire_guard": '
        "`scd load --allow`, `allow` in Dagster's run configuration, or of the Delivery"
    )
    assert (rejected.batch, rejected.rule) == ("crm/2024-01-01", "retire_guard")


@pytest.mark.parametrize("error", [DeclarationError([FAULT]), BatchRejected("b", "bad_rows", "w", "r")])
def test_errors_can_be_sent(error: ScdError) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
