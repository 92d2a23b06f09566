"""Holds tests/data/conversations/*.jsonl to their format, and prints the turns of each kind."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "tests" / "data" / "servers"
CONVERSATIONS = ROOT / "tests" / "data" / "conversations"
KINDS = ("opening", "same-topic", "follow-up", "topic-change", "multi-step", "no-tool")
TURN_FIELDS = ("conversation", "query", "relevant", "kind", "calls", "answer")
CALL_FIELDS = ("tool", "arguments", "result")
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SHORTEST = 5
LONGEST = 30

Schemas = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Turn:
    """One line of a file: its place, and what it holds when the fields are of the right types."""

    place: str
    fields: dict[str, Any]

    @property
    def slug(self) -> str:
        """The conversation that the turn belongs to."""
        return str(self.fields["conversation"])

    @property
    def kind(self) -> str:
        """One of KINDS, once `kind_mistakes` is silent."""
        return str(self.fields["kind"])


def tool_schemas() -> Schemas:
    """The input schema of every tool, by `server/tool`."""
    return {
        f"{path.stem}/{tool['name']}": tool["inputSchema"]
        for path in sorted(SERVERS.glob("*.json"))
        for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]
    }


def field_mistakes(value: object, names: tuple[str, ...], what: str) -> list[str]:
    """Lists mistakes in the names of an object's fields; empty when they are exactly `names`."""
    right = f"{what} has the fields {', '.join(names)}"
    if not isinstance(value, dict):
        return [f"is no object; {right}"]
    missing = [f"has no {name!r}; {right}" for name in names if name not in value]
    unknown = [f"has an unknown field {name!r}; {right}" for name in value if name not in names]
    return missing + unknown


def type_mistakes(fields: dict[str, Any]) -> list[str]:
    """Lists mistakes in the types of a turn's fields."""
    names = ("conversation", "query", "kind", "answer")
    blank = [name for name in names if not is_text(fields[name])]
    mistakes = [f"{name!r} is not a text with something in it" for name in blank]
    relevant = fields["relevant"]
    if not isinstance(relevant, list) or not all(isinstance(name, str) for name in relevant):
        mistakes.append("'relevant' is not a list of texts such as \"git/git_log\"")
    if not isinstance(fields["calls"], list):
        mistakes.append("'calls' is not a list")
    return mistakes


def is_text(value: object) -> bool:
    """True for a string that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def call_mistakes(call: object, relevant: list[str], schemas: Schemas) -> list[str]:
    """Lists the mistakes of one call."""
    mistakes = field_mistakes(call, CALL_FIELDS, "a call")
    if mistakes or not isinstance(call, dict):
        return [f"a call {mistake}" for mistake in mistakes]
    tool = call["tool"]
    if not isinstance(tool, str) or not isinstance(call["arguments"], dict):
        return ["a call's 'tool' is a text and its 'arguments' are an object"]
    if not is_text(call["result"]):
        mistakes.append(f"the call of {tool} has no result; give what the tool returned, as text")
    if tool not in relevant:
        mistakes.append(f"calls {tool}, which is not in 'relevant'; name it there too")
    if tool in schemas:
        mistakes += argument_mistakes(tool, call["arguments"], schemas[tool])
    return mistakes


def argument_mistakes(tool: str, arguments: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Lists mistakes in the names of a call's arguments, by the tool's input schema."""
    known = schema.get("properties", {})
    missing = [name for name in schema.get("required", []) if name not in arguments]
    unknown = [name for name in arguments if name not in known]
    names = ", ".join(known) or "none"
    return [f"calls {tool} without {name!r}, which it requires" for name in missing] + [
        f"calls {tool} with {name!r}, which it does not have; it has: {names}" for name in unknown
    ]


def kind_mistakes(fields: dict[str, Any]) -> list[str]:
    """Lists mistakes in a turn's kind, and in what that kind may hold."""
    kind = fields["kind"]
    if kind not in KINDS:
        return [f"the kind {kind!r} is unknown; it is one of {', '.join(KINDS)}"]
    if kind == "no-tool":
        filled = [name for name in ("relevant", "calls") if fields[name]]
        return [f"a no-tool turn has an empty {name!r}" for name in filled]
    mistakes = []
    if not fields["relevant"]:
        mistakes.append("'relevant' is empty; name a tool, or make the turn's kind no-tool")
    if kind == "multi-step" and len(fields["relevant"]) < 2:
        mistakes.append("a multi-step turn has two relevant tools or more")
    return mistakes


def turn_mistakes(fields: dict[str, Any], schemas: Schemas) -> list[str]:
    """Lists the mistakes of one turn alone."""
    mistakes = field_mistakes(fields, TURN_FIELDS, "a turn") or type_mistakes(fields)
    if mistakes:
        return mistakes
    relevant: list[str] = fields["relevant"]
    if not SLUG.fullmatch(fields["conversation"]):
        mistakes.append("'conversation' is a slug: small letters, digits, single hyphens between")
    mistakes += [
        f"no server of tests/data/servers has the tool {name!r}; tools are named server/tool"
        for name in relevant
        if name not in schemas
    ]
    mistakes += [
        f"'relevant' names {name} {count} times; once is right"
        for name, count in Counter(relevant).items()
        if count > 1
    ]
    mistakes += kind_mistakes(fields)
    for call in fields["calls"]:
        mistakes += call_mistakes(call, relevant, schemas)
    return mistakes


def conversation_mistakes(turns: list[Turn]) -> Iterator[str]:
    """Lists the mistakes of the turns of all files as conversations."""
    runs: list[list[Turn]] = []
    for turn in turns:
        if runs and follows(runs[-1][-1], turn):
            runs[-1].append(turn)
        else:
            runs.append([turn])
    first_places: dict[str, str] = {}
    for run in runs:
        place = run[0].place
        slug = run[0].slug
        if slug in first_places:
            yield (
                f"{place}: {slug} began at {first_places[slug]} already;"
                " the turns of a conversation stand together, and no two share a slug"
            )
        first_places.setdefault(slug, place)
        if not SHORTEST <= len(run) <= LONGEST:
            yield f"{place}: {slug} has {len(run)} turns; {SHORTEST} to {LONGEST} are right"
        if run[0].kind != "opening":
            yield f"{place}: {slug} begins with a {run[0].kind} turn; the first is an opening"
        for turn in run[1:]:
            if turn.kind == "opening":
                yield f"{turn.place}: {slug} is open already; only its first turn is an opening"


def follows(before: Turn, turn: Turn) -> bool:
    """True when both turns are of one conversation in one file."""
    same_file = before.place.rpartition(":")[0] == turn.place.rpartition(":")[0]
    return same_file and before.slug == turn.slug


def counts(name: str, turns: list[Turn]) -> str:
    """One line: how many conversations, turns, and turns of each kind a file has."""
    by_kind = Counter(turn.kind for turn in turns)
    conversations = len({turn.slug for turn in turns})
    kinds = ", ".join(f"{by_kind[kind]} {kind}" for kind in KINDS)
    return f"{name}: {conversations} conversations, {len(turns)} turns: {kinds}"


def main() -> int:
    """Prints mistakes or counts; 1 when there are mistakes."""
    schemas = tool_schemas()
    paths = sorted(CONVERSATIONS.glob("*.jsonl"))
    mistakes = [] if paths else [f"{CONVERSATIONS.relative_to(ROOT)}: holds no .jsonl file"]
    turns: dict[Path, list[Turn]] = {path: [] for path in paths}
    for path in paths:
        for number, line in enumerate(path.open(encoding="utf-8"), start=1):
            place = f"{path.relative_to(ROOT)}:{number}"
            try:
                fields = json.loads(line.strip())
            except json.JSONDecodeError as error:
                mistakes.append(f"{place}: is not JSON ({error}); one object a line is right")
                continue
            found = turn_mistakes(fields, schemas)
            mistakes += [f"{place}: {mistake}" for mistake in found]
            if not found:
                turns[path].append(Turn(place, fields))
    # A conversation is judged as a whole only when each of its turns can be read.
    if not mistakes:
        mistakes += conversation_mistakes([turn for path in paths for turn in turns[path]])
    for mistake in mistakes:
        print(mistake)
    if not mistakes:
        for path in paths:
            print(counts(path.name, turns[path]))
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
