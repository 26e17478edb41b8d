"""What the environment says of proxies and certificates, told to a Java."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from scd_pipeline.spark import setup
from scd_pipeline.spark.network import java_options, key_store

# A certificate that signs itself, and is good for nothing else.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdDCCARmgAwIBAgIUbZIt0wPmfk0Kzf6gYQrd6fhhbigwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAeFw0yNjExMjIwMDI2MDZaFw0zNjExMTkwMDI2MDZa
MA8xDTALBgNVBAMMBHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ3fcyl
Gi/WuTRwRvFU+KXo0j1yJII2i7PsLYckywZfq9qoMTVod18PF5V6dpCdWfS79zf5
w1+0hAElck972+a9o1MwUTAdBgNVHQ4EFgQUoH6hVawfhiwHyM6Evxv3aycwV58w
HwYDVR0jBBgwFoAUoH6hVawfhiwHyM6Evxv3aycwV58wDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNJADBGAiEA3fpvoV+xD9hPmnWiTrFEW7mHo/t2CJbbyEnA
QoSzdDoCIQDsbBfVVYl/HnZbEu6wDKFQ0mpY3ADxrLLJwQgGngW9WQ==
-----END CERTIFICATE-----
"""
DER = base64.b64decode("".join(CERTIFICATE.splitlines()[1:-1]))


def test_proxies_are_those_of_the_environment(tmp_path: Path) -> None:
    told = {"https_proxy": "http://proxy.example:3128", "HTTP_PROXY": "proxy.example", "no_proxy": "localhost,.example"}
    assert java_options(told, tmp_path) == [
        "-Dhttp.proxyHost=proxy.example",
        "-Dhttp.proxyPort=80",
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.example",
    ]
    assert java_options({"no_proxy": "localhost"}, tmp_path) == []


def test_certificates_are_those_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "bundle.pem").write_text(f"# ours\n{CERTIFICATE}\n{CERTIFICATE}")
    options = java_options({"SSL_CERT_FILE": str(tmp_path / "bundle.pem")}, tmp_path)
    store = tmp_path / "certificates.jks"
    assert options[0] == f"-Djavax.net.ssl.trustStore={store}"
    assert store.read_bytes() == key_store([DER] * 2)


def test_java_reads_the_store(tmp_path: Path, installation: setup.Installation) -> None:
    keytool = installation.java.program.resolve().with_name("keytool")
    if not keytool.is_file():
        pytest.skip("this Java comes without keytool")
    (tmp_path / "store.jks").write_bytes(key_store([DER]))
    command = [str(keytool), "-list", "-keystore", str(tmp_path / "store.jks"), "-storepass", "changeit"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "certificate 0" in listed.stdout, listed.stdout + listed.stderr
    assert "trustedCertEntry" in listed.stdout
