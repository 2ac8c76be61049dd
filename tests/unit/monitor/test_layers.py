"""What measures and limits here, and why."""

from __future__ import annotations

import pytest

from parsl_sizer.monitor import layers, node, probe


def test_every_layer_says_what_it_does_and_why_it_is_or_is_not_active() -> None:
    found = layers.here()
    assert [layer.name.partition("-")[0] for layer in found] == [
        "proc",
        "hwm",
        "pss",
        "shmem",
        "adoption",
        "cgroup",
        "ledger",
    ]
    assert all(layer.does and layer.why for layer in found)
    assert all(layer.is_active for layer in found[:5])
    assert layers.isolation() == "runner"


def test_elsewhere_than_on_linux_it_is_said_that_nothing_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "IS_LINUX", False)
    monkeypatch.setattr(probe, "read", lambda path: None)
    monkeypatch.setattr(probe, "write", lambda path, text: False)
    monkeypatch.setattr(probe, "_prctl", lambda option, value: False)
    node.can_be_supervised.cache_clear()
    try:
        found = {layer.name: layer for layer in layers.here()}
        assert not any(found[name].is_active for name in ("proc", "hwm", "pss", "adoption"))
        assert "getrusage" in found["proc"].why
        assert "never stopped" in found["proc"].why
        assert layers.isolation() == "inline"
    finally:
        node.can_be_supervised.cache_clear()


def test_the_facts_of_a_node_are_what_a_worker_may_use() -> None:
    facts = node.facts()
    assert set(facts) == {"cores", "memory", "disk"}
    assert 1 <= facts["cores"] <= 4096
    assert all(amount > 0 for amount in facts.values())


def test_facts_that_cannot_be_read_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "_until", 0.0)
    monkeypatch.setattr(node, "disk", lambda: None)
    try:
        assert "disk" not in node.facts()
    finally:
        node._until = 0.0


def test_without_a_group_it_says_which_files_in_memory_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layers.cgroup, "room", lambda found: (None, "of the test"))

    def why() -> str:
        return next(layer.why for layer in layers.here() if layer.name == "shmem")

    monkeypatch.setattr("tempfile.tempdir", "/dev/shm")
    assert "open for writing in /proc/PID/fd, and all files in the task's TMPDIR" in why()
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    assert "and /proc is no tmpfs: what is written and closed elsewhere" in why()
