"""The capability: a real agent and a real server, with a model that follows a script."""

import asyncio
import json
from typing import Any

import pytest
from desk import CREATE, DELETE, FIND, FORECAST, GUARDED, SEARCH, Desk, clock
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset

from toolgate import AsyncClient, Client
from toolgate.pydantic_ai import Toolgate, mcp_definitions, model_facing

Step = str | list[tuple[str, dict[str, Any]]]


class Script:
    """Answers with texts and calls in turn; keeps which tools it was shown."""

    def __init__(self, *steps: Step) -> None:
        self.shown: list[list[str]] = []
        self._steps = iter(steps)

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self._answer)

    def _answer(self, _messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.shown.append([tool.name for tool in info.function_tools])
        step = next(self._steps)
        if isinstance(step, str):
            return ModelResponse([TextPart(step)])
        return ModelResponse([ToolCallPart(name, arguments) for name, arguments in step])


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def tools(client: Client, desk: Desk) -> AbstractToolset[Any]:
    """The desk's tools, registered; deleting asks for a scope and for a search before it."""
    notes = FunctionToolset[Any]([desk.find_notes, desk.create_note, desk.delete_note])
    weather = FunctionToolset[Any]([desk.get_forecast])
    for server, toolset in (("notes", notes), ("weather", weather)):
        definitions = mcp_definitions(tool.tool_def for tool in toolset.tools.values())
        settings = [GUARDED] if server == "notes" else []
        client.register_server(server, definitions, tool_settings=settings)
    return CombinedToolset(
        [
            model_facing(notes, client.list_tools("notes")),
            model_facing(weather, client.list_tools("weather")),
        ]
    )


def refusals(result: AgentRunResult[str]) -> list[dict[str, Any]]:
    return [
        json.loads(part.model_response_str(wrap_if_error=False))
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.outcome == "failed"
    ]


def run(script: Script, toolgate: Toolgate, text: str, **named: Any) -> AgentRunResult[str]:
    return Agent(script.model, capabilities=[toolgate]).run_sync(text, **named)


def test_the_model_sees_its_own_tools_and_the_active_set(
    client: Client, tools: AbstractToolset[Any], desk: Desk
) -> None:
    script = Script([(FORECAST, {"city": "Oslo"})], "Rain.")
    agent = Agent(script.model, tools=[clock], capabilities=[Toolgate(client, tools, top_k=1)])
    result = agent.run_sync("what will the weather be in Oslo in the coming days?")
    assert script.shown[0] == ["clock", SEARCH, FORECAST]
    assert desk.ran == ["get_forecast"]
    assert (result.output, refusals(result)) == ("Rain.", [])


def test_a_refusal_is_told_to_the_model_which_mends_its_call(
    client: Client, tools: AbstractToolset[Any], desk: Desk
) -> None:
    mistaken = [(CREATE, {"title": number}) for number in range(4)]
    script = Script([*mistaken, (FIND, {"text": "milk"})], [(CREATE, {"title": "milk"})], "Done.")
    result = run(script, Toolgate(client, tools, threshold=0.0), "write a note about milk")
    assert desk.ran == ["find_notes", "create_note"]
    told = refusals(result)
    assert [refusal["error"] for refusal in told] == ["arguments_invalid"] * 4, "no retry counted"
    assert told[0]["violations"][0]["pointer"] == "/title"


def test_a_hidden_tool_is_refused_and_found_by_a_search(
    client: Client, tools: AbstractToolset[Any], desk: Desk
) -> None:
    forecast = [(FORECAST, {"city": "Oslo"})]
    script = Script(forecast, [(SEARCH, {"query": f"select:{FORECAST}"})], forecast, "Rain.")
    result = run(script, Toolgate(client, tools, top_k=1), "search through my notes")
    (refusal,) = refusals(result)
    assert refusal["search"] == f"select:{FORECAST}"
    assert script.shown[0] == [SEARCH, FIND]
    assert FORECAST in script.shown[2]
    assert desk.ran == ["get_forecast"]


def test_a_mistaken_search_is_told_to_the_model(
    client: Client, tools: AbstractToolset[Any]
) -> None:
    asks: list[Step] = [[(SEARCH, {"query": " "})], [(SEARCH, {"max_results": 3})]]
    result = run(Script(*asks, "Never mind."), Toolgate(client, tools, top_k=1), "search my notes")
    assert [refusal["error"] for refusal in refusals(result)] == ["arguments_invalid"] * 2


def test_preconditions_are_read_from_the_messages_and_the_grants(
    client: Client, tools: AbstractToolset[Any], desk: Desk
) -> None:
    delete = [(DELETE, {"title": "milk"})]
    script = Script(delete, [(FIND, {"text": "milk"})], delete, "Deleted.")
    toolgate = Toolgate(client, tools, threshold=0.0, grants=lambda ctx: {"scopes": [ctx.deps]})
    result = run(script, toolgate, "delete the note on milk", deps="notes:delete")
    assert desk.ran == ["find_notes", "delete_note"]
    assert [DELETE in shown for shown in script.shown] == [False, False, True, True]
    assert len(refusals(result)) == 1


def test_the_messages_carry_the_active_set_from_run_to_run(
    client: Client, tools: AbstractToolset[Any]
) -> None:
    script = Script("Yes.", "Rain.")
    first = run(script, Toolgate(client, tools, top_k=1, threshold=0.0), "search my notes")
    messages = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    elsewhere = Toolgate(client, tools, top_k=1, threshold=0.0)
    run(script, elsewhere, "the weather forecast for a city", message_history=messages)
    assert script.shown == [[SEARCH, FIND], [SEARCH, FIND, FORECAST]]


def test_a_call_that_waited_for_its_approval_is_gated_when_it_is_made(
    client: Client, tools: AbstractToolset[Any], desk: Desk
) -> None:
    script = Script([(FIND, {"text": "milk"})], [(DELETE, {"title": "milk"})], "Deleted.")
    scopes = ["notes:delete"]
    asks = tools.approval_required(lambda _ctx, tool, _args: tool.name == DELETE)
    toolgate = Toolgate(client, asks, threshold=0.0, grants=lambda _ctx: {"scopes": scopes})
    agent = Agent(script.model, capabilities=[toolgate], output_type=[str, DeferredToolRequests])
    waits = agent.run_sync("find and delete the note on milk")
    assert isinstance(waits.output, DeferredToolRequests)
    (call,) = waits.output.approvals
    approved = DeferredToolResults(approvals={call.tool_call_id: True})
    named: Any = {"message_history": waits.all_messages(), "deferred_tool_results": approved}
    scopes.clear()
    agent.run_sync(**named)
    assert desk.ran == ["find_notes"], "no longer granted"
    scopes.append("notes:delete")
    with agent.override(model=Script("Deleted.").model):
        assert agent.run_sync(**named).output == "Deleted."
    assert desk.ran == ["find_notes", "delete_note"]


def test_a_handle_of_elsewhere_is_replaced(client: Client, tools: AbstractToolset[Any]) -> None:
    kept = {"toolgate": {"handle": "of another service", "active": [FORECAST]}}
    script = Script([(FIND, {"text": "milk"})], "One.")
    before: list[ModelMessage] = [ModelResponse([TextPart("Hello.")], metadata=kept)]
    result = run(script, Toolgate(client, tools), "search my notes on milk", message_history=before)
    assert (result.output, refusals(result)) == ("One.", [])


def test_a_streamed_run_is_gated_too(
    client: Client, tools: AbstractToolset[Any], desk: Desk
) -> None:
    async def stream(_messages: list[ModelMessage], info: AgentInfo) -> Any:
        if info.function_tools and not desk.ran:
            yield {
                0: DeltaToolCall(CREATE, '{"title": 7}', tool_call_id="c1"),
                1: DeltaToolCall(FIND, '{"text": "milk"}', tool_call_id="c2"),
            }
        else:
            yield "Done."

    agent = Agent(
        FunctionModel(stream_function=stream),
        capabilities=[Toolgate(client, tools, threshold=0.0)],
    )

    async def run_streamed() -> str:
        async with agent.run_stream("write a note about milk") as result:
            return await result.get_output()

    assert asyncio.run(run_streamed()) == "Done."
    assert desk.ran == ["find_notes"]


def test_an_async_client(target: str, tenant: str, tools: AbstractToolset[Any], desk: Desk) -> None:
    search = [(SEARCH, {"query": "weather forecast"})]
    script = Script(search, [(FORECAST, {"city": "Oslo"})], "Rain.")

    async def talk() -> None:
        async with AsyncClient(target, tenant=tenant, timeout=30) as client:
            toolgate = Toolgate(client, tools, top_k=1)
            await Agent(script.model, capabilities=[toolgate]).run("search my notes")

    asyncio.run(talk())
    assert desk.ran == ["get_forecast"]


def test_without_toolgate_the_model_sees_all_tools_and_no_call_runs(
    unreachable: Client, tools: AbstractToolset[Any], desk: Desk
) -> None:
    script = Script([(FIND, {"text": "milk"})], "I can't.")
    result = run(script, Toolgate(unreachable, tools), "search my notes")
    assert script.shown[0] == [FIND, CREATE, DELETE, FORECAST]
    assert [refusal["error"] for refusal in refusals(result)] == ["gate_unavailable"]
    assert desk.ran == []


def test_the_search_can_be_left_out(client: Client, tools: AbstractToolset[Any]) -> None:
    script = Script("One.")
    run(script, Toolgate(client, tools, top_k=1, search=False), "search through my notes")
    assert script.shown == [[FIND]]


def test_mistakes_are_refused_at_once(client: Client, desk: Desk) -> None:
    bare = FunctionToolset[Any]([desk.find_notes])
    with pytest.raises(TypeError, match="did you mean top_k"):
        Toolgate(client, bare, topk=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean scopes"):
        Toolgate(client, bare, grants={"scope": ["a"]})
    with pytest.raises(ValueError, match="model_facing"):
        run(Script("Yes."), Toolgate(client, bare), "search my notes")
