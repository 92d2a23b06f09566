"""The agent's state: what it has done and may do, as its own harness knows it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from google.protobuf import json_format, struct_pb2

from toolgate._gen.v1 import state_pb2
from toolgate.enums import CallStatus, to_wire


@dataclass(frozen=True, slots=True)
class PriorCall:
    """One finished tool call of the conversation."""

    tool: str
    """The tool's model-facing name, or its MCP name."""
    status: CallStatus | str = CallStatus.UNSPECIFIED
    """Its outcome: "SUCCEEDED", "FAILED", or unknown, which counts as no output."""
    turn: int = 0
    """The turn in which it was made, from 0."""

    def to_proto(self) -> state_pb2.PriorCall:
        """The wire's form."""
        status = to_wire(state_pb2.CallStatus, "CALL_STATUS_", self.status)
        return state_pb2.PriorCall(tool=self.tool, status=status, turn=self.turn)


@dataclass(frozen=True, slots=True)
class AgentState:
    """State that preconditions and scopes are evaluated over. At most 64 KiB on the wire.

    Wherever a client method takes a state, a dict with these keys will do:

        {"scopes": ["issues:write"], "calls": [{"tool": "search", "status": "succeeded"}]}
    """

    scopes: Iterable[str] = ()
    """OAuth-style grants that the agent holds."""
    calls: Iterable[PriorCall | Mapping[str, Any]] = ()
    """The conversation's tool calls, oldest first."""
    milestones: Iterable[str] = ()
    """Workflow milestones that were reached."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Anything else that a policy may look at: JSON values."""
    discovered_tools: Iterable[str] = ()
    """Model-facing names of tools that the agent discovered earlier."""
    messages: Iterable[Any] | None = None
    """The conversation, to read `calls` and `discovered_tools` from, which must then be empty: the
    messages of the provider's API, oldest first, as dicts or as the provider's own objects. A
    render `strategy` needs it. At most 1 MiB by default."""
    snapshot: Mapping[str, Any] | None = None
    """`RouteResult.conversation_snapshot` of an earlier turn: it stands for the messages that were
    read for it, which may be summarised, left out, or be among `messages` again."""

    def to_proto(self) -> state_pb2.AgentState:
        """The wire's form.

        Raises:
            TypeError: a text where a list of texts belongs, an unknown key of a prior call, or a
                message that JSON cannot carry.
            ValueError: an unknown status of a prior call.
        """
        message = state_pb2.AgentState(
            scopes=texts(self.scopes, "scopes"),
            calls=[_prior_call(call).to_proto() for call in self.calls],
            milestones=texts(self.milestones, "milestones"),
            discovered_tools=texts(self.discovered_tools, "discovered_tools"),
        )
        if self.messages is not None or self.snapshot is not None:
            message.messages_json = self._messages_json()
        if self.attributes:
            attributes = struct_pb2.Struct()
            json_format.ParseDict(dict(self.attributes), attributes)
            message.attributes.CopyFrom(attributes)
        return message

    def _messages_json(self) -> str:
        messages = () if self.messages is None else self.messages
        if self.snapshot is None:
            return json_list(messages, "messages")
        if isinstance(messages, str | bytes | Mapping):
            return json_list(messages, "messages")  # Refuses it.
        return json_list([self.snapshot, *messages], "messages")


StateLike = AgentState | Mapping[str, Any]


def state_to_proto(state: StateLike | None) -> state_pb2.AgentState | None:
    """The wire's form of a state or of a dict with its keys.

    Raises:
        TypeError: a key that is none of AgentState's.
    """
    if state is None:
        return None
    if isinstance(state, AgentState):
        return state.to_proto()
    unknown = set(state) - {known.name for known in fields(AgentState)}
    if unknown:
        raise TypeError(f"the agent's state has no {', '.join(sorted(unknown))}")
    return AgentState(**state).to_proto()


def texts(values: Iterable[str], name: str) -> list[str]:
    """A list of texts; a lone text is a mistake, not a list of its characters.

    Raises:
        TypeError: `values` is a text.
    """
    if isinstance(values, str):
        raise TypeError(f"{name} takes a list of texts, not one text")
    return list(values)


def json_list(values: Iterable[Any], name: str) -> str:
    """The JSON text of a list. An object with `model_dump`, as providers' packages have, will do.

    Raises:
        TypeError: a text or a mapping instead of a list, or a value that JSON cannot carry.
        ValueError: a number that JSON cannot carry.
    """
    if isinstance(values, str | bytes | Mapping):
        raise TypeError(f"{name} takes a list, not one {type(values).__name__}")
    return json.dumps(list(values), ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is nothing that JSON can carry")


def _prior_call(call: PriorCall | Mapping[str, Any]) -> PriorCall:
    return call if isinstance(call, PriorCall) else PriorCall(**call)
