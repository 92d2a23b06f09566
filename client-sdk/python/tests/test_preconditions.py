"""Preconditions: how they combine, read, and cross the wire."""

import pytest

from toolgate import (
    Precondition,
    all_of,
    any_of,
    cel,
    has_prior_tool_output,
    is_authenticated,
    milestone_reached,
)
from toolgate._gen.v1 import state_pb2
from toolgate.preconditions import from_proto

SCOPE = is_authenticated("repo:write")
PRIOR = has_prior_tool_output("search_")
FROZEN = milestone_reached("frozen")


@pytest.mark.parametrize(
    ("precondition", "text"),
    [
        (SCOPE, 'is_authenticated("repo:write")'),
        (SCOPE & PRIOR, '(is_authenticated("repo:write") & has_prior_tool_output("search_"))'),
        (~FROZEN, '~milestone_reached("frozen")'),
        (~~FROZEN, 'milestone_reached("frozen")'),
        (
            SCOPE & PRIOR & ~FROZEN,
            '(is_authenticated("repo:write") & has_prior_tool_output("search_")'
            ' & ~milestone_reached("frozen"))',
        ),
        (
            (SCOPE | PRIOR) & FROZEN,
            '((is_authenticated("repo:write") | has_prior_tool_output("search_"))'
            ' & milestone_reached("frozen"))',
        ),
    ],
)
def test_reads_as_it_is_written(precondition: Precondition, text: str) -> None:
    assert str(precondition) == text


def test_a_chain_of_the_same_operator_is_one_node() -> None:
    message = (SCOPE & PRIOR & FROZEN).to_proto()
    assert len(message.all.preconditions) == 3


def test_survives_the_wire() -> None:
    precondition = any_of(SCOPE & ~FROZEN, all_of(PRIOR), cel("size(state.calls) > 2"))
    assert from_proto(precondition.to_proto()) == precondition


def test_an_empty_message_is_no_precondition() -> None:
    assert from_proto(state_pb2.Precondition()) is None


def test_python_and_is_refused_rather_than_dropping_an_operand() -> None:
    with pytest.raises(TypeError, match="combine with"):
        SCOPE and PRIOR  # noqa: B018


@pytest.mark.parametrize("build", [is_authenticated, has_prior_tool_output, milestone_reached, cel])
def test_an_empty_argument_is_refused(build: object) -> None:
    assert callable(build)
    with pytest.raises(ValueError, match="not empty"):
        build("")


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        all_of()
