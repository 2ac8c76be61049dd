"""Inputs in ProxyStore: Colmena's own are there once, so a task is never tried again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("colmena", reason="Colmena is not installed here")

import colmena_methods as methods
from colmena_runs import Campaign, campaign
from proxystore.connectors.file import FileConnector
from proxystore.store import Store, register_store, unregister_store
from sizer_runs import sized

THRESHOLD = 10_000
DATA = b"x" * 50_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("store")
    with Store(f"test-{uuid.uuid4().hex}", FileConnector(str(folder))) as made:
        register_store(made, exist_ok=True)
        yield made
        unregister_store(made)


@pytest.fixture
def server(store: Any, tmp_path: Path) -> Iterator[Campaign]:
    served = [methods.summed, methods.summed_if_there_is_memory, methods.summed_until_killed]
    executor = sized(node="cores=2,memory=800MB")
    with campaign(
        executor,
        served,
        tmp_path,
        proxystore_name=store.name,
        proxystore_threshold=THRESHOLD,
        keep_inputs=False,
    ) as made:
        yield made


def endings(result: Any) -> list[str]:
    return [attempt["ending"] for attempt in result.task_info["sizing"]["attempts"]]


def test_a_task_whose_inputs_are_there_once_is_run_once(
    server: Campaign, store: Any, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    result = server.asked("summed", DATA, 300, str(notes))
    assert result.success, result.failure_info
    assert result.value == len(DATA) + 300
    sizing = result.task_info["sizing"]
    assert endings(result) == ["done"]
    assert sizing["peak"]["memory"] > 300e6 > sizing["allocation"]["memory"]
    assert server.said().count("ProxyStore") == 1
    assert "'summed'" in server.said()

    notes.unlink()
    result = server.asked("summed_if_there_is_memory", DATA, 80, str(notes))
    assert not result.success
    assert "ResourcesExhausted" in result.failure_info.exception
    assert endings(result) == ["exhausted"]
    assert len(notes.read_text()) == 1

    notes.unlink()
    result = server.asked("summed_until_killed", DATA, str(notes))
    assert not result.success
    assert "WorkerLost" in result.failure_info.exception
    assert endings(result) == ["lost"]
    assert len(notes.read_text()) == 1

    # Small inputs are in no store, and a proxy that somebody else has made stays there.
    notes.unlink()
    result = server.asked("summed_until_killed", b"little", str(notes))
    assert result.value == len(b"little") + len("survived")
    assert endings(result) == ["lost", "done"]
    notes.unlink()
    result = server.asked("summed_until_killed", store.proxy(DATA), str(notes))
    assert result.success, result.failure_info
    assert result.value == len(DATA) + len("survived")
    assert endings(result) == ["lost", "done"]
