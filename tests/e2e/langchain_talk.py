"""The forty messages to a LangChain agent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from forty_messages import TURNS, Framework, Request, Talk
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from llm_provider import Answer, Provider, Sent, answer, serving
from mcp import ClientSession
from mcp_sessions import sessions
from pydantic import PrivateAttr, SecretStr
from scripted_answers import ANSWER

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


def _anthropic(name: str, url: str) -> BaseChatModel:
    """A model of Anthropic's own host, which a script at a URL stands in for as a proxy."""
    return ChatAnthropic(
        model_name=name,
        api_key=SecretStr("none"),
        base_url="http://api.anthropic.com",
        anthropic_proxy=url,
        timeout=None,
        stop=None,
    )


def _openai(name: str, url: str) -> BaseChatModel:
    """A model of OpenAI's Responses at its own host, which a script at a URL stands in for as a
    proxy."""
    return ChatOpenAI(
        model=name,
        api_key=SecretStr("none"),
        base_url="http://api.openai.com/v1",
        openai_proxy=url,
        use_responses_api=True,
    )


PROVIDERS = {"anthropic": _anthropic, "responses": _openai}
"""Makes LangChain's own models, by the API."""


@contextmanager
def scripted(talk: Talk, names: Mapping[str, str | None]) -> Iterator[BaseChatModel]:
    """The model that answers by the script: LangChain's own of that name, or a class of ours.

    Args:
        talk: The script.
        names: The name of the model by its API, of `PROVIDERS`.
    """
    named = [(api, name) for api, name in names.items() if name is not None]
    if not named:
        yield TalkingModel(talk)
        return
    ((api, name),) = named

    def respond(sent: Sent) -> Answer:
        return answer(talk.respond(sent.path, sent.json))

    with serving(Provider(*[respond] * (2 * TURNS))) as provider:
        yield PROVIDERS[api](name, provider.url)


async def talk(
    client: Client,
    servers: Mapping[str, ClientSession],
    *,
    anthropic: str | None = None,
    responses: str | None = None,
    **options: Any,
) -> list[Request]:
    """Has the talk; the model's requests.

    Args:
        client: The client of Toolgate.
        servers: The MCP servers.
        anthropic: The name of a model for `ChatAnthropic`.
        responses: The name of a model for `ChatOpenAI` over Responses. Without either name: a model
            without a provider, whose requests are written as Chat Completions take them.
        options: Those of the integration.
    """
    toolgate = await ToolgateMiddleware.from_mcp(client, servers, **options)
    talk = Talk()
    with scripted(talk, {"anthropic": anthropic, "responses": responses}) as chat:
        agent = create_agent(chat, middleware=[toolgate], checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        for _ in range(TURNS):
            await agent.ainvoke({"messages": [HumanMessage(talk.say())]}, thread)
    return talk.requests


FRAMEWORK = Framework(sessions, talk)
