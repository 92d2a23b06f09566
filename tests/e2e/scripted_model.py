"""A chat model that says what a test tells it to, and keeps what it was shown."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr


class ScriptedModel(BaseChatModel):
    """Answers with the script's messages in turn."""

    script: list[AIMessage] = Field(default_factory=list)
    shown_tools: list[list[str]] = Field(default_factory=list)
    shown_messages: list[list[BaseMessage]] = Field(default_factory=list)
    _bound: list[str] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[Any, AIMessage]:
        # A copy shares the lists, so that the test sees what was shown to it.
        bound = self.model_copy()
        bound._bound = [convert_to_openai_tool(tool)["function"]["name"] for tool in tools]
        return bound

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _pieces(self._next(messages)):
            yield ChatGenerationChunk(message=chunk)

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        answer = self.script[len(self.shown_tools)]
        self.shown_tools.append(self._bound)
        self.shown_messages.append(messages)
        return answer


def _pieces(message: AIMessage) -> Iterator[AIMessageChunk]:
    """The message's text and the arguments of its calls, each in two pieces."""
    text = message.text
    for half in filter(None, (text[:2], text[2:])):
        yield AIMessageChunk(content=half)
    for at, call in enumerate(message.tool_calls):
        given = json.dumps(call["args"])
        begun = tool_call_chunk(name=call["name"], args=given[:5], id=call["id"], index=at)
        for piece in (begun, tool_call_chunk(args=given[5:], index=at)):
            yield AIMessageChunk(content="", tool_call_chunks=[piece])


def says(text: str) -> AIMessage:
    return AIMessage(text)


def calls(*named: tuple[str, dict[str, Any]]) -> AIMessage:
    """Calls tools, each with an identifier of its own."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": arguments, "id": f"call_{next(_ids)}"}
            for name, arguments in named
        ],
    )


_ids = iter(range(1, 1_000_000))
