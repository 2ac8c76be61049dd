"""The tables of an archive, and how older ones are brought up to date.

A migration is a list of statements that take an archive from one version to the next, in
one transaction. They are in SQLite's words; `postgres` puts its own in their place. What
has been released is never changed: changes are added at the end.
"""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE runs (
            run INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id TEXT NOT NULL UNIQUE,
            started_at REAL NOT NULL,
            user_name TEXT,
            workflow TEXT,
            checksum TEXT,
            host TEXT,
            source TEXT NOT NULL,
            versions TEXT,
            labels TEXT
        )""",
        """CREATE TABLE attempts (
            id INTEGER PRIMARY KEY,
            run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
            task TEXT NOT NULL,
            number INTEGER NOT NULL,
            category TEXT NOT NULL,
            ending TEXT NOT NULL,
            submitted_at REAL NOT NULL,
            launched_at REAL NOT NULL,
            ended_at REAL NOT NULL,
            wall_s REAL NOT NULL,
            cpu_s REAL,
            allocated_cores REAL,
            allocated_memory REAL,
            allocated_disk REAL,
            allocated_gpus REAL,
            peak_cores REAL,
            peak_memory REAL,
            peak_disk REAL,
            peak_gpus REAL,
            exhausted TEXT,
            flags INTEGER NOT NULL,
            why TEXT,
            host TEXT,
            node TEXT,
            isolation TEXT,
            layers TEXT,
            code_hash TEXT,
            command TEXT,
            features TEXT,
            requested TEXT,
            labels TEXT,
            inputs TEXT,
            opt_outs TEXT,
            priority REAL,
            series BLOB,
            UNIQUE (run, task, number)
        )""",
        "CREATE INDEX attempts_by_category ON attempts (category, ended_at)",
        # What searches look at is in the indexes, so that what does not match is not read.
        """CREATE INDEX attempts_by_time
            ON attempts (ended_at, run, ending, peak_memory, wall_s, host, command)""",
        "CREATE INDEX attempts_by_run ON attempts (run, ended_at, category)",
        """CREATE TABLE task_labels (
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
            task TEXT NOT NULL,
            PRIMARY KEY (name, value, run, task)
        )""",
        """CREATE TABLE run_labels (
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
            PRIMARY KEY (name, value, run)
        )""",
        """CREATE TABLE task_inputs (
            path TEXT NOT NULL,
            run INTEGER NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
            task TEXT NOT NULL,
            PRIMARY KEY (path, run, task)
        )""",
    ),
    (
        """CREATE TABLE node_profiles (
            id INTEGER PRIMARY KEY,
            executor TEXT NOT NULL,
            host TEXT NOT NULL,
            measured_at REAL NOT NULL,
            features TEXT NOT NULL,
            methods TEXT NOT NULL,
            UNIQUE (executor, host, measured_at)
        )""",
    ),
    (
        """CREATE TABLE waits (
            id INTEGER PRIMARY KEY,
            run_id TEXT NOT NULL,
            place TEXT NOT NULL,
            queue TEXT NOT NULL,
            nodes INTEGER NOT NULL,
            cores INTEGER NOT NULL,
            memory REAL,
            asked_at REAL NOT NULL,
            wait_s REAL NOT NULL,
            at_most INTEGER NOT NULL
        )""",
        "CREATE INDEX waits_by_place ON waits (place, id)",
    ),
    ("ALTER TABLE attempts ADD COLUMN grown_from REAL",),
)
VERSION = len(MIGRATIONS)
