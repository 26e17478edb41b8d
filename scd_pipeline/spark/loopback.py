"""The channel to a Spark Connect server of this machine that requires a token."""

from __future__ import annotations

import contextlib

import grpc  # type: ignore[import-untyped]
from pyspark.sql.connect.client import DefaultChannelBuilder

_ANSWER_SECONDS = 30


class LoopbackChannelBuilder(DefaultChannelBuilder):
    """A channel that sends the token to the address itself, without TLS.

    PySpark sends tokens without TLS only to `localhost`. That name has several addresses, and at one of them another
    user may listen.
    """

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url)
        self.set(self.PARAM_TOKEN, token)

    def toChannel(self) -> grpc.Channel:  # noqa: N802 (PySpark's name)
        """Return the channel, once the server answers. Its credentials are only sent to an address of this machine.

        Raises:
            TimeoutError: The server does not answer. PySpark would wait for ever if the server accepts connections.
        """
        token = grpc.access_token_call_credentials(self.token)
        channel: grpc.Channel = self._secure_channel(
            self.endpoint, grpc.composite_channel_credentials(grpc.local_channel_credentials(), token)
        )
        with contextlib.ExitStack() as stack:
            stack.callback(channel.close)
            try:
                grpc.channel_ready_future(channel).result(timeout=_ANSWER_SECONDS)
            except grpc.FutureTimeoutError:
                raise TimeoutError(f"no answer within {_ANSWER_SECONDS} s") from None
            stack.pop_all()
        return channel
