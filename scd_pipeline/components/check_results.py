"""Asset check results: the property that a check verifies, its rules, and the violations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dagster as dg

from scd_pipeline.components.alerts import alert_from_run
from scd_pipeline.components.rule_texts import rule_texts
from scd_pipeline.invariants.check_descriptions import CHECK_DESCRIPTIONS, WARNING_CHECKS
from scd_pipeline.operations.check import CheckResult


def check_description(name: str, docs_url: str = "", job: str = "") -> str:
    """Return the property that a check verifies, with links to its rules if their address is known (Markdown).

    Args:
        docs_url: Address of the docs.
        job: The job that evaluates the check, if loads do not.
    """
    check = CHECK_DESCRIPTIONS[name]
    links = [f"[{rule}]({_rule_address(rule, docs_url)})" for rule in check.rules if docs_url]
    text = f"{check.sentence} ({', '.join(links)})." if links else check.text
    return f"{text} Loads do not evaluate it: run the job {job}, or switch its schedule on." if job else text


def _rule_address(rule: str, docs_url: str) -> str:
    return f"{docs_url.rstrip('/')}/semantics.md#{rule.lower()}"


def _rule(rule: str, docs_url: str) -> dg.MetadataValue[Any]:
    """Return a link to a rule; without the address of the docs the text of the rule, or its path within the docs."""
    if docs_url:
        return dg.MetadataValue.url(_rule_address(rule, docs_url))
    if text := rule_texts().get(rule):
        return dg.MetadataValue.md(text)
    return dg.MetadataValue.text(_rule_address(rule, "docs"))


def check_result(table: str, name: str, result: CheckResult | None, docs_url: str = "") -> dg.AssetCheckResult:
    """Return the result of a check as Dagster's.

    Args:
        result: The result of the check; None before the first load.
        docs_url: Address of the docs, to which the metadata of each rule links (`_rule`).
    """
    rules = CHECK_DESCRIPTIONS[name].rules
    metadata: dict[str, dg.MetadataValue[Any]] = {f"rule {rule}": _rule(rule, docs_url) for rule in rules}
    if result is None:
        metadata["note"] = dg.MetadataValue.text("Nothing to check before the first load.")
    else:
        metadata["violations"] = dg.MetadataValue.int(result.count)
        if result.keys:
            metadata["violating_keys"] = dg.MetadataValue.text("; ".join(result.keys))
    return dg.AssetCheckResult(
        asset_key=table,
        check_name=name,
        passed=result is None or result.passed,
        severity=dg.AssetCheckSeverity.WARN if name in WARNING_CHECKS else dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def as_evaluation(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Return a result as an event, for a step that records it in place of the check's own step."""
    assert result.asset_key is not None
    assert result.check_name is not None
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        description=result.description,
        metadata=result.metadata,
        severity=result.severity,
    )


def alert_of_failed_checks(context: dg.OpExecutionContext, table: str, results: Iterable[CheckResult]) -> None:
    """Send an alert if checks of a table failed."""
    failed = [result for result in results if not result.passed]
    if failed:
        text = "; ".join(f"{result.check}: {result.count} ({', '.join(result.keys)})" for result in failed)
        alert_from_run(context, f"checks of {table} failed", text)
