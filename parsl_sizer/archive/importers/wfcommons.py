"""WfCommons instances: the tasks of a workflow that was run, in WfFormat (JSON).

Up to version 1.4 each task carries everything (`workflow.tasks`, `workflow.jobs` before
1.3); from 1.5 on what a task is (`workflow.specification`) and what it used
(`workflow.execution`) are apart, and an instance that was never run has only the former.

From 1.4 on memory is `memoryInBytes`. Before it was `memory` in KB, of 1000 bytes as
WfCommons' own migration has it. 0 is that of a task too short to be measured, and unknown
here. The sizes of a task's input files add up to its input size, if all are known.

The category is the task's name without the number at its end (``mProject_ID0000001`` is
``mProject``), or the program that it runs if its name begins with that; of Nextflow's
processes the last part, as the importer of its traces has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from parsl_sizer.archive.base import SAMPLED, Entry, Run
from parsl_sizer.model import TaskInfo

from .base import ImportFailed, Notes, amount
from .cells import finished, identity, kept, known, moment, positive

NAME = "wfcommons"
MOST_BYTES = 10**9
"""An instance is read as a whole; larger files are refused."""
KB = 1000.0
SAMPLING = frozenset({"nextflow", "makeflow"})
"""The systems that look at memory from time to time; Pegasus asks the kernel for the peak."""
NOT_A_TASK = "not a task with an id"
NEVER_RUN = "no record of its execution"
TIMES = ("%Y%m%dT%H%M%S%z", "%m-%d-%yT%H:%M:%S%z")
"""Times that are not in ISO 8601 and yet in published instances."""
_NUMBER_AT_END = re.compile(r"(?<=.)_(?:ID)?[0-9]+$")


class Place(NamedTuple):
    """Where a task stands in its workflow: whom it waits for, what it reads and writes.

    Bytes are those that were counted, or else the sizes of its files if all are known.
    """

    parents: tuple[str, ...]
    read_bytes: float | None
    written_bytes: float | None


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is an object with a version of the schema and a workflow."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return start == b"{" and b'"schemaVersion"' in head and b'"workflow"' in head


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The tasks that were run, one by one."""
    run_id = identity(NAME, path)
    instance = _loaded(path)
    workflow = _object(instance.get("workflow"))
    execution, specification = workflow.get("execution"), workflow.get("specification")
    ran = _object(execution) or workflow
    tasks = _list(ran.get("tasks") or ran.get("jobs"))
    if not tasks:
        place = "workflow.execution.tasks or workflow.tasks"
        raise ImportFailed(f"{path}: found no tasks in {place}, expected an executed workflow.")
    system = _object(instance.get("runtimeSystem") or instance.get("wms"))
    name, version = _text(system.get("name")), _text(system.get("version"))
    run = Run(
        run_id,
        _moment(ran.get("executedAt")) or 0.0,
        workflow=_text(instance.get("name")) or None,
        source=NAME,
        versions={name: version} if name and version else {},
    )
    described, sizes = _described(specification), _sizes(specification)
    for task in map(_object, tasks):
        task_id = _id(task, execution)
        if not _is_id(task_id):
            notes.skip(NOT_A_TASK)
            continue
        what = described.pop(task_id, task)
        if entry := _entry(run, str(task_id), task, what, sizes, name.lower(), notes):
            yield entry
    if described:
        notes.skip(NEVER_RUN, len(described))


def places(path: Path) -> dict[str, Place]:
    """Of each task, by its id in what `read` gives, where it stands in the workflow."""
    workflow = _object(_loaded(path).get("workflow"))
    execution, specification = workflow.get("execution"), workflow.get("specification")
    ran = _object(execution) or workflow
    described, sizes = _described(specification), _sizes(specification)
    tasks: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    names: dict[object, str] = {}
    for task in map(_object, _list(ran.get("tasks") or ran.get("jobs"))):
        if _is_id(task_id := _id(task, execution)):
            what = described.get(task_id, task)
            known_as = kept(str(task_id))
            tasks[known_as] = task, what
            names |= {name: known_as for name in (what.get("name"), what.get("id")) if _is_id(name)}
            names[task_id] = known_as
    parents: dict[str, dict[str, None]] = {task_id: {} for task_id in tasks}
    for task_id, (_, what) in tasks.items():
        for other in filter(_is_id, _list(what.get("parents"))):
            if other in names:
                parents[task_id][names[other]] = None
        for other in filter(_is_id, _list(what.get("children"))):
            if other in names:
                parents[names[other]][task_id] = None
    return {
        task_id: Place(
            tuple(parents[task_id]),
            _bytes(task, "readBytes", _files(what, sizes, "input")),
            _bytes(task, "writtenBytes", _files(what, sizes, "output")),
        )
        for task_id, (task, what) in tasks.items()
    }


def _described(specification: object) -> dict[Any, Mapping[str, Any]]:
    """What tasks are, by their ids, where that is apart from what they used."""
    whats = map(_object, _list(_object(specification).get("tasks")))
    return {what.get("id"): what for what in whats if _is_id(what.get("id"))}


def _sizes(specification: object) -> dict[Any, float | None]:
    files = map(_object, _list(_object(specification).get("files")))
    return {
        file.get("id"): _number(file.get("sizeInBytes")) for file in files if _is_id(file.get("id"))
    }


def _id(task: Mapping[str, Any], execution: object) -> Any:
    return task.get("id") if execution else task.get("name") or task.get("id")


def _entry(
    run: Run,
    task_id: str,
    task: Mapping[str, Any],
    what: Mapping[str, Any],
    sizes: Mapping[Any, float | None],
    system: str,
    notes: Notes,
) -> Entry | None:
    inputs = _files(what, sizes, "input")
    input_size = _sum(inputs)
    memory = _number(task.get("memoryInBytes"))
    memory = _number(task.get("memory"), KB) if memory is None else memory
    wall_s = _first(task, "runtimeInSeconds", "runtime")
    busy = _number(task.get("avgCPU"))
    started_at = _moment(task.get("executedAt"))
    machines = _list(task.get("machines")) or [task.get("machine")]
    command = _object(task.get("command"))
    program = _text(command.get("program"))
    words = [program, *map(_text, _list(command.get("arguments")))]
    info = TaskInfo(
        kept(task_id),
        _category(_text(what.get("name")) or _text(task_id), program, system),
        started_at or 0.0,
        {} if input_size is None else {"input_size": input_size},
        known(cores=positive(_first(task, "coreCount", "cores"))),
        command=kept(" ".join(filter(None, words))) or None,
        inputs=tuple(inputs),
    )
    return finished(
        run,
        info,
        notes,
        known(memory=positive(memory)),
        wall_s,
        None if busy is None or wall_s is None else busy / 100 * wall_s,
        host=_text(machines[0]) or None,
        launched_at=started_at,
        ended_at=None if started_at is None or wall_s is None else started_at + wall_s,
        layers=(SAMPLED,) if system in SAMPLING else (),
    )


def _files(
    what: Mapping[str, Any], sizes: Mapping[Any, float | None], link: str
) -> dict[str, float | None]:
    """The input or output files of a task, and what is known of their sizes."""
    names = [name for name in _list(what.get(f"{link}Files")) if _is_id(name)]
    files = {_text(name): sizes.get(name) for name in names}
    for file in map(_object, _list(what.get("files"))):
        if file.get("link") == link and _is_id(name := file.get("name")):
            files[_text(name)] = _first(file, "sizeInBytes", "size")
    return files


def _sum(files: Mapping[str, float | None]) -> float | None:
    """How large they are together; None if there are none, or one's size is not known."""
    known_sizes = [size for size in files.values() if size is not None]
    return sum(known_sizes) if files and len(known_sizes) == len(files) else None


def _bytes(
    task: Mapping[str, Any], counted: str, files: Mapping[str, float | None]
) -> float | None:
    found = _number(task.get(counted))
    return _sum(files) if found is None else found


def _category(name: str, program: str, system: str) -> str:
    """What a task is one of many of.

    >>> _category("map_map_sample_1_ID0000012", "map", "pegasus")
    'map'
    """
    name = _NUMBER_AT_END.sub("", name)
    if program and (name == program or name.startswith(f"{program}_")):
        return program
    return (name.split(".")[-1] or name) if system == "nextflow" else name


def _loaded(path: Path) -> Mapping[str, Any]:
    """The object in the file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ImportFailed(
                f"{path} is larger than {MOST_BYTES:.0e} bytes, which is the most that is read "
                "of a WfCommons instance; split it into several."
            )
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            instance = json.load(file)
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror or error}.") from None
    except json.JSONDecodeError as error:
        place = f"{path}, line {error.lineno}"
        raise ImportFailed(f"{place}: {error.msg}; expected a WfCommons instance.") from None
    except (ValueError, RecursionError):
        raise ImportFailed(
            f"{path}: found numbers or nesting without bounds, expected a WfCommons instance."
        ) from None
    if not isinstance(instance, dict) or not isinstance(instance.get("workflow"), dict):
        raise ImportFailed(f"{path}: found no workflow, expected a WfCommons instance.")
    return instance


def _moment(value: object) -> float | None:
    text = value if isinstance(value, str) else ""
    if (found := moment(text)) is not None:
        return found
    for form in TIMES:
        try:
            return amount(datetime.strptime(text, form).timestamp())
        except (ValueError, OverflowError):
            continue
    return None


def _number(value: object, unit: float = 1.0) -> float | None:
    return None if isinstance(value, bool) else amount(value, unit)


def _first(values: Mapping[str, Any], *names: str) -> float | None:
    """The first of these that is a number."""
    return next((found for name in names if (found := _number(values.get(name))) is not None), None)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and value != ""


def _text(value: object) -> str:
    return kept(str(value)) if isinstance(value, str | int) else ""
