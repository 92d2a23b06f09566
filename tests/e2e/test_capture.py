"""Tests what tools that are written for requests take of the sets, by `toolgate bench poison`
with the real encoder: the tier `untrusted` is there to keep the others' places."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from catalogs import SHIPPED
from intents import PEOPLE

# A part of what ships: a debug build takes a while for all.
HONEST = ("atlassian", "gitlab", "filesystem", "git", "slack", "time")


@pytest.fixture(scope="module")
def captured(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    page = tmp_path_factory.mktemp("captured") / "poison.md"
    catalogs = [f"--catalog={SHIPPED / name}.json" for name in HONEST]
    done = subprocess.run(
        [binary, "bench", "poison", *catalogs, "--queries", PEOPLE, "--json", "--markdown", page],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    measured: dict[str, Any] = json.loads(done.stdout)["captured"]
    for attack, *_ in measured["rows"]:
        assert f"| {attack} |" in page.read_text()
    return measured


def test_an_untrusted_server_pushes_few_honest_tools_out(captured: dict[str, Any]) -> None:
    assert len(captured["rows"]) == 3
    for row in captured["rows"]:
        attack, first, first_untrusted, honest, pushed_out, pushed_out_untrusted, _ = row
        assert first[1] == 40, attack
        assert honest > 100, "it would prove nothing"
        assert first_untrusted[0] <= first[0], attack
        # The tier does not lessen what an attack takes that takes next to nothing.
        assert pushed_out_untrusted <= max(5, pushed_out // 3), attack
    assert captured["rows"][0][1] == [40, 40], "an attack that takes nothing proves nothing"


def test_the_conditions_are_told(captured: dict[str, Any]) -> None:
    assert captured["says"].startswith("40 requests that are served by the")
    assert "6 MCP servers" in captured["says"]
