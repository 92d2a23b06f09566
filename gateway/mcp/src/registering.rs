//! Registrations of the servers' tools with the routing plane, as they are listed.

mod doubts;
mod refusals;
mod registered;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;
use toolgate_client::{Client, ErrorReason, v1};
use toolgate_upstream::{Fleet, Listing, ServerState};

use crate::config::{ServerConfig, ToolFilter, Trust};
use crate::registrations::{Registration, Registrations};
pub(crate) use refusals::one_line;
use refusals::{Refused, is_absent, is_refusal, rejections, warn_of_rejections};
pub(crate) use registered::Registered;

/// Time for a registration, whose tools may have to be embedded.
const DEADLINE: Duration = Duration::from_secs(120);

/// Pause before a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Pause before the same registration is tried again after the plane refused it. Somebody may raise the limit.
const RETRY_REFUSED: Duration = Duration::from_secs(60);

/// Servers of a configuration, by name, without those that it leaves out.
pub(crate) type Servers = Arc<BTreeMap<String, ServerConfig>>;

/// Listings that are registered, by tenant and server.
pub(crate) type RegisteredListings = HashMap<(String, String), Arc<Listing>>;

/// Registers each listing once with each tenant that sees its server, and again where the plane has lost it, announces servers that
/// are not there yet, and takes those out of a tenant's catalog that left its configuration. Runs until it is aborted.
pub(crate) async fn follow(
    fleet: Fleet,
    plane: Client,
    mut servers: watch::Receiver<Servers>,
    registered: Registered,
    registrations: Registrations,
) {
    let plane = plane.with_deadline(DEADLINE);
    let own = plane.options().tenant.clone();
    let mut changes = fleet.changes();
    let mut doubts = registered.revisions.doubts();
    let reloaded = servers.clone();
    let announced = HashSet::new();
    let mut follower =
        Follower { plane, registered, reloaded, announced, registrations, has_been_refused: false };
    loop {
        changes.borrow_and_update();
        doubts.borrow_and_update();
        let configured = Arc::clone(&servers.borrow_and_update());
        follower.reloaded.borrow_and_update();
        follower.has_been_refused = false;
        let mut has_failed = !follower.take_all(&configured, &own).await;
        has_failed |= follower.remove(&configured, &own).await;
        has_failed |= !follower.look_at_doubted().await;
        for status in fleet.status() {
            let Some(config) = configured.get(&status.name) else { continue };
            let listing = fleet.listing(&status.name);
            if listing.is_none() && status.state == ServerState::Stopped {
                continue;
            }
            for tenant in config.tenants(&own) {
                let told = follower.tell(&tenant, &status.name, config, listing.as_ref()).await;
                has_failed |= !told;
            }
        }
        let changed = async {
            tokio::select! {
                changed = changes.changed() => changed,
                changed = servers.changed() => changed,
                changed = doubts.changed() => changed,
            }
        };
        if has_failed || follower.has_been_refused {
            let pause = if has_failed { RETRY } else { RETRY_REFUSED };
            // A change may come before the pause ends.
            let _elapsed = tokio::time::timeout(pause, changed).await;
        } else if changed.await.is_err() {
            return;
        }
    }
}

/// Registrations with the plane.
struct Follower {
    plane: Client,
    registered: Registered,
    /// Configuration that the registrations go by; changed once there is a newer one.
    reloaded: watch::Receiver<Servers>,
    /// Tenants and servers that were announced.
    announced: HashSet<(String, String)>,
    /// Those that were ever registered, in earlier starts too.
    registrations: Registrations,
    /// True if the plane has refused a registration that it would refuse again.
    has_been_refused: bool,
}

impl Follower {
    /// Takes the servers of the catalogs for the gateway's own, if they are and it does not know them yet. Returns false if
    /// that failed.
    async fn take_all(&mut self, configured: &Servers, own: &str) -> bool {
        if !self.registrations.takes_all() {
            return true;
        }
        let tenants = configured.values().flat_map(|server| server.tenants(own));
        let tenants: BTreeSet<String> = tenants.chain([own.to_owned()]).collect();
        for tenant in tenants {
            let Some(servers) = self.servers_in_catalog(&tenant).await else { return false };
            for server in servers {
                self.registrations.add((tenant.clone(), server.name));
            }
        }
        self.registrations.has_taken_all();
        true
    }

    /// Returns the servers of a tenant's catalog; `None` if the plane can't say.
    async fn servers_in_catalog(&self, tenant: &str) -> Option<Vec<v1::McpServer>> {
        let request = v1::ListServersRequest { tenant: tenant.to_owned(), ..Default::default() };
        match self.plane.servers(request).all().await {
            Ok(servers) => Some(servers),
            Err(error) if error.reason() == Some(ErrorReason::TenantNotFound) => Some(Vec::new()),
            Err(error) => {
                tracing::warn!(tenant, %error, "the servers of the catalog can't be listed");
                None
            }
        }
    }

    /// Takes servers out of the catalogs of tenants that see them no more. Returns true if one could not be.
    async fn remove(&mut self, configured: &Servers, own: &str) -> bool {
        let is_seen = |(tenant, server): &(String, String)| {
            let server = configured.get(server);
            server.is_some_and(|server| server.tenants(own).contains(tenant))
        };
        let known = self.announced.iter().chain(self.registrations.all());
        let left: BTreeSet<_> = known.filter(|place| !is_seen(place)).cloned().collect();
        let mut has_failed = false;
        for place in left {
            let request = v1::UnregisterServerRequest {
                tenant: place.0.clone(),
                server: place.1.clone(),
                ..Default::default()
            };
            match self.plane.unregister_server(request).await {
                Ok(_) => self.forget(&place),
                Err(error) if is_absent(&error) => self.forget(&place),
                Err(error) => {
                    has_failed = true;
                    let server = place.1;
                    tracing::warn!(server, %error, "tools could not be taken out of the catalog");
                }
            }
        }
        has_failed
    }

    fn forget(&mut self, place: &Registration) {
        self.announced.remove(place);
        self.registrations.remove(place);
    }

    /// Tells the plane of a tenant's server, unless it knows. Returns false if that failed.
    async fn tell(
        &mut self,
        tenant: &str,
        server: &str,
        config: &ServerConfig,
        listing: Option<&Arc<Listing>>,
    ) -> bool {
        let place = (tenant.to_owned(), server.to_owned());
        let is_known = match listing {
            Some(listing) => self.registered.has(tenant, listing),
            None => self.announced.contains(&place),
        };
        if is_known {
            return true;
        }
        if self.registered.is_refused(&place, listing) {
            self.has_been_refused = true;
            return true;
        }
        let mut request = request(server, config, listing.map(|listing| &**listing));
        tenant.clone_into(&mut request.tenant);
        match self.plane.register_server(request).await {
            Ok(answer) => {
                warn_of_rejections(server, &answer);
                self.registered.revisions.made(tenant, answer.catalog_revision);
                self.registered.rejected.lock().insert(place.clone(), rejections(&answer));
                self.registered.refused.lock().remove(&place);
                self.registrations.add(place.clone());
                self.announced.insert(place);
                // Under another configuration it is registered again.
                let is_current = !self.reloaded.has_changed().unwrap_or(true);
                if let Some(listing) = listing.filter(|_| is_current) {
                    self.registered.add(tenant, Arc::clone(listing));
                }
                true
            }
            Err(error) if is_refusal(&error) => {
                let refused = Refused {
                    listing: listing.cloned(),
                    problem: self.problem(&place, listing, &error),
                    until: Instant::now() + RETRY_REFUSED,
                };
                if self.registered.refuse(&place, refused) {
                    tracing::warn!(server, tenant, %error, "tools were refused");
                }
                self.has_been_refused = true;
                true
            }
            Err(error) => {
                tracing::warn!(server, tenant, %error, "tools could not be registered");
                false
            }
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
