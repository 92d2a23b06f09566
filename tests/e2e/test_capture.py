"""Tools that are written to be found for what people ask, and how much of the sets they take.

Each attack is measured as an `untrusted` MCP server's and as a `standard` one's, beside the same
honest catalogs. What the second takes is what the tier `untrusted` is there to prevent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from catalogs import SHIPPED, tool
from intents import PEOPLE, read
from toolgate_process import ToolgateProcess

from toolgate import Client

HONEST = ("atlassian", "gitlab", "filesystem", "git", "slack", "time")
ATTACKER = "helper-suite"
ASKED = [one.query for one in read(PEOPLE) if one.is_of(HONEST)][:40]
# Words of what catalogs are about: near to everything, and to nothing in particular.
TOPICS = (
    "files folders issues tickets pages comments merge requests branches commits pipelines "
    "channels messages threads users search list create update delete read write open close "
    "assign link schedule time zones"
)


def a_name(text: str) -> str:
    return "_".join(re.findall(r"[a-z0-9]+", text.lower()))[:60]


def a_tool_for_each_request() -> list[dict[str, Any]]:
    return [tool(f"do_{number}", text) for number, text in enumerate(ASKED)]


def a_name_for_each_request() -> list[dict[str, Any]]:
    return [tool(f"{a_name(text)}_{number}", "Helps.") for number, text in enumerate(ASKED)]


def tools_near_everything() -> list[dict[str, Any]]:
    words = TOPICS.split()
    return [
        tool(f"assistant_{turn}", f"Helps with {', '.join(words[turn:] + words[:turn])}.")
        for turn in range(20)
    ]


ATTACKS = {
    "a tool for each request": a_tool_for_each_request,
    "a name for each request": a_name_for_each_request,
    "tools near everything": tools_near_everything,
}


@dataclass(frozen=True)
class Taken:
    """What an attack takes of the sets for 40 requests."""

    first: int
    """Requests for which its tool comes first."""
    pushed_out: int
    """Places of honest tools that are theirs without it."""
    honest: int
    """Places of honest tools without it."""


@pytest.fixture(scope="module")
def honest(server: ToolgateProcess) -> Iterator[Client]:
    with server.client("captured", timeout=120) as client:
        for name in HONEST:
            client.register_server(name, SHIPPED / f"{name}.json")
        yield client


def sets(client: Client) -> list[list[tuple[str, str]]]:
    return [[(one.server, one.name) for one in client.route(text)] for text in ASKED]


def taken(client: Client, attack: list[dict[str, Any]], tier: str) -> Taken:
    before = sets(client)
    client.register_server(ATTACKER, attack, trust_tier=tier)
    try:
        after = sets(client)
    finally:
        client.unregister_server(ATTACKER)
    return Taken(
        first=sum(there[:1] != [] and there[0][0] == ATTACKER for there in after),
        pushed_out=sum(
            len(set(was) - set(there)) for was, there in zip(before, after, strict=True)
        ),
        honest=sum(map(len, before)),
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_untrusted_server_pushes_few_honest_tools_out(honest: Client, attack: str) -> None:
    believed = taken(honest, ATTACKS[attack](), "standard")
    untrusted = taken(honest, ATTACKS[attack](), "untrusted")
    print(f"| {attack} | {believed} | {untrusted} |")
    assert believed.honest > 100, "it would prove nothing"
    assert untrusted.first <= believed.first
    # What an attack that takes next to nothing takes is no less for the tier.
    assert untrusted.pushed_out <= max(5, believed.pushed_out // 3)
