"""Renderers over the real catalogs, held to the vendors' own types. Shapes: test_conformance."""

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import ToolUnionParam
from google.genai.types import FunctionDeclaration
from mcp_types import Tool as McpTool
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from toolgate import ActiveTool, RouteResult, render
from toolgate._gen.v1 import router_pb2

CATALOGS = Path(__file__).resolve().parents[3] / "tests" / "data" / "servers"


def real_tools() -> list[ActiveTool]:
    return [
        ActiveTool.from_proto(
            router_pb2.ActiveTool(
                model_name=f"mcp__{path.stem}__{tool['name']}"[:64],
                description=tool.get("description", ""),
                input_schema_json=json.dumps(tool["inputSchema"]),
            )
        )
        for path in sorted(CATALOGS.glob("*.json"))
        for tool in json.loads(path.read_text())["tools"]
    ]


TOOLS = real_tools()


def rendered_all(renderer: Any, tools: list[ActiveTool]) -> render.Rendered:
    """All tools, as many at a time as every provider takes."""
    parts = [renderer(tools[at : at + 100]) for at in range(0, len(tools), 100)]
    return render.Rendered(
        [tool for part in parts for tool in part.tools],
        tuple(loss for part in parts for loss in part.losses),
    )


@pytest.mark.parametrize(
    ("renderer", "vendor"),
    [
        (render.anthropic, ToolUnionParam),
        (render.openai_chat, ChatCompletionFunctionToolParam),
        (render.openai_responses, FunctionToolParam),
        (render.gemini, FunctionDeclaration),
        (render.mcp, McpTool),
    ],
)
def test_every_real_tool_is_one_that_the_vendor_takes(renderer: Any, vendor: Any) -> None:
    assert len(TOOLS) > 800
    rendered = rendered_all(renderer, TOOLS)
    assert len(rendered.tools) == len(TOOLS)
    adapter = TypeAdapter(vendor)
    for tool in rendered.tools:
        adapter.validate_python(tool)
    again = rendered_all(renderer, real_tools())
    assert json.dumps(again.tools) == json.dumps(rendered.tools), "the same bytes each time"


@pytest.mark.parametrize("renderer", [render.openai_chat, render.anthropic])
def test_losses_are_told_wherever_a_root_changed(renderer: Any) -> None:
    rendered = rendered_all(renderer, TOOLS)
    lossy = {loss.tool for loss in rendered.losses}
    for tool, made in zip(TOOLS, rendered.tools, strict=True):
        schema = made.get("input_schema") or made["function"]["parameters"]
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
        changed = {"anyOf", "oneOf", "allOf", "$ref"} & tool.input_schema.keys()
        assert bool(changed) <= (tool.model_name in lossy)


def keywords(schema: Any) -> set[str]:
    """The keywords of a Gemini schema, nested ones included."""
    nested = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    nested += [schema["items"]] if "items" in schema else []
    return set(schema).union(*map(keywords, nested))


KNOWN_TO_GEMINI = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "default", "pattern", "anyOf"}
    | {"items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties"}
    | {"minLength", "maxLength", "minimum", "maximum"}
)


def test_gemini_gets_nothing_that_it_does_not_know() -> None:
    rendered = rendered_all(render.gemini, TOOLS)
    used: set[str] = set()
    for tool in rendered.tools:
        used |= keywords(tool.get("parameters", {}))
    assert used <= KNOWN_TO_GEMINI
    assert {"type", "properties", "required", "enum", "anyOf", "nullable"} <= used
    assert {loss.keyword for loss in rendered.losses} >= {"additionalProperties", "format"}


def test_a_schema_that_grows_when_it_is_written_out_stays_bounded() -> None:
    # Each level names the next one twice: 2^40 schemas, written out.
    defs = {
        f"d{n}": {
            "type": "object",
            "properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in ("a", "b")},
        }
        for n in range(40)
    }
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs}
    wire = router_pb2.ActiveTool(model_name="bomb", input_schema_json=json.dumps(schema))
    rendered = render.gemini([ActiveTool.from_proto(wire)])
    assert len(json.dumps(rendered.tools)) < 1_000_000
    assert any(loss.note.startswith("too large") for loss in rendered.losses)


def test_a_route_result_renders_as_before() -> None:
    wire = router_pb2.RouteResponse(
        active_tools=[router_pb2.ActiveTool(model_name="a", input_schema_json='{"type":"object"}')]
    )
    turn = RouteResult.from_proto(wire)
    assert turn.to_anthropic_tools() == render.anthropic(turn).tools
    assert turn.to_openai_tools() == render.openai_chat(turn).tools


def test_tools_that_openai_does_not_take_are_told(caplog: pytest.LogCaptureFixture) -> None:
    wire = [
        router_pb2.ActiveTool(model_name=f"t{n}", input_schema_json='{"type":"object"}')
        for n in range(130)
    ]
    assert len(RouteResult.from_proto(_answer(wire)).to_openai_tools()) == 128
    assert [record.getMessage() for record in caplog.records] == [
        "toolgate: OpenAI takes 128 tools in a request: 2 of 130 are left out"
    ]
    caplog.clear()
    assert len(RouteResult.from_proto(_answer(wire[:128])).to_openai_tools()) == 128
    assert not caplog.records


def _answer(tools: list[router_pb2.ActiveTool]) -> router_pb2.RouteResponse:
    return router_pb2.RouteResponse(active_tools=tools)


def test_tools_without_schemas_say_what_to_do() -> None:
    nameless = ActiveTool.from_proto(router_pb2.ActiveTool(model_name="a"))
    for renderer in (render.anthropic, render.openai_chat, render.gemini, render.mcp):
        with pytest.raises(ValueError, match="detail='schemas'"):
            renderer([nameless])


def test_a_tool_that_came_as_a_signature_has_it_for_a_description() -> None:
    signature = "mcp__git__log(count?: integer) - Shows commits."
    brief = ActiveTool.from_proto(
        router_pb2.ActiveTool(model_name="mcp__git__log", signature=signature)
    )
    expected = {
        "name": "mcp__git__log",
        "description": signature,
        "inputSchema": {"type": "object"},
    }
    assert render.mcp([brief]).tools == [expected]
    for rendered in (
        render.anthropic([brief]),
        render.openai_chat([brief]),
        render.openai_responses([brief]),
        render.gemini([brief]),
    ):
        assert "Shows commits" in json.dumps(rendered.tools)
        assert not rendered.losses
