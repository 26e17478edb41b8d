"""The channel to a Spark Connect server of this machine that requires a token."""

from __future__ import annotations

import grpc  # type: ignore[import-untyped]
from pyspark.sql.connect.client import DefaultChannelBuilder


class LoopbackChannelBuilder(DefaultChannelBuilder):
    """A channel that sends the token to the address itself, without TLS.

    PySpark sends tokens without TLS only to `localhost`. That name has several addresses, and at one of them another
    user may listen.
    """

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url)
        self.set(self.PARAM_TOKEN, token)

    def toChannel(self) -> grpc.Channel:  # noqa: N802 (PySpark's name)
        """Return the channel; its credentials are only sent to an address of this machine."""
        token = grpc.access_token_call_credentials(self.token)
        return self._secure_channel(
            self.endpoint, grpc.composite_channel_credentials(grpc.local_channel_credentials(), token)
        )
