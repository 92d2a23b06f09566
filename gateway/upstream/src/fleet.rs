//! A fleet of MCP servers: each is started, watched, restarted and listed by a task of its own, and asked through turns,
//! a circuit and deadlines, so that a slow or dead one costs the others nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::connection::{
    Completion, LEAVE, ListChange, RELISTEN, ServerIdentity, ServerMessage, changes, completions,
    messages,
};
use crate::credentials::{CredentialStore, Requester};
use crate::eras::Eras;
use crate::processes::Processes;
use crate::question::Asker;
use crate::running_tasks::task_of;
use crate::target::{Endpoint, Upstream};

mod circuit;
mod homes;
#[cfg(test)]
mod http_tests;
mod own;
mod principals;
mod problem;
mod put_off;
mod sent;
mod server;
mod spawning;
#[cfg(test)]
mod sse_tests;
#[cfg(test)]
mod tests;
mod traced;
mod turns;
mod watched;

pub use put_off::KeptList;
pub use sent::Sent;
pub(crate) use sent::process_number;
use server::Server;
use watched::Watched;
pub use watched::Watching;

/// Servers that are started at the same time.
const SPAWNS_MAX: usize = 8;

/// Server of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name, unique in the fleet.
    pub name: String,
    /// Place of the server.
    pub upstream: Upstream,
    /// Bounds of its use.
    pub limits: Limits,
    /// Names what must be there before it can be started, for people: it waits, and nothing is started. `None` if it lacks
    /// nothing.
    pub waits_for: Option<String>,
}

/// Bounds of the use of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Calls at a time; at least 1.
    pub concurrency: usize,
    /// Calls that wait for their turn. More are refused.
    pub queue: usize,
    /// Time for a start, including the first list of tools.
    pub start_timeout: Duration,
    /// Time of a call without an answer or progress.
    pub call_timeout: Duration,
    /// Time of a call in all.
    pub call_timeout_max: Duration,
    /// Largest result, in bytes.
    pub result_bytes_max: usize,
    /// Pauses before a start.
    pub pauses: Pauses,
    /// Time of the first start.
    pub start: Start,
    /// Connections of hosts' own to a server of a revision before 2026-07-28, so that it may ask them, without those whose calls
    /// all wait for answers; 0 for none: it may ask nobody.
    pub own_connections: usize,
}

/// Time of a server's first start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Start {
    /// With the fleet.
    #[default]
    Eager,
    /// With the first call. It is started with the fleet as well, but ends once it has listed its tools, prompts and resources.
    Lazy,
    /// With the first request of each principal, for it alone. It is started with the fleet as well, for nobody, but ends once it
    /// has listed the same.
    PerUser(PerUser),
}

/// Bounds of the processes of a server that has one for each principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerUser {
    /// Processes at a time, with those that are ending; at least 1.
    pub processes: usize,
    /// Of these, those of one principal; at least 1. It has more than one only where hosts are asked.
    pub of_principal: usize,
    /// Silence after which a process ends.
    pub idle: Duration,
    /// Folder with a home folder for each principal; `None` if the environment says what their home is.
    pub homes: Option<PathBuf>,
}

/// Pauses before a server that failed is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// First pause. Each is twice as long as the one before; a tenth more or less is drawn by chance.
    pub first: Duration,
    /// Longest pause.
    pub last: Duration,
    /// Time of health after which pauses begin anew.
    pub healthy_after: Duration,
}

/// Servers that are kept running. Clones share them; with the last clone they end.
#[derive(Debug, Clone)]
pub struct Fleet(Arc<Shared>);

/// Tools of a server, as it listed them last.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Name of the server in the fleet.
    pub server: String,
    /// Identity that the server tells.
    pub identity: ServerIdentity,
    /// Advice of the server on its use, if it gives any.
    pub instructions: Option<String>,
    /// Capabilities of the server; an object.
    pub capabilities: Value,
    /// Definitions of its tools, byte for byte.
    pub tools: Vec<Box<RawValue>>,
    /// Problems of definitions that are left out of them.
    pub findings: Vec<String>,
}

/// State of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// It is being started.
    Starting,
    /// It takes calls.
    Ready,
    /// It has listed its tools, and is started by the first call.
    Idle,
    /// It failed, and is started again after a pause; or it lacks what its entry names, and is not started.
    Waiting,
    /// It asks for a login (HTTP 401), and is started again after one, or by [`Fleet::restart`].
    NeedsLogin,
    /// It was ended.
    Stopped,
}

/// Status of a server.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Name of the server in the fleet.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// Time at which the state began.
    pub since: SystemTime,
    /// Number of tools of its last list.
    pub tools: usize,
    /// `stdio`, `http`, or `sse` for the HTTP+SSE of 2024-11-05.
    pub transport: &'static str,
    /// Revision of MCP that it speaks; `None` before it was ready.
    pub protocol: Option<String>,
    /// Number of starts after the first.
    pub restarts: u64,
    /// Problem that it has or had last; `None` once it is ready.
    pub problem: Option<String>,
    /// The same problem for callers, who are told no path of a home folder.
    pub told_problem: Option<String>,
    /// Time that its last start took; `None` before it was ready.
    pub started_in: Option<Duration>,
    /// Problems of definitions that its last list was taken without.
    pub findings: Vec<String>,
    /// True if it waits for what its entry lacks, until the entry changes.
    pub is_held: bool,
    /// True if its last calls failed one after another, so that one call at a time is tried.
    pub is_circuit_open: bool,
    /// Processes and connections that still run by an earlier entry of the server, the oldest first.
    pub leaving: Vec<Leaving>,
}

/// Processes and connections by an entry that has changed. They finish what they run, and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// Calls that run.
    pub calls: usize,
    /// Tasks that run behind the answers of their calls, as far as the server's answers say.
    pub tasks: usize,
    /// Longest time until they are ended.
    pub ends_within: Duration,
}

/// Request to a server.
#[derive(Debug)]
pub struct Request {
    /// Method of MCP.
    pub method: String,
    /// Its parameters. The revision and the progress token in `_meta` are replaced by the connection's own.
    pub params: Map<String, Value>,
    /// Principal on whose behalf it is sent. Principals take turns.
    pub principal: String,
    /// Receiver of the parameters of `notifications/progress` and `notifications/message` that belong to the request.
    /// Those that it does not take in time are dropped.
    pub progress: Option<mpsc::Sender<Value>>,
    /// Host that the server may ask; `None` if it may ask nobody. Servers of 2026-07-28 ask in their results.
    pub asker: Option<Asker>,
    /// Principal whose own credential it takes, where the server has one for each; `None` for the operator.
    pub requester: Option<Requester>,
    /// Told when it is sent, where somebody wants to know.
    pub sent: Option<Arc<Sent>>,
    /// Process that runs the task that it is about, as [`Sent::process`] has it: it reaches no other. `None` for a task behind a URL,
    /// and for what is about no task.
    pub process: Option<u64>,
}

/// Error of a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// The fleet has no server of this name.
    #[error("there is no such server")]
    Unknown,
    /// JSON-RPC error of the server.
    #[error("{message} ({code})")]
    Server {
        /// Code of the error.
        code: i64,
        /// Its message.
        message: String,
        /// Its data.
        data: Option<Value>,
    },
    /// The server has as many calls as it may.
    #[error("the server is busy")]
    Busy {
        /// Time after which another try makes sense.
        retry_after: Duration,
    },
    /// The server is not there.
    #[error("the server is not available: {problem}")]
    Unavailable {
        /// State of the server.
        state: ServerState,
        /// Problem that it has.
        problem: String,
        /// True if the server may have run the request.
        may_have_run: bool,
    },
    /// The principal has no credential of its own for the server. The request did not run.
    #[error("{problem}")]
    Credential {
        /// Problem of the credential.
        problem: String,
        /// True if a login of the principal helps.
        takes_login: bool,
    },
    /// The server did not answer in time. The request was cancelled.
    #[error("no answer within {} ms", after.as_millis())]
    Timeout {
        /// Time that the server had.
        after: Duration,
    },
    /// The answer is larger than the limit.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
}

#[derive(Debug)]
struct Shared {
    servers: Mutex<Vec<Arc<Server>>>,
    /// Servers whose entries left or changed, until they have ended.
    leaving: Mutex<Vec<Weak<Server>>>,
    surroundings: Surroundings,
}

/// Things that the servers of a fleet share.
#[derive(Debug, Clone)]
struct Surroundings {
    changes: Arc<watch::Sender<u64>>,
    spawns: Arc<Semaphore>,
    credentials: Option<CredentialStore>,
    processes: Processes,
    eras: Eras,
    tasks: TaskTracker,
    list_changes: broadcast::Sender<ListChange>,
    completions: broadcast::Sender<Completion>,
    messages: broadcast::Sender<ServerMessage>,
    /// Resources that hosts follow, by server. They are kept when an entry changes.
    watched: Arc<Mutex<HashMap<String, Arc<Watched>>>>,
    tuning: Tuning,
}

/// Times that no operator sets.
#[derive(Debug, Clone, Copy)]
struct Tuning {
    /// Silence after which a server is asked whether it is there, and the time that it has to answer.
    silence: Duration,
    probe: Duration,
    /// Time after which tools are listed though no change was told; a tenth more or less is drawn by chance.
    poll: Duration,
    /// Shortest time between two lists that the server asks for.
    list_gap: Duration,
    /// Time that a circuit stays open.
    circuit: Duration,
    /// Time for a process to leave, twice: by itself and after SIGTERM.
    leave: Duration,
    /// Longest time for which a process that starts keeps others from starting.
    spawn: Duration,
    /// First pause before a subscription that ended is opened again.
    relisten: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 4,
            queue: 32,
            start_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            call_timeout_max: Duration::from_secs(600),
            result_bytes_max: 32 << 20,
            pauses: Pauses::default(),
            start: Start::default(),
            own_connections: 0,
        }
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            last: Duration::from_secs(30),
            healthy_after: Duration::from_secs(60),
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(30),
            probe: Duration::from_secs(10),
            poll: Duration::from_secs(300),
            list_gap: Duration::from_secs(1),
            circuit: Duration::from_secs(5),
            leave: LEAVE,
            spawn: Duration::from_secs(5),
            relisten: RELISTEN,
        }
    }
}

impl Listing {
    /// Returns whether the server speaks 2026-07-28 or later.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.identity.protocol.as_str() >= "2026-07-28"
    }
}

impl Fleet {
    /// Starts servers side by side, and returns at once. Of two entries with the same name the first counts. Must be called
    /// within a Tokio runtime.
    #[must_use]
    pub fn start(entries: Vec<Entry>) -> Self {
        Self::start_tuned(entries, Tuning::default(), None)
    }

    /// Starts servers as [`Self::start`] does. Credentials of logins are in a store; without one nobody can log in. Servers are
    /// asked by the `eras` that are known of them.
    #[must_use]
    pub fn start_with(
        entries: Vec<Entry>,
        credentials: Option<CredentialStore>,
        processes: Processes,
        eras: Eras,
    ) -> Self {
        Self::start_watched(entries, Tuning::default(), credentials, processes, eras)
    }

    fn start_tuned(
        entries: Vec<Entry>,
        tuning: Tuning,
        credentials: Option<CredentialStore>,
    ) -> Self {
        Self::start_watched(entries, tuning, credentials, Processes::default(), Eras::default())
    }

    fn start_watched(
        entries: Vec<Entry>,
        tuning: Tuning,
        credentials: Option<CredentialStore>,
        processes: Processes,
        eras: Eras,
    ) -> Self {
        let surroundings = Surroundings {
            changes: Arc::new(watch::channel(0).0),
            spawns: Arc::new(Semaphore::new(SPAWNS_MAX)),
            credentials,
            processes,
            eras,
            tasks: TaskTracker::new(),
            list_changes: changes(),
            completions: completions(),
            messages: messages(),
            watched: Arc::default(),
            tuning,
        };
        let fleet = Self(Arc::new(Shared {
            servers: Mutex::default(),
            leaving: Mutex::default(),
            surroundings,
        }));
        fleet.apply(entries);
        fleet
    }

    /// Makes these the servers of the fleet: new ones start, changed ones start anew, and those that left finish their calls
    /// and end. What ran by an entry that changed finishes its calls and their tasks, takes no others, and ends after the longest
    /// time of a call at the latest. Requests about these tasks reach it until then.
    pub fn apply(&self, entries: Vec<Entry>) {
        let surroundings = &self.0.surroundings;
        let mut servers = self.0.servers.lock();
        let mut old = std::mem::take(&mut *servers);
        let mut changed = Vec::new();
        for entry in entries {
            if servers.iter().any(|server| server.entry.name == entry.name) {
                continue;
            }
            let place = old.iter().position(|server| server.entry.name == entry.name);
            let before = place.map(|place| old.swap_remove(place));
            let server = match before {
                Some(server) if server.entry == entry => server,
                before => {
                    let listing = before.as_ref().and_then(|before| before.listing());
                    changed.extend(before);
                    Server::start(entry, listing, surroundings.clone())
                }
            };
            servers.push(server);
        }
        drop(servers);
        let mut leaving = self.0.leaving.lock();
        leaving.retain(|server| server.strong_count() > 0);
        for (servers, keeps_tasks) in [(old, false), (changed, true)] {
            for server in servers {
                server.leave(keeps_tasks);
                leaving.push(Arc::downgrade(&server));
            }
        }
        drop(leaving);
        surroundings.changed();
    }

    /// Returns the entry of a server.
    #[must_use]
    pub fn entry(&self, server: &str) -> Option<Entry> {
        Some(self.server(server)?.entry.clone())
    }

    /// Returns the status of each server, in the order of the entries.
    #[must_use]
    pub fn status(&self) -> Vec<ServerStatus> {
        let servers = self.0.servers.lock().clone();
        let leaving = self.0.leaving();
        let status = |server: &Arc<Server>| {
            let name = &server.entry.name;
            let left = leaving.iter().filter(|left| left.entry.name == *name);
            let leaving = left.filter_map(|left| left.leaving()).collect();
            ServerStatus { leaving, ..server.status() }
        };
        servers.iter().map(status).collect()
    }

    /// Returns what a server listed last; `None` before its first list. It is kept while the server is away.
    #[must_use]
    pub fn listing(&self, server: &str) -> Option<Arc<Listing>> {
        self.server(server)?.listing()
    }

    /// Returns the items of a list, such as `prompts/list`, of a server that waits for its first call: as it gave them when it
    /// listed its tools. `None` for any other server.
    #[must_use]
    pub fn kept_list(&self, server: &str, method: &str) -> Option<KeptList> {
        self.server(server)?.kept_list(method)
    }

    /// Returns the receiver of changes of lists that the servers tell.
    #[must_use]
    pub fn list_changes(&self) -> broadcast::Receiver<ListChange> {
        self.0.surroundings.list_changes.subscribe()
    }

    /// Returns the receiver of the pages of servers that persons are through with.
    #[must_use]
    pub fn completions(&self) -> broadcast::Receiver<Completion> {
        self.0.surroundings.completions.subscribe()
    }

    /// Returns the receiver of messages of servers that belong to no request that hears them.
    #[must_use]
    pub fn messages(&self) -> broadcast::Receiver<ServerMessage> {
        self.0.surroundings.messages.subscribe()
    }

    /// Tells the servers that may ask a host of a principal for its roots that these have changed, if the host said that it tells so.
    pub fn roots_changed(&self, principal: &str, host: &str) {
        let servers = self.0.servers.lock().clone();
        for server in servers {
            server.roots_changed(principal, host);
        }
    }

    /// Returns a counter that changes with each status and listing.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.surroundings.changes.subscribe()
    }

    /// Sends a request to a server, and returns the bytes of its result. A server that starts is waited for; one that pauses
    /// is started at once. When the returned future is dropped, the request is cancelled at the server.
    ///
    /// # Errors
    /// [`RequestError`], at the deadline at the latest.
    pub async fn request(
        &self,
        server: &str,
        request: Request,
        deadline: impl Into<Instant>,
    ) -> Result<Box<RawValue>, RequestError> {
        let server = self.server_for(server, &request).ok_or(RequestError::Unknown)?;
        Box::pin(server.request(request, deadline.into())).await
    }

    /// Follows a resource of a server until the returned value is dropped. The server is asked to tell of it once, however many
    /// follow. Returns `None` if the fleet has no such server, or as many of its resources are followed as may be.
    #[must_use]
    pub fn watch(&self, server: &str, uri: &str) -> Option<Watching> {
        self.server(server)?;
        self.0.surroundings.watched(server).watch(uri)
    }

    /// Returns whether anybody follows a resource of a server.
    #[must_use]
    pub fn is_watched(&self, server: &str, uri: &str) -> bool {
        self.0.surroundings.watched(server).has(uri)
    }

    /// Returns the receiver of the URIs of a server's resources that changed.
    #[must_use]
    pub fn resource_changes(&self, server: &str) -> broadcast::Receiver<Arc<str>> {
        self.0.surroundings.watched(server).changes()
    }

    /// Returns the URL of a server, and how it is asked; `None` for a process.
    #[must_use]
    pub fn endpoint(&self, server: &str) -> Option<Endpoint> {
        match &self.server(server)?.entry.upstream {
            Upstream::Http(endpoint) => Some(endpoint.clone()),
            Upstream::Process(_) => None,
        }
    }

    /// Ends a principal's own connections to a server, so that the next request takes its new credential from the start.
    pub fn renew(&self, server: &str, requester: &Requester) {
        if let Some(server) = self.server(server) {
            server.renew(requester);
        }
    }

    /// Ends a server's process or connection and starts it anew. What still runs by an entry that it had before ends too. Returns
    /// whether the fleet has the server.
    #[must_use]
    pub fn restart(&self, server: &str) -> bool {
        let Some(server) = self.server(server) else { return false };
        for left in self.0.leaving() {
            if left.entry.name == server.entry.name {
                left.stop();
            }
        }
        server.restart();
        true
    }

    /// Returns the newest 64 KiB of what a server's process wrote to standard error, and of what the processes of a tenant's
    /// principals wrote; with `None`, of each tenant's. It is empty for a URL.
    #[must_use]
    pub fn logs(&self, server: &str, tenant: Option<&str>) -> Option<String> {
        Some(self.server(server)?.logs(tenant))
    }

    /// Ends all servers, and waits for their processes: three times the time that each has to leave at most.
    pub async fn close(&self) {
        let servers = self.0.servers.lock().clone();
        for server in servers {
            server.stop();
        }
        for server in self.0.leaving() {
            server.stop();
        }
        let Surroundings { tasks, tuning, .. } = &self.0.surroundings;
        tasks.close();
        // A process that does not end in time is killed when its transport is dropped.
        let _late = tokio::time::timeout(tuning.leave * 4, tasks.wait()).await;
    }

    /// Returns the server of a request: the one of the name, or of those whose entries have changed the one that runs its task.
    fn server_for(&self, name: &str, request: &Request) -> Option<Arc<Server>> {
        let server = self.server(name)?;
        let Some(task) = task_of(&request.method, &request.params) else { return Some(server) };
        // Another process of the server may have a task of the same ID.
        let has_task = |server: &Server| match request.process {
            Some(process) => server.has_process(&request.principal, process),
            None => server.has_task(&request.principal, task),
        };
        if has_task(&server) {
            return Some(server);
        }
        let mut left = self.0.leaving().into_iter().rev();
        left.find(|left| left.entry.name == name && has_task(left)).or(Some(server))
    }

    fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.0.servers.lock().iter().find(|server| server.entry.name == name).cloned()
    }
}

impl Surroundings {
    /// Returns the resources of a server that hosts follow.
    fn watched(&self, server: &str) -> Arc<Watched> {
        Arc::clone(self.watched.lock().entry(server.to_owned()).or_default())
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl Shared {
    /// Returns the servers that leave, in the order in which they were left.
    fn leaving(&self) -> Vec<Arc<Server>> {
        self.leaving.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for server in self.leaving() {
            server.stop();
        }
        for server in self.servers.get_mut() {
            server.stop();
        }
    }
}
