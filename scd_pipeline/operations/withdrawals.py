"""Withdrawals: a revision that asserts nothing, so that the tables become what they would be without a delivery (S34).

The change log records who withdrew the delivery, and why. All other deliveries remain. The withdrawn delivery is loaded
again only by a load that allows `withdrawn`.
"""

from __future__ import annotations

from dataclasses import replace

from scd_pipeline.declaration import DeclaredTable
from scd_pipeline.declaration.declared import as_dimension
from scd_pipeline.deliveries.delivery import Delivery
from scd_pipeline.deliveries.partitions import delivery_names, partition_key, qualified_name
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import UsageError
from scd_pipeline.history.batch import current_revisions
from scd_pipeline.load.log import read_log
from scd_pipeline.queries.dimension import BATCHES_SUFFIX
from scd_pipeline.texts import nearest


def withdrawal(warehouse: Warehouse, table: DeclaredTable, name: str, *, by: str, reason: str) -> Delivery:
    """Return the withdrawal of a delivery that was loaded, as a load accepts it.

    Args:
        warehouse: The warehouse of the table.
        table: The declaration.
        name: The name of the delivery, such as 2024-01-31, or crm.snapshot.2024-01-31 for one channel.
        by: The person or program that withdraws it.
        reason: The reason.

    Raises:
        UsageError: `by` or `reason` is empty, or the change log has no delivery of that name, or several.
    """
    for argument, text in (("by", by), ("reason", reason)):
        if not text.strip():
            raise UsageError("WITHDRAWAL_NOT_EXPLAINED", table.name, argument=argument)
    dimension = as_dimension(table)
    stored = current_revisions(read_log(warehouse, dimension).batches())
    deliveries = [Delivery(source, delivery, channel=channel) for source, channel, delivery in stored]
    # By channel: the declaration may no longer have one of them, and the partition keys are then equal.
    matches = {qualified_name(delivery): delivery for delivery in deliveries if name in delivery_names(delivery)}
    if not matches:
        near = nearest(name, {partition_key(delivery, dimension) for delivery in deliveries})
        hint = f"did you mean {near}? " if near else ""
        raise UsageError("DELIVERY_NOT_LOADED", table.name, name=name, hint=hint, batches=table.name + BATCHES_SUFFIX)
    if len(matches) > 1:
        raise UsageError("SEVERAL_DELIVERIES", table.name, name=name, names=" or ".join(sorted(matches)))
    (delivery,) = matches.values()
    return replace(delivery, withdrawn=True, actor=by, reason=reason)
