//! Registrations of the servers' tools with the routing plane, as they are listed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;
use toolgate_client::{Client, ErrorReason, v1};
use toolgate_upstream::{Fleet, Listing, ServerState};

use crate::config::{ServerConfig, ToolFilter, Trust};

/// Time for a registration, whose tools may have to be embedded.
const DEADLINE: Duration = Duration::from_secs(120);

/// Pause before a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Servers of a configuration, by name, without those that it leaves out.
pub(crate) type Servers = Arc<BTreeMap<String, ServerConfig>>;

/// Servers whose tools are registered as they list them now.
#[derive(Debug, Clone)]
pub(crate) struct Registered(watch::Sender<HashMap<String, Arc<Listing>>>);

impl Default for Registered {
    fn default() -> Self {
        Self(watch::Sender::new(HashMap::new()))
    }
}

impl Registered {
    /// Returns true if this listing of a server is registered.
    pub(crate) fn has(&self, listing: &Arc<Listing>) -> bool {
        let registered = self.0.borrow();
        registered.get(&listing.server).is_some_and(|known| Arc::ptr_eq(known, listing))
    }

    /// Returns a receiver that changes with each registration.
    pub(crate) fn changes(&self) -> watch::Receiver<HashMap<String, Arc<Listing>>> {
        self.0.subscribe()
    }

    /// Forgets a server, which is registered again if it is still there.
    pub(crate) fn forget(&self, server: &str) {
        self.0.send_modify(|registered| {
            registered.remove(server);
        });
    }

    fn add(&self, listing: Arc<Listing>) {
        self.0.send_modify(|registered| {
            registered.insert(listing.server.clone(), listing);
        });
    }
}

/// Registers each listing once, announces servers that are not there yet, and takes those out of the catalog that left the
/// configuration. Runs until it is aborted.
pub(crate) async fn follow(
    fleet: Fleet,
    plane: Client,
    mut servers: watch::Receiver<Servers>,
    registered: Registered,
) {
    let plane = plane.with_deadline(DEADLINE);
    let mut changes = fleet.changes();
    let mut announced: HashSet<String> = HashSet::new();
    loop {
        changes.borrow_and_update();
        let configured = Arc::clone(&servers.borrow_and_update());
        let mut has_failed = remove(&plane, &configured, &mut announced).await;
        for status in fleet.status() {
            let Some(config) = configured.get(&status.name) else { continue };
            let listing = fleet.listing(&status.name);
            let is_known = match &listing {
                Some(listing) => registered.has(listing),
                None => announced.contains(&status.name) || status.state == ServerState::Stopped,
            };
            if is_known {
                continue;
            }
            let request = request(&status.name, config, listing.as_deref());
            match plane.register_server(request).await {
                Ok(answer) => {
                    warn_of_rejections(&status.name, &answer);
                    announced.insert(status.name);
                    // Under another configuration it is registered again.
                    let is_current = !servers.has_changed().unwrap_or(true);
                    if let Some(listing) = listing.filter(|_| is_current) {
                        registered.add(listing);
                    }
                }
                Err(error) => {
                    has_failed = true;
                    tracing::warn!(server = status.name, %error, "tools could not be registered");
                }
            }
        }
        let changed = async {
            tokio::select! {
                changed = changes.changed() => changed,
                changed = servers.changed() => changed,
            }
        };
        if has_failed {
            // A change may come before the pause ends.
            let _elapsed = tokio::time::timeout(RETRY, changed).await;
        } else if changed.await.is_err() {
            return;
        }
    }
}

/// Takes servers out of the catalog that were announced and are configured no more. Returns whether one could not be.
async fn remove(plane: &Client, configured: &Servers, announced: &mut HashSet<String>) -> bool {
    let left: Vec<String> =
        announced.iter().filter(|name| !configured.contains_key(*name)).cloned().collect();
    let mut has_failed = false;
    for server in left {
        let request = v1::UnregisterServerRequest { server: server.clone(), ..Default::default() };
        match plane.unregister_server(request).await {
            Ok(_) => {
                announced.remove(&server);
            }
            Err(error) if error.reason() == Some(ErrorReason::ServerNotFound) => {
                announced.remove(&server);
            }
            Err(error) => {
                has_failed = true;
                tracing::warn!(server, %error, "tools could not be taken out of the catalog");
            }
        }
    }
    has_failed
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
