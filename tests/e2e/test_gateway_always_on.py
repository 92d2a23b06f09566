"""The always-on set that a gateway chooses by what was called before its start."""

from pathlib import Path

from gateway_process import GatewayProcess, plain_server
from test_gateway import OWN_TOOLS
from toolgate_command import run

AUTO = '[gateway]\nalways_on = "auto"\nshown_names = "strict"\n'


def shown(gateway: GatewayProcess) -> list[str]:
    """The tools of servers that a host starts with."""
    names: list[str] = [tool["name"] for tool in gateway.tools()]
    assert names[: len(OWN_TOOLS)] == OWN_TOOLS
    return names[len(OWN_TOOLS) :]


def test_what_was_called_most_is_always_on_from_the_next_start(
    binary: Path, tmp_path: Path
) -> None:
    config = AUTO + plain_server("notes")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        own = "/mcp/s/notes"
        for _ in range(3):
            gateway.call("keep_note", {"text": "x"}, own)
        for _ in range(2):
            gateway.call("read_note", {}, own)
        gateway.call("echo", {"text": "once"}, own)
        assert not shown(gateway), "calls change no list"
        status = run(binary, "gateway", "status", "--url", gateway.url).stdout
        assert "always on: nothing yet" in status
    with GatewayProcess(binary, tmp_path, config) as gateway:
        assert shown(gateway) == ["notes__keep_note", "notes__read_note"]
        assert gateway.call("notes__read_note", {}).get("isError", False) is False
        status = run(binary, "gateway", "status", "--url", gateway.url).stdout
        line = "always on, by the calls before this start: notes__keep_note, notes__read_note\n"
        assert line in status
        why = run(binary, "gateway", "why", "select:notes__keep_note", "--url", gateway.url)
        assert why.stdout.endswith("always on, so that hosts need no search: notes__keep_note\n")
    with GatewayProcess(
        binary, tmp_path, AUTO + "start_tokens = 1\n" + plain_server("notes")
    ) as small:
        assert not shown(small), "nothing fits"
    named = AUTO.replace('"auto"', "[]") + plain_server("notes")
    with GatewayProcess(binary, tmp_path, named) as gateway:
        assert not shown(gateway), "nobody asks for it"
