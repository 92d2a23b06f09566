"""The cases: those of cases.yaml, which call, and the files of JSON cases, which don't."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CONFORMANCE = Path(__file__).resolve().parents[1]
ROOT = CONFORMANCE.parents[1]


@dataclass(frozen=True)
class Step:
    """One request and what is expected of its answer, or something that the runner does."""

    op: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    client: dict[str, Any] = field(default_factory=dict)
    expect: Any = None
    """Expectation of the value."""
    expect_error: Any = None
    """Expectation of the error; its `kind` is `call` unless the case says another."""
    text_is_json: bool = False
    """Compare the value's `text` as JSON."""
    keep: dict[str, str] = field(default_factory=dict)
    """Values to remember by name, by their places in the answer such as `tools.0.name`."""
    pause: float = 0
    """Seconds to wait before the request."""
    beside: str = ""
    """`restart` restarts the server a moment after the request is sent."""
    until: bool = False
    """Ask again until the answer is as expected: a server's new configuration holds a bit later."""
    do: str = ""
    """`restart` restarts a server; `script` sets the scripted service's script; `configure` has
    the server `configured` read `config`."""
    config: str = ""
    """The text of the configuration file, beside the settings of every server here."""
    script: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] | None = None
    """Expectation of the scripted service's calls, attempt by attempt."""
    within: float | None = None
    """The most seconds that the answer may take."""


@dataclass(frozen=True)
class Case:
    """Steps in order, by a tenant of their own."""

    name: str
    group: str
    steps: list[Step]


def load() -> list[Case]:
    """All cases, those that call first."""
    document = yaml.safe_load((CONFORMANCE / "cases.yaml").read_text(encoding="utf-8"))
    called = [
        Case(case["name"], group["group"], [_step(step, document) for step in case["steps"]])
        for group in document["groups"]
        for case in group["cases"]
    ]
    return called + list(_files())


def _step(written: dict[str, Any], document: dict[str, Any]) -> Step:
    written = dict(written)
    args = dict(written.pop("args", {}))
    if "request" in written:
        args["request"] = dict(written.pop("request"))
        if (named := args["request"].pop("tools_list", None)) is not None:
            args["request"]["tools_list_json"] = tools_list(named, document)
    return Step(args=args, **written)


def tools_list(named: Any, document: dict[str, Any]) -> str:
    """A `tools/list` answer in base64: of the document, of a shipped file, or of many tools."""
    if isinstance(named, str) and named.endswith(".json"):
        body = (ROOT / "tests" / "data" / "servers" / named).read_bytes()
    elif isinstance(named, str):
        body = document["catalogs"][named].encode()
    else:
        tools = [_one_of_many(n) for n in range(named["many"])]
        body = json.dumps({"tools": tools}).encode()
    return base64.b64encode(body).decode()


def _one_of_many(n: int) -> dict[str, Any]:
    # Alike, so that one embedding serves all of them.
    schema = {"type": "object", "properties": {f"field_{n}": {"type": "string"}}}
    return {"name": f"t{n:04}", "description": "One of many.", "inputSchema": schema}


def _files() -> Iterator[Case]:
    readers = {
        "prompt/layout.json": lambda _, case: _whole("layout", case),
        "prompt/announce.json": lambda _, case: _whole("announce", case),
        "search/tool.json": lambda _, case: _whole("search_tool", case),
        "search/answer.json": _answer,
        "search/mistake.json": _mistake,
    }
    for pattern, read in readers.items():
        for path in sorted(CONFORMANCE.glob(pattern)):
            for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
                yield Case(case["name"], f"{path.parent.name}/{path.stem}", read(path.stem, case))


def _whole(op: str, case: dict[str, Any]) -> list[Step]:
    args = {key: value for key, value in case.items() if key not in ("name", "expect")}
    return [Step(op, args, expect={"$is": case["expect"]})]


def _answer(_: str, case: dict[str, Any]) -> list[Step]:
    args = {"found": case["found"]}
    expect = {"text": {"$is": case["expect"]}, "failed": False}
    return [Step("search_answer", args, expect=expect, text_is_json=True)]


def _mistake(_: str, case: dict[str, Any]) -> list[Step]:
    call = {"tool": "toolgate_search_tools", "arguments": case["arguments"], "call_id": "c"}
    expect = {"text": {"$is": case["expect"]}, "failed": True, "handle": "h", "tools": []}
    # Nothing is sent, so that nobody need listen.
    client = {"target": "nobody"}
    args = {"call": call, "handle": "h"}
    return [Step("answer_search", args, client, expect=expect, text_is_json=True)]
