"""What Dagster shows of a check: the property that it verifies, its rules, and the result."""

from __future__ import annotations

from typing import Any

import dagster as dg

from scd_pipeline.invariants.properties import PROPERTIES
from scd_pipeline.operations.check import Finding


def described(name: str, docs_url: str = "") -> str:
    """Return the property that a check verifies, with links to its rules where their address is known (Markdown)."""
    verified = PROPERTIES[name]
    if not docs_url:
        return verified.description
    links = [f"[{rule}]({_address(rule, docs_url)})" for rule in verified.rules]
    return f"{verified.sentence} ({', '.join(links)})." if links else verified.description


def _address(rule: str, docs_url: str) -> str:
    return f"{docs_url.rstrip('/')}/semantics.md#{rule.lower()}"


def check_result(table: str, name: str, finding: Finding | None, docs_url: str = "") -> dg.AssetCheckResult:
    """Return a check's result; each rule is linked where its address is known, else its place in the docs is named."""
    metadata: dict[str, dg.MetadataValue[Any]] = {}
    for rule in PROPERTIES[name].rules:
        address = _address(rule, docs_url or "docs")
        metadata[f"rule {rule}"] = dg.MetadataValue.url(address) if docs_url else dg.MetadataValue.text(address)
    if finding is None:
        metadata["note"] = dg.MetadataValue.text("nothing to check before the first load")
    else:
        metadata["violations"] = dg.MetadataValue.int(finding.count)
        metadata |= {"violated_by": dg.MetadataValue.text("; ".join(finding.keys))} if finding.keys else {}
    return dg.AssetCheckResult(
        asset_key=table,
        check_name=name,
        passed=finding is None or finding.passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def as_evaluation(table: str, name: str, finding: Finding | None) -> dg.AssetCheckEvaluation:
    """Return the event of the same result, for a step that logs it in place of the check's own step."""
    result = check_result(table, name, finding)
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(table),
        check_name=name,
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
    )
