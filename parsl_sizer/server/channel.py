"""A connection of waitress with a deadline for the whole request."""

from __future__ import annotations

from waitress.channel import HTTPChannel


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection whose timeout counts from where a request began, not from its last byte.

    With the latter a client that sends a byte a second holds its connection for ever.
    """

    last_activity: float

    def handle_read(self) -> None:
        """Receive a part of a request."""
        request, last_activity = self.request, self.last_activity
        super().handle_read()
        if request is not None and self.request is request:
            self.last_activity = last_activity
