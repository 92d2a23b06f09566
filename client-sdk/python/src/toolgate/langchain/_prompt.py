"""Requests that Route puts together: its additions to messages, and calls through the envelope."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage

from toolgate._agents import Verdict
from toolgate._endpoints import Endpoint
from toolgate._forms import Form, added, chat_definition
from toolgate.enums import PromptStrategy
from toolgate.langchain._messages import renamed
from toolgate.offering import SEARCH_TOOL
from toolgate.rendering import ModelRequest, RenderOptions

CALL_TOOL = "toolgate_call_tool"
"""The tool through which a model calls those that are described in the messages."""


class Prompt:
    """Additions of Route to the messages of a conversation, as the graph's state keeps them."""

    def __init__(self, kept: Mapping[str, Any] | None = None) -> None:
        kept = kept or {}
        self.ledger: str = kept.get("ledger", "")
        """For Route."""
        self.tools: list[dict[str, Any]] = kept.get("tools", [])
        """The definitions to send, as Chat Completions have them; empty: the active set is sent as
        it is."""
        self.betas: list[str] = kept.get("betas", [])
        """The names of Anthropic's betas that the request needs."""
        self._added: dict[str, str] = kept.get("added", {})
        self._blocks: dict[str, list[Any]] = kept.get("blocks", {})
        """Blocks that add tools, by the messages that they stand behind."""
        self._is_native = "blocks" in kept

    def to_dict(self) -> dict[str, Any]:
        """Returns what to keep of it: a JSON object."""
        kept = {"ledger": self.ledger, "tools": self.tools, "added": self._added}
        native = {"betas": self.betas, "blocks": self._blocks} if self._is_native else {}
        return {**kept, **native}

    def render(self, endpoint: Endpoint, strategy: PromptStrategy) -> RenderOptions:
        """Returns how Route is to render the next request."""
        return endpoint.render(strategy, search_tool=True, ledger=self.ledger)

    @classmethod
    def of_turn(cls, request: ModelRequest, sent: Form, messages: Sequence[AnyMessage]) -> "Prompt":
        """Reads what Route added.

        Args:
            request: Route's answer.
            sent: The messages that it was asked with.
            messages: LangChain's messages that they were made of.
        """
        if request.strategy not in (PromptStrategy.ENVELOPE, PromptStrategy.NATIVE):
            return cls({"ledger": request.ledger})
        additions = added(request, sent)
        places = () if additions is None else (*additions.texts, *additions.blocks)
        if additions is None or not all(messages[place].id for place in places):
            return cls()
        kept = {
            "ledger": request.ledger,
            "tools": [chat_definition(_known(tool)) for tool in request.tools],
            "added": {messages[at].id: text for at, text in additions.texts.items()},
        }
        if request.strategy is PromptStrategy.NATIVE:
            blocks = {messages[at].id: found for at, found in additions.blocks.items()}
            kept |= {"betas": [*request.betas], "blocks": blocks}
        return cls(kept)

    def messages(
        self, messages: Sequence[AnyMessage], is_ours: Callable[[str], bool]
    ) -> list[AnyMessage]:
        """Returns the messages to send: copies where tools are described or calls are wrapped.

        Args:
            messages: The conversation. A description whose message is not among them goes to the
                end.
            is_ours: True if a tool is called through the envelope.
        """
        if self._is_native:
            return self._with_blocks(messages)
        defined = {_name(tool) for tool in self.tools}
        ids = {message.id for message in messages}
        lost = "".join(text for place, text in self._added.items() if place not in ids)
        sent: list[AnyMessage] = []
        wrapped: set[str] = set()
        for message in messages:
            if isinstance(message, AIMessage):
                wraps = {
                    call["id"] or "": _wrap(call["name"], call["args"])
                    for call in message.tool_calls
                    if is_ours(call["name"]) and call["name"] not in defined
                }
                wrapped |= wraps.keys()
                message = renamed(message, wraps) if wraps else message
            elif isinstance(message, ToolMessage) and message.tool_call_id in wrapped:
                message = message.model_copy(update={"name": CALL_TOOL})
            text = self._added.get(message.id or "", "")
            sent.append(_with_text(message, text) if text else message)
        if lost and sent and not isinstance(sent[-1], AIMessage):
            sent[-1] = _with_text(sent[-1], lost)
        return sent

    def _with_blocks(self, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        """Returns the messages with the texts and tools that were added, in their places."""
        left = dict(self._blocks)
        sent: list[AnyMessage] = []
        for message in messages:
            text = self._added.get(message.id or "", "")
            sent.append(_with_text(message, text) if text else message)
            _add(sent, left.pop(message.id or "", []))
        if sent and not isinstance(sent[-1], AIMessage):
            for lost in left.values():
                _add(sent, lost)
        return sent


def opened(message: AIMessage) -> AIMessage:
    """Returns the message with the calls that stand in envelopes, as the tools' own.

    A mistaken envelope stays: Gate tells the model what is wrong with it.
    """
    meant = {}
    for call in message.tool_calls:
        name, arguments = call["args"].get("name"), call["args"].get("arguments", {})
        if call["name"] != CALL_TOOL or not isinstance(arguments, dict):
            continue
        if isinstance(name, str) and name.strip():
            written = json.dumps(arguments, ensure_ascii=False, default=str)
            meant[call["id"] or ""] = Verdict("", name, written)
    return renamed(message, meant) if meant else message


def _known(tool: dict[str, Any]) -> dict[str, Any]:
    """Returns a definition; of OpenAI's own search, which LangChain does not answer, a function."""
    if tool.get("type") != "tool_search":
        return tool
    parameters = tool.get("parameters") or SEARCH_TOOL.input_schema
    said = tool.get("description") or SEARCH_TOOL.description
    return {"name": SEARCH_TOOL.model_name, "description": said, "parameters": parameters}


def _add(sent: list[AnyMessage], blocks: list[Any]) -> None:
    """Adds blocks behind the messages. Anthropic takes no two system messages in a row."""
    if not blocks:
        return
    last = sent[-1]
    if not isinstance(last, SystemMessage):
        sent.append(SystemMessage(blocks))
        return
    content: Any = last.content
    said = content if isinstance(content, list) else [{"type": "text", "text": content}]
    sent[-1] = last.model_copy(update={"content": [*said, *blocks]})


def _wrap(name: str, arguments: Mapping[str, Any]) -> Verdict:
    call = {"name": name, "arguments": arguments}
    return Verdict("", CALL_TOOL, json.dumps(call, ensure_ascii=False, default=str))


def _with_text(message: AnyMessage, text: str) -> AnyMessage:
    content: Any = message.content
    if isinstance(content, str):
        content += text
    else:
        content = [*content, {"type": "text", "text": text.lstrip("\n")}]
    return message.model_copy(update={"content": content})


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("function", tool).get("name", ""))
