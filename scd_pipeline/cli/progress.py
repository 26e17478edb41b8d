"""The commands of `scd` that watch over the tables: check and status."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timezone

from scd_pipeline.cli.commands import Settings, declared_of

_BROKEN = 4


def check(options: Namespace, settings: Settings) -> int:
    """`scd check`"""
    from scd_pipeline.declaration import Dimension
    from scd_pipeline.operations.check import check_dimension, check_fact

    broken = False
    declared = declared_of(options.what, settings)
    with settings.open() as warehouse:
        for of in declared:
            found = check_dimension(warehouse, of) if isinstance(of, Dimension) else check_fact(warehouse, of)
            for finding in found:
                print(finding)
                broken = broken or not finding.passed
            if not found:
                print(f"{of.name}: there is nothing to check yet")
    return _BROKEN if broken else 0


def status(options: Namespace, settings: Settings) -> None:  # noqa: ARG001 (all commands have the same arguments)
    """`scd status`"""
    from scd_pipeline.declaration import Dimension, Fact
    from scd_pipeline.operations import texts
    from scd_pipeline.operations.status import status as ask

    declared = declared_of(None, settings)
    dimensions = [of for of in declared if isinstance(of, Dimension)]
    facts = [of for of in declared if isinstance(of, Fact)]
    with settings.open() as warehouse:
        found = ask(warehouse, dimensions, facts, now=datetime.now(timezone.utc))
    sources = [
        (
            s.table,
            s.source,
            s.last_delivery,
            f"{s.age.days} days ago" if s.age else "",
            str(len(s.waiting)),
            str(len(s.rejected)),
            str(s.quarantined),
        )
        for s in found.sources
    ]
    names = ("table", "source", "last delivery", "", "waiting", "rejected", "quarantined")
    kinds = ("text", "text", "text", "text", "number", "number", "number")
    print(texts.table(texts.Texts(names, kinds, tuple(sources))))
    for s in found.sources:
        for text in s.rejected:
            print(f"stopped: {s.table}, {s.source}/{text}")
    tables = [
        (t.table, str(t.commits), str(t.lag), str(t.audit_lag), ", ".join(t.dimensions_behind)) for t in found.tables
    ]
    for t in found.tables:
        for text in t.damage:
            print(f"damaged: {t.table}: {text}")
    heads = ("table", "commits", "behind its log", "audit behind", "behind its dimensions")
    print(texts.table(texts.Texts(heads, ("text", "number", "number", "number", "text"), tuple(tables))))
