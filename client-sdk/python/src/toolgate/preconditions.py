"""Preconditions as values: what must hold of an agent's state before a tool is shown or called.

They combine with `&`, `|` and `~`:

    is_authenticated("repo:write") & ~milestone_reached("frozen")
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from toolgate._gen.v1 import state_pb2


class Precondition(ABC):
    """A deterministic predicate over the agent's state. At most 64 nodes, nested 8 deep."""

    __slots__ = ()

    @abstractmethod
    def to_proto(self) -> state_pb2.Precondition:
        """The wire's form."""

    def __and__(self, other: "Precondition") -> "Precondition":
        return all_of(self, other)

    def __or__(self, other: "Precondition") -> "Precondition":
        return any_of(self, other)

    def __invert__(self) -> "Precondition":
        return self.inner if isinstance(self, _Not) else _Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a precondition has no truth value here: combine with &, | and ~")


@dataclass(frozen=True, slots=True)
class _Named(Precondition):
    predicate: str
    argument: str

    def to_proto(self) -> state_pb2.Precondition:
        message = state_pb2.Precondition()
        setattr(message, self.predicate, self.argument)
        return message

    def __str__(self) -> str:
        return f'{self.predicate}("{self.argument}")'


@dataclass(frozen=True, slots=True)
class _All(Precondition):
    operands: tuple[Precondition, ...]

    def to_proto(self) -> state_pb2.Precondition:
        return state_pb2.Precondition(all=_list_of(self.operands))

    def __str__(self) -> str:
        return "(" + " & ".join(str(operand) for operand in self.operands) + ")"


@dataclass(frozen=True, slots=True)
class _Any(Precondition):
    operands: tuple[Precondition, ...]

    def to_proto(self) -> state_pb2.Precondition:
        return state_pb2.Precondition(any=_list_of(self.operands))

    def __str__(self) -> str:
        return "(" + " | ".join(str(operand) for operand in self.operands) + ")"


@dataclass(frozen=True, slots=True)
class _Not(Precondition):
    inner: Precondition

    def to_proto(self) -> state_pb2.Precondition:
        # `not` is a Python keyword, so the field can only be named in a mapping.
        return state_pb2.Precondition(**{"not": self.inner.to_proto()})  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"~{self.inner}"


def is_authenticated(scope: str) -> Precondition:
    """Holds when the agent's state grants `scope`."""
    return _named("is_authenticated", scope)


def has_prior_tool_output(prefix: str) -> Precondition:
    """Holds when a succeeded prior call's tool name begins with `prefix`."""
    return _named("has_prior_tool_output", prefix)


def milestone_reached(name: str) -> Precondition:
    """Holds when the agent's state names the milestone."""
    return _named("milestone_reached", name)


def cel(expression: str) -> Precondition:
    """Holds when the CEL expression over `state`, `tool`, `principal` and `now` is true."""
    return _named("cel", expression)


def all_of(*operands: Precondition) -> Precondition:
    """Holds when each operand does; an `all` among them is merged into this one.

    Raises:
        ValueError: no operand.
    """
    return _All(_merged(operands, _All))


def any_of(*operands: Precondition) -> Precondition:
    """Holds when at least one operand does; an `any` among them is merged into this one.

    Raises:
        ValueError: no operand.
    """
    return _Any(_merged(operands, _Any))


def from_proto(message: state_pb2.Precondition) -> Precondition | None:
    """Reads the wire's form; None when it is empty.

    Raises:
        ValueError: a kind of condition that this client does not know.
    """
    kind = message.WhichOneof("condition")
    if kind is None:
        return None
    if kind == "all":
        return _All(_operands_of(message.all))
    if kind == "any":
        return _Any(_operands_of(message.any))
    if kind == "not":
        inner = from_proto(getattr(message, "not"))
        if inner is None:
            raise ValueError("a negation without a condition")
        return _Not(inner)
    return _Named(kind, getattr(message, kind))


def _named(predicate: str, argument: str) -> Precondition:
    if not argument:
        raise ValueError(f"{predicate} needs a text that is not empty")
    return _Named(predicate, argument)


def _merged(
    operands: Iterable[Precondition], kind: type[_All] | type[_Any]
) -> tuple[Precondition, ...]:
    merged: list[Precondition] = []
    for operand in operands:
        merged.extend(operand.operands if isinstance(operand, kind) else (operand,))
    if not merged:
        raise ValueError("at least one precondition is needed")
    return tuple(merged)


def _list_of(operands: Iterable[Precondition]) -> state_pb2.PreconditionList:
    return state_pb2.PreconditionList(preconditions=[o.to_proto() for o in operands])


def _operands_of(messages: state_pb2.PreconditionList) -> tuple[Precondition, ...]:
    operands = (from_proto(message) for message in messages.preconditions)
    return tuple(operand for operand in operands if operand is not None)
