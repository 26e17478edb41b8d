"""The definitions of the example as a text: assets with their upstreams, jobs, schedules, sensors and checks."""

from __future__ import annotations

import textwrap

import dagster as dg

from scd_pipeline.definitions import defs
from scd_pipeline_tests.semantics.specification import requirement

GRAPH = """
congress
  dim_legislator_changes      partitioned by dim_legislator_deliveries
  dim_legislator              partitioned by dim_legislator_deliveries     <- dim_legislator_changes
  dim_legislator_audit        partitioned by dim_legislator_deliveries     <- dim_legislator
  fct_committee_seat_changes  partitioned by fct_committee_seat_deliveries
  fct_committee_seat          partitioned by fct_committee_seat_deliveries <- dim_legislator, fct_committee_seat_changes
status
  scd_status                                                               <- dim_legislator, fct_committee_seat

jobs
  check_dim_legislator_job         dim_legislator_checklist_is_complete, check_dim_legislator
  check_fct_committee_seat_job     check_fct_committee_seat
  dim_legislator_job               load_dim_legislator
  fct_committee_seat_job           load_fct_committee_seat
  maintain_dim_legislator_job      maintain_dim_legislator
  maintain_fct_committee_seat_job  maintain_fct_committee_seat
  scd_status_job                   scd_status
schedules
  check_dim_legislator_schedule              0 7 * * *  check_dim_legislator_job
  check_fct_committee_seat_schedule          0 7 * * *  check_fct_committee_seat_job
  dim_legislator_schedule                    0 5 * * *  dim_legislator_job
  fct_committee_seat_schedule                30 5 * * *  fct_committee_seat_job
  maintain_dim_legislator_logs_schedule      0 4 1 * *  maintain_dim_legislator_job
  maintain_dim_legislator_schedule           0 3 * * 0  maintain_dim_legislator_job
  maintain_fct_committee_seat_logs_schedule  0 4 1 * *  maintain_fct_committee_seat_job
  maintain_fct_committee_seat_schedule       0 3 * * 0  maintain_fct_committee_seat_job
  scd_status_schedule                        0 6 * * *  scd_status_job
sensors
  alerts                                  a run fails
  dim_legislator_arrivals                 dim_legislator_job
  fct_committee_seat_arrivals             fct_committee_seat_job
  fct_committee_seat_rekey                fct_committee_seat_job
  maintain_dim_legislator_after_backfill  maintain_dim_legislator_job
  scd_partitions                          adds partitions
checks
  dim_legislator      audit_rebuilds_dimension, checklist_is_complete, current_versions_are_open, data_files_exist,
  dim_legislator      deletes_are_in_effect, deliveries_accepted, no_foreign_commits, no_unused_tables,
  dim_legislator      one_current_version, surrogate_keys_are_not_reserved, surrogate_keys_are_unique,
  dim_legislator      tables_are_append_only, upstream_has_applied_commits, version_numbers_are_consecutive,
  dim_legislator      windows_are_not_empty, windows_do_not_overlap, windows_have_both_ends
  fct_committee_seat  data_files_exist, deliveries_accepted, grain_is_unique, no_foreign_commits, surrogate_keys_exist,
  fct_committee_seat  surrogate_keys_fit_event_time, tables_are_append_only, upstream_has_applied_commits
"""


@requirement("F28", "F47")
def test_the_graph_of_the_example() -> None:
    repository = defs.get_repository_def()
    lines = [*_assets(), "", "jobs", *_jobs(repository), "schedules", *_schedules(repository), "sensors"]
    assert "\n".join([*lines, *_sensors(repository), "checks", *_checks()]) == GRAPH.strip("\n")


def _assets() -> list[str]:
    lines: list[str] = []
    specs = list(defs.resolve_all_asset_specs())
    rank = {spec.key: number for number, spec in enumerate(_upstream_first(specs))}
    for group in dict.fromkeys(str(spec.group_name) for spec in sorted(specs, key=lambda s: str(s.group_name))):
        lines.append(group)
        for spec in sorted((s for s in specs if s.group_name == group), key=lambda s: rank[s.key]):
            by = (
                f"partitioned by {spec.partitions_def.name}"
                if isinstance(spec.partitions_def, dg.DynamicPartitionsDefinition)
                else ""
            )
            upstream = ", ".join(sorted(dep.asset_key.to_user_string() for dep in spec.deps))
            arrow = f"<- {upstream}" if upstream else ""
            lines.append(f"  {spec.key.to_user_string():<27} {by:<44} {arrow}".rstrip())
    return lines


def _upstream_first(specs: list[dg.AssetSpec]) -> list[dg.AssetSpec]:
    placed: list[dg.AssetSpec] = []
    left = sorted(specs, key=lambda spec: spec.key.to_user_string())
    while left:
        done = {spec.key for spec in placed}
        ready = next(spec for spec in left if {dep.asset_key for dep in spec.deps} <= done)
        placed.append(ready)
        left.remove(ready)
    return placed


def _jobs(repository: dg.RepositoryDefinition) -> list[str]:
    jobs = sorted((job for job in repository.get_all_jobs() if not job.name.startswith("__")), key=lambda j: j.name)
    width = max(len(job.name) for job in jobs)
    nodes = {job.name: [n.name for n in job.graph.nodes] for job in jobs}
    return [f"  {name:<{width}}  {', '.join(sorted(ops, reverse=True))}" for name, ops in nodes.items()]


def _schedules(repository: dg.RepositoryDefinition) -> list[str]:
    schedules = sorted(repository.schedule_defs, key=lambda schedule: schedule.name)
    width = max(len(schedule.name) for schedule in schedules)
    return [f"  {s.name:<{width}}  {s.cron_schedule}  {s.job_name}" for s in schedules]


def _sensors(repository: dg.RepositoryDefinition) -> list[str]:
    sensors = sorted(repository.sensor_defs, key=lambda sensor: sensor.name)
    width = max(len(sensor.name) for sensor in sensors)
    others = {"alerts": "a run fails", "scd_partitions": "adds partitions"}
    started = {s.name: ", ".join(target.job_name for target in s.targets) or others[s.name] for s in sensors}
    return [f"  {name:<{width}}  {effect}" for name, effect in started.items()]


def _checks() -> list[str]:
    rules: dict[str, list[str]] = {}
    for checks in defs.asset_checks or ():
        for spec in checks.check_specs:
            rules.setdefault(spec.asset_key.to_user_string(), []).append(spec.name)
    width = max(map(len, rules))
    return [
        f"  {name:<{width}}  {line}"
        for name, names in rules.items()
        for line in textwrap.wrap(", ".join(sorted(names)), 98)
    ]
