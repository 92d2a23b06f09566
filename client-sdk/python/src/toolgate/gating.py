"""A model's calls and Gate's verdicts on them, as frozen values."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgate._gen.v1 import error_pb2, router_pb2
from toolgate.enums import RefusalCode, from_wire


@dataclass(frozen=True, slots=True)
class Call:
    """One call that a model asks for."""

    tool: str
    """The name as the model wrote it."""
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """The arguments: a mapping, or JSON text as the model wrote it. At most 1 MiB."""
    call_id: str = ""
    """The provider's identifier of the call, handed back as it is."""

    @classmethod
    def from_anthropic(cls, block: Mapping[str, Any]) -> "Call":
        """Reads a `tool_use` content block of Anthropic's Messages API."""
        return cls(block["name"], block["input"], block["id"])

    @classmethod
    def from_openai(cls, call: Mapping[str, Any]) -> "Call":
        """Reads one of the `tool_calls` of OpenAI's Chat Completions API."""
        function = call["function"]
        return cls(function["name"], function["arguments"], call["id"])

    @classmethod
    def from_openai_responses(cls, item: Mapping[str, Any]) -> "Call":
        """Reads a `function_call` item of OpenAI's Responses API."""
        return cls(item["name"], item["arguments"], item["call_id"])

    @classmethod
    def from_gemini(cls, call: Mapping[str, Any]) -> "Call":
        """Reads a `functionCall` of Gemini's API; older models give it no identifier."""
        return cls(call["name"], call.get("args") or {}, call.get("id") or "")

    def to_proto(self) -> router_pb2.RequestedCall:
        """The wire's form; JSON text is passed on unread, mistakes included."""
        text = (
            self.arguments
            if isinstance(self.arguments, str)
            else json.dumps(dict(self.arguments), ensure_ascii=False, allow_nan=False)
        )
        return router_pb2.RequestedCall(call_id=self.call_id, tool=self.tool, arguments_json=text)


def checked_call(call: object, method: str) -> Call:
    """The call, when it is one.

    Args:
        call: The call as it was given.
        method: The client's method that takes it.

    Raises:
        TypeError: something else, such as a provider's own object.
    """
    if isinstance(call, Call):
        return call
    raise TypeError(
        f"{method} takes Call(tool, arguments, call_id), not {type(call).__name__}; "
        "Call.from_anthropic and its like read a provider's"
    )


@dataclass(frozen=True, slots=True)
class ArgumentViolation:
    """One mistake in a call's arguments."""

    pointer: str
    """Where, as a JSON Pointer into the arguments; "" is the whole."""
    message: str
    """The mistake."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """May this call run?"""

    call_id: str
    """As in the call."""
    allowed: bool
    """True when it may."""
    server: str
    """The MCP server to send the call to; "" when refused."""
    name: str
    """The MCP name to call; "" when refused."""
    code: RefusalCode
    """The reason of the refusal; `UNSPECIFIED` when allowed."""
    message: str
    """Written for the model: what was wrong and what to do; "" when allowed."""
    available_tools: tuple[str, ...]
    """Model-facing names that may be called instead."""
    search_query: str
    """The search to make; "" when none would help."""
    input_schema_json: str
    """The tool's `inputSchema`, when the arguments did not satisfy it."""
    violations: tuple[ArgumentViolation, ...]
    """Where the arguments are wrong."""
    unlock: tuple[str, ...]
    """Conditions that would unlock the tool."""
    arguments_json: str
    """The arguments to call with, where the call's own came otherwise than as a JSON object."""
    nearest_tool: str
    """For an unknown name, the nearest visible one; "" when none is near."""
    model_name: str = ""
    """The tool's model-facing name, however the call spelt it; "" when refused."""

    def to_tool_error(self) -> dict[str, Any]:
        """The tool result to hand to the model in place of the call's own: a JSON object.

        `error` is the refusal code in lower case; the other keys are there when they say something.

        Raises:
            ValueError: the call was allowed.
        """
        if self.allowed:
            raise ValueError("an allowed call has no error")
        result: dict[str, Any] = {"error": self.code.lower(), "message": self.message}
        if self.available_tools or self.code in _NAMES_ALTERNATIVES:
            result["available"] = list(self.available_tools)
        if self.search_query:
            result["search"] = self.search_query
        if self.violations:
            result["violations"] = [
                {"pointer": v.pointer, "message": v.message} for v in self.violations
            ]
        if self.input_schema_json:
            result["input_schema"] = json.loads(self.input_schema_json)
        if self.unlock:
            result["unlock"] = list(self.unlock)
        return result

    @classmethod
    def from_proto(cls, message: router_pb2.GateVerdict) -> "GateVerdict":
        """Reads the wire's form."""
        return cls(
            call_id=message.call_id,
            allowed=message.allowed,
            server=message.server,
            name=message.name,
            code=from_wire(RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_", message.code),
            message=message.message,
            available_tools=tuple(message.available_tools),
            search_query=message.search_query,
            input_schema_json=message.input_schema_json,
            violations=tuple(ArgumentViolation(v.pointer, v.message) for v in message.violations),
            unlock=tuple(message.unlock),
            arguments_json=message.arguments_json,
            nearest_tool=message.nearest_tool,
            model_name=message.model_name,
        )


_NAMES_ALTERNATIVES = frozenset({RefusalCode.TOOL_NOT_AVAILABLE, RefusalCode.UNKNOWN_TOOL})


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdicts, one per call in their order. Iterating over it gives them."""

    verdicts: tuple[GateVerdict, ...]
    """One per call, in their order."""
    catalog_revision: int
    """The catalog revision that this answer is based on."""

    def __iter__(self) -> Iterator[GateVerdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __getitem__(self, index: int) -> GateVerdict:
        return self.verdicts[index]

    @classmethod
    def from_proto(cls, message: router_pb2.GateResponse) -> "GateResult":
        """Reads the wire's form."""
        return cls(
            verdicts=tuple(GateVerdict.from_proto(verdict) for verdict in message.verdicts),
            catalog_revision=message.catalog_revision,
        )
