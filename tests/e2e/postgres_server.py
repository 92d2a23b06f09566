"""A real PostgreSQL of the tests' own: Debian's binaries, a temporary folder, a Unix socket."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

from waiting import PATIENCE

_MISSING = "PostgreSQL is needed: tests/ci/postgres.sh installs it"


class PostgresServer:
    """One cluster, which may be stopped and started again."""

    def __init__(self) -> None:
        self._programs = _programs()
        # Not in pytest's folder: a socket's path may have 107 bytes; another user must reach it.
        self.folder = Path(tempfile.mkdtemp(prefix="tgpg-", dir="/tmp"))
        self._user = _unprivileged()
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb", f"--pgdata={self.folder}/data", "--username=admin", "--auth=trust",
            "--encoding=UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip

    def start(self) -> "PostgresServer":
        where = ["-D", f"{self.folder}/data", "-k", str(self.folder)]
        settings = ["-c", "listen_addresses=", "-c", "max_connections=200"]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(self._programs / "postgres"), *where, *settings],
                cwd="/",
                stdout=log,
                stderr=log,
                **self._as_user(),
            )
        self._process = process
        give_up = time.monotonic() + PATIENCE
        ready = [str(self._programs / "pg_isready"), "-q", "-h", str(self.folder)]
        while subprocess.run(ready, check=False).returncode != 0:
            if process.poll() is not None or time.monotonic() > give_up:
                raise AssertionError((self.folder / "log").read_text(errors="replace"))
            time.sleep(0.05)
        return self

    def stop(self) -> None:
        """Ends it at once, as a crash would."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(3)  # SIGQUIT
            self._process.wait(timeout=PATIENCE)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self) -> str:
        """A fresh database; its URL, for an owner whom row-level security binds."""
        name = f"t{next(self._numbers)}"
        make = "CREATE ROLE toolgate LOGIN" if name == "t1" else "SELECT 1"
        self.sql("postgres", make)
        self.sql("postgres", f"CREATE DATABASE {name} OWNER toolgate TEMPLATE template0")
        return f"postgres://toolgate@localhost/{name}?host={self.folder}"

    def sql(self, database: str, statement: str) -> str:
        """Runs a statement as the superuser; what it answers."""
        return self._run(
            "psql", "-X", "-q", "-A", "-t", "-h", str(self.folder), "-U", "admin",
            "-d", database, "-c", statement,
        )  # fmt: skip

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd="/",
            check=False,
            capture_output=True,
            text=True,
            **self._as_user(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said: str = done.stdout
        return said.strip()

    def _as_user(self) -> dict[str, Any]:
        user = self._user
        return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid}


def _programs() -> Path:
    versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = sorted(versions, key=lambda path: int(path.parts[-3]))
    if newest:
        return newest[-1].parent
    found = shutil.which("postgres")
    assert found, _MISSING
    return Path(found).parent


def _unprivileged() -> pwd.struct_passwd | None:
    """PostgreSQL does not run as root: whom it runs as then."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("no user to run PostgreSQL as")
