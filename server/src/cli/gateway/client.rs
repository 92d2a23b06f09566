//! Requests to a gateway that runs.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_client::TlsOptions;
use toolgate_mcp::Overview;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::GatewayAddress;
use crate::cli::credentials::CredentialArguments;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;

/// Time for a request to the gateway. Calls of tools have as long as the gateway gives them.
const TIMEOUT: Duration = Duration::from_secs(10);
const CALL_TIMEOUT: Duration = Duration::from_secs(660);

/// Revision of MCP that these requests speak. It needs no session.
const REVISION: &str = "2026-07-28";

/// Largest answer, in bytes.
const ANSWER_MAX: u64 = 64 << 20;

/// Address of a gateway or a proxy that runs, and the credentials to show it.
#[derive(Clone, Copy)]
pub(in crate::cli) struct Place<'a> {
    pub(in crate::cli) url: &'a str,
    pub(in crate::cli) credentials: &'a CredentialArguments,
    /// Name for messages, and what to do where nobody answers.
    pub(in crate::cli) name: &'static str,
    pub(in crate::cli) remedy: &'static str,
}

/// Asks for the gateway's state.
pub(super) async fn overview(at: &GatewayAddress) -> Result<Overview, Failure> {
    let body = text(at, "gateway/status").await?;
    serde_json::from_str(&body)
        .map_err(|error| Failure::new(format!("{} is no gateway: {error}", at.url)))
}

/// Gets a text.
pub(super) async fn text(at: &GatewayAddress, path: &str) -> Result<String, Failure> {
    page(at.place(), path).await
}

/// Gets a text of a gateway or a proxy.
pub(in crate::cli) async fn page(at: Place<'_>, path: &str) -> Result<String, Failure> {
    let url = url(at, path);
    let key = at.credentials.key()?;
    let agent = agent(at, TIMEOUT)?;
    blocking(at, move || with_key(agent.get(&url), key.as_deref()).call()).await
}

/// Posts nothing to a path.
pub(super) async fn post(at: &GatewayAddress, path: &str) -> Result<String, Failure> {
    let at = at.place();
    let url = url(at, path);
    let key = at.credentials.key()?;
    let agent = agent(at, TIMEOUT)?;
    blocking(at, move || with_key(agent.post(&url), key.as_deref()).send_empty()).await
}

/// Prints what a model would read of a result.
pub(super) fn print(result: &Value) -> Result<Exit, Failure> {
    for item in result["content"].as_array().into_iter().flatten() {
        match item["text"].as_str() {
            Some(text) => output::print(&format!("{text}\n"))?,
            None => output::print_json(item)?,
        }
    }
    Ok(if result["isError"] == true { Exit::Refused } else { Exit::Done })
}

/// Calls one of the gateway's own tools, and returns its result.
pub(super) async fn result(
    at: &GatewayAddress,
    tool: &str,
    arguments: &Value,
) -> Result<Value, Failure> {
    let at = at.place();
    // Whatever /mcp shows, and no search of a model.
    let url = url(at, "mcp/search?counted=false");
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": tool,
            "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": {"name": "toolgate", "version": env!("CARGO_PKG_VERSION")},
                "io.modelcontextprotocol/clientCapabilities": {}
            }
        }
    });
    let tool = tool.to_owned();
    let key = at.credentials.key()?;
    let agent = agent(at, CALL_TIMEOUT)?;
    let body = blocking(at, move || {
        with_key(agent.post(&url), key.as_deref())
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Type", "application/json")
            .header("MCP-Protocol-Version", REVISION)
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", &tool)
            .send(message.to_string())
    })
    .await?;
    let answer = answer_of(&body)
        .ok_or_else(|| Failure::new(format!("{} answered with no MCP: {body}", at.url)))?;
    if let Some(error) = answer.get("error") {
        return Err(Failure::new(error["message"].as_str().unwrap_or_default().to_owned()));
    }
    Ok(answer["result"].clone())
}

/// Returns the message that answers, out of a JSON body or a stream of events.
fn answer_of(body: &str) -> Option<Value> {
    let is_answer =
        |message: &Value| message.get("result").is_some() || message.get("error").is_some();
    let whole = serde_json::from_str::<Value>(body).ok();
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = events.filter_map(|data| serde_json::from_str(data).ok());
    whole.into_iter().chain(events).find(is_answer)
}

fn url(at: Place<'_>, path: &str) -> String {
    format!("{}/{path}", at.url.trim_end_matches('/'))
}

/// Returns the request with the credential of the command.
fn with_key<B>(request: ureq::RequestBuilder<B>, key: Option<&str>) -> ureq::RequestBuilder<B> {
    match key {
        Some(key) => request.header("Authorization", format!("Bearer {key}")),
        None => request,
    }
}

/// Returns the sender of requests, with the certificates that the command trusts and shows.
fn agent(at: Place<'_>, timeout: Duration) -> Result<ureq::Agent, Failure> {
    let config =
        ureq::Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false);
    let config = match at.credentials.tls()? {
        Some(options) => config.tls_config(tls(&options)?),
        None => config,
    };
    Ok(ureq::Agent::new_with_config(config.build()))
}

fn tls(options: &TlsOptions) -> Result<TlsConfig, Failure> {
    let mut config = TlsConfig::builder();
    if let Some(pem) = &options.ca_pem {
        config = config.root_certs(RootCerts::new_with_certs(&certificates(pem)?));
    }
    if let Some(identity) = &options.identity {
        let key = PrivateKey::from_pem(&identity.key_pem).map_err(unusable)?;
        let chain = certificates(&identity.certificate_pem)?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    Ok(config.build())
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, Failure> {
    let mut certificates = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.map_err(unusable)? {
            certificates.push(certificate);
        }
    }
    Ok(certificates)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn unusable(error: ureq::Error) -> Failure {
    Failure::usage(format!("the certificates or the key are no PEM: {error}"))
}

/// Sends a request off the async threads, and returns the text of the answer.
async fn blocking(
    at: Place<'_>,
    send: impl FnOnce() -> Result<ureq::http::Response<ureq::Body>, ureq::Error> + Send + 'static,
) -> Result<String, Failure> {
    let place = format!("no {} answers at {}", at.name, at.url);
    let foreign = format!("what answers at {} is no {}", at.url, at.name);
    let remedy = at.remedy;
    let sent = tokio::task::spawn_blocking(move || {
        let mut response = send().map_err(|error| unanswered(&place, remedy, &error))?;
        let body = response.body_mut().with_config().limit(ANSWER_MAX).read_to_string();
        let body = body.map_err(|error| Failure::new(error.to_string()))?;
        let status = response.status();
        if status.is_success() {
            Ok(body)
        } else if is_foreign(status, &body) {
            Err(Failure::new(format!("{foreign} ({status}): {remedy}")))
        } else {
            Err(Failure::new(format!("{status}: {}", body.trim())))
        }
    });
    sent.await.map_err(|error| Failure::new(error.to_string()))?
}

/// Returns true if a refusal is none of a gateway or a proxy: these say in plain words what is wrong.
fn is_foreign(status: StatusCode, body: &str) -> bool {
    let body = body.trim_start();
    let says_nothing = body.is_empty() || body.starts_with('<');
    status == StatusCode::METHOD_NOT_ALLOWED || (status == StatusCode::NOT_FOUND && says_nothing)
}

/// Returns the failure of a request that nobody answered.
fn unanswered(place: &str, remedy: &str, error: &ureq::Error) -> Failure {
    let cause = match error {
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    };
    let cause = cause.split(" (os error").next().unwrap_or_default();
    Failure::unreachable(format!("{place} ({cause}): {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_plain_words_is_of_something_else() {
        assert!(is_foreign(StatusCode::NOT_FOUND, ""));
        assert!(is_foreign(StatusCode::NOT_FOUND, "<!DOCTYPE HTML>\n<html>"));
        assert!(is_foreign(StatusCode::METHOD_NOT_ALLOWED, "{}"));
        assert!(!is_foreign(StatusCode::NOT_FOUND, "no server \"x\"\n"));
        assert!(!is_foreign(StatusCode::FORBIDDEN, ""));
    }

    #[test]
    fn answers_are_read_out_of_json_and_of_events() {
        let answer = json!({"id": 1, "result": {"content": []}});
        let note = json!({"method": "notifications/progress"});
        assert_eq!(answer_of(&answer.to_string()), Some(answer.clone()));
        let events = format!("event: message\ndata: {note}\n\ndata: {answer}\n\n");
        assert_eq!(answer_of(&events), Some(answer));
        assert_eq!(answer_of("nothing"), None);
    }
}
