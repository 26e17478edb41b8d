"""The jars and settings by which Spark reads and writes S3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scd_pipeline.environment import Environment
from scd_pipeline.spark.configuration import s3_settings
from scd_pipeline.spark.jars import S3_LOCK_FILE, find_optional_jars, jar_folder, jar_name, read_lock
from scd_pipeline_tests.object_store import serve

HAS_JARS = jar_folder(Environment.from_env().cache_folder, S3_LOCK_FILE).is_dir()
DECLARATION = """\
dimension: dim_customer
business_key: id
sources: {crm: {snapshot: "s3a://landing/customers_{date}.csv"}}
attributes: {city: 2}
single_scd_type: true
"""


def test_the_jars_for_s3_are_used_once_they_are_downloaded(tmp_path: Path) -> None:
    assert find_optional_jars(tmp_path) == ()
    folder = jar_folder(tmp_path, S3_LOCK_FILE)
    assert folder != jar_folder(tmp_path)
    names = {jar_name(coordinates) for coordinates in read_lock(S3_LOCK_FILE)}
    assert "hadoop-aws-3.5.0.jar" in names
    assert not any(name.startswith("bundle-") for name in names)


def test_the_jars_are_of_the_hadoop_of_spark() -> None:
    import pyspark

    (hadoop,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    version = hadoop.stem.removeprefix("hadoop-client-api-")
    assert f"org.apache.hadoop:hadoop-aws:{version}" in read_lock(S3_LOCK_FILE)


def test_spark_uses_the_endpoint_and_the_region_of_the_environment() -> None:
    """Credentials are not in the settings, which Spark shows."""
    variables = {"AWS_ENDPOINT_URL": "http://localhost:9000", "AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "x"}
    assert s3_settings(variables) == {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": "http://localhost:9000",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
    }
    assert s3_settings({"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}) == {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint": "http://b",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    assert list(s3_settings({})) == ["spark.hadoop.fs.s3.impl"]


@pytest.mark.slow(40)
@pytest.mark.process
@pytest.mark.skipif(not HAS_JARS, reason="`scd setup --s3` has not downloaded the jars for S3")
def test_a_load_reads_a_bucket_and_writes_another_one(tmp_path: Path) -> None:
    """With the jars, Spark reads the objects themselves."""
    (tmp_path / "dim_customer.yaml").write_text(DECLARATION, encoding="utf-8")
    with serve() as store:
        store.reset("landing", "lake")
        store.put("landing", "customers_2024-01-01.csv", "id,city\n1,Graz\n2,Bonn\n")

        def scd(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "scd_pipeline", *arguments]
            variables = {**os.environ, "SCD_SERVER": "off", "SCD_WAREHOUSE": "s3a://lake/warehouse"}
            done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done

        loaded = scd("load", "dim_customer.yaml")
        assert "2024-01-01" in loaded.stdout
        assert "[ONE_SPARK] warehouse s3a://lake/warehouse" in loaded.stderr
        rows = scd("history", "dim_customer", "id=1", "--format", "csv", "--declarations", "dim_customer.yaml").stdout
        tables = {key.split("/")[1] for key in store.keys("lake")}
    assert "Graz" in rows
    assert {"dim_customer", "dim_customer_changes", "dim_customer_audit"} <= tables
