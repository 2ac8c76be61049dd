"""The command line: one module per command, each parses, calls the library and prints.

`main` reads the arguments and hands them to the command. Whatever goes wrong on
the user's side is one sentence on standard error and exit status 2. What is heavy
is imported by the command that needs it, so that help comes at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from parsl_sizer.model import SizerError

FAULTY_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and give its exit status."""
    from .output import say
    from .parser import command_line

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    parser = command_line()
    try:
        arguments = parser.parse_args(argv)
        if arguments.run is None:
            parser.print_help()
        else:
            arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse: help, version, or an argument it refused
        return stop.code if isinstance(stop.code, int) else 0
    except SizerError as error:
        say(str(error))
        return FAULTY_INPUT
    except BrokenPipeError:
        # Whoever read the output has enough of it; Python must not find out again on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        say(f"Cannot write{place}: {(error.strerror or str(error)).lower()}.")
        return FAULTY_INPUT
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    return 0
