"""Scratch tables in folders of this machine, however their paths are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scd_pipeline.delta.scratch import remove_abandoned_tables, scratch_table_path


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_scratch_tables_of_this_machine_are_removed(tmp_path: Path, scheme: str) -> None:
    folder = tmp_path / "warehouse" / "_scratch"
    with scratch_table_path(f"{scheme}{folder}") as path:
        assert path.startswith(f"{scheme}{folder}/")
        Path(folder, path.rpartition("/")[2]).mkdir(parents=True)
    assert list((tmp_path / "warehouse").iterdir()) == []

    (folder / "killed").mkdir(parents=True)
    os.utime(folder / "killed", (0, 0))
    remove_abandoned_tables(f"{scheme}{folder}")
    assert list((tmp_path / "warehouse").iterdir()) == []


def test_a_bucket_is_not_a_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3a:" / "bucket" / "_scratch" / "killed").mkdir(parents=True)
    os.utime(tmp_path / "s3a:" / "bucket" / "_scratch" / "killed", (0, 0))
    remove_abandoned_tables("s3a://bucket/_scratch")
    assert (tmp_path / "s3a:" / "bucket" / "_scratch" / "killed").exists()
