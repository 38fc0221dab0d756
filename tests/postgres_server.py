"""A real PostgreSQL server for tests: in a temporary folder, on a socket of its own, gone with the process.

    from tests.postgres_server import server
    url = server().database()             # a fresh, empty one: postgresql://tester@/d0123…?host=/tmp/…
    url = server().url("postgres", driver="postgresql+psycopg")

The role ``tester`` may do everything and needs no password; ``locked`` may only log in, and only with one.
"""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TESTER, LOCKED, PASSWORD = "tester", "locked", "a secret of our own"
ACCESS = f"local all {LOCKED} scram-sha-256\nlocal all all trust\n"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "max_connections": "50",
    "autovacuum": "off",
    "log_min_messages": "panic",
}
UNTIL_WE_LEAVE = '"$@" & cat > /dev/null; kill -QUIT $!; wait; rm -rf "$0"'
"""The server and its folder are there for as long as we hold the other end of its standard input, however we end."""


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs; ``folder`` holds its socket."""

    folder: Path

    def url(self, database: str = "postgres", *, user: str = TESTER, driver: str = "postgresql") -> str:
        """Where a database is, for libpq or (``driver="postgresql+psycopg"``) for SQLAlchemy."""
        return f"{driver}://{user}@/{database}?host={self.folder}"

    def database(self, *, encoding: str = "UTF8", driver: str = "postgresql") -> str:
        """The URL of a fresh and empty database."""
        name = f"d{uuid.uuid4().hex}"
        self.run(self.url(), f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")
        return self.url(name, driver=driver)

    @staticmethod
    def connect(url: str) -> Any:
        """A connection whose statements are done at once."""
        return pytest.importorskip("psycopg").connect(url, autocommit=True)

    def run(self, url: str, *statements: str) -> None:
        """Do these in a database."""
        with self.connect(url) as connection:
            for statement in statements:
                connection.execute(statement)


@functools.cache
def server() -> Server:
    """The one server of this process. Skips where PostgreSQL is not installed, but not in CI: there it must be."""
    binaries = _binaries()
    if binaries is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no PostgreSQL here: apt-get install postgresql, as .ci/run does")
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    as_user = _owner(folder)
    command = [
        binaries / "initdb",
        "-D",
        folder / "data",
        "-U",
        TESTER,
        "-A",
        "trust",
        "--locale=C",
        "-E",
        "UTF8",
        "-N",
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, **as_user)
    (folder / "data" / "pg_hba.conf").write_text(ACCESS)
    settings = [f"-c{name}={value}" for name, value in {**SETTINGS, "unix_socket_directories": str(folder)}.items()]
    _start([str(binaries / "postgres"), "-D", str(folder / "data"), *settings], folder, as_user)
    running = Server(folder)
    _wait(running)
    running.run(running.url(), f"CREATE ROLE {LOCKED} LOGIN PASSWORD '{PASSWORD}'")
    return running


def _binaries() -> Path | None:
    """The folder of the newest server: Debian keeps them where no shell looks."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    newest = max(found, key=lambda folder: int(folder.parent.name), default=None)
    on_path = shutil.which("initdb")
    return newest or (Path(on_path).parent if on_path else None)


def _owner(folder: Path) -> dict[str, Any]:
    """Who runs the server: it refuses to be root."""
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    folder.chmod(0o755)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _start(command: Sequence[str], folder: Path, as_user: dict[str, Any]) -> None:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(
        ["/bin/sh", "-c", UNTIL_WE_LEAVE, str(folder), *command], stdin=subprocess.PIPE, cwd=folder, **quiet, **as_user
    )
    atexit.register(_stop, process, folder, os.getpid())


def _stop(process: subprocess.Popen[bytes], folder: Path, owner: int) -> None:
    if os.getpid() == owner and process.stdin is not None:  # not in a fork of ours
        process.stdin.close()
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(running: Server) -> None:
    psycopg = pytest.importorskip("psycopg")
    end = time.monotonic() + 60
    while True:
        try:
            running.connect(running.url()).close()
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
