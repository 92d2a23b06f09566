"""Tools amid a conversation with Anthropic: the models that take them, and the betas they need."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models import BaseChatModel


def refuse_unable(model: BaseChatModel) -> None:
    """Refuses models whose requests can't carry tools amid the messages.

    Raises:
        ValueError: no `ChatAnthropic`, or the profile of its model says that it takes none.
    """
    profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
    if model._llm_type != "anthropic-chat" or not profile.get("mid_conversation_tools"):
        raise ValueError(
            'strategy "native" needs a ChatAnthropic whose profile has mid_conversation_tools, not '
            f'{type(model).__name__}: take "auto", "cut", "envelope" or "pass"'
        )


def with_betas(request: ModelRequest[Any], betas: Sequence[str]) -> dict[str, Any]:
    """Returns the setting that names betas beside those of the request; none without betas.

    They are named in each request, since the provider caches by them; `ChatAnthropic` by itself
    names them only where tools were added.
    """
    if not betas:
        return {}
    asked = request.model_settings.get("betas") or getattr(request.model, "betas", None) or []
    return {"betas": [*asked, *(beta for beta in betas if beta not in asked)]}
