"""Requests that strategies make, held to the providers' own types. The requests are those of the
Rust tests, so that no server is needed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from anthropic.types import AnthropicBetaParam, beta
from google.genai.types import Content
from openai.types import chat, responses
from provider_types import TYPES, check, check_request
from pydantic import ValidationError

CASES = Path(__file__).resolve().parents[2] / "server/llm/tests/cases/strategy"


def requests(api: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each request that a case expects, with its tools written out."""
    file = json.loads((CASES / f"{api}.json").read_text(encoding="utf-8"))
    for case in file["cases"]:
        for index, turn in enumerate(case["turns"]):
            request = dict(turn["expect"])
            named = file["definitions"]
            request["tools"] = [
                named[tool] if isinstance(tool, str) else tool for tool in request["tools"]
            ]
            yield f"{case['name']}, turn {index}", request


@pytest.mark.parametrize("api", TYPES)
def test_every_request_is_one_that_the_provider_takes(api: str) -> None:
    checked = 0
    for name, request in requests(api):
        try:
            check_request(api, request["tools"], request["messages"])
        except (ValidationError, AssertionError) as error:
            error.add_note(name)
            raise
        checked += 1
    assert checked > 20


def test_betas_are_known_and_named_where_tools_are_added() -> None:
    # The type takes any text beside the names that it lists.
    listed = next(arm for arm in get_args(AnthropicBetaParam) if arm is not str)
    with_additions = 0
    for name, request in requests("anthropic"):
        assert set(request["betas"]) <= set(get_args(listed)), name
        if '"tool_addition"' in json.dumps(request["messages"]):
            with_additions += 1
            assert set(request["betas"]) >= {"inline-tools-2026-09-15"}, name
    assert with_additions > 5


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (beta.BetaMessageParam, {"role": "system", "content": [{"type": "tool_addition"}]}),
        (responses.ResponseInputItemParam, {"type": "additional_tools", "role": "developer"}),
        (Content, {"role": "user", "parts": [{"txt": "x"}]}),
        (chat.ChatCompletionMessageParam, {"role": "tool", "content": 1, "tool_call_id": "c"}),
        (beta.BetaToolUnionParam, {"name": "a", "input_schema": {"type": "object"}, "more": 1}),
    ],
)
def test_the_check_refuses_what_a_type_does_not_have(kind: Any, wrong: Any) -> None:
    with pytest.raises((ValidationError, AssertionError)):
        check(kind, wrong)
