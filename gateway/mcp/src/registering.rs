//! Registrations of the servers' tools with the routing plane, as they are listed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;
use toolgate_client::{Client, ErrorReason, v1};
use toolgate_upstream::{Fleet, Listing, ServerState};

use crate::config::{ServerConfig, ToolFilter, Trust};
use crate::registrations::{Registration, Registrations};
use crate::revisions::Revisions;

/// Time for a registration, whose tools may have to be embedded.
const DEADLINE: Duration = Duration::from_secs(120);

/// Pause before a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Pause before the same registration is tried again after the plane refused it. Somebody may raise the limit.
const RETRY_REFUSED: Duration = Duration::from_secs(60);

/// Most characters that are shown of the name of a tool that was rejected.
const NAME_MAX: usize = 64;

/// Most characters that are shown of the problem of a tool.
const PROBLEM_MAX: usize = 400;

/// Servers of a configuration, by name, without those that it leaves out.
pub(crate) type Servers = Arc<BTreeMap<String, ServerConfig>>;

/// Listings that are registered, by tenant and server.
pub(crate) type RegisteredListings = HashMap<(String, String), Arc<Listing>>;

/// Servers whose tools are registered as they list them now.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    listings: watch::Sender<RegisteredListings>,
    /// Tools that the plane rejected, each with the problem.
    rejected: Arc<Mutex<HashMap<Registration, Vec<String>>>>,
    /// Registrations that the plane refuses.
    refused: Arc<Mutex<HashMap<Registration, Refused>>>,
    /// Revisions of the catalogs that hold them.
    pub(crate) revisions: Revisions,
}

/// Registration that the plane refuses.
#[derive(Debug)]
struct Refused {
    /// Listing that was refused; `None` for the announcement of a server.
    listing: Option<Arc<Listing>>,
    problem: String,
    /// Time before which the same is not tried again.
    until: Instant,
}

impl Default for Registered {
    fn default() -> Self {
        Self {
            listings: watch::Sender::new(HashMap::new()),
            rejected: Arc::default(),
            refused: Arc::default(),
            revisions: Revisions::default(),
        }
    }
}

impl Registered {
    /// Returns true if this listing of a server is registered in a tenant's catalog.
    pub(crate) fn has(&self, tenant: &str, listing: &Arc<Listing>) -> bool {
        let known = self.get(tenant, &listing.server);
        known.is_some_and(|known| Arc::ptr_eq(&known, listing))
    }

    /// Returns the listing of a server that is registered in a tenant's catalog.
    pub(crate) fn get(&self, tenant: &str, server: &str) -> Option<Arc<Listing>> {
        self.listings.borrow().get(&(tenant.to_owned(), server.to_owned())).cloned()
    }

    /// Doubts a tenant's catalog if a list of its tools, of one server or of all, has none of a server whose tools are registered. A
    /// policy may hide them all as well.
    pub(crate) fn check(&self, tenant: &str, server: Option<&str>, listed: &[v1::Tool]) {
        let names: HashSet<&str> = listed.iter().map(|tool| &*tool.server).collect();
        let is_lacked = |((of, name), listing): (&(String, String), &Arc<Listing>)| {
            let is_asked = of == tenant && server.is_none_or(|server| server == name);
            is_asked && !listing.tools.is_empty() && !names.contains(&**name)
        };
        if self.listings.borrow().iter().any(is_lacked) {
            self.revisions.doubt(tenant);
        }
    }

    /// Returns a receiver that changes with each registration.
    pub(crate) fn changes(&self) -> watch::Receiver<RegisteredListings> {
        self.listings.subscribe()
    }

    /// Returns the tools of a server that the plane rejected, each with the problem.
    pub(crate) fn rejected(&self, tenant: &str, server: &str) -> Vec<String> {
        let place = (tenant.to_owned(), server.to_owned());
        self.rejected.lock().get(&place).cloned().unwrap_or_default()
    }

    /// Returns why the plane refuses all tools of a server; `None` if it does not.
    pub(crate) fn refused(&self, tenant: &str, server: &str) -> Option<String> {
        let place = (tenant.to_owned(), server.to_owned());
        self.refused.lock().get(&place).map(|refused| refused.problem.clone())
    }

    /// Returns true if the plane has refused this a moment ago, and would again.
    fn is_refused(&self, place: &Registration, listing: Option<&Arc<Listing>>) -> bool {
        let all = self.refused.lock();
        let Some(Refused { listing: before, until, .. }) = all.get(place) else { return false };
        let is_same = match (before, listing) {
            (Some(before), Some(listing)) => Arc::ptr_eq(before, listing),
            (before, listing) => before.is_none() && listing.is_none(),
        };
        is_same && Instant::now() < *until
    }

    /// Notes that the plane refuses a registration. Returns true if the problem is news.
    fn refuse(&self, place: &Registration, refused: Refused) -> bool {
        let problem = refused.problem.clone();
        let before = self.refused.lock().insert(place.clone(), refused);
        let is_new = before.is_none_or(|before| before.problem != problem);
        if is_new {
            // People are told of it, though no listing has changed.
            self.listings.send_modify(|_registered| {});
        }
        is_new
    }

    /// Forgets a server, which is registered again if it is still there.
    pub(crate) fn forget(&self, server: &str) {
        // A problem stays until it is known what becomes of the next registration.
        let mut refused = self.refused.lock();
        let of_server = refused.iter_mut().filter(|((_, known), _)| known == server);
        of_server.for_each(|(_, refused)| refused.until = Instant::now());
        drop(refused);
        self.listings.send_modify(|registered| registered.retain(|(_, known), _| known != server));
    }

    /// Forgets the servers of a tenant that its catalog lacks, and returns their names.
    fn forget_lost(&self, tenant: &str, in_catalog: &BTreeSet<String>) -> Vec<String> {
        let is_lost =
            |(of, server): &(String, String)| of == tenant && !in_catalog.contains(server);
        let mut lost = Vec::new();
        self.listings.send_if_modified(|registered| {
            lost.extend(
                registered.keys().filter(|place| is_lost(place)).map(|(_, name)| name.clone()),
            );
            registered.retain(|place, _| !is_lost(place));
            !lost.is_empty()
        });
        lost
    }

    fn add(&self, tenant: &str, listing: Arc<Listing>) {
        self.listings.send_modify(|registered| {
            registered.insert((tenant.to_owned(), listing.server.clone()), listing);
        });
    }
}

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

    /// Looks at the catalogs that somebody else has changed, and forgets what they lack, so that it is registered again. Returns
    /// false if one could not be looked at.
    async fn look_at_doubted(&mut self) -> bool {
        let mut are_known = true;
        let revisions = self.registered.revisions.clone();
        for tenant in revisions.take_doubted() {
            let Some(servers) = self.servers_in_catalog(&tenant).await else {
                revisions.keep_doubt(&tenant);
                are_known = false;
                continue;
            };
            // A server that is announced alone has lost its tools.
            let with_tools = servers.iter().filter(|server| !server.pending);
            let with_tools = with_tools.map(|server| server.name.clone()).collect();
            let lost = self.registered.forget_lost(&tenant, &with_tools);
            if lost.is_empty() {
                revisions.is_whole(&tenant);
            }
            for server in lost {
                tracing::warn!(
                    server,
                    tenant,
                    "the catalog has lost the server: it is registered again"
                );
            }
            let names: BTreeSet<&str> = servers.iter().map(|server| &*server.name).collect();
            self.announced.retain(|(of, server)| *of != tenant || names.contains(&**server));
        }
        are_known
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

    /// Returns what a person does about a server whose registration the plane refuses. A limit is named in the plane's message.
    fn problem(
        &self,
        (tenant, server): &Registration,
        listing: Option<&Arc<Listing>>,
        error: &toolgate_client::Error,
    ) -> String {
        let told = error.to_string();
        let told = one_line(told.lines().next().unwrap_or_default(), PROBLEM_MAX);
        let remedy = match error.reason() {
            Some(ErrorReason::LimitExceeded) => {
                let tools = listing.map_or(0, |listing| listing.tools.len());
                format!(
                    ": let fewer of its {tools} tools in (server.{server}.tools), or raise the limit in the routing plane's configuration"
                )
            }
            _ => String::new(),
        };
        let consequence = match self.registered.get(tenant, server) {
            Some(_) => "its tools are still those of an earlier list",
            None => "none of its tools can be found or called",
        };
        format!("{consequence}: {told}{remedy}")
    }
}

/// Returns true if the plane refuses a registration for what it is: it does so again until the list, the gateway's file or a limit
/// changes.
fn is_refusal(error: &toolgate_client::Error) -> bool {
    let reasons =
        [ErrorReason::LimitExceeded, ErrorReason::InvalidField, ErrorReason::MalformedCatalog];
    error.reason().is_some_and(|reason| reasons.contains(&reason))
}

/// Returns true if a server is in no catalog already.
fn is_absent(error: &toolgate_client::Error) -> bool {
    matches!(error.reason(), Some(ErrorReason::ServerNotFound | ErrorReason::TenantNotFound))
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

/// Returns the tools that the plane rejected, each with the problem.
fn rejections(answer: &v1::RegisterServerResponse) -> Vec<String> {
    let rejected = v1::OutcomeKind::Rejected as i32;
    let rejected = answer.outcomes.iter().filter(|outcome| outcome.kind == rejected);
    let line = |v1::ToolOutcome { name, message, .. }: &v1::ToolOutcome| {
        format!("{} was rejected: {}", one_line(name, NAME_MAX), one_line(message, PROBLEM_MAX))
    };
    rejected.map(line).collect()
}

fn warn_of_rejections(server: &str, answer: &v1::RegisterServerResponse) {
    for outcome in &answer.outcomes {
        if outcome.kind == v1::OutcomeKind::Rejected as i32 {
            let tool = one_line(&outcome.name, NAME_MAX);
            let message = one_line(&outcome.message, PROBLEM_MAX);
            tracing::warn!(server, tool, field = outcome.field, "the tool was rejected: {message}");
        }
    }
}

/// Joins a text of a server into one line of at most `width` characters. Control characters are removed, because a terminal
/// could take them for commands.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = words.chars().filter(|letter| !letter.is_control());
    let kept: String = letters.by_ref().take(width).collect();
    if letters.next().is_some() { format!("{kept}…") } else { kept }
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

    #[test]
    fn the_name_of_a_rejected_tool_commands_no_terminal() {
        let outcome = |name: &str, message: &str| v1::ToolOutcome {
            name: name.to_owned(),
            kind: v1::OutcomeKind::Rejected as i32,
            message: message.to_owned(),
            ..Default::default()
        };
        let outcomes = vec![
            outcome("\u{1b}]0;x\u{7}\u{1b}[2Jread\nme", "its name has\r\u{9b}31m letters"),
            outcome(&"n".repeat(1_000), "too long"),
        ];
        let told = rejections(&v1::RegisterServerResponse { outcomes, ..Default::default() });
        assert_eq!(told[0], "]0;x[2Jread me was rejected: its name has 31m letters");
        assert_eq!(told[1], format!("{}… was rejected: too long", "n".repeat(NAME_MAX)));
    }
}
