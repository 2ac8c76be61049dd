"""Who may ask: by the name that the server is called by, and by the token.

A page of somebody else, open in a browser here, can have its own name lead to this machine
and so read what is served to this machine only. It cannot have its requests say another
name; that is why the name is looked at.
"""

from __future__ import annotations

import binascii
import ipaddress
import re
from base64 import b64decode
from dataclasses import dataclass
from hmac import compare_digest

from parsl_sizer.model import SizerError

from .answer import Refused

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of the machine itself."""
SHORTEST = 16
"""Letters of a token: fewer can be guessed."""
TOKEN_VARIABLE = "PARSL_SIZER_TOKEN"
HOW = f"start parsl-sizer serve with --token-file FILE, or with a token in ${TOKEN_VARIABLE}"
BEARER = ("WWW-Authenticate", 'Bearer realm="parsl-sizer"')
BASIC = ("WWW-Authenticate", 'Basic realm="parsl-sizer", charset="UTF-8"')
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]/@\s]+))(?::[0-9]{0,5})?")


class BadToken(SizerError):
    """A token that is no good; the message says how to make one."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets in those who call the server by one of `names`, and know the token where needed."""

    names: frozenset[str] = LOCAL
    token: str | None = None
    reading_needs_token: bool = False

    def check_host(self, host: str) -> None:
        """Raise `Refused` for another name than the server's."""
        found = _HOST.fullmatch(host)
        name = (found.group(1) or found.group(2)).lower() if found else ""
        if name not in self.names:
            raise Refused(
                403,
                f"This server is not called {host!r:.80}; if it should be, start parsl-sizer "
                "serve with --allow-host NAME.",
            )

    def check_reading(self, authorization: str) -> None:
        """Raise `Refused` for who may not read: browsers and programs may say the token."""
        if not self.reading_needs_token:
            return
        if not (self._knows(_bearer(authorization)) or self._knows(_password(authorization))):
            raise Refused(
                401, "To read here say the token: as a password, or as a bearer token.", BASIC
            )

    def check_posting(self, authorization: str) -> None:
        """Raise `Refused` for who may not post.

        A password is not enough: browsers send it along for any page that asks them to.
        """
        if self.token is None:
            raise Refused(403, f"Nothing can be posted here; to allow it, {HOW}.")
        if not self._knows(_bearer(authorization)):
            raise Refused(
                401, "To post here say the token, in a header Authorization: Bearer TOKEN.", BEARER
            )

    def _knows(self, said: bytes | None) -> bool:
        if said is None or self.token is None:
            return False
        return compare_digest(said, self.token.encode())


def _bearer(authorization: str) -> bytes | None:
    scheme, _, said = authorization.partition(" ")
    return said.strip().encode("utf-8", "replace") if scheme.lower() == "bearer" else None


def _password(authorization: str) -> bytes | None:
    scheme, _, said = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        _, colon, password = b64decode(said.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return password if colon else None


def token_in(text: str) -> str:
    """The token in a text that somebody wrote; raises `BadToken`."""
    token = text.strip()
    if len(token) < SHORTEST or not all("!" <= letter <= "~" for letter in token):
        raise BadToken(
            f"A token has {SHORTEST} letters or more, of ASCII and without spaces; make one with "
            'python -c "import secrets; print(secrets.token_urlsafe())".'
        )
    return token


def is_local(host: str) -> bool:
    """Whether only this machine can reach what listens there.

    >>> is_local("127.0.0.2"), is_local("localhost"), is_local("::"), is_local("login1")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
