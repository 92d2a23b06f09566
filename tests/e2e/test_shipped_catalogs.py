"""The catalogs in tests/data: all of them register, routing over them saves tokens, and what the
server renders of them is held to the providers' own types."""

import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from anthropic.types import ToolUnionParam
from catalogs import SHIPPED
from catalogs import SHIPPED_TENANT as TENANT
from google.genai.types import FunctionDeclaration
from mcp_types import Tool as McpTool
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter
from waiting import PATIENCE

from toolgate import SEARCH_TOOL, Client, OutcomeKind, Rendered, RenderOptions, ToolFormat
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

FILES = sorted(SHIPPED.glob("*.json"))
TYPES: dict[ToolFormat, Any] = {
    ToolFormat.ANTHROPIC: ToolUnionParam,
    ToolFormat.OPENAI_CHAT: ChatCompletionFunctionToolParam,
    ToolFormat.OPENAI_RESPONSES: FunctionToolParam,
    ToolFormat.GEMINI: FunctionDeclaration,
    ToolFormat.MCP: McpTool,
}
INTENT = "open an issue about the broken map and tell the team in slack"


def asked(format_: str) -> router_pb2.RenderOptions:
    return router_pb2.RenderOptions(format=router_pb2.ToolFormat.Value(format_))


def route(**fields: Any) -> router_pb2.RouteRequest:
    options = router_pb2.RouteOptions(top_k=100, threshold=-1)
    intents = [router_pb2.Intent(text=INTENT)]
    return router_pb2.RouteRequest(tenant=TENANT, intents=intents, options=options, **fields)


def test_there_are_at_least_ten() -> None:
    assert len(FILES) >= 10


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_tool_is_stored_as_it_came(shipped: Client, file: Path) -> None:
    tools = json.loads(file.read_text())["tools"]
    stored = {t.name: t.definition for t in shipped.list_tools(file.stem)}
    assert stored == {t["name"]: t for t in tools}


def test_registering_again_changes_nothing(shipped: Client) -> None:
    again = shipped.register_server("gitlab", SHIPPED / "gitlab.json")
    assert {o.kind for o in again.outcomes} == {OutcomeKind.UNCHANGED}


def test_a_first_turn_saves_tokens(shipped: Client) -> None:
    cost = shipped.route("post in the team channel that the release is out").accounting
    assert cost.full_catalog_tokens > 100_000
    assert cost.saved_tokens > 0.7 * cost.full_catalog_tokens


@pytest.mark.parametrize(
    ("intent", "tool"),
    [
        ("post a message in a slack channel", "slack/slack_post_message"),
        ("what time is it in Tokyo right now", "time/get_current_time"),
        ("take a screenshot of the current page", "playwright/browser_take_screenshot"),
    ],
)
def test_an_obvious_tool_is_among_the_first_twenty(shipped: Client, intent: str, tool: str) -> None:
    turn = shipped.route(intent, top_k=20, threshold=0)
    assert tool in {f"{t.server}/{t.name}" for t in turn}


@pytest.mark.parametrize(
    ("intent", "wanted", "strangers"),
    [
        (
            "how do I get from the Berlin office to the airport by car right now",
            "mapbox/DirectionsTool",
            {"slack", "mongodb", "playwright"},
        ),
        (
            "what time is it for our people in Tokyo when we meet at 4pm in Lisbon",
            "time/convert_time",
            {"hubspot", "slack", "memory"},
        ),
    ],
)
def test_tools_of_something_else_do_not_pad_a_set(
    shipped: Client, intent: str, wanted: str, strangers: set[str]
) -> None:
    first, *others = shipped.route(intent)
    assert f"{first.server}/{first.name}" == wanted
    assert not strangers & {t.server for t in others}


def test_all_schemas_compile_into_validators(shipped: Client) -> None:
    names = [t.model_name for t in shipped.list_tools()]
    assert len(names) == len(set(names)) == 809
    for start in range(0, len(names), 100):
        answer = shipped.batch_get_tool_schemas(names[start : start + 100], timeout=PATIENCE)
        assert not answer.refusals


def registered_schemas(client: Client) -> dict[str, dict[str, Any]]:
    """Returns the registered `inputSchema` of every shipped tool, by model-facing name."""
    tools = client.list_tools()
    return {tool.model_name: json.loads(tool.definition_json)["inputSchema"] for tool in tools}


def rendered_all(client: Client, format_: ToolFormat) -> Rendered:
    """Renders all shipped tools, as many at a time as a call takes."""
    names = list(registered_schemas(client))
    parts = []
    for at in range(0, len(names), 100):
        found = client.batch_get_tool_schemas(names[at : at + 100], render=format_)
        assert found.rendered is not None
        parts.append(found.rendered)
    tools = [tool for part in parts for tool in part.tools]
    return Rendered(tools, tuple(loss for part in parts for loss in part.losses))


@pytest.mark.parametrize("format_", TYPES)
def test_every_shipped_tool_is_one_that_the_provider_takes(
    shipped: Client, format_: ToolFormat
) -> None:
    schemas = registered_schemas(shipped)
    assert len(schemas) > 800
    rendered = rendered_all(shipped, format_)
    assert len(rendered.tools) == len(schemas)
    adapter = TypeAdapter(TYPES[format_])
    for tool in rendered.tools:
        adapter.validate_python(tool)
    again = rendered_all(shipped, format_)
    assert json.dumps(again.tools) == json.dumps(rendered.tools), "the same bytes each time"


@pytest.mark.parametrize("format_", [ToolFormat.OPENAI_CHAT, ToolFormat.ANTHROPIC])
def test_losses_are_told_wherever_a_root_changed(shipped: Client, format_: ToolFormat) -> None:
    schemas = registered_schemas(shipped)
    rendered = rendered_all(shipped, format_)
    lossy = {loss.tool for loss in rendered.losses}
    combinators = {"anyOf", "oneOf", "allOf", "$ref"}
    for made in rendered.tools:
        within = made.get("function", made)
        schema = within.get("input_schema") or within["parameters"]
        assert schema["type"] == "object"
        assert not combinators & schema.keys()
        if combinators & schemas[within["name"]].keys():
            assert within["name"] in lossy


def keywords(schema: Any) -> set[str]:
    """Returns the keywords of a Gemini schema, nested ones included."""
    nested = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    nested += [schema["items"]] if "items" in schema else []
    return set(schema).union(*map(keywords, nested))


KNOWN_TO_GEMINI = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "default", "pattern", "anyOf"}
    | {"items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties"}
    | {"minLength", "maxLength", "minimum", "maximum"}
)


def test_gemini_gets_nothing_that_it_does_not_know(shipped: Client) -> None:
    rendered = rendered_all(shipped, ToolFormat.GEMINI)
    used: set[str] = set()
    for tool in rendered.tools:
        used |= keywords(tool.get("parameters", {}))
    assert used <= KNOWN_TO_GEMINI
    assert {"type", "properties", "required", "enum", "anyOf", "nullable"} <= used
    assert {loss.keyword for loss in rendered.losses} >= {"additionalProperties", "format"}


@pytest.mark.parametrize("format_", TYPES)
def test_a_turn_is_rendered_in_the_order_of_its_tools(shipped: Client, format_: ToolFormat) -> None:
    turn = shipped.route(INTENT, top_k=100, threshold=-1, render=format_)
    names = [tool.get("function", tool)["name"] for tool in turn.rendered_tools]
    assert len(names) > 80
    assert names == [tool.model_name for tool in turn]
    assert not any(tool.input_schema_json or tool.description for tool in turn)


def test_a_tool_that_came_as_a_signature_has_it_for_a_description(shipped: Client) -> None:
    plain = shipped.route(INTENT, top_k=1, signature_tail=2)
    brief = [tool for tool in plain if tool.signature and not tool.input_schema_json]
    assert len(brief) == 2
    turn = shipped.route(INTENT, top_k=1, signature_tail=2, render=ToolFormat.MCP)
    rendered = {tool["name"]: tool for tool in turn.rendered_tools}
    for tool in brief:
        expected = {"description": tool.signature, "inputSchema": {"type": "object"}}
        assert rendered[tool.model_name] == {"name": tool.model_name, **expected}


def test_openai_gets_at_most_128_tools(shipped: Client) -> None:
    names = list(registered_schemas(shipped))[:130]
    turn = shipped.route(INTENT, top_k=100, pinned_tools=names[:100], render="openai_chat")
    assert turn.rendered is not None
    left_out = [loss for loss in turn.rendered.losses if loss.keyword == "tools"]
    assert len(turn.rendered_tools) == min(len(turn), 128)
    assert len(left_out) == max(len(turn) - 128, 0)
    assert len(turn) > 128


@pytest.mark.parametrize("format_", TYPES)
def test_every_provider_takes_the_search_whole(shipped: Client, format_: ToolFormat) -> None:
    options = RenderOptions(format_, search_tool=True)
    turn = shipped.route(INTENT, top_k=1, render=options)
    search = turn.rendered_tools[0]
    assert search.get("function", search)["name"] == SEARCH_TOOL.model_name
    assert turn.rendered is not None
    assert not [loss for loss in turn.rendered.losses if loss.tool == SEARCH_TOOL.model_name]
    TypeAdapter(TYPES[format_]).validate_python(search)


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


def test_schemas_by_name_are_rendered(
    shipped: Client, router: router_pb2_grpc.RouterServiceStub
) -> None:
    names = [tool.model_name for tool in shipped.search_tools("slack").tools]
    request = router_pb2.BatchGetToolSchemasRequest(tenant=TENANT, names=names)
    request.render.CopyFrom(asked("TOOL_FORMAT_ANTHROPIC"))
    request.render.search_tool = True
    request.render.anthropic.defer_loading = True
    answer = router.BatchGetToolSchemas(request)
    search, *rendered = json.loads(answer.rendered.tools_json)
    assert search["name"] == SEARCH_TOOL.model_name
    assert "defer_loading" not in search
    assert names
    assert [tool["name"] for tool in rendered] == names
    assert all(tool["defer_loading"] is True for tool in rendered)
    assert not any(tool.input_schema_json for tool in answer.tools)


def test_a_cached_prefix_ends_with_the_last_tool(
    shipped: Client, router: router_pb2_grpc.RouterServiceStub
) -> None:
    render_ = asked("TOOL_FORMAT_ANTHROPIC")
    render_.anthropic.cache_breakpoint = True
    *before, last = json.loads(router.Route(route(render=render_)).rendered.tools_json)
    assert last["cache_control"] == {"type": "ephemeral"}
    assert before
    assert not any("cache_control" in tool for tool in before)


def test_properties_keep_the_order_of_the_mcp_server(
    shipped: Client, router: router_pb2_grpc.RouterServiceStub
) -> None:
    registered = {
        tool.model_name: list(json.loads(tool.input_schema_json).get("properties", {}))
        for tool in router.Route(route()).active_tools
    }
    answer = router.Route(route(render=asked("TOOL_FORMAT_MCP")))
    tools = json.loads(answer.rendered.tools_json)
    rendered = {tool["name"]: list(tool["inputSchema"].get("properties", {})) for tool in tools}
    assert rendered == registered
    assert any(order != sorted(order) for order in registered.values())


@pytest.mark.parametrize(
    ("format_", "marks", "message"),
    [
        ("TOOL_FORMAT_MCP", {}, r"render\.anthropic: is for TOOL_FORMAT_ANTHROPIC alone"),
        (
            "TOOL_FORMAT_ANTHROPIC",
            {"cache_breakpoint": True, "defer_loading": True},
            r"render\.anthropic\.cache_breakpoint: must be false beside defer_loading",
        ),
    ],
)
def test_marks_that_no_request_could_carry_are_refused(
    router: router_pb2_grpc.RouterServiceStub, format_: str, marks: dict[str, bool], message: str
) -> None:
    render_ = asked(format_)
    render_.anthropic.CopyFrom(router_pb2.AnthropicRenderOptions(**marks))
    with pytest.raises(grpc.RpcError, match=message):
        router.Route(route(render=render_))
