"""A casino whose history is known: what its systems deliver, and the correct answers to questions about it.

Every value follows from the seed. Deliveries and answers are computed from the same values, the answers without Spark.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from examples.arrivals import Batch, Row, chance, rows_by_file

FIRST_DAY = date(2026, 12, 1)
THRESHOLDS = {
    "CTR": ((datetime(2024, 1, 1), 10_000), (datetime(2027, 1, 1), 12_000)),
    "SAR": ((datetime(2024, 1, 1), 5_000),),
    "W-2G": ((datetime(2024, 1, 1), 1_200), (datetime(2026, 12, 15), 2_000)),
}
"""The amounts from which cash is reported by type of report, each with the time from which it is in force."""
EVENTS_PER_PLAYER = 40
MACHINES_PER_PLAYER = 0.05
ACCOUNT_EVERY = 10
SNAPSHOT_DAYS = 7

TIERS = ("Bronze", "Silver", "Gold", "Diamond")
PROPERTIES = ("North Pier", "South Pier", "Old Town", "Airport")
COUNTRIES = {
    "AT": ("Austria", "Europe"),
    "BR": ("Brazil", "Americas"),
    "CA": ("Canada", "Americas"),
    "DE": ("Germany", "Europe"),
    "JP": ("Japan", "Asia"),
    "KE": ("Kenya", "Africa"),
    "TR": ("Turkey", "Europe"),
    "US": ("United States", "Americas"),
}
RENAMED_COUNTRIES = {"TR": ("Türkiye", "Asia")}
"""What the list of countries has from its second snapshot on."""
_GAMES = ("Lucky Pearl", "Sunken Ship", "Wild Fern", "Seven Lanterns", "Copper Canyon")
_DENOMINATIONS = ("0.01", "0.25", "1.00", "5.00")
_MAKERS = ("Aldgate", "Brightwater", "Corvus")
_LEAVES, _REMOVED, _MOVED, _CLOSED = 0.04, 0.05, 0.01, 0.1
_MANAGERS = ("Ines Moreau", "Jonas Adler", "Kaori Sato", "Luis Prado")
_NEAR_THRESHOLDS = [
    *[("CTR", amount) for amount in (9_500, 10_000, 11_000, 12_000)] * 3,
    *[("SAR", amount) for amount in (4_500, 5_000, 11_000)],
    *[("W-2G", amount) for amount in (1_100, 1_200, 1_900, 2_000)],
]
"""Type and amount of the first cash transactions of each day."""
_HEADERS = {
    "loyalty": ("player_id", "changed_at", "operation", "tier", "home_property", "marketing_consent", "birth_date"),
    "compliance": ("player_id", "changed_at", "risk_score"),
    "hotel": ("player_id", "changed_at", "email", "phone"),
    "accounts": ("account_id", "changed_at", "operation", "account_manager"),
    "thresholds": ("threshold_type", "in_force_from", "operation", "ctr_threshold", "window_hours"),
    "machines": ("machine_id", "game_title", "denomination", "location", "manufacturer", "serial_number"),
    "countries": ("country_code", "country_name", "region"),
    "plays": ("event_id", "event_ts", "player_id", "machine_id", "coin_in", "coin_out"),
    "cash": ("event_id", "event_ts", "player_id", "threshold_type", "country_code", "cash_in_amount"),
}
_EDITABLE = {"loyalty": "tier", "compliance": "risk_score", "hotel": "phone", "accounts": "account_manager"}


@dataclass(frozen=True, slots=True)
class Change:
    """The values of a player or an account in one system from a time on; None if it no longer exists."""

    at: datetime
    values: Row | None


@dataclass(frozen=True, slots=True)
class Cash:
    """A cash transaction at the cage."""

    event_id: str
    at: datetime
    player: int
    threshold_type: str
    amount: int
    country: str


@dataclass(frozen=True, slots=True)
class Play:
    """A play at a slot machine; amounts are in cents."""

    event_id: str
    at: datetime
    player: int
    machine: int
    coin_in: int
    coin_out: int


@dataclass(frozen=True)
class Casino:
    """The casino over some days.

    Attributes:
        players: The number of players who ever register.
        days: The number of days.
        seed: Decides everything that happens.
    """

    players: int
    days: int = 36
    seed: int = 1

    @classmethod
    def of_size(cls, rows: int, seed: int = 1) -> Casino:
        """Return a casino that delivers about this number of rows."""
        return cls(max(20, rows // (EVENTS_PER_PLAYER + 8)), seed=seed)

    @property
    def machines(self) -> int:
        """The number of slot machines."""
        return max(5, int(self.players * MACHINES_PER_PLAYER))

    def day(self, number: int) -> date:
        """Return a day by its number, from 0."""
        return FIRST_DAY + timedelta(days=number)

    def number(self, day: date) -> int:
        """Return the number of a day."""
        return (day - FIRST_DAY).days

    @property
    def end(self) -> datetime:
        """The last moment of the last day."""
        return datetime.combine(self.day(self.days - 1), time.max)

    # What is true

    def loyalty(self, player: int) -> list[Change]:
        """Return tier, property, consent and date of birth of a player, in order; some leave, and some return."""
        chances = random.Random(f"{self.seed}/loyalty/{player}")
        first = 0 if chances.random() < 0.7 else chances.randrange(1, self.days // 2)
        later = range(first + 1, self.days)
        days = [first, *sorted(chances.sample(later, k=min(3, len(later))))]
        tier, consent = chances.randrange(len(TIERS) - 1), chances.choice(("yes", "no"))
        home, born = chances.choice(PROPERTIES), date(1950, 1, 1) + timedelta(days=chances.randrange(18_000))
        leaves, changes = chances.random() < _LEAVES, []
        for number, day in enumerate(days):
            if number:
                tier = min(len(TIERS) - 1, max(0, tier + chances.choice((-1, 0, 1, 1))))
                home = chances.choice(PROPERTIES) if chances.random() < 0.2 else home
                consent = chances.choice(("yes", "no")) if chances.random() < 0.2 else consent
            is_absent = leaves and number == 2
            values: Row = (TIERS[tier], home, consent, str(born))
            changes.append(Change(_moment(self.day(day), chances), None if is_absent else values))
        return changes

    def risk(self, player: int) -> list[Change]:
        """Return the risk scores of a player, by the compliance system."""
        chances = random.Random(f"{self.seed}/risk/{player}")
        days = sorted(chances.sample(range(self.days), k=chances.randrange(1, 3)))
        return [Change(_moment(self.day(day), chances), (chances.randrange(100),)) for day in days]

    def contact(self, player: int) -> list[Change]:
        """Return email address and phone number of a player, by the hotel system; half of them have none."""
        chances = random.Random(f"{self.seed}/contact/{player}")
        if chances.random() < 0.5:
            return []
        return [
            Change(
                _moment(self.day(day), chances),
                (f"p{player}.{number}@example.com", f"+1 555 {chances.randrange(10_000):04}"),
            )
            for number, day in enumerate(sorted(chances.sample(range(self.days), k=2)))
        ]

    def managers(self, account: int) -> list[Change]:
        """Return the managers of the account of a player, in order; every tenth player has an account, some close."""
        chances = random.Random(f"{self.seed}/account/{account}")
        days = [0, *sorted(chances.sample(range(1, self.days), k=chances.randrange(3)))]
        names = list(_MANAGERS)
        chances.shuffle(names)
        changes = [Change(_moment(self.day(day), chances), (name,)) for day, name in zip(days, names, strict=False)]
        is_closed = chance(self.seed, "closed", account) < _CLOSED and days[-1] < self.days - 1
        return [*changes, Change(_moment(self.day(self.days - 1), chances), None)] if is_closed else changes

    def machine(self, machine: int, day: int) -> Row | None:
        """Return game, denomination and location of a machine on a day by its number; None if it is not there."""
        if chance(self.seed, "removed", machine) < _REMOVED and day >= self.days // 2:
            return None
        moves = sum(chance(self.seed, "machine", machine, earlier) < _MOVED for earlier in range(1, day + 1))
        chances = random.Random(f"{self.seed}/machine/{machine}/{moves}")
        return chances.choice(_GAMES), chances.choice(_DENOMINATIONS), f"zone {chances.randrange(12)}"

    def threshold_at(self, moment: datetime, threshold_type: str = "CTR") -> int:
        """Return the amount from which a cash transaction is in a type of report, in force at a time."""
        return [amount for at, amount in THRESHOLDS[threshold_type] if at <= moment][-1]

    def cash(self, day: int) -> Iterator[Cash]:
        """Yield the cash transactions of a day by its number; the first ones are near the thresholds."""
        chances = random.Random(f"{self.seed}/cash/{day}")
        for index in range(len(_NEAR_THRESHOLDS) + self.players // 10):
            is_near = index < len(_NEAR_THRESHOLDS)
            kind, amount = _NEAR_THRESHOLDS[index] if is_near else ("CTR", chances.randrange(20, 9_000))
            at, player = _moment(self.day(day), chances), chances.randrange(self.players)
            yield Cash(f"C{day:03}-{index}", at, player, kind, amount, chances.choice(list(COUNTRIES)))

    def plays(self, day: int) -> Iterator[Play]:
        """Yield the plays of a day by its number."""
        chances = random.Random(f"{self.seed}/plays/{day}")
        for index in range(max(10, self.players * EVENTS_PER_PLAYER // self.days)):
            coin_in = chances.randrange(25, 20_000)
            coin_out = int(coin_in * chances.random() * 1.8)
            at, player = _moment(self.day(day), chances), chances.randrange(self.players)
            yield Play(f"P{day:03}-{index}", at, player, chances.randrange(self.machines), coin_in, coin_out)

    # The correct answers

    def reportable_cash(self, day: date) -> set[tuple[str, str, str, int, int]]:
        """Return the reported cash of a day: event, type of the report, player, amount, and the threshold in force."""
        events = [(cash, self.threshold_at(cash.at, cash.threshold_type)) for cash in self.cash(self.number(day))]
        return {
            (cash.event_id, cash.threshold_type, player_id(cash.player), cash.amount, threshold)
            for cash, threshold in events
            if cash.amount >= threshold
        }

    def tier_at(self, player: int, moment: datetime) -> str | None:
        """Return the tier of a player in force at a time; None if the player did not exist."""
        changes = _loyalty(self, player)
        index = bisect_right([change.at for change in changes], moment) - 1
        values = changes[index].values if index >= 0 else None
        return None if values is None else str(values[0])

    def coin_in_by_tier(self) -> dict[tuple[str | None, str | None], tuple[int, int]]:
        """Return number of plays and cents, by the player's tier at the play and the tier at the end."""
        totals: dict[tuple[str | None, str | None], tuple[int, int]] = {}
        for play in (play for day in range(self.days) for play in self.plays(day)):
            tiers = self.tier_at(play.player, play.at), self.tier_at(play.player, self.end)
            count, cents = totals.get(tiers, (0, 0))
            totals[tiers] = count + 1, cents + play.coin_in
        return totals

    def tiers_at_first_play(self, players: int) -> set[tuple[str, str, str | None, str | None]]:
        """Return player, time, tier then and tier at the end for the first play with a tier of the first players."""
        first: dict[int, Play] = {}
        for play in (play for day in range(self.days) for play in self.plays(day) if play.player < players):
            if self.tier_at(play.player, play.at) is not None:
                first[play.player] = min(first.get(play.player, play), play, key=lambda each: (each.at, each.event_id))
        return {
            (player_id(player), _text(play.at), self.tier_at(player, play.at), self.tier_at(player, self.end))
            for player, play in first.items()
        }

    def previous_managers(self) -> dict[str, tuple[str, str | None]]:
        """Return the manager of each account and the one before; a closed account has its last ones."""
        result = {}
        for account in range(0, self.players, ACCOUNT_EVERY):
            names = [str(change.values[0]) for change in self.managers(account) if change.values]
            result[account_id(account)] = names[-1], names[-2] if len(names) > 1 else None
        return result

    # What is delivered

    def batches(self) -> Iterator[Batch]:
        """Yield all files, in the order of their days."""
        people = {
            "loyalty": self._rows_by_day(range(self.players), self._loyalty_values, player_id),
            "compliance": self._rows_by_day(range(self.players), self.risk, player_id),
            "hotel": self._rows_by_day(range(self.players), self.contact, player_id),
            "accounts": self._rows_by_day(range(0, self.players, ACCOUNT_EVERY), self._account_values, account_id),
        }
        for day in range(self.days):
            for folder, rows in people.items():
                yield Batch(folder, self.day(day), _HEADERS[folder], rows[day], editable=_EDITABLE[folder])
            yield from self._reference_batches(day)
            yield Batch("plays", self.day(day), _HEADERS["plays"], map(_play_row, self.plays(day)))
            cash = map(_cash_row, self.cash(day))
            yield Batch("cash", self.day(day), _HEADERS["cash"], cash, editable="cash_in_amount")

    def _loyalty_values(self, player: int) -> list[Change]:
        return _with_operation(self.loyalty(player), len(_HEADERS["loyalty"]))

    def _account_values(self, account: int) -> list[Change]:
        return _with_operation(self.managers(account), len(_HEADERS["accounts"]))

    def _rows_by_day(
        self, numbers: Iterable[int], changes: Callable[[int], list[Change]], name: Callable[[int], str]
    ) -> list[list[Row]]:
        """Return the rows of a change feed for each day: a name, a time, and the values."""
        rows = (
            ((change.at.date() - FIRST_DAY).days, (name(number), _text(change.at), *(change.values or ())))
            for number in numbers
            for change in changes(number)
        )
        return rows_by_file(rows, self.days)

    def _reference_batches(self, day: int) -> Iterator[Batch]:
        """Yield the snapshots of a day, and on the first day the thresholds, some of them for the future."""
        if day == 0:
            rows: list[Row] = [
                (kind, str(at), "upsert", amount, 24) for kind, amounts in THRESHOLDS.items() for at, amount in amounts
            ]
            yield Batch("thresholds", self.day(day), _HEADERS["thresholds"], rows)
        if day % SNAPSHOT_DAYS:
            return
        machines = ((machine_id(number), self.machine(number, day), number) for number in range(self.machines))
        rows = [(name, *values, _MAKERS[n % 3], f"S{n:06}") for name, values, n in machines if values]
        yield Batch("machines", self.day(day), _HEADERS["machines"], rows, has_times=False, editable="location")
        countries = COUNTRIES | (RENAMED_COUNTRIES if day else {})
        named: list[Row] = [(code, *values) for code, values in countries.items()]
        yield Batch("countries", self.day(day), _HEADERS["countries"], named, has_times=False)


@lru_cache(maxsize=100_000)
def _loyalty(casino: Casino, player: int) -> list[Change]:
    return casino.loyalty(player)


def player_id(number: int) -> str:
    """Return the business key of a player."""
    return f"P{number:07}"


def machine_id(number: int) -> str:
    """Return the business key of a machine."""
    return f"M{number:05}"


def account_id(number: int) -> str:
    """Return the business key of an account."""
    return f"A{number:07}"


def _with_operation(changes: list[Change], columns: int) -> list[Change]:
    """Return changes as they are delivered: the operation, and the values unless it is a delete."""
    nothing = ("delete", *[None] * (columns - 3))
    return [Change(change.at, ("upsert", *change.values) if change.values else nothing) for change in changes]


def _play_row(play: Play) -> Row:
    amounts = (f"{cents / 100:.2f}" for cents in (play.coin_in, play.coin_out))
    return (play.event_id, _text(play.at), player_id(play.player), machine_id(play.machine), *amounts)


def _cash_row(cash: Cash) -> Row:
    return cash.event_id, _text(cash.at), player_id(cash.player), cash.threshold_type, cash.country, cash.amount


def _moment(day: date, chances: random.Random) -> datetime:
    return datetime.combine(day, time()) + timedelta(seconds=chances.randrange(86_400))


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
