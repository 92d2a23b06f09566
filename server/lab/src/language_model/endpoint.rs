//! A single call to an OpenAI-compatible endpoint: `POST .../chat/completions`, and the text of its answer. Every call
//! has a deadline, and the size of every answer is bounded.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::{Response, StatusCode, Uri, header};
use ureq::{Agent, Body};

use super::api_key::ApiKey;
use super::call_error::CallError;

/// Maximum size of an answer in bytes. Expected answers need a few thousand; models that think aloud need more.
const ANSWER_MAX: u64 = 1 << 20;

/// Maximum number of characters of the endpoint's error message that are passed on.
const MESSAGE_MAX: usize = 200;

/// URL for completion requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointAddress(String);

impl EndpointAddress {
    /// Parses an address. Completes a base URL such as `http://127.0.0.1:11434`, or one that ends in `/v1`, and keeps
    /// one that ends in `/chat/completions`.
    ///
    /// # Errors
    /// Returns a message that says what is wrong with the address and what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "write a URL such as https://api.example.com/v1";
        let uri: Uri = text.trim().parse().map_err(|error| format!("{error}: {expected}"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(format!("no http:// or https:// before it: {expected}"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("holds a user or a password: use --api-key-env or --api-key-file".into());
        }
        if uri.query().is_some() {
            return Err(format!("holds a query (`?`): {expected}"));
        }
        let base = text.trim().trim_end_matches('/');
        Ok(Self(match base {
            whole if whole.ends_with("/chat/completions") => whole.to_owned(),
            base if base.ends_with("/v1") => format!("{base}/chat/completions"),
            base => format!("{base}/v1/chat/completions"),
        }))
    }

    /// Returns true if others can read the traffic: it is not encrypted and leaves this machine.
    #[must_use]
    pub fn is_in_the_open(&self) -> bool {
        self.0.starts_with("http://") && !self.is_here()
    }

    /// Returns true if the endpoint is on this machine.
    fn is_here(&self) -> bool {
        let uri: Option<Uri> = self.0.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Language model behind an address.
#[derive(Debug)]
pub struct Endpoint {
    address: EndpointAddress,
    model: String,
    key: Option<ApiKey>,
    agent: Agent,
}

/// Part of an answer that is read.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

impl Endpoint {
    /// Creates an endpoint whose calls take at most `deadline`, from the first byte sent to the last byte read.
    #[must_use]
    pub fn new(
        address: EndpointAddress,
        model: String,
        key: Option<ApiKey>,
        deadline: Duration,
    ) -> Self {
        let config = Agent::config_builder();
        // A proxy can't reach this machine's own addresses.
        let config = if address.is_here() { config.proxy(None) } else { config };
        let agent = config
            .http_status_as_error(false)
            // The key must not be sent to the target of a redirect.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(deadline))
            .build()
            .into();
        Self { address, model, key, agent }
    }

    /// Returns the address of the endpoint.
    #[must_use]
    pub fn address(&self) -> &EndpointAddress {
        &self.address
    }

    /// Returns the model's answer to these messages.
    ///
    /// # Errors
    /// Returns [`CallError`] if no answer with text arrives.
    pub fn complete(&self, messages: &Value) -> Result<String, CallError> {
        // Sends only fields that every server of this protocol accepts. Some refuse a temperature, or one of the two
        // names of the token limit.
        let body = json!({ "model": self.model, "messages": messages, "stream": false });
        let mut request =
            self.agent.post(&self.address.0).header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, key.authorization());
        }
        let response = request.send(body.to_string()).map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let retry_after = retry_after(&response);
        let text = read(response).map_err(|error| self.unreachable(&error));
        if status != StatusCode::OK {
            return Err(self.failed(status.as_u16(), retry_after, &text.unwrap_or_default()));
        }
        let completion: Completion = serde_json::from_str(&text?)
            .map_err(|error| CallError::Malformed(format!("no chat completion: {error}")))?;
        let first = completion.choices.into_iter().next();
        let content = first.and_then(|choice| choice.message.content);
        content.ok_or_else(|| CallError::Malformed("it holds no text".into()))
    }

    fn failed(&self, status: u16, retry_after: Option<Duration>, text: &str) -> CallError {
        let message = self.hidden(&said(text));
        match status {
            408 | 429 | 500..=599 => CallError::Busy { status, retry_after, message },
            400 | 413 | 422 => CallError::Rejected { status, message },
            300..=399 => {
                let message = "it sends elsewhere: give the address that it names".into();
                CallError::Refused { status, message }
            }
            _ => CallError::Refused { status, message },
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> CallError {
        CallError::Unreachable(self.hidden(&error.to_string()))
    }

    fn hidden(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.hidden_in(text))
    }
}

fn read(response: Response<Body>) -> Result<String, ureq::Error> {
    response.into_body().into_with_config().limit(ANSWER_MAX).lossy_utf8(true).read_to_string()
}

/// Returns the delay in `Retry-After` if it is in seconds. Ignores a date, which few servers send.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// Extracts the error message from a response body, as one line without control characters.
fn said(text: &str) -> String {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let message =
        body.pointer("/error/message").or_else(|| body.get("error")).and_then(Value::as_str);
    let words = message.unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|letter| !letter.is_control()).take(MESSAGE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        for (text, wanted) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
            ("https://a.example/api/v1/", "https://a.example/api/v1/chat/completions"),
            ("https://a.example/x/chat/completions", "https://a.example/x/chat/completions"),
        ] {
            assert_eq!(EndpointAddress::parse(text).map(|a| a.to_string()).as_deref(), Ok(wanted));
        }
        for (text, part) in [
            ("a.example/v1", "http"),
            ("ftp://a.example", "no http://"),
            ("https://me:secret@a.example", "--api-key-env"),
            ("https://a.example/v1?key=x", "query"),
            ("http://", "write a URL"),
        ] {
            let problem = EndpointAddress::parse(text).expect_err(text);
            assert!(problem.contains(part) && !problem.contains("secret"), "{text}: {problem}");
        }
    }

    #[test]
    fn keys_may_travel_to_this_machine_or_encrypted() {
        for (text, wanted) in [
            ("http://127.0.0.1:1", false),
            ("http://[::1]:1", false),
            ("http://localhost:1", false),
            ("https://a.example", false),
            ("http://a.example", true),
            ("http://127.0.0.1.example", true),
        ] {
            let address = EndpointAddress::parse(text).expect(text);
            assert_eq!(address.is_in_the_open(), wanted, "{text}");
        }
    }

    #[test]
    fn errors_are_told_in_one_line() {
        assert_eq!(said(r#"{"error": {"message": "no\n such\u001b model"}}"#), "no such model");
        assert_eq!(said(r#"{"error": "down"}"#), "down");
        assert_eq!(said("<html>\nBad gateway"), "<html> Bad gateway");
        assert_eq!(said(&"x".repeat(900)).len(), MESSAGE_MAX);
    }
}
