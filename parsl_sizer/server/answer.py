"""What goes back to who asked."""

from __future__ import annotations

from typing import NamedTuple

from parsl_sizer.model import SizerError
from parsl_sizer.report.html import POLICY
from parsl_sizer.report.plain import json_text

HTML, JSON = "text/html; charset=utf-8", "application/json"
PROTECTION = (
    (
        "Content-Security-Policy",
        f"{POLICY}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
"""Headers of every answer: whatever a page holds, it runs nothing and tells nobody."""

Header = tuple[str, str]


class Answer(NamedTuple):
    """A status, and what is shown with it."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[Header, ...] = ()


class Refused(SizerError):
    """A request that is not answered; the message is for who asked."""

    def __init__(self, status: int, sentence: str, *headers: Header) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


def page(text: str, status: int = 200) -> Answer:
    """A page; what a name has that is no text must not keep the others from being read."""
    return Answer(status, HTML, text.encode("utf-8", "backslashreplace"))


def json_answer(value: object, status: int = 200) -> Answer:
    """A value as JSON."""
    return Answer(status, JSON, f"{json_text(value)}\n".encode())
