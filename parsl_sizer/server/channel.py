"""A connection of waitress with a deadline for the whole request."""

from __future__ import annotations

from waitress.channel import HTTPChannel


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection whose timeout counts from where a request began, not from its last byte.

    With the latter a client that sends a byte a second holds its connection for ever.
    """

    last_activity: float

    def handle_read(self) -> None:
        """Receive a part of a request, or several."""
        had_begun, last_activity = self._has_begun(), self.last_activity
        super().handle_read()
        begins = self._has_begun() and not had_begun
        if not begins and not self.requests:
            self.last_activity = last_activity

    def _has_begun(self) -> bool:
        """Return whether there is a part of a request; blank lines may come before one."""
        request = self.request
        return request is not None and bool(request.headers_finished or request.header_plus.strip())
