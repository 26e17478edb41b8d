"""Platform capabilities: probed once on a scratch table, and stored in the warehouse (S32)."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession

from scd_pipeline.delta.commits import PipelineCommit
from scd_pipeline.delta.scratch import scratch_table_path
from scd_pipeline.delta.table import Table
from scd_pipeline.errors import ConflictError, UnsupportedDelta
from scd_pipeline.frames import local_frame

TABLE_NAME = "_scd_capabilities"
_PROPERTY = "scd_pipeline.capabilities."
"""The beginning of the names of the properties, one for each server and engine; they are read without a query."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The ways of writing that work: `replaces` by replaceUsing, `merges` by MERGE with an idempotent transaction.

    `merges` is False if `replaces` is True: MERGE is slower, and is not probed then.
    """

    server: str
    engine: str
    replaces: bool
    merges: bool

    def require_way_to_write(self) -> Capabilities:
        """Return the capabilities.

        Raises:
            UnsupportedDelta: Neither way of writing works.
        """
        if not (self.replaces or self.merges):
            raise UnsupportedDelta("NO_WAY_TO_WRITE", self.engine or self.server)
        return self


def server_name(spark: SparkSession) -> str:
    """Return a name of the server before it has committed anything; the engine of a commit names its Delta."""
    jars = spark.conf.get("spark.jars", "") or ""
    names = sorted(jar.rsplit("/", 1)[-1] for jar in jars.split(",") if "delta" in jar)
    return f"Spark {spark.version} {' '.join(names)}".strip()


def stored_capabilities(store: Table, server: str, engine: str = "") -> Capabilities | None:
    """Return the capabilities stored for this server (and engine, if one is named); None if none are stored.

    If the capabilities of several engines match, those of any of them are returned.
    """
    properties = sorted(store.properties().items())
    stored = [_from_digits(value) for name, value in properties if name.startswith(_PROPERTY)]
    matching = [probed for probed in stored if probed.server == server and engine in ("", probed.engine)]
    return matching[0] if matching else None


def _to_digits(capabilities: Capabilities) -> str:
    """Return hexadecimal digits, because Spark hides the value of a property that looks like a secret or an address."""
    return json.dumps(asdict(capabilities)).encode().hex()


def _from_digits(digits: str) -> Capabilities:
    return Capabilities(**json.loads(bytes.fromhex(digits)))


def load_capabilities(spark: SparkSession, store: Table, scratch_path: str, *, engine: str = "") -> Capabilities:
    """Return the stored capabilities of this server; if there are none, probe and store them.

    Args:
        spark: The session.
        store: The table of the capabilities.
        scratch_path: The folder of the tables on which they are probed.
        engine: The engine of a commit that this server made. Capabilities of other engines are then ignored, because
            servers with the same Spark and different versions of Delta may share a warehouse.

    Raises:
        UnsupportedDelta: Neither way of writing works.
    """
    server = server_name(spark)
    stored = stored_capabilities(store, server, engine)
    if stored is not None:
        return stored.require_way_to_write()
    probed = probe(spark, server, scratch_path).require_way_to_write()
    name = _PROPERTY + hashlib.sha256(f"{probed.server} {probed.engine}".encode()).hexdigest()[:16]
    properties, comment = {name: _to_digits(probed)}, "Platform capabilities of each server, in the table's properties"
    with contextlib.suppress(ConflictError):  # another run has just stored the same
        if not store.create([("server", "string", True)], properties, comment):
            store.set_properties(properties)
    return probed


def current_engine(store: Table) -> str:
    """Return the engine of this server, read from an empty commit that it writes to the table of capabilities.

    The result is empty if the table does not exist, or another writer committed to it first.
    """
    last = store.last_commit_or_zero()
    if not last.exists:
        return ""
    with contextlib.suppress(ConflictError):
        return store.commit_empty(last.next()).engine
    return ""


def probe(spark: SparkSession, server: str, scratch_path: str) -> Capabilities:
    """Try the ways of writing on scratch tables, the faster one first: replacing one of two rows has to leave two."""
    with scratch_table_path(scratch_path) as path:
        replaces, engine = _works(Table(spark, "scratch", path), "replace")
    with scratch_table_path(scratch_path) as path:
        merges = not replaces and _works(Table(spark, "scratch", path), "merge")[0]
    return Capabilities(server, engine, replaces, merges)


def _works(scratch: Table, way: str) -> tuple[bool, str]:
    """Return whether a way of writing works, and the engine; empty if it cannot even append."""
    scratch.create([("k", "bigint", False), ("v", "string", True), ("r", "boolean", True)], {}, "scratch")
    schema, engine = "k bigint, v string, r boolean", ""
    try:
        both = local_frame(scratch.spark, [(1, "a", False), (2, "b", False)], schema)
        first = scratch.append(both, PipelineCommit(scratch.name, 0).next())
        second, engine = first.next(), first.engine
        changed = local_frame(scratch.spark, [(2, "c", False)], schema)
        if way == "replace":
            scratch.replace(changed, second, key="k")
        else:
            scratch.merge(changed, second, key="k", removes="s.r")
        rows = {(row["k"], row["v"]) for row in scratch.read().collect()}
    except Exception:  # any error means that this way of writing is not supported
        return False, engine
    return rows == {(1, "a"), (2, "c")}, engine
