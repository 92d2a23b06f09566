"""Offering SearchTools to a model: the tool to define for it, and the answer to its call."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgate._requests import SearchArguments
from toolgate.enums import Detail, FoundBy, RefusalCode
from toolgate.errors import ToolgateError
from toolgate.gating import Call, checked_call
from toolgate.routing import ActiveTool
from toolgate.searching import SearchResult
from toolgate.state import StateLike

_NAME = "toolgate_search_tools"
_DESCRIPTION = (
    "Finds tools that are not defined here and makes them callable: once it has answered, call "
    "what it found. Search before you say that something can't be done."
)
_QUERY = (
    "`select:name,name` for tools by their names, a server's name for all of its tools, keywords, "
    "of which `+word` must match, or a sentence that says what you want to do."
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": _QUERY},
        "max_results": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "description": "The most tools to find. Default: 5.",
        },
    },
    "required": ["query"],
}

SEARCH_TOOL = ActiveTool(
    id="",
    server="",
    name=_NAME,
    model_name=_NAME,
    overlap=0.0,
    score=0.0,
    found_by=FoundBy.UNSPECIFIED,
    newly_promoted=False,
    description=_DESCRIPTION,
    input_schema_json=json.dumps(_SCHEMA, separators=(",", ":")),
    output_schema_json="",
    annotations_json='{"title":"Find tools","readOnlyHint":true}',
    signature=f"{_NAME}(query: string, max_results?: integer) - {_DESCRIPTION.split('. ')[0]}.",
    schema_tokens=145,
    signature_lossy=True,
)
"""The search as a tool to define for the model, beside the active set in `layout`; the service
defines it before rendered tools with `RenderOptions(search_tool=True)`.

Put it first and leave it there, so that the cached prefix holds. Its calls are for
`client.answer_search`; `gate` does not know it.
"""

_MODELS_OWN = frozenset({"query", "max_results"})
_QUERY_LIMIT = "limits.max_intent_size"


class MistakenSearchError(Exception):
    """The model's call can't be read; the text is for the model."""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer to a model's call of `SEARCH_TOOL`."""

    text: str
    """The content of the tool result: a JSON object."""
    failed: bool
    """True when the call was mistaken; the text says how."""
    handle: str
    """The handle to carry on with: what was found may be called with it, and the next `route`
    keeps it."""
    found: SearchResult | None
    """Result of the search; None when the call was mistaken."""

    @property
    def tools(self) -> tuple[ActiveTool, ...]:
        """The tools found."""
        return self.found.tools if self.found is not None else ()

    @classmethod
    def from_result(cls, found: SearchResult) -> "SearchAnswer":
        """The answer with what was found."""
        text = json.dumps(found.to_tool_result(), ensure_ascii=False)
        return cls(text, False, found.handle, found)

    @classmethod
    def from_error(cls, error: Exception, handle: str) -> "SearchAnswer":
        """The answer to a mistake of the model's; anything else is raised."""
        if not isinstance(error, MistakenSearchError) and not _is_the_models(error):
            raise error
        said = error.message if isinstance(error, ToolgateError) else str(error)
        refusal = {"error": RefusalCode.ARGUMENTS_INVALID.lower(), "message": said}
        return cls(json.dumps(refusal, ensure_ascii=False), True, handle, None)


def read_search(
    call: Call, handle: str, state: StateLike | None, detail: Detail | str
) -> tuple[str, SearchArguments]:
    """The query of a model's call, and the arguments to search with.

    Raises:
        MistakenSearchError: what the model wrote can't be sent.
        TypeError: no Call.
    """
    asked = _arguments(checked_call(call, "answer_search").arguments)
    query, most = asked.get("query"), asked.get("max_results")
    if not isinstance(query, str) or not _is_sendable(query):
        raise MistakenSearchError("query: must be a text")
    arguments: SearchArguments = {"handle": handle, "state": state, "detail": detail}
    if most is not None:
        if type(most) is not int or not 1 <= most <= 100:
            raise MistakenSearchError("max_results: must be a whole number from 1 to 100")
        arguments["max_results"] = most
    return query, arguments


def _arguments(written: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if not isinstance(written, str):
        return written
    try:
        read = json.loads(written)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise MistakenSearchError("the arguments must be a JSON object")
    return read


def _is_sendable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # A lone surrogate, which JSON can carry and the wire can't.
        return False
    return True


def _is_the_models(error: Exception) -> bool:
    """Returns True if the service refused what the model wrote, and not what the caller gave."""
    if not isinstance(error, ToolgateError):
        return False
    fields = {violation.field for violation in error.field_violations}
    too_long = error.metadata.get("limit") == _QUERY_LIMIT
    return too_long or (bool(fields) and fields <= _MODELS_OWN)
