"""Addresses of Spark Connect servers, which may contain tokens."""

from __future__ import annotations

import re
import socket
import ssl

from scd_pipeline.errors import SetupError

BACKGROUND = "background"
"""The address that stands for the server of this user in the background."""

_DEFAULT_PORT = 15002
# PySpark repeats the parts of an address that it cannot parse, also a token. So it only gets addresses that match.
_ADDRESS = re.compile(
    r"sc://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?(/(;[^;=/?#\s]+=[^;=/?#\s]+)*)?"
)
_CONNECT_SECONDS = 10
_REMOVE_TLS = "remove use_ssl=true and the token from the address, or let the server use TLS"
_ADD_TLS = "check that a Spark Connect server listens there; if it uses TLS, append /;use_ssl=true to the address"
_TRUST_CERTIFICATE = (
    "check that its certificate names the host and is one that gRPC trusts, or name its root certificate in "
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
)


def redacted_address(url: str) -> str:
    """Return the host and port of an address for display; an empty address, and `background`, as they are.

    No part of a malformed address is shown, as any part of it may be a token.
    """
    if url in ("", BACKGROUND):
        return url
    server = _host_and_port(url)
    return "sc://{}:{}".format(*server) if server else "a malformed address (not shown, as it may contain a token)"


def require_server(url: str) -> None:
    """Verify within seconds that a server answers; Spark itself would retry for minutes.

    Raises:
        SetupError: The address is malformed, no server accepts connections at it, or the server does not use TLS as the
            address says.
    """
    server = _host_and_port(url)
    if server is None:
        raise SetupError("REMOTE_ADDRESS_INVALID", "--remote or SCD_REMOTE")
    try:
        socket.create_connection((server[0].strip("[]"), server[1]), timeout=_CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:  # a host name that no DNS can have is a UnicodeError
        reason = getattr(error, "strerror", None) or str(error)
        raise SetupError("SERVER_UNREACHABLE", redacted_address(url), reason=reason) from error
    _require_handshake(url, server)


def _require_handshake(url: str, server: tuple[str, int]) -> None:
    """Verify that the server speaks gRPC, with TLS or without it as the address says."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = DefaultChannelBuilder(url)
    has_tls = builder.use_ssl or (builder.token is not None and server[0] != "localhost")
    if has_tls:
        _require_tls(url, server)
    channel = builder.toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECONDS)
    except grpc.FutureTimeoutError as error:
        reason = f"no gRPC connection within {_CONNECT_SECONDS} s"
        fix = _TRUST_CERTIFICATE if has_tls else _ADD_TLS
        raise _handshake_error(url, reason, fix, has_tls=has_tls) from error
    finally:
        channel.close()


def _require_tls(url: str, server: tuple[str, int]) -> None:
    """Verify that the server uses TLS, whatever its certificate: gRPC would print its errors, and retry."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    host, port = server[0].strip("[]"), server[1]
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as connection:
            context.wrap_socket(connection, server_hostname=host).close()
    except OSError as error:
        reason = f"no TLS connection ({getattr(error, 'reason', None) or error.strerror or error})"
        raise _handshake_error(url, reason, _REMOVE_TLS, has_tls=True) from error


def _handshake_error(url: str, reason: str, fix: str, *, has_tls: bool) -> SetupError:
    expected = "with TLS, as the address has use_ssl=true or a token" if has_tls else "without TLS"
    return SetupError("SERVER_HANDSHAKE", redacted_address(url), reason=reason, expected=expected, fix=fix)


def _host_and_port(url: str) -> tuple[str, int] | None:
    """Return the host and port of a Spark Connect address, or None for any other text."""
    address = _ADDRESS.fullmatch(url)
    port = int((address and address["port"]) or _DEFAULT_PORT)
    return (address["host"], port) if address and 0 < port < 65536 else None
