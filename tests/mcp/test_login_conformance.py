"""The OAuth scenarios of the official conformance suite, for the gateway's client."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from fixture_process import BINARY
from installing import install, npm_command

CLIENT = Path(BINARY).with_name("toolgate-mcp-login-client")

# The revision of a scenario's checks, by scenario.
SCENARIOS = {
    "auth/metadata-default": "2026-07-28",
    "auth/metadata-var1": "2026-07-28",
    "auth/metadata-var2": "2026-07-28",
    "auth/metadata-var3": "2026-07-28",
    "auth/basic-cimd": "2026-07-28",
    "auth/scope-from-www-authenticate": "2026-07-28",
    "auth/scope-from-scopes-supported": "2026-07-28",
    "auth/scope-omitted-when-undefined": "2026-07-28",
    "auth/scope-step-up": "2026-07-28",
    "auth/scope-retry-limit": "2026-07-28",
    "auth/token-endpoint-auth-basic": "2026-07-28",
    "auth/token-endpoint-auth-post": "2026-07-28",
    "auth/token-endpoint-auth-none": "2026-07-28",
    "auth/pre-registration": "2026-07-28",
    "auth/2025-03-26-oauth-metadata-backcompat": "2025-03-26",
    "auth/resource-mismatch": "2026-07-28",
    "auth/offline-access-scope": "2026-07-28",
    "auth/offline-access-not-supported": "2026-07-28",
    "auth/authorization-server-migration": "2026-07-28",
    "auth/iss-supported": "2026-07-28",
    "auth/iss-not-advertised": "2026-07-28",
    "auth/iss-supported-missing": "2026-07-28",
    "auth/iss-wrong-issuer": "2026-07-28",
    "auth/iss-unexpected": "2026-07-28",
    "auth/iss-normalized": "2026-07-28",
    "auth/metadata-issuer-mismatch": "2026-07-28",
    "auth/client-credentials-basic": "",
}


def checks(scenario: str, revision: str, results: Path) -> list[dict[str, str]]:
    """Plays a scenario; returns what was checked."""
    folder = install("conformance")
    package = folder / "node_modules" / "@modelcontextprotocol" / "conformance"
    node = npm_command(folder, "node")
    command = [node, str(package / "dist" / "index.js"), "client", "--command", str(CLIENT)]
    version = ["--spec-version", revision] if revision else []
    done = subprocess.run(
        [*command, "--scenario", scenario, *version, "--output-dir", str(results)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"NO_COLOR": "1"},
    )
    files = list(results.rglob("checks.json"))
    assert files, f"nothing was played:\n{done.stdout}\n{done.stderr}"
    found: list[dict[str, str]] = json.loads(files[0].read_text())
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_client_logs_in_as_the_specification_says(scenario: str, tmp_path: Path) -> None:
    played = checks(scenario, SCENARIOS[scenario], tmp_path)
    bad = [check for check in played if check["status"] in ("FAILURE", "WARNING")]
    assert bad == []
    assert any(check["status"] == "SUCCESS" for check in played)
