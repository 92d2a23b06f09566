"""Pydantic AI's model objects: which model and API they ask."""

from typing import Any

from toolgate._endpoints import Endpoint

_APIS = {
    "AnthropicModel": "anthropic",
    "BedrockMantleAnthropicModel": "anthropic",
    "GoogleModel": "gemini",
    "OpenAIResponsesModel": "openai_responses",
}

_SCRIPTED = ("function", "test")
"""Systems of models that stand in for others in tests, whose names are none of models."""


def endpoint_of(model: Any) -> Endpoint:
    """Reads the model and its API off a model object.

    Of a `FallbackModel` the first one counts, which is asked unless it fails, with the smallest
    context window of all. One that is not known is taken for one of Chat Completions. None carries
    tools amid a conversation as Route adds them: the framework's own additions need the
    definitions of all tools that are ever added in each request.
    """
    window = getattr(model, "context_window", None)
    asked = _asked(model)
    kinds = (_APIS.get(kind.__name__) for kind in type(asked).__mro__)
    url, name = getattr(asked, "base_url", None), getattr(asked, "model_name", "")
    name = "" if getattr(asked, "system", "") in _SCRIPTED else name
    return Endpoint(
        api=next((kind for kind in kinds if kind), "openai_chat"),
        model=name if isinstance(name, str) else "",
        base_url=url if isinstance(url, str) and url.startswith("http") else "",
        context_window=window if isinstance(window, int) and window > 0 else None,
    )


def _asked(model: Any) -> Any:
    """Returns the model within wrappers and fallbacks."""
    for _ in range(16):
        models = getattr(model, "models", None)
        within = models[0] if isinstance(models, list) and models else None
        within = within or getattr(model, "wrapped", None)
        if within is None:
            break
        model = within
    return model
