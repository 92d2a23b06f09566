//! Servers behind the gateway, and all that its faces share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolgate_client::Client;
use toolgate_upstream::{CredentialStore, Fleet, Listing, ServerState, ServerStatus};

use crate::config::{Config, ConfigError, ServerConfig, Trust};
use crate::discovering;
use crate::history::History;
use crate::registering::{self, Registered};
use crate::results::Results;

/// Time for a question to the routing plane.
pub(crate) const PLANE_DEADLINE: Duration = Duration::from_secs(10);

/// Longest time of a call that tells progress.
const CALL_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// Gateway: its servers and the routing plane that knows their tools. Clones share both.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

struct Shared {
    config: Config,
    fleet: Fleet,
    plane: Client,
    results: Results,
    history: History,
    counts: Counts,
    tools: Mutex<HashMap<String, Arc<KnownTools>>>,
    registered: Registered,
    following: JoinHandle<()>,
}

/// State of a gateway that somebody has seen.
pub struct Seen {
    servers: watch::Receiver<u64>,
    registrations: watch::Receiver<HashMap<String, Arc<Listing>>>,
}

/// Numbers of what hosts asked since the start.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) searches: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) mended: AtomicU64,
}

/// Tools of one listing, by name.
struct KnownTools {
    listing: Arc<Listing>,
    tools: HashMap<String, KnownTool>,
}

/// Tool as its server lists it.
#[derive(Debug, Clone)]
pub(crate) struct KnownTool {
    /// True if the server says that the tool only reads.
    pub(crate) says_read_only: bool,
    /// Most characters of a result that the server wants shown, if it says so.
    pub(crate) result_characters: Option<usize>,
}

/// State of the gateway, for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Overview {
    /// Its servers, in order of their names.
    pub servers: Vec<ServerOverview>,
    /// Number of tools of all servers.
    pub tools: usize,
    /// Searches since the start.
    pub searches: u64,
    /// Calls of tools since the start, refused ones too.
    pub calls: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Calls whose form was mended.
    pub mended: u64,
    /// Searches of which a tool was called within the five calls behind them.
    pub hits: u64,
}

/// State of a server, for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerOverview {
    /// Its name.
    pub name: String,
    /// `ready`, `starting`, `waiting`, `needs login` or `stopped`.
    pub state: String,
    /// `stdio` or `http`.
    pub transport: String,
    /// Revision of MCP that it speaks; empty before it was ready.
    pub protocol: String,
    /// Number of its tools.
    pub tools: usize,
    /// True if searches find its tools.
    pub is_searchable: bool,
    /// Time that its start took, in seconds; `None` before it was ready.
    pub started_in: Option<f64>,
    /// Starts after the first.
    pub restarts: u64,
    /// Problem that it has; empty if it has none.
    pub problem: String,
}

/// Server's listing, as far as annotations go.
#[derive(Deserialize)]
struct ListedTool {
    name: String,
    #[serde(default)]
    annotations: Value,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

impl Gateway {
    /// Starts the servers of a configuration, and registers their tools with the plane as they are listed. Credentials of
    /// logins come from a store.
    ///
    /// # Errors
    /// [`ConfigError`] for an entry that makes no sense.
    pub fn start(
        config: Config,
        plane: &Client,
        credentials: Option<CredentialStore>,
    ) -> Result<Self, ConfigError> {
        let fleet = Fleet::start_with(config.entries()?, credentials);
        let plane = plane.with_deadline(PLANE_DEADLINE);
        let registered = Registered::default();
        let following = tokio::spawn(registering::follow(
            fleet.clone(),
            plane.clone(),
            config.server.clone(),
            registered.clone(),
        ));
        Ok(Self(Arc::new(Shared {
            config,
            fleet,
            plane,
            results: Results::default(),
            history: History::default(),
            counts: Counts::default(),
            tools: Mutex::default(),
            registered,
            following,
        })))
    }

    /// Ends the servers.
    pub async fn close(&self) {
        self.0.following.abort();
        self.0.fleet.close().await;
    }

    /// Returns the servers behind the gateway.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    /// Returns the configuration that the gateway was started with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Waits until a server's state, its tools or what is registered of them changes.
    pub async fn changed(&self, since: &mut Seen) {
        // Neither sender is dropped while the gateway lives.
        tokio::select! {
            _changed = since.servers.changed() => {}
            _changed = since.registrations.changed() => {}
        }
    }

    /// Returns what [`Self::changed`] compares with: the gateway as it is now.
    #[must_use]
    pub fn seen(&self) -> Seen {
        Seen { servers: self.fleet().changes(), registrations: self.0.registered.changes() }
    }

    /// Returns the state of the gateway.
    #[must_use]
    pub fn overview(&self) -> Overview {
        let servers: Vec<_> =
            self.fleet().status().into_iter().map(|status| self.overview_of(status)).collect();
        let counts = self.counts();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Overview {
            tools: servers.iter().map(|server| server.tools).sum(),
            servers,
            searches: read(&counts.searches),
            calls: read(&counts.calls),
            refused: read(&counts.refused),
            mended: read(&counts.mended),
            hits: self.history().hits(),
        }
    }

    /// Returns the longest time of a call, however much progress it tells.
    pub(crate) fn call_time_max(&self) -> Duration {
        CALL_TIME_MAX.max(self.config().gateway.call_timeout)
    }

    fn overview_of(&self, status: ServerStatus) -> ServerOverview {
        let listing = self.fleet().listing(&status.name);
        let is_searchable = listing.is_some_and(|listing| self.0.registered.has(&listing));
        ServerOverview { is_searchable, ..ServerOverview::of(status) }
    }

    pub(crate) fn plane(&self) -> &Client {
        &self.0.plane
    }

    pub(crate) fn results(&self) -> &Results {
        &self.0.results
    }

    pub(crate) fn history(&self) -> &History {
        &self.0.history
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Returns the configuration of a server of this gateway.
    pub(crate) fn server(&self, name: &str) -> Option<&ServerConfig> {
        self.config().server.get(name)
    }

    /// Returns the tools of a server, for which it waits at most `wait` if it has listed none yet.
    pub(crate) async fn await_listing(&self, server: &str, wait: Duration) -> Option<Arc<Listing>> {
        let mut changes = self.fleet().changes();
        let listed = async {
            loop {
                changes.borrow_and_update();
                if let Some(listing) = self.fleet().listing(server) {
                    return Some(listing);
                }
                changes.changed().await.ok()?;
            }
        };
        tokio::time::timeout(wait, listed).await.ok().flatten()
    }

    /// Waits until the plane has the tools of a server, at most for `wait`.
    pub(crate) async fn await_registered(&self, server: &str, wait: Duration) {
        let mut registered = self.0.registered.changes();
        let is_there = registered.wait_for(|registered| registered.contains_key(server));
        // Without them, the plane refuses the call.
        let _late = tokio::time::timeout(wait, is_there).await;
    }

    /// Returns the names of a server's tools that a principal may see: none that waits for approval, or that a policy hides.
    ///
    /// # Errors
    /// The problem, if the plane can't say.
    pub(crate) async fn visible(
        &self,
        server: &str,
        principal: &str,
    ) -> Result<HashSet<String>, String> {
        let state = discovering::state(self, principal);
        let told = self.plane().all_tools(Some(server), Some(state)).await;
        let tools = told.map_err(|error| format!("the catalog can't be read: {error}"))?;
        Ok(tools.into_iter().filter(|tool| !tool.quarantined).map(|tool| tool.name).collect())
    }

    /// Returns the tool as its server lists it now, if the gateway lets it in.
    pub(crate) fn tool(&self, server: &str, name: &str) -> Option<KnownTool> {
        self.known(server)?.tools.get(name).cloned()
    }

    /// Returns true if the tool only reads, by the word of a server that is believed.
    pub(crate) fn is_read_only(&self, server: &str, name: &str) -> bool {
        let is_believed =
            self.server(server).is_some_and(|server| server.trust != Trust::Untrusted);
        is_believed && self.tool(server, name).is_some_and(|tool| tool.says_read_only)
    }

    fn known(&self, server: &str) -> Option<Arc<KnownTools>> {
        let listing = self.fleet().listing(server)?;
        let mut tools = self.0.tools.lock();
        if let Some(known) = tools.get(server)
            && Arc::ptr_eq(&known.listing, &listing)
        {
            return Some(Arc::clone(known));
        }
        let filter = &self.server(server)?.tools;
        let read = |raw: &RawValue| {
            let listed: ListedTool = serde_json::from_str(raw.get()).ok()?;
            filter.admits(&listed.name).then(|| (listed.name.clone(), KnownTool::of(&listed)))
        };
        let by_name = listing.tools.iter().filter_map(|raw| read(raw)).collect();
        let known = Arc::new(KnownTools { listing, tools: by_name });
        tools.insert(server.to_owned(), Arc::clone(&known));
        Some(known)
    }
}

impl KnownTool {
    fn of(listed: &ListedTool) -> Self {
        let says_read_only = listed.annotations["readOnlyHint"] == true;
        let characters = listed.meta["anthropic/maxResultSizeChars"].as_u64();
        let result_characters = characters.and_then(|count| usize::try_from(count).ok());
        Self { says_read_only, result_characters }
    }
}

impl ServerOverview {
    fn of(status: ServerStatus) -> Self {
        Self {
            name: status.name,
            state: state_name(status.state).to_owned(),
            transport: status.transport.to_owned(),
            protocol: status.protocol.unwrap_or_default(),
            tools: status.tools,
            is_searchable: false,
            started_in: status.started_in.map(|time| time.as_secs_f64()),
            restarts: status.restarts,
            problem: status.problem.unwrap_or_default(),
        }
    }
}

/// Returns the name of a state for people and models.
pub(crate) fn state_name(state: ServerState) -> &'static str {
    match state {
        ServerState::Starting => "starting",
        ServerState::Ready => "ready",
        ServerState::Waiting => "waiting",
        ServerState::NeedsLogin => "needs login",
        ServerState::Stopped => "stopped",
    }
}
