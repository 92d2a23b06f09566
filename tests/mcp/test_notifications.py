"""Notifications between hosts of 2025-11-25 and servers, through the gateway."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking_hosts import Json, LegacyHost, text_of
from fixture_gateway import TOOLGATE
from gateway_process import GatewayProcess
from waiting import wait_until

SERVER = Path(__file__).with_name("page_server.py")
OPENS_URLS: Json = {"elicitation": {"url": {}}, "roots": {}}
TELLS_OF_ROOTS: Json = {"elicitation": {"url": {}}, "roots": {"listChanged": True}}
ROOTS_CHANGED = "notifications/roots/list_changed"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The file that the server's processes write to."""
    return tmp_path / "log.jsonl"


@pytest.fixture
def url(tmp_path: Path, log: Path) -> Iterator[str]:
    """The face that hands the server through."""
    command = json.dumps([sys.executable, str(SERVER), str(log)])
    config = f"[server.pages]\ncommand = {command}\nquestions = true\n"
    with GatewayProcess(Path(TOOLGATE), tmp_path, config) as gateway:
        yield f"{gateway.url}/mcp/s/pages"


def opened(host: LegacyHost) -> str:
    """What the server says after the host's person has opened the page."""
    return text_of(host.call("open_page", {}, lambda _method, _params: {"action": "accept"}))


def records(log: Path) -> list[Json]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_host_hears_that_its_person_is_through_with_a_page(url: str) -> None:
    host = LegacyHost(url, OPENS_URLS)
    with host.listening() as messages:
        assert opened(host) == "accept"
        told = next(m for m in messages if m["method"] == "notifications/elicitation/complete")
    assert told["params"] == {"elicitationId": "page-1"}


def test_a_server_hears_that_the_roots_of_its_host_have_changed(url: str, log: Path) -> None:
    silent = LegacyHost(url, OPENS_URLS)
    telling = LegacyHost(url, TELLS_OF_ROOTS)
    for host in (silent, telling):
        assert opened(host) == "accept"
    # It has not said that it would, so that nobody hears of it.
    silent.tell(ROOTS_CHANGED)
    telling.tell(ROOTS_CHANGED)
    wait_until(lambda: any("changed" in record for record in records(log)))
    [changed] = [record["changed"] for record in records(log) if "changed" in record]
    assert changed["roots"] == {"listChanged": True}
