//! Providers of models: where their requests come in, and the shape of their errors.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use toolgate_llm::strategy::Api;

/// Provider whose API a host speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic.
    Anthropic,
    /// OpenAI, and servers that copy its API.
    OpenAi,
    /// Gemini.
    Gemini,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Returns the name, which is the first part of the proxy's paths.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    /// Splits a path of the proxy into a provider and the provider's own path.
    pub(crate) fn split(path: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|provider| {
            let rest = path.strip_prefix('/')?.strip_prefix(provider.name())?;
            (rest.is_empty() || rest.starts_with('/')).then_some((provider, rest))
        })
    }

    /// Returns the API of a request to the provider's path, if it is a chat whose tools are looked at.
    pub(crate) fn chat(self, path: &str, query: Option<&str>) -> Option<Api> {
        // Without it, the answer is a list that grows.
        let is_sse = || query.is_some_and(|query| query.split('&').any(|part| part == "alt=sse"));
        match self {
            Self::Anthropic if path == "/v1/messages" => Some(Api::Anthropic),
            Self::OpenAi if path.ends_with("/chat/completions") => Some(Api::OpenAiChat),
            Self::OpenAi if path.ends_with("/responses") => Some(Api::OpenAiResponses),
            Self::Gemini if path.ends_with(":generateContent") => Some(Api::Gemini),
            Self::Gemini if path.ends_with(":streamGenerateContent") && is_sse() => {
                Some(Api::Gemini)
            }
            Self::Anthropic | Self::OpenAi | Self::Gemini => None,
        }
    }

    /// Returns an error of the proxy's own in the provider's shape.
    pub(crate) fn error(self, status: StatusCode, message: &str) -> Response<Body> {
        let message = format!("toolgate: {message}");
        let body = match self {
            Self::Anthropic => {
                let kind = anthropic_kind(status);
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            Self::OpenAi => json!({ "error": {
                "message": message, "type": "proxy_error", "param": Value::Null, "code": "toolgate" } }),
            Self::Gemini => {
                let name = gemini_status(status);
                json!({ "error": { "code": status.as_u16(), "message": message, "status": name } })
            }
        };
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

/// Returns Anthropic's name of an error with this status.
fn anthropic_kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        _ if status.is_client_error() => "invalid_request_error",
        _ => "api_error",
    }
}

/// Returns Gemini's name of an error with this status.
fn gemini_status(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        StatusCode::TOO_MANY_REQUESTS => "RESOURCE_EXHAUSTED",
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "DEADLINE_EXCEEDED",
        _ if status.is_client_error() => "INVALID_ARGUMENT",
        _ => "UNAVAILABLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_providers_names() {
        let named = |status: u16| {
            let status = StatusCode::from_u16(status).expect("a status");
            [anthropic_kind(status), gemini_status(status)]
        };
        assert_eq!(named(400), ["invalid_request_error", "INVALID_ARGUMENT"]);
        assert_eq!(named(401), ["authentication_error", "UNAUTHENTICATED"]);
        assert_eq!(named(403), ["permission_error", "PERMISSION_DENIED"]);
        assert_eq!(named(408), ["invalid_request_error", "DEADLINE_EXCEEDED"]);
        assert_eq!(named(429), ["rate_limit_error", "RESOURCE_EXHAUSTED"]);
        assert_eq!(named(502), ["api_error", "UNAVAILABLE"]);
        assert_eq!(named(504), ["timeout_error", "DEADLINE_EXCEEDED"]);
    }

    #[test]
    fn paths_name_their_provider() {
        assert_eq!(
            Provider::split("/anthropic/v1/messages"),
            Some((Provider::Anthropic, "/v1/messages"))
        );
        assert_eq!(Provider::split("/openai"), Some((Provider::OpenAi, "")));
        for other in ["", "/", "/openaix/v1", "openai/v1", "/v1/messages"] {
            assert_eq!(Provider::split(other), None, "{other}");
        }
    }

    #[test]
    fn chats_are_known_by_their_path() {
        assert_eq!(Provider::Anthropic.chat("/v1/messages", None), Some(Api::Anthropic));
        assert_eq!(Provider::Anthropic.chat("/v1/messages/count_tokens", None), None);
        assert_eq!(Provider::OpenAi.chat("/v1/chat/completions", None), Some(Api::OpenAiChat));
        assert_eq!(Provider::OpenAi.chat("/v1/responses", None), Some(Api::OpenAiResponses));
        assert_eq!(Provider::OpenAi.chat("/v1/models", None), None);
        assert_eq!(Provider::OpenAi.chat("/v1/responses/compact", None), None);
        assert_eq!(
            Provider::Gemini.chat("/v1beta/models/x:generateContent", None),
            Some(Api::Gemini)
        );
        let streamed = "/v1beta/models/x:streamGenerateContent";
        assert_eq!(Provider::Gemini.chat(streamed, Some("key=a&alt=sse")), Some(Api::Gemini));
        assert_eq!(Provider::Gemini.chat(streamed, Some("alt=json")), None);
        assert_eq!(Provider::Gemini.chat("/v1beta/models/x:countTokens", None), None);
    }
}
