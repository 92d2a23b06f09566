"""The active set in the shape that a provider's API takes.

    from toolgate import render

    turn = client.route("what did I promise the team last week?")
    rendered = render.gemini(turn)
    for loss in rendered.losses:
        log.info("%s%s: %s", loss.tool, loss.pointer, loss.note)

Rendering the same tools gives the same bytes (by `json.dumps`), so that prompt caches hold.
"""

from toolgate.render._anthropic import UNSUPPORTED_MODELS, SearchTool, anthropic, can_defer
from toolgate.render._gemini import gemini
from toolgate.render._mcp import mcp
from toolgate.render._openai import openai_chat, openai_responses
from toolgate.render._schema import Loss, Rendered

__all__ = [
    "UNSUPPORTED_MODELS",
    "Loss",
    "Rendered",
    "SearchTool",
    "anthropic",
    "can_defer",
    "gemini",
    "mcp",
    "openai_chat",
    "openai_responses",
]
