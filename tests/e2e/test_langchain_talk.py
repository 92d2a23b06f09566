"""The provider's cache over a long conversation with a LangChain agent."""

import asyncio
from itertools import pairwise
from pathlib import Path

from langchain_talk import TURNS, Request, cached, described, play

from toolgate import Client

CLOSING = len("]}")
"""The characters at the end of a request that another message moves."""


def uncached(requests: list[Request]) -> int:
    """The characters that no cache serves."""
    kept = [0, *map(len, cached(requests))]
    return sum(len(one.text) - prefix for one, prefix in zip(requests, kept, strict=True))


def test_over_forty_turns_the_envelope_keeps_the_prefix_or_drops_tools_from_it(
    client: Client, tmp_path: Path
) -> None:
    cut = asyncio.run(play(client, tmp_path, "cut"))
    envelope = asyncio.run(play(client, tmp_path, "envelope"))
    assert len(envelope) > TURNS
    shown = {tuple(request.tools) for request in envelope}
    assert shown == {("toolgate_search_tools", "toolgate_call_tool")}
    whole = 0
    for (before, after), prefix in zip(pairwise(envelope), cached(envelope), strict=True):
        is_whole = len(before.text) - len(prefix) <= CLOSING
        stay = described(after)[: len(described(before))] == described(before)
        assert is_whole is stay, "only descriptions that nothing uses any more are taken out"
        whole += is_whole
    assert whole > len(envelope) * 2 / 3
    changed = [before.tools != after.tools for before, after in pairwise(cut)]
    assert sum(changed) > len(cut) / 3, "the set goes with what is asked"
    assert uncached(envelope) < uncached(cut) / 2
