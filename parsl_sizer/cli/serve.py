"""``parsl-sizer serve``: the archive as pages and JSON, for a team."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace

from parsl_sizer.archive.open import shown
from parsl_sizer.model import printable
from parsl_sizer.server.guard import is_local
from parsl_sizer.server.serve import guard_for, serve, token_from

from .archives import place
from .output import print_json, say, tell

LOG = "%(asctime)s %(name)s: %(message)s"


class LogFormat(logging.Formatter):
    """A format of log lines that are safe to print."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and a traceback if there is one."""
        return printable(super().format(record))


def run(arguments: Namespace) -> None:
    where = place(arguments)
    token = token_from(arguments.token_file)
    names = arguments.allow_host or ()
    guard = guard_for(arguments.host, names, token, is_private=arguments.private)
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormat(LOG))
    logging.basicConfig(handlers=[handler])
    if not is_local(arguments.host):
        say("There is no encryption: whoever is between you and a reader can read all of it.")

    def ready(address: str) -> None:
        facts = {"address": address, "archive": shown(where), "can_post": token is not None}
        if arguments.json:
            print_json(facts)
        else:
            tell(f"Serving {shown(where)} at {address}\nCtrl-C ends it.")
        sys.stdout.flush()  # the process that started this waits for the address

    serve(where, guard, host=arguments.host, port=arguments.port, ready=ready)
