"""What the middleware of frameworks tells Route of the prompt."""

from toolgate._agents import route_of


def test_middleware_says_that_its_prompt_lists_nothing_of_the_catalog() -> None:
    assert route_of({}, search=True) == {"prompt_listing": "none"}
    assert route_of({"top_k": 3}, search=False) == {
        "prompt_listing": "none",
        "top_k": 3,
        "deferral": "off",
    }


def test_what_the_caller_says_of_the_prompt_stands() -> None:
    assert route_of({"prompt_listing": "names"}, search=True) == {"prompt_listing": "names"}
