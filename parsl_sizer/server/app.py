"""The application, as WSGI has it: addresses, methods, and errors as answers.

An archive is opened for each request and used by its thread alone; only posting opens it
to write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING

from parsl_sizer.archive import base
from parsl_sizer.archive.base import Archive, ArchiveError
from parsl_sizer.archive.open import Where, open_archive, shown
from parsl_sizer.model import logger_for

from . import reading
from .answer import PROTECTION, Answer, Refused, json_answer, page
from .guard import Guard
from .pages import error_page
from .posting import entries_of
from .request import Request, body_of, request_of

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

API = "/api/"
OUTCOMES = "/api/outcomes"
PATIENCE_S = 10.0
"""So long who posts waits for another: one post at a time is in memory."""
FAILED = "Something went wrong here; the log of the server says what."
ALLOWED = {"GET": ("GET", "HEAD"), "POST": ("POST",)}
LISTS = {
    "/": reading.page_of_runs,
    "/api/runs": reading.list_of_runs,
    "/api/attempts": reading.list_of_attempts,
}
ITEMS = {"/runs/": reading.page_of_run, "/api/runs/": reading.report_of_run}
log = logger_for(__name__)

Read = Callable[[Archive], Answer]


class App:
    """Shows the archive at a place to those whom the guard lets in."""

    def __init__(self, where: Where, guard: Guard) -> None:
        self._where = where
        self._guard = guard
        self._posting = Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = self._answer(environ)
        phrase = HTTPStatus(answer.status).phrase
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            *PROTECTION,
            *answer.headers,
        ]
        start_response(f"{answer.status} {phrase}", headers)
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [answer.body]

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        """The answer, whatever happens."""
        try:
            return self._act(request_of(environ), environ)
        except Refused as refused:
            status, sentence, headers = refused.status, str(refused), refused.headers
        except ArchiveError as error:
            status, sentence, headers = 503, str(error), ()
        except Exception:
            log.exception("A request could not be answered.")
            status, sentence, headers = 500, FAILED, ()
        path = str(environ.get("PATH_INFO", ""))
        if path.startswith(API):
            told = json_answer({"error": sentence})
        else:
            told = page(error_page(status, sentence, path))
        return told._replace(status=status, headers=headers)

    def _act(self, request: Request, environ: WSGIEnvironment) -> Answer:
        self._guard.check_host(request.host)
        if request.path == OUTCOMES:
            _check_method(request, "POST")
            self._guard.check_posting(request.authorization)
            return self._post(body_of(environ))
        self._guard.check_reading(request.authorization)
        read = self._reader(request)
        _check_method(request, "GET")
        with closing(open_archive(self._where, read_only=True)) as archive:
            return read(archive)

    def _reader(self, request: Request) -> Read:
        """What reads for this address."""
        if (listed := LISTS.get(request.path)) is not None:
            return lambda archive: listed(archive, shown(self._where), request)
        for beginning, told in ITEMS.items():
            wanted = request.path.removeprefix(beginning)
            if wanted and wanted != request.path:
                return lambda archive: told(archive, wanted, request)
        known = ", ".join((*LISTS, *(f"{beginning}RUN" for beginning in ITEMS), OUTCOMES))
        raise Refused(404, f"There is nothing at {request.path!r:.80}; there is {known}.")

    def _post(self, body: bytes) -> Answer:
        if not self._posting.acquire(timeout=PATIENCE_S):
            raise Refused(503, "Others are posting; try again in a minute.")
        try:
            entries = entries_of(body, time.time())
            with closing(open_archive(self._where, warn=log.warning)) as archive:
                new = archive.record(entries)
        except base.Refused as refused:
            raise Refused(400, f"{refused} Nothing was recorded.") from None
        finally:
            self._posting.release()
        return json_answer({"archive": shown(self._where), "taken": len(entries), "new": new})


def _check_method(request: Request, method: str) -> None:
    allowed = ALLOWED[method]
    if request.method not in allowed:
        listed = ", ".join(allowed)
        sentence = f"{request.path!r:.80} is for {listed}, not for {request.method!r:.40}."
        raise Refused(405, sentence, ("Allow", listed))
