//! Log lines of a worker process. Each is one JSON object on standard error, which is logged again under the worker's
//! name. Other lines are passed on unchanged.

use std::net::SocketAddr;

use serde::Deserialize;
use serde_json::{Map, Value};
use tracing::{debug, error, info, warn};

/// Message of the event that holds the address.
const LISTENING: &str = "listening";

/// A log line in JSON.
#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default)]
    level: String,
    message: String,
    /// Address that calls are served on. Only the event [`LISTENING`] has it.
    grpc: Option<SocketAddr>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// Logs the line again, and returns the address if the line holds one.
pub(super) fn repeat(worker: &str, line: &str) -> Option<SocketAddr> {
    let Ok(mut event) = serde_json::from_str::<Event>(line) else {
        warn!(worker, "{line}");
        return None;
    };
    event.fields.retain(|name, _| name != "timestamp" && name != "target");
    let fields = Value::Object(event.fields);
    let message = event.message.as_str();
    match event.level.as_str() {
        "ERROR" => error!(worker, %fields, "{message}"),
        "WARN" => warn!(worker, %fields, "{message}"),
        "INFO" => info!(worker, %fields, "{message}"),
        _ => debug!(worker, %fields, "{message}"),
    }
    event.grpc.filter(|_| message == LISTENING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_event_that_says_so_names_the_address() {
        let line = r#"{"timestamp":"t","level":"INFO","message":"listening",
            "grpc":"127.0.0.1:7072","admin":"127.0.0.1:7073","target":"t"}"#;
        let address = repeat("cpu", line).map(|address| address.to_string());
        assert_eq!(address.as_deref(), Some("127.0.0.1:7072"));
        for line in [
            "listening on 127.0.0.1:1",
            r#"{"level":"INFO","message":"serving","grpc":"127.0.0.1:1"}"#,
            r#"{"level":"INFO","message":"listening"}"#,
            r#"{"message":"listening","grpc":"?"}"#,
            "",
        ] {
            assert_eq!(repeat("cpu", line), None, "{line}");
        }
    }
}
