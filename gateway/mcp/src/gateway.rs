//! Servers behind the gateway, and all that its faces share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolgate_client::{Client, ClientOptions, TraceContext, v1};
use toolgate_core::safety::Scanner;
use toolgate_core::tokens::count;
use toolgate_telemetry::headers_of_trace;
use toolgate_upstream::{
    CredentialStore, Eras, Fleet, HeaderParameters, Leaving, Listing, Processes, RequestError,
    ServerState, ServerStatus,
};

use crate::audit::Audit;
use crate::called::CalledTools;
use crate::caller::Caller;
use crate::config::{AlwaysOn, ApprovedItem, Config, ConfigError, Exposed, ServerConfig, Trust};
use crate::connecting::Connecting;
use crate::definitions::{
    Behind, definitions, instructions as instructions_of, read_result, tokens_of,
};
use crate::discovering::shown_name;
use crate::elicited::{self, Elicited};
use crate::history::{Decided, History};
use crate::host::Failure;
use crate::keeping::keep_running;
use crate::listings::{Asked, Listed, Listings};
use crate::lists::Lists;
use crate::parked::Parked;
use crate::placed::Resumable;
use crate::registering::{self, Registered, RegisteredListings, Servers};
use crate::registrations::Registrations;
use crate::replicas::Replica;
use crate::results::Results;
use crate::sealed::Seal;
use crate::sessions::Ended;
use crate::suspects::ToldSuspects;
use crate::tasks::begun::BegunTasks;
use crate::vetting::Vetting;

/// Time for a question to the routing plane.
pub(crate) const PLANE_DEADLINE: Duration = Duration::from_secs(10);

/// Tools of a page of the catalog: the most that the plane gives.
const LISTED_PAGE: i32 = 1_000;

/// Longest time of a call that tells progress.
const CALL_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// Gateway: its servers and the routing plane that knows their tools. Clones share both.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

struct Shared {
    config: Config,
    /// Servers of the configuration as it is now.
    servers: watch::Sender<Servers>,
    fleet: Fleet,
    plane: Client,
    results: Results,
    history: History,
    parked: Parked,
    elicited: Elicited,
    begun_tasks: BegunTasks,
    seal: Seal,
    ended: Ended,
    audit: Audit,
    counts: Mutex<HashMap<Arc<str>, Arc<Counts>>>,
    listings: Listings,
    lists: Lists,
    vetting: Vetting,
    told_suspects: ToldSuspects,
    resumable: Arc<Resumable>,
    tools: Mutex<HashMap<String, Arc<KnownTools>>>,
    registered: Registered,
    following: JoinHandle<()>,
    completing: JoinHandle<()>,
    credentials: Option<CredentialStore>,
    /// Pages for logins of persons, once they are served.
    connecting: OnceLock<Arc<Connecting>>,
    /// Endpoint by which commands reach the plane, if they must name it.
    endpoint: OnceLock<String>,
    /// Calls of tools, if the always-on set is chosen by them.
    called: OnceLock<CalledTools>,
}

/// Part of a gateway that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayChange {
    /// A server's state or its tools.
    Servers,
    /// Tools that are registered with the plane.
    Registrations,
}

/// State of a gateway that somebody has seen.
pub struct Seen {
    servers: watch::Receiver<u64>,
    registrations: watch::Receiver<RegisteredListings>,
}

/// Numbers of what the hosts of a tenant asked since the start.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) searches: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) mended: AtomicU64,
    /// Results that look like instructions.
    pub(crate) suspect: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
}

/// Tools of one listing that the gateway lets in.
pub(crate) struct KnownTools {
    listing: Arc<Listing>,
    /// In the order of the listing.
    pub(crate) in_order: Vec<ListedName>,
    by_name: HashMap<String, KnownTool>,
    has_header_parameters: bool,
    /// Instructions of the server that hosts get.
    pub(crate) instructions: Option<String>,
    tokens: OnceLock<usize>,
}

/// Tool in its place in a listing.
pub(crate) struct ListedName {
    pub(crate) name: String,
    /// SHA-256 of the definition as the server lists it, in hexadecimal.
    pub(crate) definition: Arc<str>,
    place: usize,
}

/// Tool as its server lists it.
#[derive(Debug, Clone)]
pub(crate) struct KnownTool {
    /// True if the server says that the tool only reads.
    pub(crate) says_read_only: bool,
    /// True if it runs as a task of 2025-11-25 alone.
    pub(crate) needs_task: bool,
    /// Most characters of a result that the server wants shown, if it says so.
    pub(crate) result_characters: Option<usize>,
    /// Parameters that hosts repeat in headers; none where the schema breaks the rule for them.
    pub(crate) parameters: Arc<HeaderParameters>,
    /// SHA-256 of the definition as the server lists it, in hexadecimal.
    pub(crate) definition: Arc<str>,
}

/// State of the gateway, for people.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Overview {
    /// Its servers, in order of their names.
    pub servers: Vec<ServerOverview>,
    /// Number of tools of all servers.
    pub tools: usize,
    /// Tokens that a prompt would have of their definitions (cl100k): names, descriptions and input schemas.
    #[serde(default)]
    pub tool_tokens: usize,
    /// Tokens that a host of the gateway's own tenant starts with: definitions and instructions.
    #[serde(default)]
    pub start_tokens: usize,
    /// Tools of servers that such a host starts with beside the gateway's own, as far as they are an always-on set.
    #[serde(default)]
    pub always_on: Vec<String>,
    /// True if the gateway chooses that set.
    #[serde(default)]
    pub chooses_always_on: bool,
    /// Searches since the start.
    pub searches: u64,
    /// Calls of tools since the start, refused ones too.
    pub calls: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Calls without a result of their server.
    #[serde(default)]
    pub failed: u64,
    /// Calls whose form was mended.
    pub mended: u64,
    /// Results of servers that are not trusted that look like instructions to models.
    #[serde(default)]
    pub suspect: u64,
    /// Searches of which a tool was called within the five calls behind them.
    pub hits: u64,
    /// Searches of which none was. Those that may yet be hits are in neither number.
    #[serde(default)]
    pub misses: u64,
}

/// State of a server, for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerOverview {
    /// Its name.
    pub name: String,
    /// `ready`, `idle` (started by the first call), `starting`, `waiting`, `needs login` or `stopped`.
    pub state: String,
    /// `stdio`, `http`, or `sse` for the HTTP+SSE of 2024-11-05.
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
    /// Tools that are left out because of their definitions, or wait for approval, each with the problem.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Prompts and resources that are left out because of their texts, each with the reason.
    #[serde(default)]
    pub withheld: Vec<String>,
    /// True if it waits for what its entry lacks, such as a variable, until the files are read anew.
    #[serde(default)]
    pub is_held: bool,
    /// True if its last calls failed one after another, so that one call at a time is tried.
    #[serde(default)]
    pub is_circuit_open: bool,
    /// Number of tools that it says only read, and that count as ones that write since it is not trusted.
    #[serde(default)]
    pub unbelieved_readers: usize,
    /// Processes and connections that still run by an earlier entry of the server, the oldest first.
    #[serde(default)]
    pub leaving: Vec<LeavingOverview>,
}

/// Processes and connections that a changed entry left behind, for people. They finish what they run, and end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeavingOverview {
    /// Calls that run.
    pub calls: usize,
    /// Tasks that run.
    pub tasks: usize,
    /// Longest time until they are ended, in seconds.
    pub ends_within: f64,
}

/// Server's listing, as far as annotations go.
#[derive(Deserialize)]
struct ListedTool {
    name: String,
    #[serde(default)]
    annotations: Value,
    #[serde(default)]
    execution: Value,
    #[serde(default, rename = "_meta")]
    meta: Value,
    #[serde(default, rename = "inputSchema")]
    schema: Value,
}

impl Gateway {
    /// Starts the servers of a configuration as one replica of a gateway, and registers their tools with the plane as they are
    /// listed; those that earlier starts registered and that are not there any more are taken out. Credentials of logins come from
    /// a store. `processes` says what ends the servers' processes if this one is killed, and has them enter their sandboxes. Servers
    /// are asked by the eras that are known.
    ///
    /// # Errors
    /// [`ConfigError`] for an entry that makes no sense, or a system without random numbers.
    pub fn start(
        config: Config,
        plane: &Client,
        credentials: Option<CredentialStore>,
        replica: Replica,
        registrations: Registrations,
        processes: Processes,
        eras: Eras,
    ) -> Result<Self, ConfigError> {
        let Replica { keys, url, ended } = replica;
        let seal = Seal::new(keys, url).map_err(|_none| ConfigError::NoRandomNumbers)?;
        let audit =
            Audit::open(config.gateway.audit_file.as_deref()).map_err(ConfigError::Audit)?;
        let audited = audit.clone();
        let processes = processes.with_start(move |process| audited.started(process));
        let fleet = Fleet::start_with(config.entries()?, credentials.clone(), processes, eras);
        let plane = plane.with_deadline(PLANE_DEADLINE);
        let registered = Registered::default();
        let servers = watch::Sender::new(Arc::new(config.running()));
        let following = tokio::spawn(registering::follow(
            fleet.clone(),
            plane.clone(),
            servers.subscribe(),
            registered.clone(),
            registrations,
        ));
        let vetting = Vetting::default();
        vetting.approve(approved_of(&servers.borrow()));
        let elicited = Elicited::default();
        let completing = tokio::spawn(elicited::follow(elicited.clone(), fleet.completions()));
        Ok(Self(Arc::new(Shared {
            config,
            servers,
            fleet,
            plane,
            results: Results::at(seal.sealed_place()),
            history: History::default(),
            parked: Parked::default(),
            elicited,
            begun_tasks: BegunTasks::default(),
            seal,
            ended: Ended::new(ended),
            audit,
            counts: Mutex::default(),
            listings: Listings::default(),
            lists: Lists::default(),
            vetting,
            told_suspects: ToldSuspects::default(),
            resumable: Arc::default(),
            tools: Mutex::default(),
            registered,
            following,
            completing,
            credentials,
            connecting: OnceLock::new(),
            endpoint: OnceLock::new(),
            called: OnceLock::new(),
        })))
    }

    /// Sets the endpoint by which commands reach the plane, for those that the gateway tells people to type. Without it they
    /// reach it by themselves. The first one stays.
    pub fn set_endpoint(&self, endpoint: String) {
        let _first = self.0.endpoint.set(endpoint);
    }

    /// Sets the file in which calls of tools are counted, and chooses the always-on set by what it has, where the configuration
    /// wants one to be chosen. The first file stays.
    pub fn set_calls_file(&self, path: &Path) {
        if self.config().gateway.always_on == AlwaysOn::Auto {
            self.0.called.get_or_init(|| CalledTools::at(path));
        }
    }

    /// Returns the tools of a tenant's always-on set, as `server__tool`, in their order. Some may not be there, or not fit.
    pub(crate) fn always_on(&self, tenant: &str) -> &[String] {
        match &self.config().gateway.always_on {
            AlwaysOn::Named(named) => named,
            AlwaysOn::Auto => self.0.called.get().map_or(&[], |called| called.chosen(tenant)),
        }
    }

    /// Takes the operator's rules for texts of servers in place of the shipped ones: those of instructions, prompts and resources.
    /// Without a scanner nothing is left out for its text.
    pub fn set_scanner(&self, scanner: Option<Scanner>) {
        self.0.vetting.replace(scanner);
        // Instructions are looked at anew.
        self.0.tools.lock().clear();
    }

    /// Takes the servers of another configuration: new ones start, changed ones start anew, those that left finish their calls
    /// and end, and the others go on. The `[gateway]` section stays as it was at the start; returns whether it differs.
    ///
    /// # Errors
    /// [`ConfigError`] for an entry that makes no sense. Nothing is changed then.
    pub fn apply(&self, config: &Config) -> Result<bool, ConfigError> {
        let mut entries = config.entries()?;
        let new: Servers = Arc::new(config.running());
        let before = Arc::clone(&self.0.servers.borrow());
        let is_unchanged = |name: &str| before.get(name) == new.get(name);
        keep_running(&mut entries, is_unchanged, |name| self.0.fleet.entry(name));
        let old = self.0.servers.send_replace(Arc::clone(&new));
        for (name, server) in old.iter() {
            if new.get(name) != Some(server) {
                self.0.registered.forget(name);
            }
        }
        // They are filtered as the configuration says.
        self.0.tools.lock().clear();
        self.0.vetting.approve(approved_of(&new));
        self.0.fleet.apply(entries);
        Ok(config.gateway != self.0.config.gateway)
    }

    /// Ends the servers.
    pub async fn close(&self) {
        self.0.following.abort();
        self.0.completing.abort();
        if let Some(called) = self.0.called.get() {
            called.keep();
        }
        self.0.fleet.close().await;
    }

    /// Returns the servers behind the gateway.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    /// Returns the configuration that the gateway was started with. Its servers may be others since.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Waits until a server's state, its tools or what is registered of them changes. Of two changes, the other comes next.
    pub async fn changed(&self, since: &mut Seen) -> GatewayChange {
        // Neither sender is dropped while the gateway lives.
        tokio::select! {
            _changed = since.servers.changed() => GatewayChange::Servers,
            _changed = since.registrations.changed() => GatewayChange::Registrations,
        }
    }

    /// Returns what [`Self::changed`] compares with: the gateway as it is now.
    #[must_use]
    pub fn seen(&self) -> Seen {
        Seen { servers: self.fleet().changes(), registrations: self.0.registered.changes() }
    }

    /// Returns the state of the gateway, as far as the caller's tenant goes; all of it for a caller of all tenants.
    #[must_use]
    pub fn overview(&self, caller: &Caller) -> Overview {
        self.decide_old_searches();
        let mut servers = self.fleet().status();
        servers.retain(|status| self.may_operate(caller, &status.name));
        let servers: Vec<_> =
            servers.into_iter().map(|status| self.overview_of(caller, status)).collect();
        let counts: Vec<_> = if caller.is_of_all_tenants {
            self.0.counts.lock().values().cloned().collect()
        } else {
            vec![self.counts(caller)]
        };
        let sum = |read: fn(&Counts) -> &AtomicU64| -> u64 {
            counts.iter().map(|counts| read(counts).load(Ordering::Relaxed)).sum()
        };
        Overview {
            tools: servers.iter().map(|server| server.tools).sum(),
            tool_tokens: servers
                .iter()
                .filter_map(|server| self.known(&server.name))
                .map(|known| known.tokens())
                .sum(),
            start_tokens: self.start_tokens(&caller.tenant),
            always_on: self.fitting_always_on(&caller.tenant).0,
            chooses_always_on: self.config().gateway.always_on == AlwaysOn::Auto,
            servers,
            searches: sum(|counts| &counts.searches),
            calls: sum(|counts| &counts.calls),
            refused: sum(|counts| &counts.refused),
            failed: sum(|counts| &counts.failed),
            mended: sum(|counts| &counts.mended),
            suspect: sum(|counts| &counts.suspect),
            hits: sum(|counts| &counts.hits),
            misses: sum(|counts| &counts.misses),
        }
    }

    /// Returns what [`Self::overview`] does, with the tools that the routing plane keeps back: those that wait for approval, and
    /// those that it rejected.
    pub async fn reviewed_overview(&self, caller: &Caller) -> Overview {
        let mut overview = self.overview(caller);
        let mut kept_back: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut tenants = BTreeSet::new();
        for ServerOverview { name, .. } in &overview.servers {
            for tenant in self.tenants_seen_by(caller, name) {
                let rejected = self.0.registered.rejected(&tenant, name);
                kept_back.entry(name.clone()).or_default().extend(rejected);
                tenants.insert(tenant);
            }
        }
        for tenant in tenants {
            let options = self.approval_options(&tenant);
            for tool in self.quarantined(&tenant).await {
                let waits = waits_for_approval(&tool, &options);
                kept_back.entry(tool.server).or_default().insert(waits);
            }
        }
        for server in &mut overview.servers {
            server.findings.extend(kept_back.remove(&server.name).unwrap_or_default());
        }
        overview
    }

    /// Returns the options of a command that approves tools of a tenant, each behind a blank.
    fn approval_options(&self, tenant: &str) -> String {
        let own = &self.plane().options().tenant;
        approval_options(tenant, own, self.0.endpoint.get().map(String::as_str))
    }

    /// Returns the tools of a tenant's catalog that wait for approval; none if the plane can't say.
    async fn quarantined(&self, tenant: &str) -> Vec<v1::Tool> {
        let request = v1::ListToolsRequest {
            tenant: tenant.to_owned(),
            page_size: LISTED_PAGE,
            view: v1::ToolView::Names as i32,
            ..Default::default()
        };
        let mut tools = self.plane().tools(request).all().await.unwrap_or_default();
        tools.retain(|tool| tool.quarantined);
        tools
    }

    /// Returns the tenants that see a server, as far as a caller may know of them.
    fn tenants_seen_by(&self, caller: &Caller, server: &str) -> Vec<String> {
        let mut tenants = self.tenants_of(server);
        tenants.retain(|tenant| caller.is_of_all_tenants || **tenant == *caller.tenant);
        tenants
    }

    /// Returns true if an operator's request may be about this server.
    pub(crate) fn may_operate(&self, caller: &Caller, server: &str) -> bool {
        caller.is_operator && (caller.is_of_all_tenants || self.sees(&caller.tenant, server))
    }

    /// Returns the caller of every request of a gateway without authentication.
    #[must_use]
    pub fn anybody(&self) -> Caller {
        Caller::anybody(&self.plane().options().tenant)
    }

    /// Returns the tenants that see a server; none for a server that is not there.
    pub(crate) fn tenants_of(&self, server: &str) -> Vec<String> {
        let config = self.server(server);
        config.map_or_else(Vec::new, |config| config.tenants(&self.plane().options().tenant))
    }

    /// Returns true if a tenant sees a server.
    pub(crate) fn sees(&self, tenant: &str, server: &str) -> bool {
        self.tenants_of(server).iter().any(|seeing| seeing == tenant)
    }

    /// Returns true if the tenant is one of the gateway's: its own, or one that sees a server.
    #[must_use]
    pub fn has_tenant(&self, tenant: &str) -> bool {
        let own = self.plane().options().tenant.as_str();
        let servers = self.0.servers.borrow();
        let mut seeing = servers.values().flat_map(|server| server.tenants(own));
        tenant == own || seeing.any(|seeing| seeing == tenant)
    }

    /// Returns the servers that a tenant sees, in order of their names.
    pub(crate) fn servers_of(&self, tenant: &str) -> Vec<ServerStatus> {
        let mut servers = self.fleet().status();
        servers.retain(|status| self.sees(tenant, &status.name));
        servers
    }

    /// Returns the longest time of a call, however much progress it tells.
    pub(crate) fn call_time_max(&self) -> Duration {
        CALL_TIME_MAX.max(self.config().gateway.call_timeout)
    }

    fn overview_of(&self, caller: &Caller, status: ServerStatus) -> ServerOverview {
        let listing = self.fleet().listing(&status.name);
        let tenants = self.tenants_seen_by(caller, &status.name);
        let is_searchable = listing.is_some_and(|listing| {
            tenants.iter().all(|tenant| self.0.registered.has(tenant, &listing))
        });
        let unbelieved_readers = self.unbelieved_readers(&status.name);
        let may_tell = |tenant: &str| caller.is_of_all_tenants || *caller.tenant == *tenant;
        let withheld = self.vetting().withheld_of(&status.name, may_tell);
        let refused = || {
            let refused = |tenant: &String| self.0.registered.refused(tenant, &status.name);
            tenants.iter().find_map(refused)
        };
        let problem = status.problem.clone().or_else(refused).unwrap_or_default();
        ServerOverview {
            is_searchable,
            unbelieved_readers,
            problem,
            withheld,
            ..ServerOverview::of(status)
        }
    }

    fn plane(&self) -> &Client {
        &self.0.plane
    }

    /// Returns the routing plane, asked in the name of a caller.
    pub(crate) fn plane_for(&self, caller: &Caller) -> Client {
        let options = self.plane().options().clone();
        let plane = self.plane().with_options(ClientOptions {
            tenant: caller.tenant.to_string(),
            principal: caller.principal.to_string(),
            trace: headers_of_trace().map(|headers| TraceContext {
                traceparent: headers.traceparent,
                tracestate: headers.tracestate,
            }),
            ..options
        });
        plane.with_deadline(PLANE_DEADLINE)
    }

    pub(crate) fn results(&self) -> &Results {
        &self.0.results
    }

    pub(crate) fn parked(&self) -> &Parked {
        &self.0.parked
    }

    pub(crate) fn begun_tasks(&self) -> &BegunTasks {
        &self.0.begun_tasks
    }

    pub(crate) fn elicited(&self) -> &Elicited {
        &self.0.elicited
    }

    pub(crate) fn resumable(&self) -> &Arc<Resumable> {
        &self.0.resumable
    }

    pub(crate) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    /// Returns the store of credentials; `None` if there is none.
    pub(crate) fn credentials(&self) -> Option<&CredentialStore> {
        self.0.credentials.as_ref()
    }

    /// Returns the pages for logins of persons; `None` if none are served.
    pub(crate) fn connecting(&self) -> Option<&Arc<Connecting>> {
        self.0.connecting.get()
    }

    /// Takes the pages for logins of persons, once.
    pub(crate) fn serves_pages(&self, pages: Connecting) -> Arc<Connecting> {
        Arc::clone(self.0.connecting.get_or_init(|| Arc::new(pages)))
    }

    pub(crate) fn ended(&self) -> &Ended {
        &self.0.ended
    }

    pub(crate) fn audit(&self) -> &Audit {
        &self.0.audit
    }

    pub(crate) fn history(&self) -> &History {
        &self.0.history
    }

    /// Returns the numbers of the caller's tenant. Tenants are those of the file, so there are few.
    pub(crate) fn counts(&self, caller: &Caller) -> Arc<Counts> {
        let mut counts = self.0.counts.lock();
        Arc::clone(counts.entry(Arc::clone(&caller.tenant)).or_default())
    }

    /// Notes a call that its server answered, or that failed on the way to it, by which preconditions are judged.
    pub(crate) fn has_called(&self, caller: &Caller, model_name: &str, is_success: bool) {
        let decided = self.history().called(&caller.owner(), model_name, is_success);
        self.count(caller, &decided);
        if let Some(called) = self.0.called.get().filter(|_| is_success) {
            called.note(&caller.tenant, shown_name(model_name));
        }
    }

    /// Counts the searches that are decided.
    pub(crate) fn count(&self, caller: &Caller, decided: &Decided) {
        self.counts(caller).add(decided);
    }

    /// Counts a call to which a server gave no result. What its caller did wrong does not count: arguments that are refused,
    /// a name that the server doesn't know, a login that is not made yet.
    pub(crate) fn count_failure(&self, caller: &Caller, failure: &Failure) {
        let of_caller = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND];
        let is_of_caller = match failure {
            Failure::Server(RequestError::Server { code, .. }) => {
                of_caller.iter().any(|known| i64::from(known.0) == *code)
            }
            Failure::NotConnected(_) => true,
            _ => false,
        };
        if !is_of_caller {
            self.counts(caller).failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the searches that nobody followed for too long.
    fn decide_old_searches(&self) {
        for (owner, decided) in self.history().expired(Instant::now()) {
            let mut counts = self.0.counts.lock();
            counts.entry(owner.tenant_name()).or_default().add(&decided);
        }
    }

    /// Notes the revision of the caller's catalog that an answer of the plane is based on; `None` if there is no such catalog.
    pub(crate) fn saw_revision(&self, caller: &Caller, revision: Option<u64>) {
        self.0.registered.revisions.saw(&caller.tenant, revision);
    }

    /// Returns the configuration of a server of this gateway.
    pub(crate) fn server(&self, name: &str) -> Option<ServerConfig> {
        self.0.servers.borrow().get(name).cloned()
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

    /// Returns the listing of a server that is registered in a tenant's catalog.
    pub(crate) fn registered(&self, tenant: &str, server: &str) -> Option<Arc<Listing>> {
        self.0.registered.get(tenant, server)
    }

    /// Waits until the plane has the tools of a server in a tenant's catalog, at most for `wait`.
    pub(crate) async fn await_registered(&self, tenant: &str, server: &str, wait: Duration) {
        let mut registered = self.0.registered.changes();
        let place = (tenant.to_owned(), server.to_owned());
        let is_there = registered.wait_for(|registered| registered.contains_key(&place));
        // Without them, the plane refuses the call.
        let _late = tokio::time::timeout(wait, is_there).await;
    }

    /// Returns the names of the tools that a caller may see, of one server or of all, with hashes of their definitions: none
    /// that a policy hides, and those that wait for approval without a hash.
    ///
    /// # Errors
    /// The problem, if the plane can't say.
    pub(crate) async fn visible(&self, server: Option<&str>, caller: &Caller) -> Listed {
        self.tools_of(caller, server, v1::ToolView::Names).await
    }

    /// Returns the tools that a caller may see, with their definitions, but for those that wait for approval.
    ///
    /// # Errors
    /// The problem, if the plane can't say.
    pub(crate) async fn described(&self, caller: &Caller) -> Listed {
        self.tools_of(caller, None, v1::ToolView::Full).await
    }

    async fn tools_of(&self, caller: &Caller, server: Option<&str>, view: v1::ToolView) -> Listed {
        let asked = Asked {
            tenant: caller.tenant.to_string(),
            principal: caller.principal.to_string(),
            server: server.map(str::to_owned),
            view,
        };
        let plane = self.plane_for(caller);
        let listing = |state| {
            let request = v1::ListToolsRequest {
                server: server.unwrap_or_default().to_owned(),
                as_agent: Some(state),
                page_size: LISTED_PAGE,
                view: view as i32,
                ..Default::default()
            };
            async move {
                let listed = plane.tools(request).all().await;
                listed.map(Arc::from).map_err(|error| format!("the catalog can't be read: {error}"))
            }
        };
        let listed = self.0.listings.get(asked, caller.state(self), listing).await;
        if let Ok(listed) = &listed {
            self.0.registered.check(&caller.tenant, server, listed);
        }
        listed
    }

    /// Returns the rules for texts of servers that no catalog has.
    pub(crate) fn vetting(&self) -> &Vetting {
        &self.0.vetting
    }

    /// Returns the findings in results that people were told of.
    pub(crate) fn told_suspects(&self) -> &ToldSuspects {
        &self.0.told_suspects
    }

    /// Returns the texts of lists that were asked for.
    pub(crate) fn lists(&self) -> &Lists {
        &self.0.lists
    }

    /// Returns the tool as its server lists it now, if the gateway lets it in and the caller sees the server.
    pub(crate) fn tool_for(&self, caller: &Caller, server: &str, name: &str) -> Option<KnownTool> {
        if self.sees(&caller.tenant, server) { self.tool(server, name) } else { None }
    }

    /// Returns true if a server's entry lets a tool of this name in, listed or not.
    pub(crate) fn admits(&self, server: &str, name: &str) -> bool {
        self.server(server).is_some_and(|server| server.tools.admits(name))
    }

    /// Returns true if the gateway lets a tool of the catalog in, and the caller sees its server: one that the server lists, or
    /// any that the server's entry admits before it has listed its tools.
    pub(crate) fn lets_in(&self, caller: &Caller, server: &str, name: &str) -> bool {
        if !self.sees(&caller.tenant, server) {
            return false;
        }
        match self.known(server) {
            Some(known) => known.by_name.contains_key(name),
            None => self.server(server).is_some_and(|server| server.tools.admits(name)),
        }
    }

    /// Waits until a server has listed its tools and they are in a tenant's catalog, for the time of a call at most.
    ///
    /// # Errors
    /// The problem, for the model: the server is still starting, or is not there.
    pub(crate) async fn await_server(&self, tenant: &str, server: &str) -> Result<(), String> {
        if self.fleet().listing(server).is_some() {
            return Ok(());
        }
        let wait = self.config().gateway.call_timeout;
        let until = tokio::time::Instant::now() + wait;
        let mut changes = self.fleet().changes();
        let listed = async {
            loop {
                changes.borrow_and_update();
                if self.fleet().listing(server).is_some() {
                    return Ok(());
                }
                let status = self.fleet().status().into_iter().find(|one| one.name == server);
                match status {
                    Some(status) if status.state == ServerState::Starting => {}
                    Some(status) => return Err(absent(&status)),
                    None => return Err(format!("{server} is not behind this gateway any more.")),
                }
                if changes.changed().await.is_err() {
                    return Err(format!("{server} is not behind this gateway any more."));
                }
            }
        };
        match tokio::time::timeout_at(until, listed).await {
            Ok(listed) => listed?,
            Err(_late) => {
                return Err(format!(
                    "{server} is starting: the call did not run. Try again in a few seconds."
                ));
            }
        }
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        self.await_registered(tenant, server, left).await;
        Ok(())
    }

    /// Returns the tools of a server as the catalog has them from earlier, with those that the server said only read.
    pub(crate) async fn stored_readers(&self, caller: &Caller, server: &str) -> Vec<String> {
        let stored = self.tools_of(caller, Some(server), v1::ToolView::Full).await;
        let stored = stored.unwrap_or_default();
        let says_so = |tool: &&v1::Tool| {
            serde_json::from_str::<ListedTool>(&tool.definition_json)
                .is_ok_and(|listed| listed.annotations["readOnlyHint"] == true)
        };
        stored.iter().filter(says_so).map(|tool| tool.name.clone()).collect()
    }

    /// Returns the tool as its server lists it now, if the gateway lets it in.
    pub(crate) fn tool(&self, server: &str, name: &str) -> Option<KnownTool> {
        self.known(server)?.by_name.get(name).cloned()
    }

    /// Returns true if hosts are shown every tool because there are few (`gateway.load_all_up_to`), which fit into what a host
    /// may start with.
    pub(crate) fn loads_all(&self, tenant: &str) -> bool {
        let most = self.config().gateway.load_all_up_to;
        if most == 0 {
            return false;
        }
        let servers = Arc::clone(&self.0.servers.borrow());
        let known: Vec<_> = servers.keys().filter_map(|server| self.known(server)).collect();
        let is_few = known.iter().map(|known| known.by_name.len()).sum::<usize>() <= most;
        is_few && known.iter().map(|known| known.tokens()).sum::<usize>() <= self.start_left(tenant)
    }

    /// Returns the servers of a tenant, as far as models are told of them before they search.
    pub(crate) fn behind(&self, tenant: &str) -> Vec<Behind> {
        let behind = |ServerStatus { name, .. }| {
            let is_checked =
                self.server(&name).is_some_and(|server| server.trust != Trust::Untrusted);
            match self.known(&name) {
                Some(known) => {
                    let tools = known.in_order.iter().map(|tool| tool.name.as_str());
                    Behind::of(&name, tools, is_checked)
                }
                None => Behind { name, tools: None, words: Vec::new() },
            }
        };
        self.servers_of(tenant).into_iter().map(behind).collect()
    }

    /// Returns the tokens that are left for tools of servers in what a host starts with: its bound, less the gateway's own tools
    /// and instructions.
    pub(crate) fn start_left(&self, tenant: &str) -> usize {
        self.config().gateway.start_tokens.saturating_sub(self.own_tokens(tenant))
    }

    /// Returns the tokens that a host starts with.
    fn start_tokens(&self, tenant: &str) -> usize {
        let own = self.own_tokens(tenant);
        if self.config().gateway.expose == Exposed::Search && !self.loads_all(tenant) {
            return own + self.fitting_always_on(tenant).1;
        }
        let servers = self.servers_of(tenant);
        let known = servers.iter().filter_map(|server| self.known(&server.name));
        let all: usize = known.map(|known| known.tokens()).sum();
        if self.config().gateway.expose == Exposed::All {
            let is_cut = self.config().gateway.result_limit != usize::MAX;
            return if is_cut { all + tokens_of(&read_result().to_string()) } else { all };
        }
        own + all
    }

    /// Returns the always-on tools that are there and fit, and their tokens.
    fn fitting_always_on(&self, tenant: &str) -> (Vec<String>, usize) {
        let most = self.start_left(tenant);
        let mut fitting = Vec::new();
        let mut used = 0;
        for name in self.always_on(tenant) {
            let named = name.split_once("__").filter(|(server, _)| self.sees(tenant, server));
            let known = named.and_then(|(server, tool)| Some((self.known(server)?, tool)));
            let tokens = known.and_then(|(known, tool)| {
                let listed = known.in_order.iter().find(|listed| listed.name == tool)?;
                known.definition(listed).map(tokens_of)
            });
            if let Some(tokens) = tokens.filter(|tokens| used + tokens <= most) {
                used += tokens;
                fitting.push(name.clone());
            }
        }
        (fitting, used)
    }

    /// Returns the tokens of the gateway's own tools and instructions.
    pub(crate) fn own_tokens(&self, tenant: &str) -> usize {
        let behind = self.behind(tenant);
        let own = definitions(&behind);
        let own: usize = own.iter().map(|tool| tokens_of(&tool.to_string())).sum();
        own + count(&instructions_of(&behind)) as usize
    }

    /// Returns the bytes of text that a server wants shown of a tool's results, as far as the operator lets it say so; 0 if it does not.
    pub(crate) fn claimed_limit(&self, server: &str, name: &str) -> usize {
        if self.server(server).is_none_or(|server| server.trust == Trust::Untrusted) {
            return 0;
        }
        let claimed = self.tool(server, name).and_then(|tool| tool.result_characters);
        claimed.unwrap_or(0).min(self.config().gateway.result_limit_max)
    }

    /// Returns true if results of a server are to say whose they are.
    pub(crate) fn marks_results(&self, server: &str) -> bool {
        self.config().gateway.mark_results
            && self.server(server).is_none_or(|server| server.trust == Trust::Untrusted)
    }

    /// Returns true if the tool only reads, by the operator's word or that of a server that is believed.
    pub(crate) fn is_read_only(&self, server: &str, name: &str) -> bool {
        let says_so = || self.tool(server, name).is_some_and(|tool| tool.says_read_only);
        self.reads_by_word(server, name) || (self.is_believed(server) && says_so())
    }

    /// Returns true if the tool only reads by the operator's word.
    pub(crate) fn reads_by_word(&self, server: &str, name: &str) -> bool {
        self.server(server).is_some_and(|server| server.tools.only_reads(name))
    }

    /// Returns true if the server is believed when it says that a tool only reads.
    pub(crate) fn is_believed(&self, server: &str) -> bool {
        self.server(server).is_some_and(|server| server.trust == Trust::Trusted)
    }

    /// Returns the number of a server's tools that it says only read, and that nobody believes.
    fn unbelieved_readers(&self, server: &str) -> usize {
        if self.is_believed(server) {
            return 0;
        }
        let Some(known) = self.known(server) else { return 0 };
        let is_one = |(name, tool): &(&String, &KnownTool)| {
            tool.says_read_only && !self.reads_by_word(server, name)
        };
        known.by_name.iter().filter(is_one).count()
    }

    /// Returns true if a tool has parameters that hosts repeat in headers.
    pub(crate) fn has_header_parameters(&self) -> bool {
        let servers = Arc::clone(&self.0.servers.borrow());
        let mut known = servers.keys().filter_map(|server| self.known(server));
        known.any(|known| known.has_header_parameters)
    }

    /// Returns the tools of a server as it lists them now, as far as the gateway lets them in.
    pub(crate) fn known(&self, server: &str) -> Option<Arc<KnownTools>> {
        let listing = self.fleet().listing(server)?;
        let mut tools = self.0.tools.lock();
        if let Some(known) = tools.get(server)
            && Arc::ptr_eq(&known.listing, &listing)
        {
            return Some(Arc::clone(known));
        }
        let known = Arc::new(KnownTools::of(listing, &self.server(server)?, self.vetting()));
        tools.insert(server.to_owned(), Arc::clone(&known));
        Some(known)
    }
}

impl Counts {
    fn add(&self, decided: &Decided) {
        self.hits.fetch_add(decided.hits, Ordering::Relaxed);
        self.misses.fetch_add(decided.misses, Ordering::Relaxed);
    }
}

impl Overview {
    /// Returns the share of searches that led to a call, from 0 to 1, of those that are decided; `None` before one is.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        let decided = self.hits + self.misses;
        (decided > 0).then(|| self.hits as f64 / decided as f64)
    }
}

impl KnownTools {
    fn of(listing: Arc<Listing>, config: &ServerConfig, vetting: &Vetting) -> Self {
        let mut in_order = Vec::new();
        let mut by_name = HashMap::new();
        for (place, raw) in listing.tools.iter().enumerate() {
            let Ok(listed) = serde_json::from_str::<ListedTool>(raw.get()) else { continue };
            if config.tools.admits(&listed.name) {
                let tool = KnownTool::of(&listed, raw);
                let definition = Arc::clone(&tool.definition);
                in_order.push(ListedName { name: listed.name.clone(), definition, place });
                by_name.insert(listed.name, tool);
            }
        }
        let has_header_parameters = by_name.values().any(|tool| !tool.parameters.is_empty());
        let instructions = listing.instructions.clone().filter(|told| {
            let checked = vetting.check_instructions(config.trust, told);
            if let Err(reason) = &checked {
                tracing::warn!(
                    server = listing.server,
                    reason,
                    "its instructions are not forwarded"
                );
            }
            checked.is_ok()
        });
        Self {
            listing,
            in_order,
            by_name,
            has_header_parameters,
            instructions,
            tokens: OnceLock::new(),
        }
    }

    /// Returns the tokens that a prompt would have of all of them.
    pub(crate) fn tokens(&self) -> usize {
        let definitions = || self.in_order.iter().filter_map(|tool| self.definition(tool));
        *self.tokens.get_or_init(|| definitions().map(tokens_of).sum())
    }

    /// Returns the definition of a tool, as its server wrote it.
    pub(crate) fn definition(&self, tool: &ListedName) -> Option<&str> {
        self.listing.tools.get(tool.place).map(|raw| raw.get())
    }
}

impl KnownTool {
    fn of(listed: &ListedTool, raw: &RawValue) -> Self {
        let says_read_only = listed.annotations["readOnlyHint"] == true;
        let needs_task = listed.execution["taskSupport"] == "required";
        let characters = listed.meta["anthropic/maxResultSizeChars"].as_u64();
        let result_characters = characters.and_then(|count| usize::try_from(count).ok());
        let parameters = Arc::new(HeaderParameters::of(&listed.schema).unwrap_or_default());
        let definition = Arc::from(hex::encode(Sha256::digest(raw.get().as_bytes())));
        Self { says_read_only, needs_task, result_characters, parameters, definition }
    }
}

impl LeavingOverview {
    fn of(leaving: &Leaving) -> Self {
        let Leaving { calls, tasks, ends_within } = *leaving;
        Self { calls, tasks, ends_within: ends_within.as_secs_f64() }
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
            findings: status.findings,
            withheld: Vec::new(),
            is_held: status.is_held,
            is_circuit_open: status.is_circuit_open,
            unbelieved_readers: 0,
            leaving: status.leaving.iter().map(LeavingOverview::of).collect(),
        }
    }
}

/// Returns the prompts and resources that persons let in, by server.
fn approved_of(servers: &Servers) -> HashMap<String, Vec<ApprovedItem>> {
    let servers = servers.iter();
    servers.map(|(name, server)| (name.clone(), server.approved.clone())).collect()
}

/// Returns what a person does about a tool that waits for approval.
fn waits_for_approval(tool: &v1::Tool, options: &str) -> String {
    let v1::Tool { server, name, hash, .. } = tool;
    let hash = hash.get(..12).unwrap_or(hash);
    format!("{name} waits for approval (toolgate catalog approve {server} {name}@{hash}{options})")
}

/// Returns the options by which a command reaches a tenant's catalog, each behind a blank. `own` is the gateway's own tenant,
/// which commands may take from it.
fn approval_options(tenant: &str, own: &str, endpoint: Option<&str>) -> String {
    let is_default = |tenant: &str| matches!(tenant, "" | "default");
    let mut options = String::new();
    let is_taken = tenant.is_empty() || (is_default(tenant) && is_default(own));
    if !is_taken {
        options.push_str(" --tenant ");
        options.push_str(tenant);
    }
    if let Some(endpoint) = endpoint {
        options.push_str(" --endpoint ");
        options.push_str(endpoint);
    }
    options
}

/// Returns why a server that has listed no tools can't be called.
fn absent(status: &ServerStatus) -> String {
    let problem = status.told_problem.as_deref().and_then(|problem| problem.lines().next());
    let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
    let ServerStatus { name, state, .. } = status;
    format!("{name} is not there ({}){problem}. The call did not run.", state_name(*state))
}

/// Returns the name of a state for people and models.
pub(crate) fn state_name(state: ServerState) -> &'static str {
    match state {
        ServerState::Starting => "starting",
        ServerState::Ready => "ready",
        ServerState::Idle => "idle",
        ServerState::Waiting => "waiting",
        ServerState::NeedsLogin => "needs login",
        ServerState::Stopped => "stopped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_approves_names_what_it_needs() {
        let options = |tenant, own| approval_options(tenant, own, Some("gateway"));
        assert_eq!(options("default", ""), " --endpoint gateway");
        assert_eq!(options("acme", "default"), " --tenant acme --endpoint gateway");
        assert_eq!(options("default", "acme"), " --tenant default --endpoint gateway");
        assert_eq!(approval_options("", "", None), "");
        let tool = v1::Tool {
            server: "sea".to_owned(),
            name: "tides".to_owned(),
            hash: "9f2c41d0a7be55".to_owned(),
            ..Default::default()
        };
        let told = "tides waits for approval (toolgate catalog approve sea tides@9f2c41d0a7be --tenant acme)";
        assert_eq!(waits_for_approval(&tool, &approval_options("acme", "", None)), told);
    }
}
