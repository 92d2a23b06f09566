"""Databases that are damaged or gone: told at the start and by `toolgate doctor`, and mended."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
import toolgate_command
from catalogs import WEATHER
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import ToolgateError


@pytest.fixture
def stopped(start_server: StartServer) -> ToolgateProcess:
    """A server that has one MCP server in its catalog, and was stopped."""
    server = start_server({})
    with server.client("acme") as client:
        client.register_server("weather", WEATHER)
    assert server.stop() == 0
    return server


def refusal(server: ToolgateProcess) -> str:
    """Returns the log of a server that does not start."""
    assert server.launch().wait(timeout=PATIENCE) == 1
    return server.log_text()


def names(server: ToolgateProcess) -> set[str]:
    with server.client("acme") as client:
        return {tool.name for tool in client.route("rain", threshold=-1)}


def environment(server: ToolgateProcess) -> dict[str, str]:
    """Returns the environment of commands on the server's database."""
    data = server.folder / "data"
    return {"TOOLGATE_STORE_PATH": str(data), "XDG_CONFIG_HOME": "/nonexistent"}


def examined(binary: Path, server: ToolgateProcess) -> dict[str, str]:
    """Returns the doctor's check of the database."""
    done = toolgate_command.run(binary, "doctor", "--json", env=environment(server))
    checks = json.loads(done.stdout)["checks"]
    return next(check for check in checks if check["name"] == "database")


def test_a_database_that_is_gone_is_not_begun_anew(binary: Path, stopped: ToolgateProcess) -> None:
    data = stopped.folder / "data"
    aside = stopped.folder / "aside"
    aside.mkdir()
    for file in data.glob("toolgate.db*"):
        if file.name != "toolgate.db.here":
            shutil.move(file, aside)
    said = refusal(stopped)
    assert "is gone" in said
    assert "toolgate.db.here" in said
    for is_empty in (False, True):
        if is_empty:
            (data / "toolgate.db").touch()
            assert "is gone" in refusal(stopped)
        check = examined(binary, stopped)
        assert check["status"] == "fail"
        assert "is gone" in check["detail"]
        assert "put it back from a backup" in check["advice"]
        assert "toolgate.db.here" in check["advice"]
    shutil.copy(aside / "toolgate.db", data)
    assert names(stopped.start_again()) == {"get_forecast", "get_rain_alerts"}
    assert stopped.stop() == 0
    (data / "toolgate.db").unlink()
    (data / "toolgate.db.here").unlink()
    stopped.start_again()
    with pytest.raises(ToolgateError, match="TENANT_NOT_FOUND"):
        names(stopped)


def test_a_damaged_database_is_told(binary: Path, stopped: ToolgateProcess) -> None:
    database = stopped.folder / "data" / "toolgate.db"
    assert examined(binary, stopped)["status"] == "ok"
    pages = bytearray(database.read_bytes())
    # All pages but the first, which holds the schema.
    pages[4096:] = b"\xa5" * (len(pages) - 4096)
    database.write_bytes(pages)
    assert examined(binary, stopped)["status"] == "fail"
    assert "is damaged" in refusal(stopped)


def test_one_damaged_page_is_told_before_anything_is_served(
    binary: Path, stopped: ToolgateProcess
) -> None:
    path = stopped.folder / "data" / "toolgate.db"
    database = sqlite3.connect(path)
    of_tools = "SELECT rootpage FROM sqlite_schema WHERE name = 'tools'"
    root = database.execute(of_tools).fetchone()[0]
    size = database.execute("PRAGMA page_size").fetchone()[0]
    database.close()
    with path.open("r+b") as pages:
        pages.seek((root - 1) * size)
        pages.write(b"\xa5" * size)
    # Opening reads none of it.
    said = refusal(stopped)
    assert f"{path} is damaged: put a backup back" in said
    assert examined(binary, stopped)["status"] == "fail"


@pytest.mark.parametrize(
    "damaged", ["x'0000c07f' || substr(vector, 5)", "x'00'"], ids=["nan", "cut"]
)
def test_a_damaged_vector_is_made_anew(
    binary: Path, stopped: ToolgateProcess, damaged: str
) -> None:
    whole = names(stopped.start_again())
    assert stopped.stop() == 0
    database = sqlite3.connect(stopped.folder / "data" / "toolgate.db")
    with database:
        changed = database.execute(
            f"UPDATE embeddings SET vector = CAST({damaged} AS BLOB)"
            " WHERE rowid = (SELECT min(rowid) FROM embeddings)"
        )
    assert changed.rowcount == 1
    database.close()

    def verified() -> tuple[int, str]:
        done = toolgate_command.run(binary, "store", "verify", env=environment(stopped))
        return done.returncode, done.stdout

    assert verified()[0] == 3
    assert names(stopped.start_again()) == whole
    assert "stored embeddings" in stopped.log_text()
    code, said = verified()
    assert code == 0, said
    assert "all is well" in said


def test_a_definition_with_a_flipped_bit_is_not_served(stopped: ToolgateProcess) -> None:
    whole = names(stopped.start_again())
    assert stopped.stop() == 0
    database = sqlite3.connect(stopped.folder / "data" / "toolgate.db")
    with database:
        changed = database.execute(
            "UPDATE tools SET definition = replace(definition, '\"type\":', '\"typf\":')"
            " WHERE name = 'get_forecast'"
        )
    assert changed.rowcount == 1
    database.close()
    assert names(stopped.start_again()) == whole - {"get_forecast"}
    assert "the stored definition is damaged" in stopped.log_text()
    with stopped.client("acme") as client:
        client.register_server("weather", WEATHER)
    assert names(stopped) == whole, "registering again mends it"
