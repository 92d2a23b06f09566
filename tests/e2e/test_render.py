"""Tools that the server renders for a provider's API are those that clients render."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from catalogs import SHIPPED
from toolgate_process import ToolgateProcess

from toolgate import Client, render
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

TENANT = "rendered"
FORMATS: dict[str, Callable[[Any], render.Rendered]] = {
    "TOOL_FORMAT_OPENAI_CHAT": render.openai_chat,
    "TOOL_FORMAT_OPENAI_RESPONSES": render.openai_responses,
    "TOOL_FORMAT_ANTHROPIC": render.anthropic,
    "TOOL_FORMAT_GEMINI": render.gemini,
    "TOOL_FORMAT_MCP": render.mcp,
}
INTENT = "open an issue about the broken map and tell the team in slack"


def asked(format_: str) -> router_pb2.RenderOptions:
    return router_pb2.RenderOptions(format=router_pb2.ToolFormat.Value(format_))


def route(**fields: Any) -> router_pb2.RouteRequest:
    options = router_pb2.RouteOptions(top_k=100, threshold=-1)
    intents = [router_pb2.Intent(text=INTENT)]
    return router_pb2.RouteRequest(tenant=TENANT, intents=intents, options=options, **fields)


@pytest.fixture(scope="module")
def shipped(server: ToolgateProcess) -> Iterator[Client]:
    with server.client(TENANT, timeout=120) as client:
        for file in sorted(Path(SHIPPED).glob("*.json")):
            client.register_server(file.stem, file)
        yield client


@pytest.mark.parametrize("format_", FORMATS)
def test_a_turn_is_rendered_as_clients_render_it(
    shipped: Client, router: router_pb2_grpc.RouterServiceStub, format_: str
) -> None:
    turn = shipped.route(INTENT, top_k=100, threshold=-1)
    expected = FORMATS[format_](turn)
    answer = router.Route(route(render=asked(format_)))
    assert [tool.model_name for tool in answer.active_tools] == [tool.model_name for tool in turn]
    assert len(expected.tools) > 80
    assert json.loads(answer.rendered.tools_json) == expected.tools
    told = [
        (one.model_name, one.pointer, one.keyword, one.message) for one in answer.rendered.losses
    ]
    lost = [(one.tool, one.pointer, one.keyword, one.note) for one in expected.losses]
    assert sorted(told) == sorted(lost)
    assert not any(tool.input_schema_json or tool.description for tool in answer.active_tools)


def test_what_a_search_finds_is_rendered(
    shipped: Client, router: router_pb2_grpc.RouterServiceStub
) -> None:
    request = router_pb2.SearchToolsRequest(tenant=TENANT, query="slack")
    found = router.SearchTools(request)
    request.render.CopyFrom(asked("TOOL_FORMAT_OPENAI_CHAT"))
    answer = router.SearchTools(request)
    names = [tool.model_name for tool in found.tools]
    rendered = json.loads(answer.rendered.tools_json)
    assert names
    assert [tool["function"]["name"] for tool in rendered] == names
    assert [tool.model_name for tool in answer.tools] == names
    assert not any(tool.input_schema_json for tool in answer.tools)
    assert not found.HasField("rendered")


@pytest.mark.parametrize("detail", ["NAMES", "SIGNATURES", "REFERENCES"])
def test_rendering_needs_full_definitions(
    router: router_pb2_grpc.RouterServiceStub, detail: str
) -> None:
    request = route(render=asked("TOOL_FORMAT_MCP"))
    request.options.detail = router_pb2.Detail.Value(f"DETAIL_{detail}")
    with pytest.raises(grpc.RpcError, match="render: needs full definitions") as raised:
        router.Route(request)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_format_must_be_named(router: router_pb2_grpc.RouterServiceStub) -> None:
    with pytest.raises(grpc.RpcError, match=r"render\.format: must be a value of ToolFormat"):
        router.Route(route(render=router_pb2.RenderOptions()))
