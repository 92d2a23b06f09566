"""Tests what `toolgate doctor` says of the files that let callers in, and of a server that runs."""

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from conftest import StartServer
from toolgate_command import run
from waiting import PATIENCE

SECURITY = ("certificate", "callers", "safety rules")


def doctor(binary: Path, folder: Path, settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Its findings on security, by name."""
    named = {f"TOOLGATE_{key.replace('.', '_').upper()}": value for key, value in settings.items()}
    environment = {"HOME": str(folder), "TOOLGATE_STORE_PATH": str(folder / "data"), **named}
    done = subprocess.run(
        [binary, "doctor", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    checks = json.loads(done.stdout)["checks"]
    return {check["name"]: check for check in checks if check["name"] in SECURITY}


def certificate(folder: Path, days: float) -> dict[str, str]:
    ends = datetime.now(UTC) + timedelta(days=days)
    issued = trustme.CA().issue_cert("localhost", not_after=ends)
    issued.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return {"tls.cert_file": str(folder / "cert.pem"), "tls.key_file": str(folder / "key.pem")}


def test_nothing_is_asked_for(binary: Path, tmp_path: Path) -> None:
    assert {name: check["status"] for name, check in doctor(binary, tmp_path, {}).items()} == {
        "callers": "ok"
    }


@pytest.mark.parametrize(("days", "status"), [(100, "ok"), (7, "warn"), (-1, "fail")])
def test_certificates_end(binary: Path, tmp_path: Path, days: float, status: str) -> None:
    found = doctor(binary, tmp_path, certificate(tmp_path, days))["certificate"]
    assert found["status"] == status, found


def test_files_that_can_not_be_used(binary: Path, tmp_path: Path) -> None:
    settings = certificate(tmp_path, 100)
    (tmp_path / "key.pem").write_text("no key")
    (tmp_path / "admin.key").write_text("no key either")
    (tmp_path / "rules.yaml").write_text("rules: 3")
    settings |= {
        "auth.methods": "api-key",
        "auth.admin_key_file": str(tmp_path / "admin.key"),
        "safety.rules_file": str(tmp_path / "rules.yaml"),
    }
    found = doctor(binary, tmp_path, settings)
    assert {name: check["status"] for name, check in found.items()} == dict.fromkeys(
        SECURITY, "fail"
    )
    assert "key.pem" in found["certificate"]["detail"]
    assert "admin.key" in found["callers"]["detail"]
    assert "rules.yaml" in found["safety rules"]["detail"]
    assert all(check["advice"] for check in found.values())


def test_a_server_that_holds_the_data_directory_is_told(
    binary: Path, start_server: StartServer
) -> None:
    server = start_server({})
    data = server.folder / "data"
    held = f"process {server.process.pid}, which `ps -p {server.process.pid}` shows"
    settings = {"TOOLGATE_STORE_PATH": str(data), "XDG_CONFIG_HOME": str(server.folder)}
    done = run(binary, "doctor", "--json", env=settings)
    [check] = [
        check for check in json.loads(done.stdout)["checks"] if check["name"] == "data directory"
    ]
    assert check["status"] == "warn"
    assert check["detail"] == f"{data} is in use by a server that runs ({held})"
    assert "--data-dir" in check["advice"]
    any_port = "127.0.0.1:0"
    second = run(binary, "serve", "--listen", any_port, "--admin-listen", any_port, env=settings)
    assert second.returncode == 1
    assert (
        f"the data directory {data} is in use by another server ({held}): stop that one, "
        "or name another directory with --data-dir (store.path)"
    ) in second.stderr
    server.stop()
    done = run(binary, "doctor", "--json", env=settings)
    assert "data directory" not in {check["name"] for check in json.loads(done.stdout)["checks"]}
