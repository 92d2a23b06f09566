"""Where phase 1 and phase 2 stand in the prompt, so that the provider's prompt cache holds.

Phase 1, one line for each tool, ends the stable prefix, at a cache breakpoint: its bytes change
with the catalog only. Phase 2, the definitions of the active set, stands directly before the user's
message. What stays in the history is never rewritten.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolgate.routing import ActiveTool

CACHE_BREAKPOINT = {"type": "ephemeral"}
"""Anthropic's `cache_control`."""

_STRINGS = re.compile(r'("(?:[^"\\]|\\.)*")')
_SPACE = re.compile(r"[ \t\r\n]+")
_PHASE_1 = "Tools that can be made available when they are needed, one on each line:"
_PHASE_2 = "Tools that are available for the following message:"

Content = str | Sequence[Mapping[str, Any]]


def phase_1(summaries: Mapping[str, str]) -> str:
    """The summary pool as text; the same summaries in the same order give the same bytes.

    Args:
        summaries: Summaries by model-facing name, as `SummaryPool.apply_to` gives them.
    """
    lines = (f"{name}: {' '.join(summary.split())}" for name, summary in summaries.items())
    return "\n".join([_PHASE_1, *lines])


def phase_2(tools: Iterable[ActiveTool]) -> str:
    """Definitions as text, one JSON object on each line; a signature where no schema was sent.

    Args:
        tools: The tools to define: those that are `newly_promoted`, as the history has the others.
    """
    return "\n".join([_PHASE_2, *map(_definition, tools)])


def anthropic_system(system: str, summaries: Mapping[str, str]) -> list[dict[str, Any]]:
    """The `system` of the Messages API: your own text, then phase 1 with a cache breakpoint.

    Args:
        system: The system prompt. "": none.
        summaries: As in `phase_1`.
    """
    own = [{"type": "text", "text": system}] if system else []
    pool = {"type": "text", "text": phase_1(summaries), "cache_control": dict(CACHE_BREAKPOINT)}
    return [*own, pool]


def openai_system(system: str, summaries: Mapping[str, str]) -> dict[str, Any]:
    """The system message of OpenAI's APIs: your own text, then phase 1.

    OpenAI caches the longest prefix that it has seen and takes no breakpoints.

    Args:
        system: The system prompt. "": none.
        summaries: As in `phase_1`.
    """
    own = [system] if system else []
    return {"role": "system", "content": "\n\n".join([*own, phase_1(summaries)])}


def user_message(content: Content, tools: Iterable[ActiveTool]) -> dict[str, Any]:
    """The user's message with phase 2 directly before it, for Anthropic and Chat Completions.

    Keep it in the history as it is. With no tool to define it is the user's message alone.

    Args:
        content: The user's message: a text, or the provider's blocks.
        tools: As in `phase_2`.
    """
    defined = list(tools)
    if not defined:
        return {"role": "user", "content": content if isinstance(content, str) else list(content)}
    said = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return {"role": "user", "content": [{"type": "text", "text": phase_2(defined)}, *said]}


def responses_input(content: Content, tools: Iterable[ActiveTool]) -> list[dict[str, Any]]:
    """The items of a turn for the Responses API: phase 2, then the user's message.

    Args:
        content: The user's message: a text, or the API's content parts.
        tools: As in `phase_2`.
    """
    defined = list(tools)
    before = [{"role": "developer", "content": phase_2(defined)}] if defined else []
    said = content if isinstance(content, str) else list(content)
    return [*before, {"role": "user", "content": said}]


def _definition(tool: ActiveTool) -> str:
    if not tool.input_schema_json:
        return tool.signature or tool.model_name
    name, description = (
        json.dumps(text, ensure_ascii=False) for text in (tool.model_name, tool.description)
    )
    schema = _minified(tool.input_schema_json)
    return f'{{"name":{name},"description":{description},"input_schema":{schema}}}'


def _minified(text: str) -> str:
    """JSON without white space between its tokens; everything else byte for byte as it was."""
    return "".join(
        part if part.startswith('"') else _SPACE.sub("", part) for part in _STRINGS.split(text)
    )
