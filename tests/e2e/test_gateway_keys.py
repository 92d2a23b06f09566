"""Keys of `toolgate gateway`: the store of API keys."""

from pathlib import Path

import pytest
from credentials import Keys
from gateway_process import GatewayProcess, message, plain_server
from toolgate_command import run
from toolgate_process import ToolgateProcess


def status_for(gateway: GatewayProcess, key: str) -> int:
    """The status of a list of tools that is asked for with an API key."""
    return gateway.post("/mcp", message("tools/list", {}), {"Authorization": f"Bearer {key}"})[0]


def settings(store: Path) -> str:
    return f'[gateway.auth]\nmethods = ["api-key"]\nkey_store = "{store}"\n' + plain_server("notes")


@pytest.mark.parametrize("has_own_plane", [True, False])
def test_api_keys_are_those_of_the_key_store(
    binary: Path, server: ToolgateProcess, tenant: str, tmp_path: Path, has_own_plane: bool
) -> None:
    keys = Keys(binary, tmp_path / "keys")
    made = keys.create("agent", tenant=tenant)
    revoked = keys.create("agent", tenant=tenant)
    keys.command("revoke", revoked["id"])
    own = ("--data-dir", str(tmp_path / "data"))
    place = own if has_own_plane else ("--server", server.target)
    plane = (*place, "--tenant", tenant)
    store = tmp_path / "keys" / "data"
    with GatewayProcess(binary, tmp_path, settings(store), plane) as gateway:
        assert status_for(gateway, made["key"]) == 200
        assert status_for(gateway, revoked["key"]) == 401
        if has_own_plane:
            stranger = Keys(binary, tmp_path).create("agent", tenant=tenant)
            assert status_for(gateway, stranger["key"]) == 401, "the plane's own store"


def test_before_a_plane_of_another_process_the_key_store_is_named(
    binary: Path, server: ToolgateProcess, tmp_path: Path
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[gateway.auth]\nmethods = ["api-key"]\n' + plain_server("notes"))
    done = run(
        binary, "gateway", "--config", file, "--listen", "127.0.0.1:0", "--server", server.target
    )
    assert done.returncode == 2, done.stderr
    assert "gateway.auth.key_store" in done.stderr
