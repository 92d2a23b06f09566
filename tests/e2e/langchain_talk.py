"""The forty messages to a LangChain agent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from forty_messages import ANSWER, TURNS, Framework, Request, Talk
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from mcp import ClientSession
from mcp_sessions import sessions
from pydantic import PrivateAttr

from toolgate import Client
from toolgate.langchain import ToolgateMiddleware


class TalkingModel(BaseChatModel):
    """The talk's side of the model."""

    _talk: Talk = PrivateAttr()
    _tools: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self._talk = talk

    @property
    def _llm_type(self) -> str:
        return "talking"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[Any, AIMessage]:
        bound = TalkingModel(self._talk)
        bound._tools = [convert_to_openai_tool(tool) for tool in tools]
        return bound

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        sent: Any = convert_to_openai_messages(messages)
        call = self._talk.answer(self._tools, sent)
        answer = AIMessage(ANSWER)
        if call is not None:
            made: Any = {"name": call[0], "args": call[1], "id": f"call_{len(messages)}"}
            answer = AIMessage("", tool_calls=[made])
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def talk(
    client: Client, servers: Mapping[str, ClientSession], **options: Any
) -> list[Request]:
    """Has the talk; the model's requests."""
    toolgate = await ToolgateMiddleware.from_mcp(client, servers, **options)
    talk = Talk()
    model = TalkingModel(talk)
    agent = create_agent(model, middleware=[toolgate], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    for _ in range(TURNS):
        await agent.ainvoke({"messages": [HumanMessage(talk.say())]}, thread)
    return talk.requests


FRAMEWORK = Framework(sessions, talk)
