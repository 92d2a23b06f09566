"""Changes of lists, told to hosts of both eras at every face."""

import json
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from asking_hosts import Json, LegacyHost, ModernHost, text_of
from fixture_gateway import TOOLGATE
from gateway_process import GatewayProcess
from waiting import wait_until

TELLING = Path(__file__).with_name("telling_server.py")
LISTS = ("tools", "prompts", "resources")
FACES = ["/mcp", "/mcp/all", "/mcp/s/tower"]
ALL_LISTS = {f"{name}ListChanged": True for name in LISTS}

# The tool that `/mcp` lists once it is there.
ALWAYS_ON = "tower__lamp"

Host = LegacyHost | ModernHost


def tower(name: str) -> str:
    """The entry of a server whose lists grow."""
    return f"[server.{name}]\ncommand = {json.dumps([sys.executable, str(TELLING)])}\n"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[GatewayProcess]:
    config = f'[gateway]\nalways_on = ["{ALWAYS_ON}"]\n{tower("tower")}'
    with GatewayProcess(Path(TOOLGATE), tmp_path, config) as process:
        yield process


def listening(host: Host) -> Generator[Json]:
    """The messages that belong to no call, from now on."""
    if isinstance(host, LegacyHost):
        return host.updates()
    stream = host.stream("subscriptions/listen", {"notifications": ALL_LISTS})
    assert next(stream)["method"] == "notifications/subscriptions/acknowledged"
    return stream


def told(stream: Iterator[Json]) -> str:
    """The list that the next notification is about."""
    for message in stream:
        method: str = message.get("method", "")
        if method.endswith("/list_changed"):
            return method.split("/")[1]
    raise AssertionError("nothing was told")


def until_told(stream: Iterator[Json], which: str) -> None:
    """Reads on until a list is told."""
    while told(stream) != which:
        pass


def change(running: GatewayProcess, which: str, name: str) -> None:
    arguments = {"list": which, "name": name}
    assert running.text("change", arguments, "/mcp/s/tower") == "changed"


def names(host: Host, which: str) -> list[str]:
    listed = host.request(f"{which}/list", {})[which]
    return [item["name"] for item in listed]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", [LegacyHost, ModernHost])
def test_a_change_of_each_list_is_told_once_the_list_has_it(
    running: GatewayProcess, kind: type[Host], face: str
) -> None:
    host = kind(running.url + face)
    with closing(listening(host)) as stream:
        for which in ["prompts", "resources", "tools"]:
            change(running, which, "lamp")
            assert told(stream) == which
            assert any(name.endswith("lamp") for name in names(host, which))


@pytest.mark.parametrize("face", FACES)
def test_faces_say_that_they_tell_of_changes(running: GatewayProcess, face: str) -> None:
    capabilities = LegacyHost(running.url + face).greeting["capabilities"]
    assert {name: capabilities[name]["listChanged"] for name in LISTS} == dict.fromkeys(LISTS, True)


def test_a_tool_that_only_searches_show_is_no_change_of_the_list(running: GatewayProcess) -> None:
    host = LegacyHost(f"{running.url}/mcp")
    before = host.request("tools/list", {})
    with closing(listening(host)) as stream:
        wait_until(lambda: "change" in found(host, "select:tower__change"))
        change(running, "tools", "bell")
        wait_until(lambda: "bell" in found(host, "select:tower__bell"))
        change(running, "prompts", "bell")
        assert told(stream) == "prompts"
    # The line of servers in a description has their numbers of tools.
    after = host.request("tools/list", {})
    assert [one["name"] for one in after["tools"]] == [one["name"] for one in before["tools"]]


def found(host: LegacyHost, query: str) -> str:
    """The names that a search shows."""
    return text_of(host.call("discover_tools", {"query": query}))


def test_a_server_that_comes_or_leaves_is_a_change_of_what_is_searched(tmp_path: Path) -> None:
    both = tower("tower") + tower("other")
    with GatewayProcess(Path(TOOLGATE), tmp_path, tower("tower")) as running:
        host = LegacyHost(f"{running.url}/mcp")
        every = LegacyHost(f"{running.url}/mcp/all")
        with closing(listening(host)) as stream, closing(listening(every)) as of_every:
            running.reload(both, "was read again")
            until_told(stream, "tools")
            until_told(of_every, "tools")
            assert "other__change" in names(every, "tools")
            assert "other" in host.request("tools/list", {})["tools"][0]["description"]
            running.reload(tower("tower"), "was read again")
            until_told(stream, "tools")
            until_told(of_every, "tools")
            assert names(every, "tools") == ["read_result", "tower__change"]
