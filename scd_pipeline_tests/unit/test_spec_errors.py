"""Errors: exit codes, messages, and that they survive a process boundary."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from scd_pipeline import errors
from scd_pipeline.conditions import CONDITIONS, DECLARATION_RULES, DECLARATION_WARNINGS
from scd_pipeline.errors import (
    BatchRejected,
    DeclarationError,
    LoadError,
    ScdError,
    ValidationError,
    first_line,
)

FAULT = ValidationError(
    "INVALID_SCD_TYPE", "c.yaml:7", "attributes.city.scd", "9 is not an SCD type", "write 0, 1, 2, 3 or 6"
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DeclarationError([FAULT]), 2),
        (errors.SourceDataError("UNREADABLE_CSV", problem="x"), 3),
        (BatchRejected("BAD_ROWS", "crm/2024-01-01", bad=12, rows=100, share="12%", limit="5%", example="x"), 3),
        (LoadError("INVARIANT_VIOLATED", violations="x"), 4),
        (errors.ConflictError("WRITE_CONFLICT", number=2, previous=1), 4),
        (errors.SetupError("SESSION_TIME_ZONE", zone="Asia/Tokyo"), 5),
        (ScdError("NO_WAY_TO_WRITE"), 1),
    ],
)
def test_exit_codes(error: ScdError, code: int) -> None:
    assert error.exit_code == code


def test_a_declaration_error_shows_one_fault_per_line() -> None:
    line = "c.yaml:7: attributes.city.scd: 9 is not an SCD type; write 0, 1, 2, 3 or 6"
    error = DeclarationError([FAULT, FAULT])
    assert str(error) == f"{line}\n{line}"
    assert (error.code, error.details) == ("INVALID_DECLARATION", {"count": 2})


def test_a_rejected_batch_shows_its_code_its_problem_and_its_fix() -> None:
    rejected = BatchRejected("RETIRE_GUARD", "crm/2024-01-01", omitted=30, existing=40, share="75%", limit="25%")
    assert str(rejected) == (
        "[RETIRE_GUARD] crm/2024-01-01: the snapshot omits 30 of the 40 entities that exist in its scope (75%); "
        "expected at most 25%; replace the file by the complete snapshot (of a frame deliver a higher revision) and "
        "load again, or allow `retire_guard` (`scd load --allow retire_guard`, `allow` in Dagster's run configuration, "
        '`allow="retire_guard"` in Python)'
    )
    assert (rejected.batch, rejected.code) == ("crm/2024-01-01", "RETIRE_GUARD")


def test_an_error_without_a_condition_cannot_be_created() -> None:
    with pytest.raises(KeyError, match="NO_SUCH_CODE"):
        ScdError("NO_SUCH_CODE")


@pytest.mark.parametrize("code", CONDITIONS)
def test_a_condition_has_a_problem_and_a_fix(code: str) -> None:
    """Codes are stable names; texts are sentences without a full stop."""
    condition = CONDITIONS[code]
    assert re.fullmatch(r"[A-Z]+(_[A-Z0-9]+)*", code)
    assert condition.problem and condition.fix
    assert "expected" in condition.problem or code == "QUERY_FAILED"
    assert not condition.problem.endswith(".") and not condition.fix.endswith(".")


def test_an_error_of_a_declaration_has_the_code_of_a_rule_that_a_check_uses() -> None:
    with pytest.raises(KeyError, match="NO_SUCH_RULE"):
        ValidationError("NO_SUCH_RULE", "c.yaml:7", "attributes", "is missing", "give it")
    package = Path(errors.__file__).parent
    checks = "".join(file.read_text(encoding="utf-8") for file in package.rglob("*.py") if file.stem != "conditions")
    assert not [code for code in DECLARATION_RULES if f'"{code}"' not in checks]
    assert not DECLARATION_RULES.keys() & CONDITIONS.keys()
    assert not [code for code in DECLARATION_WARNINGS if f'"{code}"' not in checks]
    assert not DECLARATION_WARNINGS.keys() & (CONDITIONS.keys() | DECLARATION_RULES.keys())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no such table\n\nin this catalog", "no such table"),
        (
            "An error occurred while calling o72.sql.\n: java.io.IOException: disk full\n\tat x",
            "java.io.IOException: disk full",
        ),
        ("", "ValueError"),
    ],
)
def test_the_first_line_of_an_error_is_its_message(text: str, line: str) -> None:
    assert first_line(ValueError(text)) == line


@pytest.mark.parametrize("error", [DeclarationError([FAULT]), BatchRejected("NO_TIME", "b", reason="it has no time")])
def test_errors_can_be_pickled(error: ScdError) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
