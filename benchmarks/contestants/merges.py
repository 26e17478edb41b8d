"""Plain SCD2 tables that are written by MERGE, in the same session and with the same table properties."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.contestants.contestant import Contestant, Site
from benchmarks.data import ATTRIBUTES, KEY, OPEN_END, VERSION_COLUMNS, timestamp
from benchmarks.tables import SURROGATE_KEY, as_dimension, identifier, read_table, write_table
from benchmarks.work import File, Work

_INSERTED = (SURROGATE_KEY, KEY, *ATTRIBUTES, "effective_from", "effective_to", "current_flag")
_DIFFERS = "NOT (" + " AND ".join(f"s.{name} <=> t.{name}" for name in ATTRIBUTES) + ")"
_CLOSE = "UPDATE SET t.effective_to = s.changed_at, t.current_flag = false"


def as_changes(site: Site, file: File) -> DataFrame:
    """Return the rows of a delivery with `changed_at` and `deleted`, whatever its channel."""
    rows = site.rows(file)
    if file.channel == "feed":
        return rows
    return rows.withColumn("changed_at", timestamp(file.at)).withColumn("deleted", F.lit(False))


def insert_values(alias: str = "s") -> str:
    """Return the column list and the values of an inserted version."""
    values = {
        SURROGATE_KEY: f"xxhash64({alias}.{KEY}, {alias}.changed_at)",
        **{name: f"{alias}.{name}" for name in (KEY, *ATTRIBUTES)},
        "effective_from": f"{alias}.changed_at",
        "effective_to": f"TIMESTAMP'{OPEN_END}'",
        "current_flag": "true",
    }
    return f"({', '.join(values)}) VALUES ({', '.join(values.values())})"


def close_omitted(file: File) -> str:
    """Return the clause of a MERGE that closes the entities that a snapshot omits; empty for a feed."""
    if file.channel != "snapshot":
        return ""
    close = f"t.effective_to = TIMESTAMP'{file.at}', t.current_flag = false"
    return f"WHEN NOT MATCHED BY SOURCE AND t.current_flag THEN UPDATE SET {close}"


class _Merge(Contestant):
    """A table of versions, written from the expected rows before the measured load."""

    state_of = "plain_table"

    def prepare(self, work: Work, site: Site) -> None:
        if work.base_versions is not None:
            write_table(as_dimension(work.base_versions(site.spark)), site.state / "dim")

    def load(self, work: Work, site: Site) -> None:
        for file in work.deliveries:
            self.apply(file, site)

    def apply(self, file: File, site: Site) -> None:
        """Apply one delivery."""
        raise NotImplementedError

    def rows(self, work: Work, site: Site) -> DataFrame:
        return read_table(site.spark, site.state / "dim").select(*VERSION_COLUMNS)


class DocumentedMerge(_Merge):
    """The SCD2 MERGE of Delta's documentation: changed rows are staged twice, once with a NULL merge key.

    Deletes are what the documentation adds for them: `NOT MATCHED BY SOURCE` for a snapshot, a condition for a feed.
    """

    name = "documented_merge"
    description = "SCD2 MERGE of Delta's documentation"

    def apply(self, file: File, site: Site) -> None:
        changes = as_changes(site, file)
        current = read_table(site.spark, site.state / "dim").where("current_flag")
        changed = (
            changes.alias("s")
            .join(current.alias("t"), F.expr(f"s.{KEY} = t.{KEY}"))
            .where(f"NOT deleted AND {_DIFFERS}")
        )
        staged = changed.selectExpr("CAST(NULL AS BIGINT) AS merge_key", "s.*").unionByName(
            changes.withColumn("merge_key", F.col(KEY))
        )
        site.spark.sql(
            f"MERGE INTO {identifier(site.state / 'dim')} t USING {{staged}} s ON t.{KEY} = s.merge_key "
            f"WHEN MATCHED AND t.current_flag AND (s.deleted OR {_DIFFERS}) THEN {_CLOSE} "
            f"WHEN NOT MATCHED AND NOT s.deleted THEN INSERT {insert_values()} {close_omitted(file)}",
            staged=staged,
        )


class PrefilteredMerge(_Merge):
    """One MERGE whose source has only the rows that change: those to close, and those to insert."""

    name = "prefiltered_merge"
    description = "one MERGE of the changed rows only"

    def apply(self, file: File, site: Site) -> None:
        changes = as_changes(site, file)
        current = read_table(site.spark, site.state / "dim").where("current_flag")
        how = "full_outer" if file.channel == "snapshot" else "left"
        joined = changes.alias("s").join(current.alias("t"), F.expr(f"s.{KEY} = t.{KEY}"), how)
        existing = f"t.{KEY} IS NOT NULL"
        differs = f"s.{KEY} IS NULL OR t.{KEY} IS NULL OR s.deleted OR {_DIFFERS}"
        attributes = [f"s.{name}" for name in ATTRIBUTES]
        actions = (
            f"explode(filter(array(CASE WHEN {existing} THEN t.{SURROGATE_KEY} END, "
            f"CASE WHEN NOT s.deleted THEN -1 END), x -> x IS NOT NULL)) AS merge_key"
        )
        staged = joined.where(differs).selectExpr(
            actions,
            f"coalesce(s.{KEY}, t.{KEY}) AS {KEY}",
            *attributes,
            f"coalesce(s.changed_at, TIMESTAMP'{file.at}') AS changed_at",
        )
        staged = staged.localCheckpoint()
        site.spark.sql(
            f"MERGE INTO {identifier(site.state / 'dim')} t USING {{staged}} s ON t.{SURROGATE_KEY} = s.merge_key "
            f"WHEN MATCHED THEN {_CLOSE} WHEN NOT MATCHED THEN INSERT {insert_values()}",
            staged=staged,
        )


class TwoPassMerge(_Merge):
    """A MERGE that closes versions by comparing hashes, then an INSERT of the new ones."""

    name = "two_pass_merge"
    description = "MERGE that closes, then INSERT"

    def apply(self, file: File, site: Site) -> None:
        table = identifier(site.state / "dim")
        changes = as_changes(site, file)
        differs = f"{_hash('s')} <> {_hash('t')}"
        site.spark.sql(
            f"MERGE INTO {table} t USING {{changes}} s ON t.{KEY} = s.{KEY} AND t.current_flag "
            f"WHEN MATCHED AND (s.deleted OR {differs}) THEN {_CLOSE} {close_omitted(file)}",
            changes=changes,
        )
        columns, values = insert_values().split(" VALUES ")
        site.spark.sql(
            f"INSERT INTO {table} {columns} SELECT {values.strip('()')} FROM {{changes}} s "
            f"LEFT ANTI JOIN (SELECT {KEY} FROM {table} WHERE current_flag) t ON s.{KEY} = t.{KEY} "
            f"WHERE NOT s.deleted",
            changes=changes,
        )


def _hash(alias: str) -> str:
    texts = ", ".join(f"coalesce(CAST({alias}.{name} AS STRING), '\\0')" for name in ATTRIBUTES)
    return f"sha2(concat_ws('|', {texts}), 256)"
