//! Sets of tools that requests define, and what the routing plane knows of them: each is a catalog of its own, in a tenant
//! that bears its digest and the number of this process.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use toolgate_client::v1::OutcomeKind;
use toolgate_client::{Client, Code, Error, registration, v1};
use toolgate_core::tokens;
use toolgate_llm::render::Tool;
use toolgate_llm::strategy::Api;
use toolgate_serving::{Owner, Shares};

use crate::bounded::{Bounded, Bounds, Held, Newcomer, Scarce, give_way};
use crate::chat::PassReason;
use crate::definitions::Given;
use crate::lease::Leases;
use crate::{gemini, raw};

/// Time for the registration of one set of tools, with all of its servers, and for taking it out again.
const REGISTRATION_MAX: Duration = Duration::from_secs(60);

/// Sets that are registered at a time. One tenant has four of them at most, so that another's set finds a place.
const REGISTRATIONS_MAX: usize = 5;

/// Time after which a set that could not be registered is tried again.
const PAUSE: Duration = Duration::from_secs(10);

/// Name of the MCP server that tools without one are registered under.
const NO_SERVER: &str = "tools";

/// Tool of a request that may be deferred.
#[derive(Debug, Clone)]
pub(crate) struct DeferredTool {
    pub(crate) name: String,
    /// Its definition as it came.
    pub(crate) text: String,
    description: String,
    /// Its schema as it came; that of Gemini's own kind as JSON Schema.
    schema: String,
    /// Place of the list that it stands in, among the definitions.
    pub(crate) list: Option<usize>,
    /// Names that the host knows it by, if it stands in a namespace.
    pub(crate) within: Option<Namespaced>,
    /// `None` if the name tells of no server, or another tool of the request has its place.
    place: Option<Place>,
}

/// Parts of a tool's name: that of its MCP server, in bytes, and from where on that of the server's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    server: Range<usize>,
    tool: usize,
}

/// Names of a tool in a namespace of OpenAI's Responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespaced {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Names of tools in namespaces, by the names that models get in their place.
pub(crate) type Names = HashMap<String, Namespaced>;

/// Set of tools that the plane knows.
#[derive(Debug)]
pub(crate) struct Toolset {
    /// Tenant that it is registered in.
    pub(crate) tenant: String,
    /// Number of the process that registered it.
    number: u32,
    /// Catalog revision that holds it.
    pub(crate) revision: u64,
    /// Its tools, without those that the plane quarantined.
    pub(crate) tools: Vec<DeferredTool>,
    /// Names of the tools that the plane quarantined. No model is told of them.
    pub(crate) withheld: Arc<HashSet<String>>,
    /// cl100k tokens of the definitions that the plane can find.
    pub(crate) tokens: u64,
    /// Names in requests, by those that the plane gave.
    names: HashMap<String, String>,
    servers: Vec<String>,
}

/// Sets of tools that were seen lately.
#[derive(Debug, Clone)]
pub(crate) struct Toolsets {
    plane: Client,
    /// Lease of this process's number; `None` if no other process has the plane.
    leases: Option<Arc<Leases>>,
    known: Arc<Mutex<Known>>,
    withheld: Arc<Mutex<Withheld>>,
    turns: Shares,
    bounds: Bounds,
    /// Registrations under way. Once it is closed, none begins, and none goes on.
    registrations: TaskTracker,
}

/// Names of quarantined tools by the digest of their set, which outlive that: one that the plane lost, or that gave way, is not
/// sent with them before it is registered anew.
type Withheld = Bounded<[u8; 32], Arc<HashSet<String>>>;

/// Sets whose quarantined tools are remembered.
const WITHHELD: Bounds = Bounds { entries: 1_024, bytes: 4 << 20 };

#[derive(Debug, Default)]
struct Known {
    sets: HashMap<[u8; 32], Slot>,
    clock: u64,
}

#[derive(Debug)]
struct Slot {
    /// Tenant of the host that it is of.
    tenant: Arc<str>,
    state: watch::Receiver<State>,
    /// Bytes of its definitions, as they came.
    bytes: usize,
    used: u64,
}

/// Answer of the plane about a set.
#[derive(Debug, Default)]
struct Registered {
    /// Names in requests, by those that the plane gave.
    names: HashMap<String, String>,
    /// Names in requests of the tools that were quarantined.
    withheld: HashSet<String>,
    /// Newest catalog revision.
    revision: u64,
}

/// Reason for which a set could not be registered.
#[derive(Debug, thiserror::Error)]
enum Unregistered {
    /// The plane did not take it.
    #[error(transparent)]
    Plane(#[from] Error),
    /// This process takes its sets out, so that none comes into the plane any more.
    #[error("the proxy stops")]
    Stopping,
}

#[derive(Debug, Clone)]
enum State {
    Starting,
    Ready(Arc<Toolset>),
    Failed(Instant),
}

impl Registered {
    /// Takes what the plane says of tools, which it may tell in another order. A tool that it rejects is known by its place,
    /// because its name may not have been read.
    ///
    /// # Errors
    /// The problem with an answer that lacks a tool, which may be quarantined: the plane shortens large ones.
    fn add_each(
        &mut self,
        tools: &[&DeferredTool],
        outcomes: &[v1::ToolOutcome],
    ) -> Result<(), String> {
        let is_rejected = |outcome: &&v1::ToolOutcome| outcome.kind() == OutcomeKind::Rejected;
        let place = |outcome: &v1::ToolOutcome| {
            let end = outcome.field.find(']').map_or(0, |end| end + 1);
            outcome.field[..end].to_owned()
        };
        let rejected: HashMap<String, &v1::ToolOutcome> =
            outcomes.iter().filter(is_rejected).map(|outcome| (place(outcome), outcome)).collect();
        let stored = outcomes.iter().filter(|outcome| !is_rejected(outcome));
        let stored: HashMap<&str, &v1::ToolOutcome> =
            stored.map(|outcome| (outcome.name.as_str(), outcome)).collect();
        for (at, tool) in tools.iter().enumerate() {
            let outcome = rejected.get(&format!("tools[{at}]"));
            let outcome = outcome.or_else(|| stored.get(tool.place().1));
            let outcome =
                outcome.ok_or_else(|| format!("it lacks the outcome of {:?}", tool.name))?;
            self.add(&tool.name, outcome);
        }
        Ok(())
    }

    /// Takes what the plane says of a tool.
    fn add(&mut self, name: &str, outcome: &v1::ToolOutcome) {
        match outcome.kind() {
            OutcomeKind::Quarantined => {
                tracing::warn!(
                    tool = name,
                    "a tool is quarantined: no request has it (llm.keep names tools that are sent whatever they say): {}",
                    outcome.message
                );
                self.withheld.insert(name.to_owned());
            }
            OutcomeKind::Rejected => {}
            _ if outcome.model_name.is_empty() => {}
            _ => {
                self.names.insert(outcome.model_name.clone(), name.to_owned());
            }
        }
    }
}

impl DeferredTool {
    /// Reads a definition of a function, if it is one that nothing but the host executes.
    pub(crate) fn read(api: Api, given: &Given<'_>) -> Option<Self> {
        let value = given.value;
        // The provider defers it, or has code of its own call it.
        if value.get("defer_loading").is_some() || value.get("allowed_callers").is_some() {
            return None;
        }
        let (value, schema) = match api {
            Api::Anthropic if value.get("type").is_none_or(|kind| kind == "custom") => {
                (value, raw::field(given.text, "input_schema")?.to_owned())
            }
            Api::OpenAiChat if value["type"] == "function" => {
                let text = raw::field(given.text, "function")?;
                (value.get("function")?, raw::field(text, "parameters")?.to_owned())
            }
            Api::OpenAiResponses if value["type"] == "function" && value["async"] != true => {
                (value, raw::field(given.text, "parameters")?.to_owned())
            }
            Api::Gemini => (value, gemini::schema(given.text, value)?),
            _ => return None,
        };
        let own = value["name"].as_str()?;
        let within = given.namespace.filter(|_| api == Api::OpenAiResponses);
        let within = within
            .map(|namespace| Namespaced { namespace: namespace.to_owned(), name: own.to_owned() });
        let description = value.get("description").and_then(Value::as_str).unwrap_or_default();
        let name = within.as_ref().map_or_else(|| own.to_owned(), Namespaced::joined);
        Some(Self {
            place: Place::of_shape(&name),
            name,
            text: given.text.to_owned(),
            description: description.to_owned(),
            schema,
            list: given.list,
            within,
        })
    }

    /// Returns the tool as requests are made of it.
    pub(crate) fn tool(&self) -> Tool<'_> {
        Tool {
            name: &self.name,
            description: &self.description,
            input_schema_json: &self.schema,
            ..Tool::default()
        }
    }

    /// Takes the server from the operator's patterns, such as `github_*`, unless the name is of the form `mcp__server__tool`.
    pub(crate) fn take_server(&mut self, patterns: &[String]) {
        let is_whole = Place::between(&self.name, "mcp__", "__").is_some();
        if let Some(place) = Place::of_pattern(&self.name, patterns)
            && !is_whole
        {
            self.place = Some(place);
        }
    }

    /// Returns the MCP server and its tool that the name tells of.
    fn place(&self) -> (&str, &str) {
        match &self.place {
            Some(place) => (&self.name[place.server.clone()], &self.name[place.tool..]),
            None => (NO_SERVER, &self.name),
        }
    }
}

/// Leaves tools without a server whose place another one of the request has already.
pub(crate) fn keep_apart(tools: &mut [DeferredTool]) {
    let mut taken = HashSet::new();
    let second: Vec<bool> = tools.iter().map(|tool| !taken.insert(tool.place())).collect();
    for (tool, is_second) in tools.iter_mut().zip(second) {
        if is_second {
            tool.place = None;
        }
    }
}

impl Place {
    /// Reads a name as Claude Code writes it (`mcp__server__tool`), or Gemini CLI (`mcp_server_tool`), which takes the first
    /// underscore for the end of the server's name too.
    fn of_shape(name: &str) -> Option<Self> {
        Self::between(name, "mcp__", "__").or_else(|| Self::between(name, "mcp_", "_"))
    }

    fn between(name: &str, prefix: &str, separator: &str) -> Option<Self> {
        let rest = name.strip_prefix(prefix)?;
        let end = prefix.len() + rest.find(separator)?;
        Self::checked(name, prefix.len()..end, end + separator.len())
    }

    /// Returns the place that the longest pattern tells of which ends with `*` behind a server's name.
    fn of_pattern(name: &str, patterns: &[String]) -> Option<Self> {
        let prefixes = patterns.iter().filter_map(|pattern| pattern.strip_suffix('*'));
        let prefixes = prefixes.filter(|prefix| !prefix.contains('*') && name.starts_with(prefix));
        let prefix = prefixes.max_by_key(|prefix| prefix.len())?;
        let server = prefix.trim_end_matches(['_', '-']);
        // `mcp_` alone is no server's name.
        if server.len() == prefix.len() || server == "mcp" {
            return None;
        }
        let bare = server.strip_prefix("mcp_").unwrap_or(server).trim_start_matches('_');
        Self::checked(name, server.len() - bare.len()..server.len(), prefix.len())
    }

    /// Returns the place if the plane takes its names.
    fn checked(name: &str, server: Range<usize>, tool: usize) -> Option<Self> {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let named = &name[server.clone()];
        let is_name = !named.is_empty() && named.len() <= 64 && named.chars().all(is_legal);
        (is_name && tool < name.len()).then_some(Self { server, tool })
    }
}

impl Namespaced {
    /// Returns the name that stands for both: that of the namespace, two underscores, and that of the tool.
    pub(crate) fn joined(&self) -> String {
        let namespace = self.namespace.trim_end_matches('_');
        format!("{namespace}__{}", self.name.trim_start_matches('_'))
    }
}

impl Toolset {
    /// Returns the tool of a name in requests.
    pub(crate) fn tool(&self, name: &str) -> Option<Tool<'_>> {
        self.tools.iter().find(|tool| tool.name == name).map(DeferredTool::tool)
    }

    /// Returns the name in requests of a tool as the plane names it.
    pub(crate) fn name(&self, of_plane: &str) -> Option<&str> {
        self.names.get(of_plane).map(String::as_str)
    }

    /// Returns the plane's name of a tool that a request names.
    pub(crate) fn of_plane(&self, name: &str) -> Option<&str> {
        self.names.iter().find(|(_, own)| *own == name).map(|(of_plane, _)| of_plane.as_str())
    }

    /// Returns the names of MCP servers that a search finds the tools of, in order.
    pub(crate) fn server_names(&self) -> Vec<&str> {
        let found = self.tools.iter().filter(|tool| self.has(&tool.name));
        let mut names: Vec<&str> = found.map(|tool| tool.place().0).collect();
        names.retain(|name| *name != NO_SERVER);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns true if the plane can find a tool.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.values().any(|own| own == name)
    }
}

impl Toolsets {
    pub(crate) fn new(plane: Client, leases: Option<Arc<Leases>>, bounds: Bounds) -> Self {
        let turns = Shares::new(REGISTRATIONS_MAX);
        let withheld = Arc::new(Mutex::new(Bounded::new(WITHHELD)));
        let registrations = TaskTracker::new();
        Self { plane, leases, known: Arc::default(), withheld, turns, bounds, registrations }
    }

    /// Returns true if a tenant's set is known, so that no registration has to be waited for.
    pub(crate) fn knows(&self, tenant: &str, tools: &[DeferredTool]) -> bool {
        self.known(tenant, tools).is_some()
    }

    /// Returns true if the plane quarantined a tool of one of a tenant's sets.
    pub(crate) fn withholds(&self, tenant: &str) -> bool {
        if self.withheld.lock().has_any_of(tenant) {
            return true;
        }
        let known = self.known.lock();
        let mut of_tenant = known.sets.values().filter(|slot| *slot.tenant == *tenant);
        of_tenant.any(|slot| match &*slot.state.borrow() {
            State::Ready(toolset) => !toolset.withheld.is_empty(),
            State::Starting | State::Failed(_) => false,
        })
    }

    /// Returns the names of the tools of a tenant's set that the plane quarantined when it answered for it last, also where it does
    /// not know the set any more. `None` if there are none.
    pub(crate) fn withheld(
        &self,
        tenant: &str,
        tools: &[DeferredTool],
    ) -> Option<Arc<HashSet<String>>> {
        let known = self.known(tenant, tools).map(|toolset| Arc::clone(&toolset.withheld));
        let remembered = || self.withheld.lock().get(&digest(tenant, tools)).cloned();
        known.or_else(remembered).filter(|withheld| !withheld.is_empty())
    }

    /// Returns a tenant's set if the plane has answered for it already.
    pub(crate) fn known(&self, tenant: &str, tools: &[DeferredTool]) -> Option<Arc<Toolset>> {
        let known = self.known.lock();
        let state = known.sets.get(&digest(tenant, tools))?.state.borrow();
        match &*state {
            State::Ready(toolset) => Some(Arc::clone(toolset)),
            State::Starting | State::Failed(_) => None,
        }
    }

    /// Returns a tenant's set as the plane knows it. One that is new is registered, which goes on if the caller leaves.
    ///
    /// # Errors
    /// The reason for which the request is sent as it came.
    pub(crate) async fn find(
        &self,
        tenant: &Arc<str>,
        tools: &[DeferredTool],
    ) -> Result<Arc<Toolset>, PassReason> {
        let mut state = self.state(tenant, tools)?;
        let ended = state.wait_for(|state| !matches!(state, State::Starting)).await;
        match ended.as_deref() {
            Ok(State::Ready(toolset)) => Ok(Arc::clone(toolset)),
            Ok(State::Failed(_) | State::Starting) | Err(_) => Err("plane-failed"),
        }
    }

    fn state(
        &self,
        tenant: &Arc<str>,
        tools: &[DeferredTool],
    ) -> Result<watch::Receiver<State>, PassReason> {
        let digest = digest(tenant, tools);
        let mut known = self.known.lock();
        if self.registrations.is_closed() {
            return Err("plane-failed");
        }
        known.clock += 1;
        let clock = known.clock;
        if let Some(slot) = known.sets.get_mut(&digest) {
            slot.used = clock;
            let failed = match &*slot.state.borrow() {
                State::Failed(since) => Some(since.elapsed()),
                State::Starting | State::Ready(_) => None,
            };
            if failed.is_none_or(|since| since < PAUSE) {
                // Only the request that began a registration waits for it.
                let is_starting = matches!(*slot.state.borrow(), State::Starting);
                return if is_starting { Err("new-tools") } else { Ok(slot.state.clone()) };
            }
        }
        let owner = Owner { connection: None, tenant: Some(Arc::clone(tenant)) };
        let turn = self.turns.take(&owner, 1).ok_or("busy")?;
        // One that failed gives its own place.
        known.sets.remove(&digest);
        let bytes = tools.iter().map(|tool| tool.text.len()).sum();
        let evicted = known.make_place(self.bounds, tenant, bytes)?;
        let (sender, state) = watch::channel(State::Starting);
        let tools = tools.to_vec();
        let registry = self.registry();
        let withheld = Arc::clone(&self.withheld);
        let of_tenant = Arc::clone(tenant);
        self.registrations.spawn(async move {
            let outcome = registry.register(digest, tools).await;
            let state = match outcome {
                Ok(toolset) => {
                    withhold(&mut withheld.lock(), &of_tenant, digest, &toolset.withheld);
                    State::Ready(Arc::new(toolset))
                }
                Err(error) => {
                    tracing::warn!(%error, "a set of tools can't be registered; its requests are sent as they come");
                    State::Failed(Instant::now())
                }
            };
            // Nobody may wait any more.
            let _ = sender.send(state);
            for toolset in evicted {
                registry.forget(&toolset).await;
            }
            drop(turn);
        });
        let tenant = Arc::clone(tenant);
        let slot = Slot { tenant, state: state.clone(), bytes, used: clock };
        known.sets.insert(digest, slot);
        Ok(state)
    }

    /// Has a set registered anew when it is needed again: the plane does not know it any more.
    pub(crate) fn drop(&self, tenant: &str, tools: &[DeferredTool]) {
        self.known.lock().sets.remove(&digest(tenant, tools));
    }

    /// Takes all sets out of the plane. No set is registered from then on.
    pub(crate) async fn forget_all(&self) {
        let registry = self.registry();
        let slots = {
            let mut known = self.known.lock();
            self.registrations.close();
            std::mem::take(&mut known.sets)
        };
        let is_starting = |slot: &Slot| matches!(*slot.state.borrow(), State::Starting);
        let (starting, ended): (Vec<_>, Vec<_>) = slots.into_values().partition(is_starting);
        registry.forget_each(&ended).await;
        // What the plane was asked to register comes into it until it has answered.
        self.registrations.wait().await;
        registry.forget_each(&starting).await;
        if let Some(leases) = &self.leases {
            leases.release().await;
        }
    }

    fn registry(&self) -> Registry {
        Registry {
            plane: self.plane.with_deadline(REGISTRATION_MAX),
            leases: self.leases.clone(),
            registrations: self.registrations.clone(),
        }
    }
}

impl Known {
    /// Makes a place for one set of a tenant: drops those that were not used for longest, of the tenant that has most. One whose
    /// registration is under way stays, because nobody would take it out of the plane again. Returns what the plane still has of
    /// the sets that lost their place.
    ///
    /// # Errors
    /// The reason why there is no place. Nothing is dropped then.
    fn make_place(
        &mut self,
        bounds: Bounds,
        tenant: &Arc<str>,
        bytes: usize,
    ) -> Result<Vec<Arc<Toolset>>, PassReason> {
        let held = self.sets.iter().map(|(digest, slot)| Held {
            key: *digest,
            tenant: &slot.tenant,
            bytes: slot.bytes,
            used: slot.used,
            may_go: !matches!(*slot.state.borrow(), State::Starting),
        });
        let victims = give_way(bounds, held.collect(), Newcomer { tenant, bytes }, |_| 1);
        let victims = victims.map_err(|scarce| match scarce {
            Scarce::Entries => "busy",
            Scarce::Bytes => "no-memory",
        })?;
        let evicted = victims.iter().filter_map(|digest| self.sets.remove(digest));
        let ready = evicted.filter_map(|slot| match &*slot.state.borrow() {
            State::Ready(toolset) => Some(Arc::clone(toolset)),
            State::Starting | State::Failed(_) => None,
        });
        Ok(ready.collect())
    }
}

/// Remembers which tools of a set the plane quarantined.
fn withhold(
    remembered: &mut Withheld,
    tenant: &Arc<str>,
    digest: [u8; 32],
    names: &Arc<HashSet<String>>,
) {
    if names.is_empty() {
        remembered.remove(&digest);
        return;
    }
    let bytes = names.iter().map(|name| size_of::<String>() + name.len()).sum();
    remembered.insert(tenant, digest, Arc::clone(names), bytes);
}

/// Returns the digest of a tenant's set. Another tenant's is another one, also of the same tools.
fn digest(tenant: &str, tools: &[DeferredTool]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(tenant.len().to_le_bytes());
    digest.update(tenant.as_bytes());
    for tool in tools {
        digest.update(tool.text.len().to_le_bytes());
        digest.update(tool.text.as_bytes());
        if tool.within.is_some() {
            digest.update(tool.name.len().to_le_bytes());
            digest.update(tool.name.as_bytes());
        }
    }
    digest.finalize().into()
}

/// Routing plane that sets are registered in.
struct Registry {
    plane: Client,
    leases: Option<Arc<Leases>>,
    registrations: TaskTracker,
}

impl Registry {
    /// Registers a set, a server of its tenant for each of the names' servers.
    async fn register(
        &self,
        digest: [u8; 32],
        mut tools: Vec<DeferredTool>,
    ) -> Result<Toolset, Unregistered> {
        let texts: Vec<String> = tools.iter().map(|tool| tool.text.clone()).collect();
        let count =
            move || texts.iter().map(|text| u64::from(tokens::count(text))).collect::<Vec<u64>>();
        let counting = tokio::task::spawn_blocking(count);
        let mut servers: Vec<&str> = tools.iter().map(|tool| tool.place().0).collect();
        servers.sort_unstable();
        servers.dedup();
        self.go_on()?;
        let number = in_time(&self.plane, self.number()).await?;
        let tenant = tenant(number, digest);
        let registering = self.register_all(number, &tenant, &servers, &tools);
        let registered = in_time(&self.plane, registering).await;
        let Registered { names, withheld, revision } = match registered {
            Ok(registered) => registered,
            Err(error) => {
                self.unregister(number, &tenant, &servers).await;
                return Err(error);
            }
        };
        let servers = servers.into_iter().map(str::to_owned).collect();
        // Counting can't fail; without it nothing would be counted as saved.
        let counted = counting.await.unwrap_or_default();
        let found: HashSet<&str> = names.values().map(String::as_str).collect();
        let is_found = |tool: &DeferredTool| found.contains(tool.name.as_str());
        let tokens = tools.iter().zip(counted).filter(|(tool, _)| is_found(tool));
        let tokens = tokens.map(|(_, count)| count).sum();
        tools.retain(|tool| !withheld.contains(&tool.name));
        let withheld = Arc::new(withheld);
        Ok(Toolset { tenant, number, revision, tools, withheld, tokens, names, servers })
    }

    /// Returns the number of this process; 0 if no other one has the plane.
    async fn number(&self) -> Result<u32, Error> {
        match &self.leases {
            Some(leases) => leases.number().await,
            None => Ok(0),
        }
    }

    async fn register_all(
        &self,
        number: u32,
        tenant: &str,
        servers: &[&str],
        tools: &[DeferredTool],
    ) -> Result<Registered, Unregistered> {
        let plane = &self.plane;
        if let Some(leases) = &self.leases {
            self.go_on()?;
            leases.note(number, tenant).await?;
        }
        let mut all = Registered::default();
        for server in servers {
            self.go_on()?;
            let of_server: Vec<&DeferredTool> =
                tools.iter().filter(|tool| tool.place().0 == *server).collect();
            let request = v1::RegisterServerRequest {
                tenant: tenant.to_owned(),
                ..registration(*server, tools_list(&of_server))
            };
            let registered = plane.register_server(request).await?;
            all.revision = all.revision.max(registered.catalog_revision);
            all.add_each(&of_server, &registered.outcomes).map_err(|problem| Error::Answer {
                endpoint: plane.endpoint().to_owned(),
                problem,
            })?;
        }
        Ok(all)
    }

    /// Returns an error once this process takes its sets out, which ends a registration.
    fn go_on(&self) -> Result<(), Unregistered> {
        if self.registrations.is_closed() { Err(Unregistered::Stopping) } else { Ok(()) }
    }

    /// Takes sets out of the plane that it knows.
    async fn forget_each(&self, slots: &[Slot]) {
        for slot in slots {
            let state = slot.state.borrow().clone();
            if let State::Ready(toolset) = state {
                self.forget(&toolset).await;
            }
        }
    }

    /// Takes a set out of the plane. What fails is left there, and so is what another process may have by now.
    async fn forget(&self, toolset: &Toolset) {
        let servers: Vec<&str> = toolset.servers.iter().map(String::as_str).collect();
        self.unregister(toolset.number, &toolset.tenant, &servers).await;
    }

    /// Takes servers of a set out of the plane, as far as there is time.
    async fn unregister(&self, number: u32, tenant: &str, servers: &[&str]) {
        let unregistering = self.unregister_all(number, tenant, servers);
        match timeout(REGISTRATION_MAX, unregistering).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, tenant, "a set of tools could not be removed from the plane");
            }
            Err(_) => {
                tracing::warn!(tenant, "a set of tools was not removed from the plane in time");
            }
        }
    }

    /// Takes servers of a set out of the plane; those that it does not have are passed over.
    async fn unregister_all(
        &self,
        number: u32,
        tenant: &str,
        servers: &[&str],
    ) -> Result<(), Error> {
        if let Some(leases) = &self.leases
            && !leases.holds(number).await
        {
            return Ok(());
        }
        for server in servers {
            let request = v1::UnregisterServerRequest {
                tenant: tenant.to_owned(),
                server: (*server).to_owned(),
                ..Default::default()
            };
            match self.plane.unregister_server(request).await {
                Err(error) if error.code() != Some(Code::NotFound) => return Err(error),
                _ => {}
            }
        }
        match &self.leases {
            Some(leases) => leases.forget(number, tenant).await,
            None => Ok(()),
        }
    }
}

/// Gives a registration its time, however many servers it has.
async fn in_time<T, E: From<Error>>(
    plane: &Client,
    registering: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let late = |_| Error::Deadline {
        rpc: "RegisterServer",
        endpoint: plane.endpoint().to_owned(),
        deadline: REGISTRATION_MAX,
    };
    timeout(REGISTRATION_MAX, registering).await.map_err(late)?
}

/// Digits of a set's digest in the name of its tenant.
pub(crate) const DIGEST_DIGITS: usize = 32;

/// Returns the beginning of the names of tenants that the process of a number has sets in.
pub(crate) fn prefix_of(number: u32) -> String {
    format!("llm-{number}-")
}

/// Returns the plane's tenant of a set that the process of this number registers.
fn tenant(number: u32, digest: [u8; 32]) -> String {
    let mut tenant = prefix_of(number);
    for byte in &digest[..DIGEST_DIGITS / 2] {
        // Writing to a string can't fail.
        let _ = write!(tenant, "{byte:02x}");
    }
    tenant
}

/// Returns definitions as MCP lists them, with the schemas as they came.
fn tools_list(tools: &[&DeferredTool]) -> String {
    let definition = |tool: &&DeferredTool| {
        let name = Value::from(tool.place().1);
        let description = Value::from(tool.description.as_str());
        format!(r#"{{"name":{name},"description":{description},"inputSchema":{}}}"#, tool.schema)
    };
    format!("[{}]", tools.iter().map(definition).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a set that the plane knows by the names of the requests.
    pub(crate) fn known(tools: &[DeferredTool]) -> Toolset {
        let name = |tool: &DeferredTool| (tool.name.clone(), tool.name.clone());
        Toolset {
            tenant: "llm-0-x".to_owned(),
            number: 0,
            revision: 1,
            tools: tools.to_vec(),
            withheld: Arc::default(),
            tokens: 0,
            names: tools.iter().map(name).collect(),
            servers: Vec::new(),
        }
    }

    /// Returns a set of a tool that the plane has another name for.
    pub(crate) fn known_as(name: &str, of_plane: &str) -> Toolset {
        let names = HashMap::from([(of_plane.to_owned(), name.to_owned())]);
        Toolset { names, ..known(&[tool(name)]) }
    }

    /// Returns a tool of this name.
    pub(crate) fn tool(name: &str) -> DeferredTool {
        let text = format!(r#"{{"name":"{name}","input_schema":{{}}}}"#);
        read(Api::Anthropic, &text).expect("a function")
    }

    /// Has a tenant's set be one whose tools the plane has quarantined, each of them, before it lost the set.
    pub(crate) fn quarantine(toolsets: &Toolsets, tenant: &Arc<str>, tools: &[DeferredTool]) {
        let names = Arc::new(tools.iter().map(|tool| tool.name.clone()).collect());
        withhold(&mut toolsets.withheld.lock(), tenant, digest(tenant, tools), &names);
    }

    fn read(api: Api, text: &str) -> Option<DeferredTool> {
        let value = serde_json::from_str(text).expect("JSON");
        let namespace = (api == Api::OpenAiResponses).then_some("mcp__git__");
        DeferredTool::read(api, &Given { text, value: &value, list: None, namespace })
    }

    #[test]
    fn schemas_keep_their_bytes() {
        let text = r#"{"name":"mcp__git__log","description":"é","input_schema":{ "x" : 1.0 }}"#;
        let tool = read(Api::Anthropic, text).expect("a function");
        assert_eq!(
            tools_list(&[&tool]),
            r#"[{"name":"log","description":"é","inputSchema":{ "x" : 1.0 }}]"#
        );
        let text = r#"{"type":"function","function":{"name":"f","parameters":{ "y":2e1 }}}"#;
        let tool = read(Api::OpenAiChat, text).expect("a function");
        assert_eq!(tool.tool().input_schema_json, r#"{ "y":2e1 }"#);
        assert_eq!((tool.place(), tool.text.as_str()), ((NO_SERVER, "f"), text));
    }

    #[test]
    fn a_tool_in_a_namespace_has_both_names() {
        let text = r#"{"type":"function","name":"_log","parameters":{"x":1.0}}"#;
        let tool = read(Api::OpenAiResponses, text).expect("a function");
        assert_eq!((tool.name.as_str(), tool.place()), ("mcp__git__log", ("git", "log")));
        let within = Namespaced { namespace: "mcp__git__".to_owned(), name: "_log".to_owned() };
        assert_eq!(tool.within, Some(within));
        for text in [
            r#"{"type":"custom","name":"x"}"#,
            r#"{"type":"web_search"}"#,
            r#"{"type":"local_shell"}"#,
            r#"{"type":"function","name":"x","parameters":{},"async":true}"#,
            r#"{"type":"function","name":"x","parameters":{},"defer_loading":true}"#,
        ] {
            assert!(read(Api::OpenAiResponses, text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_the_provider_runs_is_no_deferred_tool() {
        for text in [
            r#"{"type":"web_search_20260209","name":"web_search"}"#,
            r#"{"name":"x"}"#,
            r#"{"name":"x","input_schema":{},"defer_loading":true}"#,
            r#"{"name":"x","input_schema":{},"allowed_callers":["code_execution_20250825"]}"#,
            r#"{"input_schema":{}}"#,
        ] {
            assert!(read(Api::Anthropic, text).is_none(), "{text}");
        }
        assert!(read(Api::OpenAiChat, r#"{"type":"custom","custom":{"name":"x"}}"#).is_none());
    }

    #[test]
    fn a_set_that_is_being_registered_is_not_evicted() {
        let mut known = Known::default();
        let (sender, state) = watch::channel(State::Starting);
        let tenant: Arc<str> = Arc::from("a");
        let slot = Slot { tenant: Arc::clone(&tenant), state, bytes: 1, used: 1 };
        known.sets.insert([1; 32], slot);
        let bounds = |entries| Bounds { entries, bytes: 100 };
        let mut evicted = |entries| {
            let evicted = known.make_place(bounds(entries), &tenant, 1);
            evicted.map(|evicted| [evicted.len(), known.sets.len()])
        };
        assert_eq!(evicted(1), Err("busy"));
        sender.send_replace(State::Failed(Instant::now()));
        assert_eq!(evicted(2), Ok([0, 1]));
        assert_eq!(evicted(1), Ok([0, 0]), "the plane has nothing of it");
    }

    fn plane() -> Client {
        Client::lazy("http://127.0.0.1:9", toolgate_client::ClientOptions::default())
            .expect("a URL")
    }

    #[tokio::test]
    async fn one_tenants_registrations_leave_a_place_for_anothers() {
        let toolsets = Toolsets::new(plane(), None, Bounds { entries: 64, bytes: 1 << 20 });
        let begin = |tenant: &str, number: usize| {
            let text = format!(r#"{{"name":"t{number}","input_schema":{{}}}}"#);
            let tool = read(Api::Anthropic, &text).expect("a function");
            toolsets.state(&Arc::from(tenant), &[tool]).map(|_| ())
        };
        // Nothing is awaited, so that no registration ends.
        let begun: Vec<_> = (0..8).map(|number| begin("a", number)).collect();
        assert_eq!(begun[..4], [Ok(()); 4]);
        assert_eq!(begun[4..], [Err("busy"); 4]);
        assert_eq!(begin("b", 0), Ok(()), "another tenant's set begins");
    }

    #[tokio::test(start_paused = true)]
    async fn a_registration_has_one_deadline_for_all_of_its_servers() {
        let begun = Instant::now();
        let many = async {
            for _ in 0..1000 {
                tokio::time::sleep(Duration::from_secs(50)).await;
            }
            Ok::<(), Error>(())
        };
        let ended = in_time(&plane(), many).await;
        assert!(matches!(ended, Err(Error::Deadline { .. })), "{ended:?}");
        assert_eq!(begun.elapsed(), REGISTRATION_MAX);
    }

    /// Sets of tenants, each of which was registered.
    struct Sets {
        known: Known,
        state: watch::Receiver<State>,
        _sender: watch::Sender<State>,
    }

    impl Sets {
        fn new() -> Self {
            let toolset = State::Ready(Arc::new(known(&[])));
            let (sender, state) = watch::channel(toolset);
            Self { known: Known::default(), state, _sender: sender }
        }

        /// Adds a set, and returns the number of those that leave the plane for it.
        fn add(&mut self, number: u8, tenant: &str, bytes: usize) -> Result<usize, PassReason> {
            let tenant: Arc<str> = Arc::from(tenant);
            let bounds = Bounds { entries: 4, bytes: 100 };
            let evicted = self.known.make_place(bounds, &tenant, bytes)?;
            let state = self.state.clone();
            let slot = Slot { tenant, state, bytes, used: number.into() };
            self.known.sets.insert([number; 32], slot);
            Ok(evicted.len())
        }

        fn has(&self, number: u8) -> bool {
            self.known.sets.contains_key(&[number; 32])
        }
    }

    #[test]
    fn one_tenants_sets_are_not_evicted_for_anothers() {
        let mut sets = Sets::new();
        assert_eq!(sets.add(0, "a", 1), Ok(0));
        for number in 1..10 {
            assert_eq!(sets.add(number, "b", 1), Ok(usize::from(number > 3)));
        }
        assert_eq!(sets.known.sets.len(), 4);
        assert!(sets.has(0), "the oldest is of the tenant that has one");
    }

    #[test]
    fn sets_are_bounded_by_bytes_with_shares_by_tenant() {
        let mut sets = Sets::new();
        assert_eq!(sets.add(0, "a", 20), Ok(0));
        assert_eq!(sets.add(1, "b", 40), Ok(0));
        assert_eq!(sets.add(2, "b", 40), Ok(0));
        assert_eq!(sets.add(3, "b", 70), Ok(2), "both leave the plane");
        assert!(sets.has(0) && sets.has(3), "who has less loses nothing");
        assert_eq!(sets.add(4, "b", 101), Err("no-memory"), "it is larger than all");
        assert!(sets.has(3), "nothing is lost for it");
        assert_eq!(sets.add(5, "c", 90), Err("no-memory"), "nobody has more");
        assert_eq!(sets.add(6, "c", 30), Ok(1));
        assert!(sets.has(0) && !sets.has(3), "who has most gives way");
    }

    #[test]
    fn no_set_is_lost_for_one_that_finds_no_place() {
        let mut sets = Sets::new();
        assert_eq!(sets.add(0, "a", 45), Ok(0));
        assert_eq!(sets.add(1, "a", 45), Ok(0));
        assert_eq!(sets.add(2, "c", 60), Err("no-memory"), "one of 45 is less than it would have");
        assert!(sets.has(0) && sets.has(1));
    }

    fn outcome(name: &str, kind: OutcomeKind, field: &str) -> v1::ToolOutcome {
        let is_stored = field.is_empty();
        v1::ToolOutcome {
            name: name.to_owned(),
            kind: kind.into(),
            model_name: if is_stored { format!("model_{name}") } else { String::new() },
            field: field.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn outcomes_are_those_of_the_tools_that_they_name() {
        let tools = ["a", "b", "c", "d"].map(|name| {
            let text = format!(r#"{{"name":"mcp__s__{name}","input_schema":{{}}}}"#);
            read(Api::Anthropic, &text).expect("a function")
        });
        let tools: Vec<&DeferredTool> = tools.iter().collect();
        let outcomes = [
            outcome("gone", OutcomeKind::Removed, ""),
            outcome("", OutcomeKind::Rejected, "tools[3].inputSchema"),
            outcome("c", OutcomeKind::Quarantined, ""),
            outcome("b", OutcomeKind::Unchanged, ""),
            outcome("a", OutcomeKind::Accepted, ""),
        ];
        let mut registered = Registered::default();
        registered.add_each(&tools, &outcomes).expect("an outcome of each");
        assert_eq!(registered.withheld, HashSet::from(["mcp__s__c".to_owned()]));
        let names = [("model_a", "mcp__s__a"), ("model_b", "mcp__s__b")];
        let names = names.map(|(of_plane, own)| (of_plane.to_owned(), own.to_owned()));
        assert_eq!(registered.names, HashMap::from(names));
        let shortened = Registered::default().add_each(&tools, &outcomes[..4]);
        assert_eq!(shortened, Err(r#"it lacks the outcome of "mcp__s__a""#.to_owned()));
    }

    #[tokio::test]
    async fn what_was_quarantined_is_withheld_until_the_set_is_registered_anew() {
        let toolsets = Toolsets::new(plane(), None, Bounds { entries: 4, bytes: 100 });
        let tools =
            [read(Api::Anthropic, r#"{"name":"t","input_schema":{}}"#).expect("a function")];
        let tenant: Arc<str> = Arc::from("a");
        let names = Arc::new(HashSet::from(["t".to_owned()]));
        let set = Toolset { withheld: Arc::clone(&names), ..known(&tools) };
        let state = watch::channel(State::Ready(Arc::new(set))).1;
        let slot = Slot { tenant: Arc::clone(&tenant), state, bytes: 1, used: 1 };
        toolsets.known.lock().sets.insert(digest("a", &tools), slot);
        assert_eq!(toolsets.withheld("a", &tools).as_ref(), Some(&names));
        let settle = |names: &Arc<HashSet<String>>| {
            withhold(&mut toolsets.withheld.lock(), &tenant, digest("a", &tools), names);
        };
        settle(&names);
        toolsets.drop("a", &tools);
        assert!(toolsets.withholds("a") && !toolsets.knows("a", &tools));
        assert_eq!(toolsets.withheld("a", &tools).as_ref(), Some(&names));
        assert_eq!(toolsets.withheld("b", &tools), None, "another tenant's");
        settle(&Arc::default());
        assert!(!toolsets.withholds("a"), "the plane takes it now");
        assert_eq!(toolsets.withheld("a", &tools), None);
    }

    #[test]
    fn the_same_tools_are_each_tenants_own_set() {
        let tools =
            [read(Api::Anthropic, r#"{"name":"t","input_schema":{}}"#).expect("a function")];
        assert_eq!(digest("a", &tools), digest("a", &tools));
        assert_ne!(digest("a", &tools), digest("b", &tools));
    }

    #[test]
    fn each_process_has_tenants_of_its_own() {
        let of = |number| tenant(number, [0xab; 32]);
        assert_eq!(of(0), format!("llm-0-{}", "ab".repeat(16)));
        assert_ne!(of(0), of(1));
        assert!(of(u32::MAX).len() <= 64, "the plane takes no longer name");
    }

    #[test]
    fn names_tell_of_servers() {
        let patterns: Vec<String> =
            ["mcp_*", "github_*", "github_ci_*", "mcp_my_own_*", "x*", "*_y", "-*"]
                .map(str::to_owned)
                .into();
        let place = |name: &str| {
            let text = format!(r#"{{"name":"{name}","input_schema":{{}}}}"#);
            let mut tool = read(Api::Anthropic, &text).expect("a function");
            tool.take_server(&patterns);
            let (server, tool) = tool.place();
            format!("{server}/{tool}")
        };
        assert_eq!(place("mcp__git__log__all"), "git/log__all");
        assert_eq!(place("mcp_git_log_all"), "git/log_all", "Gemini CLI's");
        assert_eq!(place("mcp_my_own_log"), "my_own/log", "the operator knows better");
        assert_eq!(place("mcp__my_own__log"), "my_own/log");
        assert_eq!(place("github_list_issues"), "github/list_issues");
        assert_eq!(place("github_ci_run"), "github_ci/run");
        for bare in ["github_", "mcp_git", "mcp____x", "mcp__a b__x", "xylophone", "a_y", "-z"] {
            assert_eq!(place(bare), format!("tools/{bare}"));
        }
    }

    #[test]
    fn two_tools_of_one_place_stay_apart() {
        let mut tools = ["mcp__git__log", "mcp_git_log", "mcp_git_show"].map(tool);
        keep_apart(&mut tools);
        let places = tools.each_ref().map(DeferredTool::place);
        assert_eq!(places, [("git", "log"), ("tools", "mcp_git_log"), ("git", "show")]);
    }
}
