"""The snapshot: what a history said, as a JSON object that outlives its compaction.

It is an entry of its own kind, never text: a message that writes one down does not forge it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolgate.enums import CallStatus
from toolgate.history._reading import fields, items, name, text

KIND = "toolgate_snapshot"
VERSION = 1
# Well below what the wire carries, so that turns can be counted on from here.
_MAX_TURNS = 2**31 - 1
_STATUSES = {status.lower(): status for status in CallStatus}


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One call of the history."""

    tool: str
    """The tool's name, as the model wrote it."""
    status: CallStatus
    """How it ended; `UNSPECIFIED` while it has no answer."""
    turn: int
    """The model's turn in which it was made, from 0."""
    id: str = ""
    """The provider's identifier of the call; "" when there was none."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a snapshot holds."""

    discovered: tuple[str, ...]
    calls: tuple[SeenCall, ...]
    turns: int


def write(discovered: Iterable[str], calls: Iterable[SeenCall], turns: int) -> dict[str, Any]:
    """The snapshot's JSON object."""
    return {
        "type": KIND,
        "version": VERSION,
        "turns": turns,
        "discovered": list(discovered),
        "calls": [
            {"tool": call.tool, "status": call.status.lower(), "turn": call.turn, "id": call.id}
            for call in calls
        ],
    }


def is_snapshot(entry: Any) -> bool:
    """Whether an entry of a history is a snapshot, of whichever version."""
    return isinstance(entry, Mapping) and fields(entry).get("type") == KIND


def read(snapshot: Mapping[str, Any]) -> Restored:
    """Reads what can be read; a later version's snapshot is read as far as it is the same."""
    values = fields(snapshot)
    calls = (_call(fields(call)) for call in items(values.get("calls")))
    return Restored(
        discovered=tuple(filter(None, (name(tool) for tool in items(values.get("discovered"))))),
        calls=tuple(call for call in calls if call.tool),
        turns=_count(values.get("turns")),
    )


def _call(values: dict[str, Any]) -> SeenCall:
    status = _STATUSES.get(text(values.get("status")), CallStatus.UNSPECIFIED)
    turn = _count(values.get("turn"))
    return SeenCall(name(values.get("tool")), status, turn, text(values.get("id")))


def _count(value: Any) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return min(max(value, 0), _MAX_TURNS) if is_count else 0
