"""Nodes and an edge for graphs of one's own: the middleware's steps, without `create_agent`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, cast

from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import get_runtime
from langgraph.types import Command

from toolgate.langchain import _messages
from toolgate.langchain._middleware import ToolgateMiddleware, ToolgateState

Answer = ToolMessage | Command[Any]


def model_node(
    toolgate: ToolgateMiddleware,
    model: BaseChatModel,
    tools: Sequence[BaseTool] = (),
    *,
    prompt: str | None = None,
    **bind: Any,
) -> Runnable[ToolgateState, dict[str, Any]]:
    """Returns the node that routes, asks the model, and lets Gate decide on its calls.

        graph = StateGraph(ToolgateState)
        graph.add_node("model", model_node(toolgate, model))
        graph.add_node("tools", tool_node(toolgate))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", calls_condition)
        graph.add_edge("tools", "model")

    The model's message goes to the state with the answers to refused calls and to searches.

    Args:
        toolgate: The middleware, which need not be on any agent.
        model: Is shown the active set of the turn, by its `bind_tools`.
        tools: Tools of the agent's own, always shown and never gated; `tool_node` needs them too.
        prompt: The system message, in front of the state's messages. Default: none.
        **bind: Further arguments of `bind_tools`.

    Returns:
        A node for graphs whose state is `ToolgateState` or a subclass, for `invoke` and `ainvoke`.
    """

    def asked(state: ToolgateState, runtime: Any) -> ModelRequest[Any]:
        return ModelRequest(
            model=model,
            messages=state["messages"],
            system_message=SystemMessage(prompt) if prompt else None,
            tools=[*tools, *toolgate.tools],
            state=state,
            runtime=runtime,
        )

    def bound(request: ModelRequest[Any]) -> Runnable[Any, AIMessage]:
        settings = {**bind, **request.model_settings}
        return model.bind_tools(request.tools, **settings) if request.tools else model

    def run(state: ToolgateState, config: RunnableConfig) -> dict[str, Any]:
        def ask(request: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse([bound(request).invoke(_sent(request), config)])

        runtime = get_runtime()
        routed = toolgate.before_model(state, runtime) or {}
        state = _with(state, routed)
        answered = toolgate.wrap_model_call(asked(state, runtime), ask)
        response, late = _parted(answered)
        routed, state = {**routed, **late}, _with(state, late)
        said = _said(response)
        gated = toolgate.after_model(_with(state, {"messages": said}), runtime) or {}
        return _update(routed, said, gated)

    async def arun(state: ToolgateState, config: RunnableConfig) -> dict[str, Any]:
        async def ask(request: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse([await bound(request).ainvoke(_sent(request), config)])

        runtime = get_runtime()
        routed = await toolgate.abefore_model(state, runtime) or {}
        state = _with(state, routed)
        answered = await toolgate.awrap_model_call(asked(state, runtime), ask)
        response, late = _parted(answered)
        routed, state = {**routed, **late}, _with(state, late)
        said = _said(response)
        gated = await toolgate.aafter_model(_with(state, {"messages": said}), runtime) or {}
        return _update(routed, said, gated)

    return RunnableLambda(run, arun, name="model")


def tool_node(
    toolgate: ToolgateMiddleware, tools: Sequence[BaseTool] = (), **options: Any
) -> ToolNode:
    """Returns LangGraph's `ToolNode` over the tools that Toolgate manages and the agent's own.

    Calls that are answered already, as refused ones are, keep their answers and do not run.

    Args:
        toolgate: The middleware. After its `refresh` the node runs the tools that it has then.
        tools: Tools of the agent's own, as for `model_node`.
        **options: Further arguments of `ToolNode`, such as `handle_tool_errors`.
    """

    def wrap(request: ToolCallRequest, run: Callable[[ToolCallRequest], Answer]) -> Answer:
        return _answer_to(request) or toolgate.wrap_tool_call(request, run)

    async def awrap(
        request: ToolCallRequest, run: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        return _answer_to(request) or await toolgate.awrap_tool_call(request, run)

    return ToolNode(
        [*tools, *toolgate.tools], wrap_tool_call=wrap, awrap_tool_call=awrap, **options
    )


def calls_condition(state: ToolgateState) -> Literal["tools", "model", "__end__"]:
    """Says where a graph goes after `model_node`; for `add_conditional_edges`.

    Returns:
        "tools" while a call has no answer; "model" where all have one, as after a refusal, which
        the model can mend; `END` without calls. Nodes of other names are given with `path_map`.
    """
    message, calls = _messages.open_calls(state["messages"])
    if message is None or not message.tool_calls:
        return "__end__"
    return "tools" if calls else "model"


def _sent(request: ModelRequest[Any]) -> list[AnyMessage]:
    first = [] if request.system_message is None else [request.system_message]
    return [*first, *request.messages]


def _parted(
    answered: ModelResponse[Any] | ExtendedModelResponse[Any],
) -> tuple[ModelResponse[Any], dict[str, Any]]:
    """The model's answer, and the update of a turn that was routed with it."""
    if not isinstance(answered, ExtendedModelResponse):
        return answered, {}
    update: Any = answered.command.update if answered.command is not None else None
    return answered.model_response, update or {}


def _said(response: ModelResponse[Any]) -> list[AnyMessage]:
    """The model's messages, each with an identifier, by which a gated copy replaces it."""
    return _added([], response.result)


def _with(state: ToolgateState, update: dict[str, Any]) -> ToolgateState:
    messages = _added(state["messages"], update.get("messages", []))
    return cast(ToolgateState, {**state, **update, "messages": messages})


def _update(
    routed: dict[str, Any], said: list[AnyMessage], gated: dict[str, Any]
) -> dict[str, Any]:
    return {**routed, **gated, "messages": _added(said, gated.get("messages", []))}


def _added(messages: Sequence[Any], new: Sequence[Any]) -> list[AnyMessage]:
    """Returns the messages with further ones, as the graph's state adds them."""
    return cast(list[AnyMessage], add_messages(cast(Any, messages), cast(Any, new)))


def _answer_to(request: ToolCallRequest) -> ToolMessage | None:
    """The answer that a call has already: with its identifier, it takes its own place."""
    state: Any = request.state
    messages = state.get("messages", []) if isinstance(state, dict) else state
    called = request.tool_call["id"]
    _, open_calls = _messages.open_calls(messages)
    if any(call["id"] == called for call in open_calls):
        return None
    answers = (m for m in reversed(messages) if isinstance(m, ToolMessage))
    return next((answer for answer in answers if answer.tool_call_id == called), None)
