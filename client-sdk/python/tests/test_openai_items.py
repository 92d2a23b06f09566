"""Items of the OpenAI Agents SDK, as Route reads them."""

import pytest

from toolgate.openai_agents import _items


@pytest.mark.parametrize(
    "answer",
    [
        "An error occurred while running the tool. Please try again.",
        "Tool 'find_notes' timed out after 5 seconds.",
        "Tool execution was not approved.",
        '{"error": "scope_missing"}',
    ],
)
def test_what_answers_a_call_that_failed_or_did_not_run_is_no_success(answer: str) -> None:
    items = [
        {"role": "user", "content": "the note about milk?"},
        {"type": "function_call", "call_id": "1", "name": "mcp__notes__find_notes"},
        {"type": "function_call_output", "call_id": "1", "output": answer},
    ]
    assert [entry.get("output") for entry in _items.entries(items)][-1] == '{"error": "failed"}'
    assert [intent.text for intent in _items.intents(items)] == ["the note about milk?"]
