"""Who has subscribed to which channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .protocol import Push

if TYPE_CHECKING:
    from .session import RedisSession


class Subscriptions:
    """The channels of one server."""

    def __init__(self) -> None:
        self._by_channel: dict[bytes, dict[RedisSession, None]] = {}

    def subscribe(self, session: RedisSession, channels: list[bytes]) -> None:
        for channel in channels:
            session.channels[channel] = None
            self._by_channel.setdefault(channel, {})[session] = None
            session.write(Push((b"subscribe", channel, len(session.channels))))

    def unsubscribe(self, session: RedisSession, channels: list[bytes]) -> None:
        left = channels or list(session.channels)
        for channel in left:
            self._drop(session, channel)
            session.write(Push((b"unsubscribe", channel, len(session.channels))))
        if not left:
            session.write(Push((b"unsubscribe", None, 0)))

    def forget(self, session: RedisSession) -> None:
        """It has ended."""
        for channel in list(session.channels):
            self._drop(session, channel)

    def publish(self, channel: bytes, message: bytes) -> int:
        """Answers how many were told."""
        told = list(self._by_channel.get(channel, ()))
        for session in told:
            session.write(Push((b"message", channel, message)))
        return len(told)

    def clear(self) -> None:
        self._by_channel.clear()

    def _drop(self, session: RedisSession, channel: bytes) -> None:
        session.channels.pop(channel, None)
        listeners = self._by_channel.get(channel, {})
        listeners.pop(session, None)
        if not listeners:
            self._by_channel.pop(channel, None)
