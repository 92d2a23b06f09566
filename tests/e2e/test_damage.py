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
    """What the server says, which does not start."""
    assert server.launch().wait(timeout=60) == 1
    return server.log_text()


def names(server: ToolgateProcess) -> set[str]:
    with server.client("acme") as client:
        return {tool.name for tool in client.route("rain", threshold=-1)}


def test_a_database_that_is_gone_is_not_begun_anew(stopped: ToolgateProcess) -> None:
    data = stopped.folder / "data"
    aside = stopped.folder / "aside"
    aside.mkdir()
    for file in data.glob("toolgate.db*"):
        if file.name != "toolgate.db.here":
            shutil.move(file, aside)
    said = refusal(stopped)
    assert "is gone" in said
    assert "toolgate.db.here" in said
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
    environment = {"TOOLGATE_STORE_PATH": str(database.parent), "XDG_CONFIG_HOME": "/nonexistent"}

    def found() -> str:
        done = toolgate_command.run(binary, "doctor", "--json", env=environment)
        checks = json.loads(done.stdout)["checks"]
        return next(str(check["status"]) for check in checks if check["name"] == "database")

    assert found() == "ok"
    pages = bytearray(database.read_bytes())
    # All pages but the first, which holds the schema.
    pages[4096:] = b"\xa5" * (len(pages) - 4096)
    database.write_bytes(pages)
    assert found() == "fail"
    assert "is damaged" in refusal(stopped)


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
