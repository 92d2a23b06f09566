"""Whole requests that Route puts together over a conversation."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from catalogs import SHIPPED, body, tool
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import (
    Call,
    Client,
    ContextWarning,
    ModelRequest,
    RenderOptions,
    RouteResult,
    ToolgateError,
    ToolSettings,
)
from toolgate._gen.v1 import router_pb2, router_pb2_grpc, state_pb2

MODEL = "claude-opus-5-5"
TENANT = "strategies"
Messages = list[dict[str, Any]]


class Conversation:
    """An agent that keeps its own messages, and hands back handle and ledger."""

    def __init__(
        self, client: Client, strategy: str, form: str = "anthropic", **route: Any
    ) -> None:
        self.client = client
        self.form = form
        self.strategy = strategy
        self.route = {"top_k": 2, "deferral": "always", "model": MODEL, **route}
        self.messages: Messages = []
        self.handle = ""
        self.ledger = ""

    def turn(self, text: str) -> tuple[RouteResult, ModelRequest]:
        self.messages.append(said(self.form, "user", text))
        turn = self.client.route(
            text,
            state={"messages": self.messages},
            handle=self.handle,
            render=RenderOptions(
                self.form, strategy=self.strategy, search_tool=True, ledger=self.ledger
            ),
            **self.route,
        )
        self.handle, self.ledger = turn.handle, turn.request.ledger
        return turn, turn.request

    def say(self, text: str) -> None:
        self.messages.append(said(self.form, "assistant", text))


@pytest.fixture(scope="module")
def client(server: ToolgateProcess) -> Iterator[Client]:
    """A client of a tenant with the catalogs of three servers, which no test changes."""
    with server.client(TENANT, timeout=PATIENCE) as client:
        register_three(client)
        yield client


@pytest.fixture
def changing(server: ToolgateProcess, tenant: str) -> Iterator[Client]:
    """A client of a tenant of the test's own with the same catalogs."""
    with server.client(tenant, timeout=PATIENCE) as client:
        register_three(client)
        yield client


def register_three(client: Client) -> None:
    for name in ("git", "slack", "gitlab"):
        client.register_server(name, SHIPPED / f"{name}.json")


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in tools]


def added(messages: Messages) -> list[list[str]]:
    """The names of the tools that each `tool_addition` message adds."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    return [[block["tool"]["definition"]["name"] for block in content] for content in system]


SMALL = {
    "limits.max_message_size": "64KiB",
    "limits.max_schema_size": "32KiB",
    "limits.max_state_size": "16KiB",
}
TEXTS = (
    "show me the unstaged changes in this repository",
    "tell the team in slack that the fix is out",
    "open a gitlab issue about the broken map",
)


def test_tools_are_the_same_from_turn_to_turn_and_messages_only_grow(client: Client) -> None:
    talk = Conversation(client, "native")
    before: ModelRequest | None = None
    for text in TEXTS:
        turn, request = talk.turn(text)
        assert request.strategy == "NATIVE"
        assert names(request.tools) == ["toolgate_search_tools"]
        known = {name for addition in added(request.messages) for name in addition}
        assert {one.model_name for one in turn.tools if one.newly_promoted} <= known
        if before is not None:
            assert request.tools == before.tools
            assert request.messages[0] == before.messages[0]
        before = request
        talk.say("It is done.")


def test_always_loaded_tools_stay_in_tools_when_they_are_kept(changing: Client) -> None:
    tools = [tool("clock", "Tells the time."), tool("ring", "Rings a bell.")]
    settings = [ToolSettings("clock", always_load=True)]
    changing.register_server("house", body(tools), tool_settings=settings)
    talk = Conversation(changing, "native")
    for text in TEXTS:
        turn, request = talk.turn(text)
        assert names(request.tools) == ["mcp__house__clock", "toolgate_search_tools"]
        assert all("mcp__house__clock" not in addition for addition in added(request.messages))
        talk.say("It is done.")
    assert any(one.found_by == "KEPT" for one in turn.tools if one.name == "clock")


def test_a_tool_that_left_the_catalog_leaves_the_conversation(changing: Client) -> None:
    talk = Conversation(changing, "native")
    _, first = talk.turn(TEXTS[0])
    (addition,) = added(first.messages)
    assert any(name.startswith("mcp__git__") for name in addition)
    changing.unregister_server("git")
    talk.say("It is done.")
    _, second = talk.turn(TEXTS[1])
    assert not [name for addition in added(second.messages) for name in addition if "git__" in name]


def test_a_compacted_history_has_its_tools_added_anew(client: Client) -> None:
    talk = Conversation(client, "native")
    talk.turn(TEXTS[0])
    talk.messages = [{"role": "user", "content": "A summary of what was said."}]
    turn, request = talk.turn(TEXTS[1])
    known = {name for addition in added(request.messages) for name in addition}
    assert {one.model_name for one in turn.tools} <= known


def test_what_was_sent_keeps_its_bytes(client: Client, channel: grpc.Channel) -> None:
    messages = '[{"role":"user", "content":"\\u00fc", "n":1.50}, {"role":"user","content":"git"}]'
    own = '[ {"name": "own",  "input_schema": {"type": "object", "maximum": 1.50}} ]'
    request = router_pb2.RouteRequest(
        tenant=TENANT,
        intents=[router_pb2.Intent(text=TEXTS[0])],
        state=state_pb2.AgentState(messages_json=messages),
        options=router_pb2.RouteOptions(deferral=router_pb2.DEFERRAL_MODE_ALWAYS, model=MODEL),
        render=router_pb2.RenderOptions(
            format=router_pb2.TOOL_FORMAT_ANTHROPIC,
            strategy=router_pb2.PROMPT_STRATEGY_NATIVE,
            search_tool=True,
            own_tools_json=own,
        ),
    )
    rendered = router_pb2_grpc.RouterServiceStub(channel).Route(request, timeout=PATIENCE).rendered
    assert rendered.messages_json.startswith(messages.replace("}, {", "},{").removesuffix("]"))
    assert rendered.tools_json.startswith(own.removeprefix("[ ").removesuffix(" ]").join("[,"))


def test_a_request_that_has_no_room_is_refused_with_its_sizes(start_server: StartServer) -> None:
    server = start_server(SMALL)
    with server.client("acme", timeout=PATIENCE) as client:
        client.register_server("git", SHIPPED / "git.json")
        talk = Conversation(client, "envelope", form="openai_chat")
        talk.messages = [{"role": "user", "content": "x" * 64_500}]
        with pytest.raises(ToolgateError) as caught:
            talk.turn(TEXTS[0])
    assert caught.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert caught.value.metadata["limit"] == "limits.max_message_size"
    assert "its messages have 6" in caught.value.message, caught.value.message


def test_a_call_in_an_envelope_runs_as_the_tool_in_it(client: Client) -> None:
    talk = Conversation(client, "envelope", form="openai_chat")
    turn, request = talk.turn(TEXTS[0])
    assert "mcp__git__git_diff_unstaged" in request.messages[-1]["content"]
    inner = {"name": "mcp__git__git_diff_unstaged", "arguments": {"repo_path": "."}}
    for arguments in (inner, json.dumps(inner)):
        call = Call("toolgate_call_tool", arguments, "c1")
        (verdict,) = client.gate(turn.handle, call)
        assert verdict.allowed, verdict.message
        assert (verdict.server, verdict.name, verdict.call_id) == ("git", "git_diff_unstaged", "c1")
        assert verdict.model_name == "mcp__git__git_diff_unstaged"
        assert json.loads(verdict.arguments_json) == {"repo_path": "."}


SMALL_CATALOG = ("git", "time")


def small_talk(client: Client, **route: Any) -> Conversation:
    """A conversation over a catalog that costs little, of which nobody says what to defer."""
    talk = Conversation(client, "auto")
    talk.route = {"model": MODEL, **route}
    return talk


def description(request: ModelRequest) -> str:
    """Returns the description of the search."""
    (search,) = (one for one in request.tools if one["name"] == "toolgate_search_tools")
    return str(search["description"])


def test_the_search_lists_what_is_asked_for(client: Client) -> None:
    def listed(**route: Any) -> tuple[str, int]:
        turn, request = Conversation(client, "native", **route).turn(TEXTS[0])
        assert turn.accounting is not None
        return description(request), turn.accounting.phase1_tokens

    nothing, least = listed(prompt_listing="none")
    assert nothing.endswith("something can't be done.")
    names, _ = listed()
    assert names == listed(prompt_listing="names", prompt_listing_tokens=400)[0]
    assert f"{nothing} It finds: mcp__" in names
    pool = client.get_summary_pool(render=True).rendered.splitlines()
    summaries, tokens = listed(prompt_listing="summaries", prompt_listing_tokens=900)
    lines = summaries.removeprefix(f"{nothing} It finds:\n").splitlines()
    assert lines[:-1] == pool[: len(lines) - 1]
    assert lines[-1] == f"and {len(pool) - len(lines) + 1} more"
    assert 600 < tokens - least < 1000, "phase 1 is what the request has"
    whole, _ = listed(prompt_listing="summaries", prompt_listing_tokens=32_768)
    assert whole == "\n".join([f"{nothing} It finds:", *pool])


@pytest.mark.parametrize(
    "listing",
    [{"prompt_listing_tokens": 0}, {"prompt_listing": "none", "prompt_listing_tokens": 9}],
    ids=["no tokens", "none within tokens"],
)
def test_a_listing_without_tokens_is_refused(client: Client, listing: dict[str, Any]) -> None:
    with pytest.raises(ToolgateError, match=r"prompt_listing_tokens.*PROMPT_LISTING_NONE"):
        Conversation(client, "auto", **listing).turn(TEXTS[0])
    with pytest.raises(ToolgateError, match=r"prompt_listing_tokens.*render\.strategy"):
        client.route(TEXTS[0], prompt_listing_tokens=100)


@pytest.fixture
def small(server: ToolgateProcess, tenant: str) -> Any:
    with server.client(tenant, timeout=PATIENCE) as client:
        for name in SMALL_CATALOG:
            client.register_server(name, SHIPPED / f"{name}.json")
        yield client


def test_b11_the_operator_lists_models_that_take_no_tools_amid_a_conversation(
    start_server: StartServer,
) -> None:
    with start_server({"deferral.no_native_models": "opus-5, other"}).client() as client:
        register_three(client)
        listed = Conversation(client, "native").turn(TEXTS[0])[1]
        assert (listed.strategy, listed.reason, listed.betas) == ("ENVELOPE", "NOT_TAKEN", ())
        assert Conversation(client, "auto").turn(TEXTS[0])[1].strategy != "NATIVE"
        other = Conversation(client, "native", model="claude-opus-4-8").turn(TEXTS[0])[1]
        assert (other.strategy, other.reason) == ("NATIVE", "ASKED")


def test_a19_a_small_catalog_is_sent_whole_where_that_costs_least(small: Client) -> None:
    talk = small_talk(small)
    first, request = talk.turn(TEXTS[0])
    every = {one.model_name for one in small.list_tools()}
    assert (request.strategy, request.reason) == ("PASS", "CHEAPEST")
    assert (first.deferral.reason, first.deferral.source) == ("PRICE", "DEFAULT")
    assert set(names(request.tools)) == every
    assert not first.deferral.offer_search
    talk.say("Nothing changed.")
    second = talk.turn(TEXTS[1])[1]
    assert second.strategy == "PASS"
    assert second.tools == request.tools, "the cached prefix stays"
    assert second.messages == talk.messages


def test_a19_other_servers_of_the_tenant_do_not_count(small: Client) -> None:
    small.register_server("gitlab", SHIPPED / "gitlab.json")
    assert small_talk(small).turn(TEXTS[0])[1].strategy != "PASS"
    request = small_talk(small, servers=list(SMALL_CATALOG)).turn(TEXTS[0])[1]
    assert request.strategy == "PASS"
    assert len(request.tools) == sum(len(list(small.list_tools(name))) for name in SMALL_CATALOG)


def test_a19_what_somebody_chose_is_not_undone_by_the_price(small: Client) -> None:
    chosen: list[dict[str, Any]] = [
        {"deferral": "always"},
        {"top_k": 3},
        {"threshold": 0.3},
        {"schema_token_budget": 2_000},
        {"active_token_budget": 2_000},
        {"active_set_limit": 4},
    ]
    for options in chosen:
        request = small_talk(small, **options).turn(TEXTS[0])[1]
        assert request.strategy != "PASS", options
    first = {"milestone_reached": "staged"}
    rule = {"name": "staged", "match": {"tools": ["git_commit"]}, "precondition": first}
    small.set_policy({"rules": [rule]})
    assert small_talk(small).turn(TEXTS[0])[1].strategy != "PASS"
    capped = {"name": "few", "match": {"servers": ["git"]}, "threshold": 0.3}
    for document in ({"defaults": {"top_k": 4}}, {"rules": [capped]}):
        small.set_policy(document)
        assert small_talk(small).turn(TEXTS[0])[1].strategy != "PASS", document
    small.set_policy({"rules": []})
    small.register_server("time", SHIPPED / "time.json", trust_tier="untrusted")
    assert small_talk(small).turn(TEXTS[0])[1].strategy != "PASS"


WISHES = (
    *TEXTS,
    "which branches are there?",
    "list the open merge requests of the shop",
    "react to the last message in #general with a thumbs up",
    "and the pipelines?",
    "create a label called urgent",
    "who wrote in the channel yesterday?",
    "commit what is staged",
    "add a milestone for december",
    "show the log since monday",
)
MODELS = {
    "anthropic": "claude-opus-4-8",
    "openai_responses": "gpt-6.1",
    "openai_chat": "gpt-5.5",
    "gemini": "gemini-3.5-flash",
}
ANSWER = "It is done. " + "This is what it means for the rest of the week. " * 60
"""Long enough for a conversation to be cached within a few turns."""
ADDING = ("NATIVE", "ENVELOPE")
MOST_UNUSED = 64
"""Tools of earlier turns that a request holds at most (server/llm/src/strategy/keep.rs)."""


def said(form: str, role: str, text: str) -> dict[str, Any]:
    """A message in the format of an API."""
    if form == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": text}


def spoken(message: dict[str, Any]) -> str:
    """The text of a message that `said` made."""
    return str(message["parts"][0]["text"] if "parts" in message else message["content"])


def default_turn(
    client: Client, form: str, messages: Messages, handle: str, ledger: str
) -> RouteResult:
    """Routes the last message with the options that a user gets."""
    return client.route(
        spoken(messages[-1]),
        state={"messages": messages},
        handle=handle,
        model=MODELS[form],
        render=RenderOptions(form, strategy="auto", search_tool=True, ledger=ledger),
    )


def defined(value: Any) -> int:
    """The number of tools that a part of a request defines, in its tools or amid its messages."""
    if isinstance(value, str):
        return sum(value.count(f'"{field}":{{') for field in ("input_schema", "parameters"))
    if isinstance(value, list):
        return sum(map(defined, value))
    if isinstance(value, dict):
        is_tool = "name" in value and bool({"input_schema", "parameters"} & value.keys())
        return is_tool + sum(map(defined, value.values()))
    return 0


@pytest.mark.parametrize("form", MODELS)
def test_a7_a21_b10_by_default_tools_stay_and_what_is_shown_is_bounded(
    client: Client, form: str
) -> None:
    messages: Messages = []
    handle = ledger = ""
    sent: list[ModelRequest] = []
    for text in WISHES:
        messages.append(said(form, "user", text))
        turn = default_turn(client, form, messages, handle, ledger)
        handle, ledger, request = turn.handle, turn.request.ledger, turn.request
        sent.append(request)
        assert sum(one.found_by != "KEPT" for one in turn.tools) <= 10
        assert 0 < defined([request.tools, request.messages]) <= 10 + MOST_UNUSED + 2
        added = ("system", "developer")
        own = [message for message in request.messages if message["role"] not in added]
        # The agent's messages are all there, in their order; the envelope writes behind their text.
        for message, theirs in zip(own, messages, strict=True):
            assert spoken(theirs) in json.dumps(message)
        messages.append(said(form, "assistant", ANSWER))
    strategies = [str(request.strategy) for request in sent]
    begun = next(at for at, strategy in enumerate(strategies) if strategy in ADDING)
    assert set(strategies[begun:]) < set(ADDING), "a conversation stays with what it began"
    # The first set may stand in `tools`, and leave it once.
    assert len({json.dumps(request.tools) for request in sent[begun:]}) <= 2
    assert all("It finds: mcp__" in json.dumps(request.tools) for request in sent[begun:])


@pytest.mark.parametrize("form", MODELS)
def test_a7_by_default_what_a_request_still_shows_may_be_called(client: Client, form: str) -> None:
    every = [one.model_name for one in client.list_tools()]
    messages: Messages = []
    handle = ledger = ""
    carried = 0
    for text in (ANSWER * 8 + WISHES[0], *WISHES[1:6]):
        messages.append(said(form, "user", text))
        turn = default_turn(client, form, messages, handle, ledger)
        handle, ledger = turn.handle, turn.request.ledger
        written = json.dumps([turn.request.tools, turn.request.messages]).replace('\\"', '"')
        shown = {name for name in every if f'"{name}"' in written}
        carried += len(shown - {one.model_name for one in turn.tools})
        refused = set()
        for start in range(0, len(every), 128):
            calls = [Call(name, {}) for name in every[start : start + 128]]
            verdicts = client.gate(handle, calls, state={"messages": messages}).verdicts
            refused |= {
                call.tool
                for call, verdict in zip(calls, verdicts, strict=True)
                if verdict.code == "TOOL_NOT_AVAILABLE"
            }
        assert refused == set(every) - shown
        assert set(turn.servers) == {name.split("__")[1] for name in shown}
        # A search or a look-up in between keeps what may be called.
        for later in (
            client.search_tools("select:mcp__slack__reply_to_thread", handle=handle),
            client.batch_get_tool_schemas(["mcp__slack__reply_to_thread"], handle=handle),
        ):
            still = client.gate(later.handle, [Call(name, {}) for name in sorted(shown)])
            assert all(verdict.code != "TOOL_NOT_AVAILABLE" for verdict in still.verdicts)
        messages.append(said(form, "assistant", ANSWER))
    assert carried > 0


@pytest.mark.parametrize("strategy", ["native", "envelope", "auto"])
def test_a21_a_budget_of_the_active_set_holds_over_a_conversation(
    client: Client, strategy: str
) -> None:
    budget = 1_500
    talk = Conversation(client, strategy, top_k=10, active_token_budget=budget)
    spent = []
    for text in (ANSWER * 8 + WISHES[0], *WISHES[1:]):
        turn, _ = talk.turn(text)
        # The budget is of definitions; what stands around each of them comes on top.
        assert turn.accounting.phase2_tokens <= 1.2 * budget
        spent.append(turn.accounting.phase2_tokens)
        talk.say(ANSWER)
    assert max(spent) > budget / 2, "tools of earlier turns stay within it"


def test_a19_the_agents_own_tools_count_in_the_share_of_the_conversation(client: Client) -> None:
    own: Messages = [
        {"name": f"own_{number}", "description": "x " * 800, "input_schema": {"type": "object"}}
        for number in range(10)
    ]

    def accounting(own_tools: Messages) -> Any:
        turn = client.route(
            WISHES[0],
            state={"messages": [said("anthropic", "user", ANSWER * 8 + WISHES[0])]},
            model=MODEL,
            context_window=12_000,
            render=RenderOptions(
                "anthropic", strategy="auto", search_tool=True, own_tools=own_tools
            ),
        )
        return turn.accounting

    without, beside = accounting([]), accounting(own)
    assert "WINDOW_NEARLY_FULL" not in without.warnings
    assert "WINDOW_NEARLY_FULL" in beside.warnings
    assert without.conversation_rho > 2 * beside.conversation_rho
    assert without.rho - beside.rho > 0.5
    assert without.phase2_tokens == beside.phase2_tokens


@pytest.mark.parametrize("strategy", ["NATIVE", "ENVELOPE"])
def test_b20_by_default_betas_are_named_in_requests_that_need_them(
    client: Client, strategy: str
) -> None:
    talk = Conversation(client, "auto")
    talk.route = {"model": MODEL if strategy == "NATIVE" else "claude-haiku-4-5"}
    sent: list[ModelRequest] = []
    for text in (ANSWER * 8 + WISHES[0], *WISHES[1:5]):
        turn, request = talk.turn(text)
        assert turn.deferral.reason == "MODE"
        assert request.strategy == strategy
        assert "It finds: mcp__" in description(request)
        sent.append(request)
        talk.say(ANSWER)
    needed = "tool_addition" in json.dumps(sent[-1].messages)
    assert needed is (strategy == "NATIVE")
    assert all(bool(request.betas) is needed for request in sent), "from the first request on"
    assert len({request.betas for request in sent}) == 1, "since the provider caches by them"
    assert len({description(request) for request in sent}) == 1


MORE_WISHES = (
    "list the pods that crash",
    "scale the deployment to three replicas",
    "take a screenshot of the page",
    "fill in the login form in the browser",
    "add a comment to the notion page",
)
MORE_SERVERS = ("kubernetes", "playwright", "notion", "filesystem")


@pytest.fixture(scope="module")
def wide(server: ToolgateProcess) -> Iterator[Client]:
    """A client of a tenant with the catalogs of seven servers."""
    with server.client("wide", timeout=PATIENCE) as client:
        register_three(client)
        for name in MORE_SERVERS:
            client.register_server(name, SHIPPED / f"{name}.json")
        yield client


@pytest.mark.parametrize("form", ["anthropic", "openai_responses"])
def test_a21_by_default_a_long_conversation_reaches_the_bound(wide: Client, form: str) -> None:
    talk = Conversation(wide, "auto", form)
    talk.route = {"model": MODELS[form]}
    ever: set[str] = set()
    sent: list[int] = []
    used: list[int] = []
    for text in (*WISHES, *MORE_WISHES):
        turn, request = talk.turn(text)
        assert request.strategy in ADDING
        ever |= {one.model_name for one in turn.tools}
        used.append(len(ever))
        sent.append(defined([request.tools, request.messages]))
        # So long that to write the conversation again costs more than all of the unused tools.
        talk.say(ANSWER * 8)
    bound = 10 + MOST_UNUSED + 2
    assert MOST_UNUSED < max(sent) <= bound
    peak = sent.index(max(sent))
    kept = [at for at, tools in enumerate(sent) if tools >= used[at]]
    assert kept == list(range(peak + 1)), "no price drops a tool: all stay until they are too many"
    assert used[peak + 1] > bound, "one more message would pass the bound"
    assert sent[peak + 1] <= 10 + 2, "then those that are not used go"


@pytest.mark.parametrize("form", MODELS)
def test_b10_a_change_of_the_catalog_is_told_once_and_leaves_the_prefix(
    changing: Client, form: str
) -> None:
    talk = Conversation(changing, "auto", form)
    talk.route = {"model": MODELS[form]}
    for text in WISHES[:8]:
        talk.turn(text)
        talk.say(ANSWER)

    found, gone = "The search finds more tools: mcp__git__bisect.", "Gone: mcp__git__bisect."

    def changed(text: str, change: Callable[[], object], told: str) -> tuple[ModelRequest, int]:
        """A request after a change of the catalog, and the place of the message that tells it."""
        handle, ledger = talk.handle, talk.ledger
        unchanged = talk.turn(text)[1]
        assert unchanged.strategy in ADDING
        talk.messages.pop()
        talk.handle, talk.ledger = handle, ledger
        change()
        request = talk.turn(text)[1]
        talk.say(ANSWER)
        (at,) = (n for n, one in enumerate(request.messages) if told in json.dumps(one))
        assert text in json.dumps(request.messages[at])
        assert json.dumps(request.tools) == json.dumps(unchanged.tools)
        # A tool that was added and is gone leaves its place.
        before = unchanged.messages[:at] if told == found else request.messages[:at]
        assert json.dumps(request.messages[:at]) == json.dumps(before)
        return request, at

    more = body([tool("bisect", "Finds the commit that broke something.")])
    first, at = changed(
        WISHES[8], lambda: changing.register_server("git", more, mode="merge"), found
    )
    assert "mcp__git__bisect" not in json.dumps(first.tools)
    last, _ = changed(
        WISHES[9], lambda: changing.register_server("git", SHIPPED / "git.json"), gone
    )
    assert json.dumps(last.messages).count(found) == 1
    assert found in json.dumps(last.messages[at]), "it stays where it was told"


@pytest.mark.parametrize("strategy", ["native", "envelope", "auto"])
def test_a8_a19_tools_of_earlier_turns_count_in_phase_2_in_rho_and_in_warnings(
    client: Client, strategy: str
) -> None:
    def play(**route: Any) -> tuple[list[RouteResult], dict[str, int]]:
        talk = Conversation(client, strategy)
        talk.route = {"model": MODELS["anthropic"], **route}
        turns: list[RouteResult] = []
        ever: dict[str, int] = {}
        for text in (ANSWER * 8 + TEXTS[0], *TEXTS[1:]):
            turn, request = talk.turn(text)
            assert request.strategy == ("ENVELOPE" if strategy == "envelope" else "NATIVE")
            turns.append(turn)
            ever |= {one.model_name: one.schema_tokens for one in turn.tools}
            talk.say(ANSWER)
        sent = json.dumps([request.tools, list(request.messages)])
        assert all(name in sent for name in ever), "each tool is amid the messages to the end"
        return turns, ever

    turns, ever = play()
    first, last = turns[0].accounting, turns[-1].accounting
    active = {one.model_name: one.schema_tokens for one in turns[-1].tools}
    carried = sum(tokens for name, tokens in ever.items() if name not in active)
    assert carried > 0, "the topics differ"
    alone = sum(active.values())
    # Definitions stand in a request with other signs around them than in a catalog.
    assert alone < alone + 0.9 * carried < last.phase2_tokens < 1.2 * sum(ever.values())
    assert last.phase1_tokens == first.phase1_tokens
    tools = last.phase1_tokens + last.phase2_tokens
    assert last.rho == pytest.approx(1 - tools / 1_000_000)
    assert last.rho is not None
    assert first.rho is not None
    assert last.rho < first.rho
    said = last.conversation_tokens
    assert last.conversation_rho == pytest.approx(said / (said + tools))

    # A system prompt that the active tools alone would leave within the bound.
    bound = said / 0.3
    system = round(bound - said - (tools + last.phase1_tokens + alone) / 2)
    warned = play(system_tokens=system)[0][-1].accounting
    assert warned.phase2_tokens == last.phase2_tokens
    assert said + system + last.phase1_tokens + alone < bound < said + system + tools
    assert ContextWarning.LOW_UTILISATION in warned.warnings
