"""Selection of the deliveries that a run loads, from the partitions for which it was launched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from scd_pipeline.components.partitions import has_everything
from scd_pipeline.declaration import DeclaredTable, Dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.discovery import Others, file_version, select
from scd_pipeline.deliveries.partitions import EVERYTHING, matching_partition_keys, partition_key
from scd_pipeline.deliveries.result import BatchResult
from scd_pipeline.deliveries.table_states import TableState, table_name, table_states
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.environment import Environment
from scd_pipeline.errors import LoadWarning, UsageError
from scd_pipeline.load.log import read_log
from scd_pipeline.load.source_deliveries import other_deliveries
from scd_pipeline.operations.withdrawals import withdrawal


@dataclass(frozen=True)
class DeliverySelection:
    """The deliveries of a run, and which delivery each requested partition represents."""

    deliveries: Mapping[str, Delivery]
    """The deliveries to load, by partition key."""
    available: int
    """Number of deliveries at the paths of the sources."""
    keys: Mapping[str, str]
    """The partition key of the delivery that a requested partition represents. The two differ if a channel was
    added or removed since the partition was created."""
    unresolved: Mapping[str, Sequence[str]]
    """Requested partitions that represent no delivery or several, with the partition keys of these."""
    missing_files: Sequence[str]
    """Partition keys of requested files that do not exist."""
    loaded_before: Mapping[str, BatchResult]
    """Results of deliveries that the change log contains, by partition key. They may no longer be available."""
    is_everything: bool
    """Whether the run loads all deliveries."""
    warnings: Sequence[LoadWarning] = ()
    """The warnings of the discovery; none unless all deliveries are requested."""

    def file_versions(self) -> dict[str, str]:
        """Return time and size of each selected file, by partition key."""
        return {key: file_version(delivery) for key, delivery in self.deliveries.items() if _is_file(delivery)}

    def by_partition(self, results: Sequence[BatchResult]) -> dict[str, BatchResult]:
        """Return the results of a load of the selected deliveries by partition."""
        loaded = dict(zip(self.deliveries, results, strict=True))
        results_by_key = {**self.loaded_before, **loaded}
        requested = {partition: results_by_key[key] for partition, key in self.keys.items() if key in results_by_key}
        return {**loaded, **requested} if self.is_everything else requested


def others(warehouse: Warehouse, run_id: str | None = None) -> Others:
    """Return the function that lists the deliveries that are not at paths, with the variables of this process.

    `run_id` is that of `stored_deliveries`.
    """
    variables, now = Environment.from_env().variables, datetime.now(timezone.utc)
    return partial(other_deliveries, warehouse, variables=variables, now=now, run_id=run_id)


def resolve_partitions(
    warehouse: Warehouse,
    dimension: Dimension,
    partitions: Collection[str],
    *,
    allow: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    run_id: str | None = None,
) -> DeliverySelection:
    """Select the deliveries of some partitions, or all deliveries.

    Args:
        dimension: The dimension, or the dimension of the same shape as the fact.
        partitions: The requested partitions; none for a run of an asset without partitions.
        allow: Rules to override.
        files: If given and all deliveries are requested, the only files to load: partition key to file version. A
            table that is not a Delta table is loaded only if this has its name with its present state
            (`table_states`).
        run_id: The run, which may have loaded the landing tables that the dimension reads.
    """
    discovered = select(dimension, warehouse.spark, allow=allow, others=others(warehouse, run_id))
    available = {partition_key(delivery, dimension): delivery for delivery in discovered.deliveries}
    names = sorted(set(partitions) - {EVERYTHING})
    # The log is read only if a partition is not the key of an available delivery.
    logged = _logged_deliveries(warehouse, dimension) if set(names) - available.keys() else {}
    candidates = [*({key: delivery for key, (delivery, _) in logged.items()} | available).values()]
    matches = {name: matching_partition_keys(name, candidates, dimension) for name in names}
    keys = {name: matching[0] for name, matching in matches.items() if len(matching) == 1}
    is_everything = has_everything(partitions)
    requested_keys, missing_files = set(keys.values()), []
    if not is_everything:
        selected = {key: delivery for key, delivery in available.items() if key in requested_keys}
    else:
        states = table_states(dimension) if files is not None else {}
        selected = {k: d for k, d in available.items() if files is None or _is_complete(k, d, files, states, dimension)}
        missing_files = sorted(set(files or ()) - available.keys() - states.keys())
    return DeliverySelection(
        selected,
        available=len(available),
        keys=keys,
        unresolved={name: matching for name, matching in matches.items() if name not in keys},
        missing_files=missing_files,
        loaded_before={key: result for key, (_, result) in logged.items()},
        is_everything=is_everything,
        warnings=discovered.warnings if is_everything else (),
    )


def withdrawn_partitions(
    warehouse: Warehouse, declared: DeclaredTable, partitions: Collection[str], *, by: str, reason: str
) -> DeliverySelection:
    """Select the withdrawals of the deliveries of some partitions.

    Args:
        declared: The declaration.
        partitions: The requested partitions.
        by: The person who withdraws them.
        reason: The reason.

    Raises:
        UsageError: No partition is requested, or as `withdrawal`, also for the partition `everything`.
    """
    if not partitions:
        raise UsageError("WITHDRAWAL_WITHOUT_PARTITION", declared.name, table=declared.name)
    withdrawals = {name: withdrawal(warehouse, declared, name, by=by, reason=reason) for name in sorted(partitions)}
    return DeliverySelection(
        withdrawals,
        available=len(withdrawals),
        keys={name: name for name in withdrawals},
        unresolved={},
        missing_files=[],
        loaded_before={},
        is_everything=False,
    )


def _is_complete(
    key: str, delivery: Delivery, files: Mapping[str, str], states: Mapping[str, TableState], dimension: Dimension
) -> bool:
    """Return whether a delivery is as the sensor saw it; a partition or version of a Delta table always is complete."""
    if _is_file(delivery):
        return files.get(key) == file_version(delivery)
    name = table_name(delivery, dimension)
    state = states.get(name)  # none of a table that is not in a local folder
    return state is None or state.is_delta or files.get(name) == state.text


def _is_file(delivery: Delivery) -> bool:
    is_in_table = delivery.table_version is not None or delivery.partition is not None or delivery.cursor is not None
    return delivery.path is not None and not is_in_table


def _logged_deliveries(warehouse: Warehouse, dimension: Dimension) -> dict[str, tuple[Delivery, BatchResult]]:
    """Return the deliveries in the change log with the result that loading them again would have, by partition key."""
    logged = [
        (Delivery(b.source, b.delivery, channel=b.channel), BatchResult(b.id, *b.delivery_key, "unchanged"))
        for b in read_log(warehouse, dimension).batches()
    ]
    return {partition_key(delivery, dimension): (delivery, result) for delivery, result in logged}
