"""A conversation of many calls, for hosts with the tools of `catalog_server`.

The model calls a tool if it may: if the request has it, or the conversation describes it. Else it
searches by what the tool does, then by its name, with whatever search there is.
"""

import re
from dataclasses import dataclass, field

from catalog_server import ANSWERED
from scripted_model import API_SEARCH, ENVELOPE, HIDDEN_SEARCH, Json, Step, Turn

REQUEST = (
    "Find out what was changed in the repository /work/shop since the release, write the notes for "
    "it, and tell the channel about it on Slack"
)
REPOSITORY = "/work/shop"
HOST_SEARCH = "ToolSearch"
SERVER = "(?:mcp_{1,2}tg_{1,2}|tg_)"
"""Prefixes that hosts put before the names of the server's tools."""


@dataclass(frozen=True)
class Call:
    """A call that the model wants, and the words by which it would search for the tool."""

    tool: str
    query: str
    arguments: Json


def _git(tool: str, query: str, **more: object) -> Call:
    return Call(tool, query, {"repo_path": REPOSITORY, **more})


LOG = _git("git_log", "show the commit log of a git repository", max_count=20)
PLAN = [
    _git("git_status", "show the status of a git working tree"),
    LOG,
    _git("git_diff", "show differences between git branches or commits", target="v1.2"),
    _git("git_show", "show the contents of a commit", revision="HEAD"),
    _git("git_show", "show the contents of a commit", revision="HEAD~1"),
    Call("list_directory", "list the files of a directory", {"path": REPOSITORY}),
    Call("search_files", "search for files by a pattern", {"path": ".", "pattern": "*.md"}),
    Call("read_text_file", "read the contents of a text file", {"path": "CHANGES.md"}),
    Call("read_text_file", "read the contents of a text file", {"path": "README.md"}),
    _git("git_create_branch", "create a new git branch", branch_name="notes"),
    Call("write_file", "write a file with new contents", {"path": "NOTES.md", "content": "Notes"}),
    _git("git_add", "add files to the staging area of git", files=["NOTES.md"]),
    _git("git_commit", "commit staged changes to git", message="Notes"),
    LOG,
    Call("get_current_time", "get the current time in a timezone", {"timezone": "Europe/Zurich"}),
    Call("slack_list_channels", "list the channels of Slack", {}),
    Call("slack_get_users", "list the users of a Slack workspace", {}),
    Call(
        "slack_post_message",
        "post a message to a Slack channel",
        {"channel_id": "C1", "text": "The notes are there"},
    ),
    Call(
        "slack_add_reaction",
        "add a reaction emoji to a Slack message",
        {"channel_id": "C1", "timestamp": "1.2", "reaction": "tada"},
    ),
]
"""As many calls as 20 answers have: the last answer is the text."""

MOST_RESULTS = 3 * len(PLAN)
"""Results behind which the model stops: calls of the host's fail."""


@dataclass
class Working:
    """A model that works through the plan."""

    searches: int = 0
    # What was left undone, by tool.
    given_up: list[str] = field(default_factory=list)
    _looked: dict[int, int] = field(default_factory=dict)

    def __call__(self, turn: Turn) -> Step | None:
        """The next step; none at the plan's end, or where a tool can't be found."""
        done = sum(ANSWERED in result for result in turn.results)
        if done >= len(PLAN) or len(turn.tools) == 0:
            return None
        wanted = PLAN[done]
        if len(turn.results) > MOST_RESULTS:
            self.given_up.append(wanted.tool)
            return None
        if name := _named(turn, wanted.tool):
            return Step(name, wanted.arguments)
        shown = re.search(rf"\b{SERVER}{wanted.tool}\b", turn.said)
        if ENVELOPE in turn.tools and shown:
            return Step(ENVELOPE, {"name": shown.group(), "arguments": wanted.arguments})
        return self._search(turn, done, wanted)

    def _search(self, turn: Turn, done: int, wanted: Call) -> Step | None:
        known = (HIDDEN_SEARCH, API_SEARCH, HOST_SEARCH)
        search = next((name for name in known if name in turn.tools), None)
        looked = self._looked.get(done, 0)
        if search is None or looked > 1:
            if search:
                self.given_up.append(wanted.tool)
            return None
        self._looked[done] = looked + 1
        self.searches += 1
        named = f"select:mcp__tg__{wanted.tool}" if search == HOST_SEARCH else wanted.tool
        return Step(search, {"query": wanted.query if looked == 0 else named})


def _named(turn: Turn, tool: str) -> str | None:
    """The host's name of a tool of the server. Hosts have tools of the same names themselves."""
    names = [name for name in turn.tools if re.fullmatch(SERVER + tool, name)]
    # A tool within a namespace has no prefix. The proxy takes namespaces for prefixes.
    if not names and ENVELOPE not in turn.tools and tool in turn.tools:
        names = [tool] if not any(re.match(SERVER, name) for name in turn.tools) else []
    return next(iter(names), None)
