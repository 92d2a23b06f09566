"""A loop of one's own that streams: what each provider's package makes of a stream is an answer."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from catalogs import NOTES
from google import genai
from llm_provider import Answer, Json, Provider, events, serving
from openai import AsyncOpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from provider_types import check_request

from toolgate import Client, Conversation, ModelRequest

FIND = "mcp__notes__find_notes"
SAID, GIVEN, DONE = "Let me look.", {"text": "milk"}, "Two litres."
ARGUMENTS = json.dumps(GIVEN)
Final = Callable[[str, ModelRequest], Awaitable[Any]]
"""Asks a model at a URL, as its package does for a stream; what to give to `take`."""


def named(*said: Json) -> Answer:
    """Events with their names."""
    return events(*(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in said))


def plain(*said: Json, end: bytes = b"") -> Answer:
    """Events without names."""
    return events(*(f"data: {json.dumps(one)}\n\n".encode() for one in said), end)


def anthropic_blocks(*blocks: tuple[Json, list[Json]]) -> Answer:
    """An answer of Anthropic's: how each block begins, and what is added to it."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    said: list[Json] = [{"type": "message_start", "message": {**message, "usage": usage}}]
    for at, (block, deltas) in enumerate(blocks):
        said.append({"type": "content_block_start", "index": at, "content_block": block})
        said += [{"type": "content_block_delta", "index": at, "delta": one} for one in deltas]
        said.append({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    end = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}
    return named(*said, end, {"type": "message_stop"})


def anthropic_text(text: str) -> tuple[Json, list[Json]]:
    """A block of text in two pieces."""
    pieces = [{"type": "text_delta", "text": part} for part in (text[:5], text[5:])]
    return {"type": "text", "text": ""}, pieces


def chat_chunks(*deltas: Json) -> Answer:
    """An answer of Chat Completions."""
    whole = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices: list[Json] = [{"index": 0, "delta": one, "finish_reason": None} for one in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return plain(*({**whole, "choices": [one]} for one in choices), end=b"data: [DONE]\n\n")


def response_events(*items: Json) -> Answer:
    """An answer of Responses, with the events that complete it."""
    whole: Json = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": [],
    }
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    said: list[Json] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress"}}
    ]
    for at, item in enumerate(items):
        empty: Json = {"content": []} if "content" in item else {"arguments": ""}
        begun = {**item, **empty}
        said.append({"type": "response.output_item.added", "output_index": at, "item": begun})
        place = {"item_id": item["id"], "output_index": at}
        if "content" in item:
            place |= {"content_index": 0}
            part = {**item["content"][0], "text": ""}
            said.append({"type": "response.content_part.added", **place, "part": part})
            text = item["content"][0]["text"]
            said.append({"type": "response.output_text.delta", **place, "delta": text})
        else:
            delta = {"delta": item["arguments"]}
            said.append({"type": "response.function_call_arguments.delta", **place, **delta})
        said.append({"type": "response.output_item.done", "output_index": at, "item": item})
    done = {**whole, "status": "completed", "output": items}
    said.append({"type": "response.completed", "response": done})
    return named(*({**one, "sequence_number": at} for at, one in enumerate(said)))


def response_text(text: str) -> Json:
    """A message of Responses."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return {**item, "content": content}


def gemini_chunks(*parts: Json) -> Answer:
    """An answer of Gemini's, a part a chunk."""
    contents = [{"role": "model", "parts": [part]} for part in parts]
    return plain(*({"candidates": [{"content": one, "index": 0}]} for one in contents))


CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": FIND,
    "arguments": ARGUMENTS,
    "status": "completed",
}
BEGUN = {"id": "call_1", "type": "function", "function": {"name": FIND, "arguments": ""}}
USE = {"type": "tool_use", "id": "toolu_1", "name": FIND, "input": {}}
STREAMS: Mapping[str, tuple[Answer, Answer]] = {
    "anthropic": (
        anthropic_blocks(
            anthropic_text(SAID),
            (
                USE,
                [
                    {"type": "input_json_delta", "partial_json": part}
                    for part in (ARGUMENTS[:7], ARGUMENTS[7:])
                ],
            ),
        ),
        anthropic_blocks(anthropic_text(DONE)),
    ),
    "openai_chat": (
        chat_chunks(
            {"role": "assistant", "content": SAID},
            {"tool_calls": [{"index": 0, **BEGUN}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[:7]}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[7:]}}]},
        ),
        chat_chunks({"role": "assistant", "content": DONE[:5]}, {"content": DONE[5:]}),
    ),
    "openai_responses": (
        response_events(response_text(SAID), CALL),
        response_events(response_text(DONE)),
    ),
    "gemini": (
        gemini_chunks(
            {"text": SAID},
            {"functionCall": {"name": FIND, "args": GIVEN}, "thoughtSignature": "c2ln"},
        ),
        gemini_chunks({"text": DONE[:5]}, {"text": DONE[5:]}),
    ),
}
"""A text and a call, and then a text, by API."""


async def message_of_anthropic(url: str, request: ModelRequest) -> Any:
    """The final message of the helper of Anthropic's package."""
    async with AsyncAnthropic(api_key="none", base_url=url) as api:
        asked: Any = {"tools": request.tools, "messages": request.messages}
        async with api.messages.stream(model="m", max_tokens=99, **asked) as stream:
            return await stream.get_final_message()


async def message_of_anthropic_beta(url: str, request: ModelRequest) -> Any:
    """The same of the API's beta, which `native` needs."""
    async with AsyncAnthropic(api_key="none", base_url=url) as api:
        asked: Any = {"tools": request.tools, "messages": request.messages}
        async with api.beta.messages.stream(model="m", max_tokens=99, **asked) as stream:
            return await stream.get_final_message()


async def completion_of_chat(url: str, request: ModelRequest) -> Any:
    """The chunks of Chat Completions, which OpenAI's package adds up."""
    async with AsyncOpenAI(api_key="none", base_url=url) as api:
        asked: Any = {"tools": request.tools, "messages": request.messages}
        # It reads the arguments of strict tools, which is not to be sent back.
        strict: Any = [
            {**tool, "function": {**tool["function"], "strict": True}} for tool in request.tools
        ]
        state = ChatCompletionStreamState(input_tools=strict)
        async for chunk in await api.chat.completions.create(model="m", stream=True, **asked):
            state.handle_chunk(chunk)
        return state.get_final_completion()


async def completed_response(url: str, request: ModelRequest) -> Any:
    """The response of the event `response.completed`."""
    async with AsyncOpenAI(api_key="none", base_url=url) as api:
        asked: Any = {"tools": request.tools, "input": request.messages}
        stream: Any = await api.responses.create(model="m", stream=True, **asked)
        completed = [one async for one in stream if one.type == "response.completed"]
        return completed[0].response


async def final_response(url: str, request: ModelRequest) -> Any:
    """The final response of the helper of OpenAI's package."""
    async with AsyncOpenAI(api_key="none", base_url=url) as api:
        strict = [{**tool, "strict": True} for tool in request.tools]
        asked: Any = {"tools": strict, "input": request.messages}
        async with api.responses.stream(model="m", **asked) as stream:
            return await stream.get_final_response()


async def chunks_of_gemini(url: str, request: ModelRequest) -> Any:
    """A list of the chunks of Google's package."""
    api = genai.Client(api_key="none", http_options={"base_url": url})
    contents: Any = request.messages
    config: Any = {"tools": [{"function_declarations": request.tools}]}
    stream = await api.aio.models.generate_content_stream(
        model="m", contents=contents, config=config
    )
    return [chunk async for chunk in stream]


FINALS: Mapping[str, tuple[str, Final]] = {
    "anthropic: get_final_message": ("anthropic", message_of_anthropic),
    "anthropic beta: get_final_message": ("anthropic", message_of_anthropic_beta),
    "openai: ChatCompletionStreamState": ("openai_chat", completion_of_chat),
    "openai: response.completed": ("openai_responses", completed_response),
    "openai: get_final_response": ("openai_responses", final_response),
    "google-genai: chunks": ("gemini", chunks_of_gemini),
}


@pytest.mark.parametrize(("api", "final"), FINALS.values(), ids=FINALS)
def test_what_a_package_makes_of_a_stream_can_be_taken(
    client: Client, api: str, final: Final
) -> None:
    ran: list[Any] = []

    def run_tool(*call: Any) -> str:
        ran.append(call)
        return "milk: two litres"

    async def run(url: str) -> Conversation:
        conversation = await Conversation.from_tools(
            client, api, {"notes": NOTES}, run_tool, strategy="cut", pinned_tools=[FIND]
        )
        request: ModelRequest | None = await conversation.say("search through my notes for milk")
        while request is not None:
            check_request(api, request.tools, request.messages)
            request = await conversation.take(await final(url, request))
        return conversation

    provider = Provider(*STREAMS[api])
    with serving(provider):
        conversation = asyncio.run(run(provider.url))
    assert ran == [("notes", "find_notes", GIVEN)]
    assert conversation.text == DONE
    check_request(api, (), conversation.messages)
    said = json.dumps(conversation.messages)
    assert SAID in said
    assert ("c2ln" in said) is (api == "gemini"), "signatures are kept"
