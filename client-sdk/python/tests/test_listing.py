"""Tests what the middleware of frameworks tells Route of the prompt."""

from toolgate import RouteArguments
from toolgate._agents import estimated_tokens, route_of, unlisted, with_history


def test_without_a_strategy_the_prompt_lists_nothing_of_the_catalog() -> None:
    assert unlisted({"top_k": 3}) == {"prompt_listing": "none", "top_k": 3}
    assert unlisted({"prompt_listing": "names"}) == {"prompt_listing": "names"}


def test_what_a_strategy_lists_is_left_to_the_caller() -> None:
    assert route_of({}, search=True) == {}
    listed: RouteArguments = {"prompt_listing": "summaries", "prompt_listing_tokens": 900}
    assert route_of(listed, search=True) == listed
    assert route_of({"top_k": 3}, search=False) == {"top_k": 3, "deferral": "off"}


def test_what_stands_behind_the_tools_is_told_unless_the_caller_says_it() -> None:
    assert with_history({"top_k": 3}, 700) == {"top_k": 3, "history_tokens": 700}
    assert with_history({"history_tokens": 0}, 700) == {"history_tokens": 0}
    assert with_history({"top_k": 3}, None) == {"top_k": 3}


def test_four_bytes_of_text_are_a_token_and_no_message_is_not_nothing() -> None:
    assert estimated_tokens(["abcdefgh", "größer \ud800"]) == (8 + 8 + 2) // 4
    assert estimated_tokens([]) == 1
