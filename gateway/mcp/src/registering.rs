//! Registrations of the servers' tools with the routing plane, as they are listed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;
use toolgate_client::{Client, v1};
use toolgate_upstream::{Fleet, Listing, ServerState};

use crate::config::{ServerConfig, ToolFilter, Trust};

/// Time for a registration, whose tools may have to be embedded.
const DEADLINE: Duration = Duration::from_secs(120);

/// Pause before a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Registers each listing once, and announces servers that are not there yet. Runs until it is aborted.
pub(crate) async fn follow(
    fleet: Fleet,
    plane: Client,
    servers: BTreeMap<String, ServerConfig>,
    has_tools: watch::Sender<HashSet<String>>,
) {
    let plane = plane.with_deadline(DEADLINE);
    let mut changes = fleet.changes();
    let mut registered: HashMap<String, Option<Arc<Listing>>> = HashMap::new();
    loop {
        changes.borrow_and_update();
        let mut has_failed = false;
        for status in fleet.status() {
            let Some(config) = servers.get(&status.name) else { continue };
            let listing = fleet.listing(&status.name);
            let is_known = match (registered.get(&status.name), &listing) {
                (Some(Some(known)), Some(now)) => Arc::ptr_eq(known, now),
                (Some(_), None) => true,
                _ => false,
            };
            if is_known || (listing.is_none() && status.state == ServerState::Stopped) {
                continue;
            }
            let request = request(&status.name, config, listing.as_deref());
            match plane.register_server(request).await {
                Ok(answer) => {
                    warn_of_rejections(&status.name, &answer);
                    if listing.is_some() {
                        has_tools.send_modify(|servers| {
                            servers.insert(status.name.clone());
                        });
                    }
                    registered.insert(status.name, listing);
                }
                Err(error) => {
                    has_failed = true;
                    tracing::warn!(server = status.name, %error, "tools could not be registered");
                }
            }
        }
        let changed = changes.changed();
        if has_failed {
            // A change may come before the pause ends.
            let _elapsed = tokio::time::timeout(RETRY, changed).await;
        } else if changed.await.is_err() {
            return;
        }
    }
}

fn request(
    name: &str,
    config: &ServerConfig,
    listing: Option<&Listing>,
) -> v1::RegisterServerRequest {
    let hint = if config.url.is_some() {
        v1::TransportHint::StreamableHttp
    } else {
        v1::TransportHint::Stdio
    };
    let tier = match config.trust {
        Trust::Untrusted => v1::TrustTier::Untrusted,
        Trust::Standard => v1::TrustTier::Standard,
        Trust::Trusted => v1::TrustTier::Trusted,
    };
    let tools = listing.map(|listing| tools_list(&listing.tools, &config.tools));
    v1::RegisterServerRequest {
        server: name.to_owned(),
        transport_hint: hint as i32,
        trust_tier: tier as i32,
        pending: tools.is_none(),
        tools_list_json: tools.map(String::into_bytes).unwrap_or_default().into(),
        ..Default::default()
    }
}

/// Returns the result of `tools/list` with the definitions as the server wrote them.
fn tools_list(tools: &[Box<RawValue>], filter: &ToolFilter) -> String {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let is_let_in = |tool: &RawValue| {
        serde_json::from_str::<Named>(tool.get()).map_or(true, |tool| filter.admits(&tool.name))
    };
    let definitions: Vec<&str> =
        tools.iter().filter(|tool| is_let_in(tool)).map(|tool| tool.get()).collect();
    format!("{{\"tools\":[{}]}}", definitions.join(","))
}

fn warn_of_rejections(server: &str, answer: &v1::RegisterServerResponse) {
    for outcome in &answer.outcomes {
        if outcome.kind == v1::OutcomeKind::Rejected as i32 {
            let v1::ToolOutcome { name, field, message, .. } = outcome;
            tracing::warn!(server, tool = name, field, "the tool was rejected: {message}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_keep_their_bytes_and_filters_hold() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        let tools = [raw("{ \"name\": \"a\", \"x\": 1.0 }"), raw("{\"name\":\"b\"}")];
        let all = tools_list(&tools, &ToolFilter::default());
        assert_eq!(all, "{\"tools\":[{ \"name\": \"a\", \"x\": 1.0 },{\"name\":\"b\"}]}");
        let filter = ToolFilter { deny: vec!["b".into()], ..ToolFilter::default() };
        assert_eq!(tools_list(&tools, &filter), "{\"tools\":[{ \"name\": \"a\", \"x\": 1.0 }]}");
    }
}
