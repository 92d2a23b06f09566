"""The operations on the SDK's helpers, which call nothing."""

import json
from collections.abc import Callable
from typing import Any

import wire
from wire import Json

from toolgate import (
    SEARCH_TOOL,
    ActiveTool,
    Call,
    GateVerdict,
    Precondition,
    SearchAnswer,
    SearchResult,
    SummaryPool,
    all_of,
    announce,
    any_of,
    has_prior_tool_output,
    is_authenticated,
    layout,
    milestone_reached,
)
from toolgate._gen.v1 import router_pb2

_READERS = {
    "anthropic": Call.from_anthropic,
    "openai": Call.from_openai,
    "openai_responses": Call.from_openai_responses,
    "gemini": Call.from_gemini,
}
_NAMED = {
    "is_authenticated": is_authenticated,
    "has_prior_tool_output": has_prior_tool_output,
    "milestone_reached": milestone_reached,
}


def _sent_tool(tool: Json) -> ActiveTool:
    return ActiveTool.from_proto(wire.read(tool, router_pb2.ActiveTool()))


def _layout(args: Json) -> Json:
    tools = list(map(_sent_tool, args["tools"]))
    summaries = dict(args["summaries"])
    return {
        "anthropic_system": layout.anthropic_system(args["system"], summaries),
        "openai_system": layout.openai_system(args["system"], summaries),
        "user_message": layout.user_message(args["content"], tools),
        "responses_input": layout.responses_input(args["content"], tools),
    }


def _announce(args: Json) -> Json:
    said = announce(dict(args["searchable"]), loaded=args["loaded"], announced=args["announced"])
    return {
        "full": said.full,
        "added": [list(item) for item in said.added.items()],
        "removed": list(said.removed),
        "announced": list(said.announced),
        "text": said.text(),
    }


def _search_tool(_args: Json) -> Json:
    names = ("name", "model_name", "description", "input_schema", "signature", "signature_lossy")
    told = {name: getattr(SEARCH_TOOL, name) for name in (*names, "schema_tokens")}
    return {**told, "annotations": json.loads(SEARCH_TOOL.annotations_json)}


def _found(args: Json) -> SearchResult:
    return SearchResult.from_proto(wire.read(args["found"], router_pb2.SearchToolsResponse()))


def _search_answer(args: Json) -> Json:
    answer = SearchAnswer.from_result(_found(args))
    return {"text": answer.text, "failed": answer.failed}


def _search_references(args: Json) -> Json:
    return {"content": _found(args).to_tool_references()}


def _tool_error(args: Json) -> Json:
    verdict = wire.read(args["verdict"], router_pb2.GateVerdict())
    return GateVerdict.from_proto(verdict).to_tool_error()


def _read_call(args: Json) -> Json:
    call = _READERS[args["provider"]](args["call"])
    return {"tool": call.tool, "arguments": call.arguments, "call_id": call.call_id}


def _apply_pool(args: Json) -> Json:
    pool = SummaryPool.from_proto(wire.read(args["pool"], router_pb2.SummaryPoolDelta()))
    return {"held": [list(item) for item in pool.apply_to(dict(args["held"])).items()]}


def _precondition(args: Json) -> Json:
    return wire.plain(_built(args["expr"]).to_proto())


def _built(expr: Json) -> Precondition:
    ((name, operand),) = expr.items()
    if name == "not":
        return ~_built(operand)
    if name in ("all_of", "any_of"):
        combine = all_of if name == "all_of" else any_of
        return combine(*map(_built, operand))
    return _NAMED[name](operand)


OPERATIONS: dict[str, Callable[[Json], Any]] = {
    "layout": _layout,
    "announce": _announce,
    "search_tool": _search_tool,
    "search_answer": _search_answer,
    "search_references": _search_references,
    "tool_error": _tool_error,
    "read_call": _read_call,
    "apply_pool": _apply_pool,
    "precondition": _precondition,
}
