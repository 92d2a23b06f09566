"""`toolgate store`: migrate, verify, export, import, from one kind of store to the other."""

import array
import base64
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import toolgate_command
from catalogs import NOTES, WEATHER
from conftest import StartServer
from postgres_server import PostgresServer

KEY = base64.b64encode(bytes(32)).decode()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer().start()
    yield server
    server.remove()


class Store:
    """A store, as the command line is told of it."""

    def __init__(self, binary: Path, settings: Mapping[str, str]) -> None:
        self._binary = binary
        self._settings = settings

    def run(self, *arguments: str, want: int = 0) -> str:
        """Returns the command's output, with its warnings."""
        names = {f"TOOLGATE_{k.replace('.', '_').upper()}": v for k, v in self._settings.items()}
        env = {"XDG_CONFIG_HOME": "/nonexistent", **names}
        done = toolgate_command.run(self._binary, "store", *arguments, env=env)
        assert done.returncode == want, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def embedded(binary: Path, tmp_path: Path, start_server: StartServer) -> Store:
    """An embedded store with two tenants, and no server on it."""
    path = str(tmp_path / "embedded")
    server = start_server({"store.path": path})
    for tenant in ("acme", "other"):
        with server.client(tenant) as client:
            client.register_server("notes", NOTES)
            client.register_server("weather", WEATHER)
            client.unregister_server("notes")
            client.set_policy("rules: []")
            client.route("rain")
    assert server.stop() == 0
    return Store(binary, {"store.path": path})


def shared(binary: Path, postgres: PostgresServer, folder: Path) -> Store:
    settings = {"store.url": postgres.database(), "store.path": str(folder), "handle.key": KEY}
    return Store(binary, settings)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_content_moves_to_a_shared_store_and_back(
    binary: Path, embedded: Store, postgres: PostgresServer, tmp_path: Path
) -> None:
    there, back = tmp_path / "there.jsonl", tmp_path / "back.jsonl"
    said = embedded.run("export", "--out", str(there))
    assert "exported 2 tenants, 4 tools" in said
    assert there.stat().st_mode & 0o777 == 0o600
    target = shared(binary, postgres, tmp_path / "replica")
    assert "to be brought to" in target.run("migrate", "--check", want=3)
    assert "brought from 0 to" in target.run("migrate")
    assert "up to date" in target.run("migrate", "--check")
    assert "imported 2 tenants, 4 tools" in target.run("import", str(there))
    assert "2 tenants, 4 tools: all is well" in target.run("verify")
    target.run("export", "--out", str(back))
    assert lines(back) == lines(there)
    other = Store(binary, {"store.path": str(tmp_path / "again")})
    assert "imported 1 tenant, 2 tools" in other.run("import", str(back), "--tenant", "acme")
    assert json.loads(other.run("verify", "--json"))["ok"]


def test_what_can_not_be_imported_is_refused_in_words(
    binary: Path, embedded: Store, tmp_path: Path
) -> None:
    whole, half = tmp_path / "whole.jsonl", tmp_path / "half.jsonl"
    embedded.run("export", "--out", str(whole))
    assert "in this store already" in embedded.run("import", str(whole), want=1)
    half.write_text("\n".join(lines(whole)[:-2]) + "\n")
    fresh = Store(binary, {"store.path": str(tmp_path / "fresh")})
    assert "cut off" in fresh.run("import", str(half), want=1)
    assert "not an export of a store" in fresh.run("import", __file__, want=1)
    assert "has no tenant" in fresh.run("import", str(whole), "--tenant", "nobody", want=1)
    absent = Store(binary, {"store.path": str(tmp_path / "absent")})
    assert "there is no store" in absent.run("verify", want=1)
    assert "cannot be made" in embedded.run("export", "--out", str(whole), want=1)


def test_damage_is_named(embedded: Store, tmp_path: Path) -> None:
    assert "all is well" in embedded.run("verify")
    database = sqlite3.connect(tmp_path / "embedded" / "toolgate.db")
    with database:
        database.execute("UPDATE tools SET hash = zeroblob(32) WHERE name = 'get_forecast'")
        database.execute("UPDATE servers SET tool_count = 9 WHERE tenant = 'other'")
        database.execute("UPDATE tools SET critical = 'x' WHERE name = 'x'")
    database.close()
    said = embedded.run("verify", want=3)
    assert "acme: tool weather/get_forecast: its hash is not the definition's" in said
    assert "other: server weather: 9 tools are said to be there, 2 are" in said
    assert "3 problems" in said


def test_damaged_embeddings_are_told_and_made_anew(
    embedded: Store, tmp_path: Path, start_server: StartServer
) -> None:
    assert "made 4 embeddings again" in embedded.run("verify")
    database = sqlite3.connect(tmp_path / "embedded" / "toolgate.db")
    with database:
        stored = database.execute(
            "SELECT rowid, vector FROM embeddings WHERE tenant = 'acme' LIMIT 1"
        ).fetchone()
        values = array.array("f", stored[1])
        other = array.array("f", values[::-1]).tobytes()
        database.execute("UPDATE embeddings SET vector = ? WHERE rowid = ?", (other, stored[0]))
    database.close()
    assert "all is well" in embedded.run("verify", "--sample", "0"), "it looks like an embedding"
    said = embedded.run("verify", want=3)
    assert "acme: tool weather/" in said
    assert "the stored embedding of its summary is damaged" in said
    assert "1 problem" in said
    embedded.run("verify", "--sweep", want=3)
    assert json.loads(embedded.run("verify", "--json"))["compared"] == 3
    server = start_server({"store.path": str(tmp_path / "embedded")})
    with server.client("acme") as client:
        client.route("rain")
    assert server.stop() == 0
    assert "made 4 embeddings again" in embedded.run("verify", "--sample", "1")
