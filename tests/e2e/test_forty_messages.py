"""The provider's cache over a long conversation, with an agent of each Python framework."""

import asyncio
from itertools import pairwise
from pathlib import Path

import langchain_talk
import langgraph_talk
import openai_agents_talk
import pydantic_ai_talk
import pytest
from forty_messages import Play, Request, cached, check_prefix, right_share

from toolgate import Client

PLAYS: dict[str, Play] = {
    "langchain": langchain_talk.play,
    "langgraph": langgraph_talk.play,
    "openai-agents": openai_agents_talk.play,
    "pydantic-ai": pydantic_ai_talk.play,
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_over_forty_turns_the_envelope_keeps_the_prefix_or_drops_tools_from_it(
    play: Play, client: Client, tmp_path: Path
) -> None:
    requests = asyncio.run(played(play, client, tmp_path, "envelope"))
    check_prefix(requests)
    assert right_share(requests) == 1, "the tool of each message is shown"


def test_over_forty_turns_cut_loses_the_prefix_that_the_default_keeps(
    client: Client, tmp_path: Path
) -> None:
    cut = asyncio.run(played(langchain_talk.play, client, tmp_path, "cut"))
    default = asyncio.run(langchain_talk.play(client, tmp_path))
    changed = [before.tools != after.tools for before, after in pairwise(cut)]
    assert sum(changed) > len(cut) / 3, "the set goes with what is asked"
    assert uncached(default) < uncached(cut) / 2
    assert right_share(default) == 1, "the tool of each message is shown"


async def played(play: Play, client: Client, folder: Path, strategy: str) -> list[Request]:
    """Has the talk."""
    return await play(client, folder, strategy=strategy)


def uncached(requests: list[Request]) -> int:
    """Returns the number of characters that no cache serves."""
    kept = [0, *map(len, cached(requests))]
    return sum(len(one.text) - prefix for one, prefix in zip(requests, kept, strict=True))
