"""How exact is the monitor, and does it stop what it should and nothing else?

Each case runs in a process of its own, as in a worker, once per mode of isolation; beside
it under Parsl's monitoring, looking every 0.1 s (its default is 30 s), and under Work
Queue's resource_monitor, looking every second (its shortest), if that is installed. What
those two say of a call that does nothing is taken off, since they count the interpreter.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import Event, get_context
from pathlib import Path
from typing import Any

from monitor_cases import CASES, MB, Case, large_file, touch

SLACK_MB = 5.0
"""What is off by less is right, whatever its share."""
MODES = ("runner", "fork", "inline")
OTHERS = ("parsl", "resource_monitor")
LIMIT = 100 * MB
NEAR, NEAR_S = 0.95, 0.3
"""Tasks that must not be stopped hold this much of their limit, longer than a breach lasts."""
BREACH, BREACH_S = 1.3, 0.25
"""Those that must: so much of it for 0.2 s and one pause between two samples."""
CODEC = (
    "parsl.serialize:unpack_apply_message",
    "parsl.serialize:serialize",
    "parsl.app.errors:RemoteExceptionWrapper",
)


def order(isolation: str, category: str, limit: float | None = None) -> dict[str, Any]:
    limits = {} if limit is None else {"memory": limit}
    return {
        "isolation": isolation,
        "codec": CODEC,
        "limits": limits,
        "enforce": True,
        "category": category,
    }


def supervised(func: Callable[..., Any], *args: Any, isolation: str, limit: float | None) -> Any:
    """A call as an executor has it made: its report."""
    from parsl.serialize import pack_apply_message

    from parsl_sizer.monitor import travel, wire

    if isolation == "runner":
        packed = pack_apply_message(func, args, {})
        report: dict[str, Any] = wire.opened(
            travel.run_packed(order("runner", func.__name__, limit), packed)
        )
        return report
    return travel.wrapped(func)(order(isolation, func.__name__, limit), *args)


def ours(case: Case, isolation: str) -> tuple[int, float]:
    """The true peak and the measured one."""
    from parsl.serialize import deserialize

    run = functools.partial(supervised, isolation=isolation, limit=None)
    if case.before is not None:
        run(case.before)
    report = run(case.func)
    assert report["ending"] == "returned", report
    payload = report["payload"]
    value = report["result"] if payload is None else deserialize(payload)
    return value, report["peak"]["memory"]


class Listener:
    """Takes the messages of Parsl's monitoring instead of its hub."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def create_sender(self) -> Listener:
        return self

    def send(self, message: tuple[Any, dict[str, Any]]) -> None:
        self.connection.send(message[1]["psutil_process_memory_resident"])


def parsls(case: Case) -> tuple[int, float]:
    """The same, with the process that Parsl starts beside a task."""
    from parsl.monitoring.remote import monitor

    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    stop = Event()
    seen = [0.0]

    def listen() -> None:
        while (value := receiver.recv()) is not None:
            seen.append(value)

    listening = threading.Thread(target=listen)
    arguments = (os.getpid(), 0, 0, Listener(sender), "", 0, 0.1, "", stop)
    beside = context.Process(target=monitor, args=arguments, daemon=True)
    beside.start()
    listening.start()
    if case.before is not None:
        case.before()
        seen.clear()  # it is told for a task at a time
    value = case.func()
    stop.set()
    beside.join()
    sender.send(None)
    listening.join()
    return value, max(seen)


def one_case(name: str, mode: str) -> None:
    """In a process of its own: print the true peak and the measured one."""
    [case] = [case for case in CASES if case.name == name]
    if mode == "parsl":
        found = parsls(case)
    elif mode in ("resource_monitor", "bare"):
        # The former is around this process: under Work Queue no other call was in it before.
        found = case.func(), 0
    else:
        found = ours(case, mode)
    print(json.dumps(found))


def measured(name: str, mode: str) -> tuple[int, float]:
    """Run a case in a new interpreter."""
    command = [sys.executable, str(Path(__file__).resolve()), "--case", name, "--mode", mode]
    with tempfile.TemporaryDirectory() as folder:
        if mode == "resource_monitor":
            command = ["resource_monitor", "-i", "1", "-O", "seen", "--", *command]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if ran.returncode:
            raise SystemExit(f"The case {name!r} failed under {mode}: {ran.stderr}")
        truth, amount = json.loads(ran.stdout.splitlines()[-1])
        if mode == "resource_monitor":
            summary = Path(folder, "seen.summary").read_text()
            text = re.findall(r'"memory":\s*\[\s*([\d.]+)', summary)[0]  # "MB" of 2**20
            amount = float(text) * 2**20
    return truth, amount


@dataclass
class Measured:
    """A case, and what each mode says of it."""

    case: str
    bar: float
    true_mb: float = 0.0
    mb: dict[str, float] = field(default_factory=dict)

    def missed(self) -> list[str]:
        return [mode for mode in MODES if mode in self.mb and self.is_off(mode)]

    def is_off(self, mode: str) -> bool:
        slack = max(self.bar * self.true_mb, SLACK_MB)
        return abs(self.mb[mode] - self.true_mb) > slack


def accuracy(repeats: int, advance: Callable[[int], None]) -> list[Measured]:
    """All cases in all modes; of several runs the one that is worst."""
    modes = [mode for mode in (*MODES, *OTHERS) if mode in MODES or is_there(mode)]
    rows = [Measured(case.name, case.bar) for case in CASES]
    idle: dict[str, float] = {}
    for row in rows:
        row.true_mb = measured(row.case, "bare")[0] / MB
        for mode in modes:
            runs = [measured(row.case, mode)[1] for _ in range(repeats)]
            amount = max(runs, key=lambda amount: abs(amount / MB - row.true_mb))
            nothing = idle.setdefault(mode, amount) if mode in OTHERS else 0.0
            row.mb[mode] = (amount - nothing) / MB
            advance(1)
    return rows


def is_there(mode: str) -> bool:
    return mode == "parsl" or shutil.which(mode) is not None


def hold(size: int, seconds: float) -> None:
    data = touch(size)
    time.sleep(seconds)
    del data


def endings(count: int, at_once: int, size: float, seconds: float, advance: Any) -> list[str]:
    """How so many calls end that hold a size for some time, in warm runners, several at once."""

    def one(_: int) -> str:
        report = supervised(hold, int(size), seconds, isolation="runner", limit=LIMIT)
        advance(1)
        return str(report["ending"])

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, range(count)))


def accuracy_table(rows: list[Measured]) -> Any:
    from printing import table, verdict

    modes = list(rows[0].mb)
    made = table(["MB"], ["true", *modes])
    for row in rows:
        shown = [f"{row.mb[mode]:.0f}{'' if not row.is_off(mode) else ' *'}" for mode in modes]
        made.add_row(row.case, f"{row.true_mb:.0f}", *shown, verdict(row.missed()))
    return made


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=1, help="runs of each case")
    parser.add_argument("--tasks", type=int, default=1000, help="tasks at 95 %% of their limit")
    parser.add_argument("--breaches", type=int, default=100, help="breaches that last 0.2 s")
    parser.add_argument("--at-once", type=int, default=4, help="of these, so many at a time")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    asked = _arguments()
    if asked.case:
        one_case(asked.case, asked.mode)
        return
    from printing import Line, described, lines_table, machine

    from parsl_sizer.cli.output import console, print_json, progress

    with tempfile.TemporaryDirectory() as folder:
        os.environ["LARGE_FILE"] = str(Path(folder, "large"))
        large_file().write_bytes(bytes(400 * MB))
        modes = len(MODES) + sum(is_there(mode) for mode in OTHERS)
        with progress("cases", len(CASES) * modes) as advance:
            rows = accuracy(asked.repeats, advance)
    with progress("tasks near their limit", asked.tasks) as advance:
        near = endings(asked.tasks, asked.at_once, NEAR * LIMIT, NEAR_S, advance)
    with progress("breaches", asked.breaches) as advance:
        above = endings(asked.breaches, asked.at_once, BREACH * LIMIT, BREACH_S, advance)
    lines = [
        Line(f"stopped of {len(near)} tasks at 95 % of their limit", near.count("stopped"), 0, ""),
        Line(f"not stopped of {len(above)} breaches", len(above) - above.count("stopped"), 0, ""),
    ]
    if asked.json:
        print_json(
            {
                "machine": machine(),
                "cases": [asdict(row) | {"missed": row.missed()} for row in rows],
                "others": [asdict(line) | {"missed": line.is_missed} for line in lines],
            }
        )
        return
    out = console()
    out.print(described())
    out.print(accuracy_table(rows))
    out.print("* off by more than 2 % and 5 MB, or 10 % where there are several processes")
    missing = [mode for mode in OTHERS if not is_there(mode)]
    if missing:
        out.print(f"Not installed, and so not compared: {', '.join(missing)}.")
    out.print(lines_table(lines))


if __name__ == "__main__":
    main()
