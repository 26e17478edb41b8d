"""Federal grants whose history is known: what is delivered, and the correct answers to questions about it.

Every value follows from the seed. Deliveries and answers are computed from the same values, the answers without Spark.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from examples.arrivals import Batch, Row, Value, chance, rows_by_file

FIRST_DAY = date(2023, 10, 2)
WEEKS = 40
LAST_DAY = FIRST_DAY + timedelta(days=7 * WEEKS - 1)
AWARDS_PER_RECIPIENT = 4
DEBARRED, DEBARRED_ON = 1, date(2024, 3, 1)
"""A recipient with a known debarment, which gets an award on that day and one on the day before."""

_STATUSES = ("active", "debarred", "suspended")
_NAMES = ("Harbor", "Summit", "Prairie", "Lakeside", "Granite", "Meadow")
_KINDS = ("Research Institute", "Community Trust", "University", "Health Partners")
_AGENCIES = ("Department of Energy", "Department of Health", "Department of Education")
_HEADERS = {
    "programs": (
        "program_id",
        "in_force_from",
        "operation",
        "eligibility_threshold",
        "funding_cap_usd",
        "program_status",
        "current_program_name",
        "current_admin_agency",
    ),
    "recipients": (
        "recipient_id",
        "in_force_from",
        "operation",
        "legal_name",
        "parent_org",
        "status",
        "address",
        "risk_tier",
    ),
    "awards": ("award_id", "awarded_on", "program_id", "recipient_id", "amount_usd"),
}
_LAUNCHED_LATER, _ENDS = 5, 0.03
_EDITABLE = {"programs": "current_program_name", "recipients": "address"}


@dataclass(frozen=True, slots=True)
class Change:
    """The values of a program or a recipient from a day on; None if it no longer exists."""

    day: date
    values: Row | None


@dataclass(frozen=True, slots=True)
class Award:
    """An award of a program to a recipient."""

    award_id: str
    day: date
    program: int
    recipient: int
    amount: int


@dataclass(frozen=True)
class Grants:
    """The grants of some months.

    Attributes:
        recipients: The number of recipients.
        seed: Decides everything that happens.
    """

    recipients: int
    seed: int = 1

    @classmethod
    def of_size(cls, rows: int, seed: int = 1) -> Grants:
        """Return grants that deliver about this number of rows."""
        return cls(max(20, rows // (AWARDS_PER_RECIPIENT + 3)), seed)

    @property
    def programs(self) -> int:
        """The number of programs."""
        return max(10, self.recipients // 50)

    # What is true

    def program(self, number: int) -> list[Change]:
        """Return threshold, cap, status, name and agency of a program, in order; every fifth is launched later."""
        chances = random.Random(f"{self.seed}/program/{number}")
        threshold, cap = chances.randrange(100, 500), 1_000 * chances.randrange(50, 200)
        status, agency, name = "pre-launch", chances.choice(_AGENCIES), f"Program {number}"
        status = status if number % _LAUNCHED_LATER == 0 else "active"
        changes = []
        for count, day in enumerate(self._days(chances, 3)):
            if count:
                threshold += chances.choice((0, 0, 50, 100))
                cap += 1_000 * chances.choice((0, -20, 30))
                next_status = chances.choice(("active", "active", "sunset"))
                status = "active" if status == "pre-launch" else next_status
                name = f"Program {number} ({day.year})"
            changes.append(Change(day, (f"{threshold}.00", f"{cap}.00", status, name, agency)))
        return changes

    def recipient(self, number: int) -> list[Change]:
        """Return name, parent, status, address and risk of a recipient, in order; some registrations end."""
        chances = random.Random(f"{self.seed}/recipient/{number}")
        name = f"{chances.choice(_NAMES)} {chances.choice(_KINDS)} {number}"
        parent = recipient_id(chances.randrange(self.recipients)) if chances.random() < 0.2 else None
        days = [FIRST_DAY, DEBARRED_ON] if number == DEBARRED else self._days(chances, chances.randrange(3))
        changes = []
        for count, day in enumerate(days):
            status = chances.choices(_STATUSES, (12, 1, 1))[0] if count else "active"
            status = "debarred" if number == DEBARRED and count else status
            address = f"{chances.randrange(1, 400)} {chances.choice(_NAMES)} Street"
            changes.append(Change(day, (name, parent, status, address, chances.choice(("low", "medium", "high")))))
        ends = number != DEBARRED and days[-1] < LAST_DAY and chance(self.seed, "ends", number) < _ENDS
        return [*changes, Change(LAST_DAY, None)] if ends else changes

    def awards(self, week: int) -> Iterator[Award]:
        """Yield the awards of a week by its number."""
        chances = random.Random(f"{self.seed}/awards/{week}")
        monday = FIRST_DAY + timedelta(days=7 * week)
        for index in range(max(4, self.recipients * AWARDS_PER_RECIPIENT // WEEKS)):
            day, recipient = monday + timedelta(days=chances.randrange(7)), chances.randrange(self.recipients)
            amount = 1_000 * chances.randrange(1, 150)
            yield Award(f"G{week:02}-{index}", day, chances.randrange(self.programs), recipient, amount)
        for day in (DEBARRED_ON - timedelta(days=1), DEBARRED_ON):
            if monday <= day < monday + timedelta(days=7):
                yield Award(f"G{week:02}-{day}", day, 0, DEBARRED, 25_000)

    def _days(self, chances: random.Random, count: int) -> list[date]:
        """Return the first day, and some later ones."""
        later = chances.sample(range(1, 7 * WEEKS), k=count)
        return [FIRST_DAY + timedelta(days=number) for number in (0, *sorted(later))]

    # The correct answers

    def awards_to_debarred(self) -> set[tuple[str, str, str, int]]:
        """Return award, recipient, day and amount of the awards to recipients that were debarred on that day."""
        return {
            (award.award_id, recipient_id(award.recipient), str(award.day), award.amount)
            for award in self._all_awards()
            if _value_at(_recipient(self, award.recipient), award.day, 2) == "debarred"
        }

    def awards_by_status(self) -> set[tuple[str, int, int]]:
        """Return number and sum of the awards by the status of their program on the day of the award."""
        totals: dict[str, tuple[int, int]] = {}
        for award in self._all_awards():
            status = str(_value_at(_program(self, award.program), award.day, 2))
            count, amount = totals.get(status, (0, 0))
            totals[status] = count + 1, amount + award.amount
        return {(status, *total) for status, total in totals.items()}

    def awards_over_cap(self) -> set[tuple[str, str, int, int, int]]:
        """Return the awards above the cap in force that today's cap allows: award, program, amount and both caps."""
        result = set()
        for award in self._all_awards():
            changes = _program(self, award.program)
            then, now = (int(float(str(_value_at(changes, day, 1)))) for day in (award.day, LAST_DAY))
            if then < award.amount <= now:
                result.add((award.award_id, program_id(award.program), award.amount, then, now))
        return result

    def _all_awards(self) -> Iterator[Award]:
        return (award for week in range(WEEKS) for award in self.awards(week))

    # What is delivered

    def batches(self) -> Iterator[Batch]:
        """Yield all files, one of each source for each week, in the order of the weeks."""
        feeds = {
            "programs": self._rows_by_week(range(self.programs), self.program, program_id),
            "recipients": self._rows_by_week(range(self.recipients), self.recipient, recipient_id),
        }
        for week in range(WEEKS):
            sunday = FIRST_DAY + timedelta(days=7 * week + 6)
            for folder, rows in feeds.items():
                yield Batch(folder, sunday, _HEADERS[folder], rows[week], editable=_EDITABLE[folder])
            yield Batch("awards", sunday, _HEADERS["awards"], map(_award_row, self.awards(week)), editable="amount_usd")

    def _rows_by_week(
        self, numbers: Iterable[int], changes: Callable[[int], list[Change]], name: Callable[[int], str]
    ) -> list[list[Row]]:
        """Return the rows of a change feed for each week: a name, a day, and the values."""
        rows = (
            ((change.day - FIRST_DAY).days // 7, (name(number), str(change.day), *_delivered(change)))
            for number in numbers
            for change in changes(number)
        )
        return rows_by_file(rows, WEEKS)


@lru_cache(maxsize=100_000)
def _recipient(grants: Grants, number: int) -> list[Change]:
    return grants.recipient(number)


@lru_cache(maxsize=100_000)
def _program(grants: Grants, number: int) -> list[Change]:
    return grants.program(number)


def _value_at(changes: list[Change], day: date, column: int) -> Value:
    """Return a value in force on a day, None after the end; programs and recipients exist from the first day on."""
    values = changes[bisect_right([change.day for change in changes], day) - 1].values
    return None if values is None else values[column]


def _delivered(change: Change) -> Row:
    """Return the values of a change as they are delivered: the operation, and the values unless it is a delete."""
    return ("delete", None, None, None, None, None) if change.values is None else ("upsert", *change.values)


def program_id(number: int) -> str:
    """Return the business key of a program."""
    return f"PR{number:05}"


def recipient_id(number: int) -> str:
    """Return the business key of a recipient."""
    return f"R{number:07}"


def _award_row(award: Award) -> Row:
    return award.award_id, str(award.day), program_id(award.program), recipient_id(award.recipient), award.amount
