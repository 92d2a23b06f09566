"""The scan of a history: which tools were discovered, which calls were made and how they ended."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolgate.enums import CallStatus
from toolgate.history import _reading, _snapshot
from toolgate.history._events import Answered, Called, Event, Found, Spoke, read
from toolgate.history._snapshot import SeenCall
from toolgate.offering import SEARCH_TOOL
from toolgate.state import AgentState, PriorCall, texts

# The state is at most 64 KiB on the wire; the rest is for scopes, milestones and attributes.
_DISCOVERED_BYTES = 24 * 1024
_CALLS_BYTES = 24 * 1024
_CALL_OVERHEAD = 16
_NAME_OVERHEAD = 4
_SEARCH = SEARCH_TOOL.model_name


@dataclass(frozen=True, slots=True)
class History:
    """What a conversation's history says about tools."""

    discovered: tuple[str, ...]
    """Names of the tools that were loaded, in the order of their discovery: by a reference, by a
    search (the provider's, or `SEARCH_TOOL`), or because a call to them succeeded. The newest
    24 KiB of them."""
    calls: tuple[SeenCall, ...]
    """The calls, oldest first: the newest 24 KiB, the last success of each tool before others."""
    turns: int
    """How many turns of the model there were."""

    def state(
        self,
        *,
        scopes: Iterable[str] = (),
        milestones: Iterable[str] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> AgentState:
        """The agent's state for `route` and `gate`.

        Args:
            scopes: Grants that the agent holds; a history can't say them.
            milestones: Milestones that were reached.
            attributes: Anything else that a policy may look at.

        Raises:
            TypeError: a text where a list of texts belongs.
        """
        return AgentState(
            scopes=tuple(texts(scopes, "scopes")),
            calls=tuple(PriorCall(call.tool, call.status, call.turn) for call in self.calls),
            milestones=tuple(texts(milestones, "milestones")),
            attributes=dict(attributes or {}),
            discovered_tools=self.discovered,
        )

    def snapshot(self) -> dict[str, Any]:
        """All of it as a JSON object, to keep when the history is compacted.

        Hand it to the next `scan`, or leave it in the history: `scan` finds it there, and `strip`
        takes it out before the history is sent.
        """
        return _snapshot.write(self.discovered, self.calls, self.turns)


def scan(messages: Iterable[Any], snapshot: Mapping[str, Any] | None = None) -> History:
    """Reads a history for what the model has discovered and called.

    Takes messages of Anthropic's Messages API, OpenAI's Chat Completions and Responses APIs, and
    MCP (sampling messages and JSON-RPC), as dicts or as the vendors' typed objects, also mixed.
    What it does not know it passes over; it never raises for what a message holds. Scanning
    messages that a snapshot covers already changes nothing but, where they hold no call, `turns`.

    Args:
        messages: The history, oldest first.
        snapshot: What `History.snapshot` gave before the history was compacted.
    """
    scanner = _Scanner()
    if snapshot is not None:
        scanner.restore(snapshot)
    for message in messages:
        if _snapshot.is_snapshot(message):
            scanner.restore(_reading.fields(message))
            continue
        for event in read(message):
            scanner.take(event)
    return scanner.result()


def compacted(
    messages: Iterable[Any], kept: Iterable[Any], snapshot: Mapping[str, Any] | None = None
) -> list[Any]:
    """The history after compaction: a snapshot of the old one, then what is kept.

    Args:
        messages: The history before, whole.
        kept: What stands for it now: a summary, and those of the messages that stay.
        snapshot: As in `scan`.
    """
    return [scan(messages, snapshot).snapshot(), *kept]


class _Scanner:
    """Folds events into a `History`."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._calls: list[SeenCall] = []
        self._open: dict[str, int] = {}
        self._anonymous: deque[int] = deque()
        self._restored: dict[str, int] = {}
        self._turn = -1
        self._turns = 0
        self._model_speaks = False

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        restored = _snapshot.read(snapshot)
        for tool in restored.discovered:
            self._found.setdefault(tool)
        known = {call.id for call in self._calls if call.id}
        for call in restored.calls:
            if call.id in known:
                continue
            if call.id:
                self._restored[call.id] = self._open[call.id] = len(self._calls)
            self._calls.append(call)
        self._turns = max(self._turns, restored.turns)
        self._turn = self._turns - 1
        self._model_speaks = False

    def take(self, event: Event) -> None:
        match event:
            case Spoke():
                self._spoke(event.model)
            case Found():
                self._found.setdefault(event.tool)
            case Called():
                self._called(event)
            case Answered():
                self._answered(event)

    def result(self) -> History:
        return History(_newest_names(self._found), _newest_calls(self._calls), self._turns)

    def _spoke(self, model: bool) -> None:
        if model and not self._model_speaks:
            self._turn += 1
            self._turns = max(self._turns, self._turn + 1)
        self._model_speaks = model

    def _called(self, event: Called) -> None:
        key = event.key or ""
        known = self._restored.get(key)
        if known is not None and self._calls[known].tool == event.tool:
            # This turn was counted before the compaction.
            self._turn = self._calls[self._restored.pop(key)].turn
            self._turns = max(self._turns, self._turn + 1)
            return
        is_open = self._open.get(key)
        if is_open is not None and self._calls[is_open].tool == event.tool:
            return
        # Some providers use an identifier again: with another tool, it is another call.
        if key:
            self._open[key] = len(self._calls)
        else:
            self._anonymous.append(len(self._calls))
        call = SeenCall(event.tool, CallStatus.UNSPECIFIED, max(self._turn, 0), key)
        self._calls.append(call)

    def _answered(self, event: Answered) -> None:
        if event.key is not None:
            index = self._open.pop(event.key, None)
        else:
            index = self._anonymous.popleft() if self._anonymous else None
        if index is None:
            return
        status = CallStatus.FAILED if event.failed else CallStatus.SUCCEEDED
        call = self._calls[index]
        self._calls[index] = SeenCall(call.tool, status, call.turn, call.id)
        if status is CallStatus.SUCCEEDED:
            # The search is no tool of the catalog: its answer says what it loaded.
            is_search = call.tool == _SEARCH
            tools = _reading.found_tools(event.content) if is_search else [call.tool]
            self._found.update(dict.fromkeys(tools))


def _newest_names(found: Iterable[str]) -> tuple[str, ...]:
    newest = ((name, len(name.encode()) + _NAME_OVERHEAD) for name in reversed(list(found)))
    return tuple(reversed(_reading.bounded(newest, _DISCOVERED_BYTES)))


def _newest_calls(calls: list[SeenCall]) -> tuple[SeenCall, ...]:
    """The newest calls, but the last success of each tool first: preconditions ask for it."""
    newest = list(reversed(range(len(calls))))
    successes: dict[str, int] = {}
    for index in newest:
        if calls[index].status is CallStatus.SUCCEEDED:
            successes.setdefault(calls[index].tool, index)
    first = list(successes.values())
    chosen = set(first)
    order = first + [index for index in newest if index not in chosen]
    sizes = ((index, len(calls[index].tool.encode()) + _CALL_OVERHEAD) for index in order)
    return tuple(calls[index] for index in sorted(_reading.bounded(sizes, _CALLS_BYTES)))
