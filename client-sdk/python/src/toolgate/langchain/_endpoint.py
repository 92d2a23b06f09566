"""LangChain's model objects: what they ask, and whether tools can stand amid their messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware.types import ModelRequest

from toolgate._endpoints import Endpoint

_RESPONSES = "openai_responses"


def endpoint_of(model: Any) -> Endpoint:
    """Reads the model and its API off a chat model, whichever package it is of.

    One that is not known is taken for one of Chat Completions.
    """
    model = getattr(model, "bound", model)  # A model with arguments bound to it.
    kind = str(getattr(model, "_llm_type", ""))
    profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
    api = _api(model, kind)
    takes = bool(profile.get("mid_conversation_tools"))
    carries = (kind == "anthropic-chat" and takes) or (
        kind == "openai-chat" and api == _RESPONSES and takes and _keeps_messages(model)
    )
    window = profile.get("max_input_tokens")
    return Endpoint(
        api=api,
        model=_first(model, "model_name", "model", "deployment_name").removeprefix("models/"),
        base_url=_base_url(model),
        context_window=window if isinstance(window, int) and window > 0 else None,
        carries_native=carries,
    )


def refuse_unable(model: Any) -> None:
    """Refuses models whose requests can't carry tools amid the messages.

    Raises:
        ValueError: no `ChatAnthropic` or `ChatOpenAI` of Responses, or the profile of its model
            says that it takes none.
    """
    if not endpoint_of(model).carries_native:
        raise ValueError(
            'strategy "native" needs a ChatAnthropic or a ChatOpenAI with use_responses_api=True '
            f"whose profile has mid_conversation_tools, not {type(model).__name__}: take "
            '"auto", "cut", "envelope" or "pass"'
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


def _api(model: Any, kind: str) -> str:
    if "anthropic" in kind:
        return "anthropic"
    if "google" in kind or "vertexai" in kind:
        return "gemini"
    asks_responses = getattr(model, "_use_responses_api", None)
    if "openai" in kind and callable(asks_responses) and asks_responses({"tools": [{}]}) is True:
        return _RESPONSES
    return "openai_chat"


def _keeps_messages(model: Any) -> bool:
    """Returns True if a `ChatOpenAI` sends all messages, and leaves none with the provider."""
    return not getattr(model, "use_previous_response_id", False)


def _base_url(model: Any) -> str:
    # OpenAI's client knows what the environment says as well.
    url = getattr(getattr(model, "root_client", None), "base_url", None)
    named = str(url) if url else _first(model, "anthropic_api_url", "openai_api_base", "base_url")
    return named if named.startswith(("http://", "https://")) else ""


def _first(model: Any, *names: str) -> str:
    found = (getattr(model, name, None) for name in names)
    return next((one for one in found if isinstance(one, str) and one), "")
