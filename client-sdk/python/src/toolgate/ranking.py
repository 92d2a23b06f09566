"""Ranking of a turn's tools, as frozen values."""

from dataclasses import dataclass

from toolgate._gen.v1 import router_pb2
from toolgate.enums import FitKind, FoundBy, from_wire


@dataclass(frozen=True, slots=True)
class RankedTool:
    """A candidate and what its score was made of."""

    model_name: str
    """The name the model sees."""
    score: float
    """Score of the ranking."""
    overlap: float
    """Cosine of summary and intent, the best over the intents."""
    words: float
    """Score of the words in common with an intent, as a share of the best tool's; 0 to 1."""
    whole: float
    """Score of overlap and words for an intent as a whole; 0 to 1."""
    clause: float
    """The same for the best of an intent's clauses; 0 to 1."""
    found_by: FoundBy
    """The way it was found."""
    chosen: bool
    """True if it is in the active set."""
    memory: float = 0.0
    """Weight of calls for intents like this one that speak for it; 0 to 1."""
    last_called: float = 0.0
    """Lift of its score, since the agent's last call was to its MCP server; 0 or 0.1."""
    reserved: bool = False
    """True if a place is reserved for it, since the agent's last calls were to its MCP server."""

    @classmethod
    def from_proto(cls, message: router_pb2.RankedTool) -> "RankedTool":
        """Reads the wire's form."""
        return cls(
            model_name=message.model_name,
            score=message.score,
            overlap=message.overlap,
            words=message.words,
            whole=message.whole,
            clause=message.clause,
            found_by=from_wire(FoundBy, router_pb2.FoundBy, "FOUND_BY_", message.found_by),
            chosen=message.chosen,
            memory=message.memory,
            last_called=message.last_called,
            reserved=message.reserved,
        )


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranking of a turn's tools."""

    abstain_below: float
    """Overlap that the best tool must reach, or none fits; -1: nothing is asked of it."""
    candidates: tuple[RankedTool, ...]
    """The best candidates, chosen or not, best first."""

    @classmethod
    def from_proto(cls, message: router_pb2.Ranking) -> "Ranking":
        """Reads the wire's form."""
        candidates = tuple(RankedTool.from_proto(one) for one in message.candidates)
        return cls(abstain_below=message.abstain_below, candidates=candidates)


@dataclass(frozen=True, slots=True)
class Fit:
    """Fit of a turn's best tool, so that an agent can ask instead of guessing."""

    kind: FitKind
    """CLEAR, AMBIGUOUS or NONE; UNSPECIFIED when tools were ranked by words alone."""
    contenders: tuple[str, ...]
    """When AMBIGUOUS, the tools that fit about equally by model-facing name, best first."""
    message: str
    """The same for a model; empty when CLEAR."""

    @classmethod
    def from_proto(cls, message: router_pb2.Fit) -> "Fit":
        """Reads the wire's form."""
        return cls(
            kind=from_wire(FitKind, router_pb2.FitKind, "FIT_KIND_", message.kind),
            contenders=tuple(message.contenders),
            message=message.message,
        )
