//! One server of a fleet, and the task that keeps it running.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rmcp::model::ClientCapabilities;
use serde_json::Map;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_telemetry::McpSpan;

use super::circuit::{Attempt, Circuit};
use super::homes;
use super::own::{OwnConnections, Owned};
use super::principals::Principals;
use super::problem::Problem;
use super::put_off::{self, KeptList, KeptLists};
use super::spawning::start_in;
use super::traced;
use super::turns::{Busy, Turns};
use super::{
    Entry, Listing, Request, RequestError, Sent, ServerState, ServerStatus, Start, Surroundings,
};
use crate::connection::{
    CallError, Change, Connection, ConnectionLimits, ConnectionOwner, Outgoing, Told, client,
};
use crate::credentials::Authorizer;
use crate::eras::Era;
use crate::error::UpstreamError;
use crate::parameters::HeaderParameters;
use crate::process::{ProcessLimits, StandardError};
use crate::target::Upstream;

/// Methods by which a server lists what it has.
const LISTS: [&str; 4] =
    ["prompts/list", "resources/list", "resources/templates/list", "tools/list"];

/// Code of an error that says that there is no such task.
const INVALID_PARAMS: i64 = -32602;

/// Code of a call that a server refuses for scopes.
const FORBIDDEN: i64 = -32003;

/// Shortest and longest time for which a list of tools is kept by the server's word (`ttlMs`).
const TTL_MIN: Duration = Duration::from_secs(30);
const TTL_MAX: Duration = Duration::from_secs(60 * 60);

/// Advice to whoever finds a server busy.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Server of a fleet.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) entry: Entry,
    pub(super) surroundings: Surroundings,
    pub(super) authorizer: Option<Arc<Authorizer>>,
    live: Mutex<Live>,
    /// Grows with each change of the state.
    moves: watch::Sender<u64>,
    told: Told,
    pub(super) own: OwnConnections,
    pub(super) principals: Principals,
    turns: Turns,
    pub(super) circuit: Circuit,
    stderr: StandardError,
    /// Ends the server: at once, or once its calls have ended.
    stop: CancellationToken,
    leave: CancellationToken,
    /// Set once it leaves.
    leaving: OnceLock<Leaving>,
    restart: Notify,
    /// Ends the pause before a start.
    hurry: Notify,
    /// Says that a call was answered with HTTP 401.
    login: Notify,
}

/// Part of a server that changes.
#[derive(Debug)]
struct Live {
    state: ServerState,
    since: SystemTime,
    problem: Option<Problem>,
    protocol: Option<String>,
    /// Transport of the last connection, or the likely one before it.
    transport: &'static str,
    starts: u64,
    started_in: Option<Duration>,
    listing: Option<Arc<Listing>>,
    connection: Option<Arc<Connection>>,
    /// Lists beside its tools while it is put off.
    lists: KeptLists,
    /// True if a call has ended a pause since the server was ready last.
    was_hurried: bool,
    /// True if the last list was empty though the kept one is not.
    was_emptied: bool,
    /// Time for which its last list of tools may be kept; `None` if it says nothing.
    ttl: Option<Duration>,
}

/// Bounds of what a server that leaves may still do.
#[derive(Debug)]
struct Leaving {
    until: Instant,
    /// True if it runs on for the tasks of its calls.
    keeps_tasks: bool,
}

/// End of a connection.
enum End {
    Stop,
    /// It is wanted with the first call.
    Idle,
    Restart,
    Login,
    Lost(Problem),
}

impl Server {
    /// Starts a server. `listing` is what is known of it.
    pub(super) fn start(
        entry: Entry,
        listing: Option<Arc<Listing>>,
        surroundings: Surroundings,
    ) -> Arc<Self> {
        let live = Live {
            state: match entry.waits_for {
                Some(_) => ServerState::Waiting,
                None => ServerState::Starting,
            },
            since: SystemTime::now(),
            problem: entry.waits_for.clone().map(Problem::from),
            protocol: None,
            transport: match entry.upstream {
                Upstream::Process(_) => "stdio",
                Upstream::Http(_) => "http",
            },
            starts: 0,
            started_in: None,
            listing,
            connection: None,
            lists: KeptLists::new(),
            was_hurried: false,
            was_emptied: false,
            ttl: None,
        };
        let server = Arc::new(Self {
            authorizer: authorizer(&entry, &surroundings),
            live: Mutex::new(live),
            moves: watch::channel(0).0,
            told: Told {
                server: Arc::from(entry.name.as_str()),
                changes: surroundings.list_changes.clone(),
                completions: surroundings.completions.clone(),
                messages: surroundings.messages.clone(),
                resources: surroundings.watched(&entry.name).sender(),
                ..Told::default()
            },
            own: OwnConnections::of(&entry.limits),
            principals: Principals::default(),
            turns: Turns::new(entry.limits.concurrency, entry.limits.queue),
            circuit: Circuit::new(surroundings.tuning.circuit),
            stderr: StandardError::of(&entry.name, surroundings.processes.clone()),
            stop: CancellationToken::new(),
            leave: CancellationToken::new(),
            leaving: OnceLock::new(),
            restart: Notify::new(),
            hurry: Notify::new(),
            login: Notify::new(),
            entry,
            surroundings,
        });
        let running = Arc::clone(&server);
        server.surroundings.tasks.spawn(async move { Box::pin(running.run()).await });
        server
    }

    pub(super) fn status(&self) -> ServerStatus {
        let live = self.live.lock();
        ServerStatus {
            name: self.entry.name.clone(),
            state: live.state,
            since: live.since,
            tools: live.listing.as_ref().map_or(0, |listing| listing.tools.len()),
            transport: live.transport,
            protocol: live.protocol.clone(),
            restarts: live.starts.saturating_sub(1),
            problem: live.problem.as_ref().map(|problem| problem.shown.clone()),
            told_problem: live.problem.as_ref().map(|problem| problem.told.clone()),
            started_in: live.started_in,
            findings: live
                .listing
                .as_ref()
                .map(|listing| listing.findings.clone())
                .unwrap_or_default(),
            is_held: self.entry.waits_for.is_some(),
            is_circuit_open: self.circuit.is_open(),
            leaving: Vec::new(),
        }
    }

    /// Returns what it still runs if it leaves; `None` if it stays, or has ended.
    pub(super) fn leaving(&self) -> Option<super::Leaving> {
        let leaving = self.leaving.get()?;
        let shared = {
            let live = self.live.lock();
            if live.state == ServerState::Stopped && !self.own.any() {
                return None;
            }
            live.connection.clone()
        };
        Some(super::Leaving {
            calls: self.turns.running() + self.own.calls(),
            tasks: shared.map_or(0, |connection| connection.tasks()) + self.own.tasks(),
            ends_within: leaving.until.saturating_duration_since(Instant::now()),
        })
    }

    pub(super) fn listing(&self) -> Option<Arc<Listing>> {
        self.live.lock().listing.clone()
    }

    pub(super) fn kept_list(&self, method: &str) -> Option<KeptList> {
        let live = self.live.lock();
        let is_put_off = live.state == ServerState::Idle;
        is_put_off.then(|| {
            let items = live.lists.get(method).cloned();
            KeptList { is_whole: items.is_some(), items: items.unwrap_or_default() }
        })
    }

    pub(super) fn logs(&self, tenant: Option<&str>) -> String {
        self.stderr.text(tenant)
    }

    pub(super) fn restart(&self) {
        self.own.end();
        self.restart.notify_one();
    }

    /// Ends the server at once.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the server once its calls have ended, and with `keeps_tasks` the tasks that they began: in the longest time of a call.
    pub(super) fn leave(&self, keeps_tasks: bool) {
        let until = Instant::now() + self.entry.limits.call_timeout_max;
        self.leaving.get_or_init(|| Leaving { until, keeps_tasks });
        self.leave.cancel();
    }

    /// Returns whether it runs a task that a call of this principal may have begun.
    pub(super) fn has_task(&self, principal: &str, id: &str) -> bool {
        let shared = self.live.lock().connection.clone();
        shared.is_some_and(|connection| connection.has_task(id))
            || self.own.have_task(principal, id)
    }

    /// Returns whether a process of this number runs that takes calls of this principal.
    pub(super) fn has_process(&self, principal: &str, process: u64) -> bool {
        let shared = self.live.lock().connection.clone();
        shared.is_some_and(|connection| connection.is_to(process))
            || self.own.have_process(principal, process)
    }

    /// Returns the time until which tasks run on the connection that all share.
    fn tasks_until(&self) -> Option<Instant> {
        let shared = self.live.lock().connection.clone();
        shared.and_then(|connection| connection.tasks_until())
    }

    /// Sends a request.
    pub(super) async fn request(
        self: &Arc<Self>,
        mut request: Request,
        deadline: Instant,
    ) -> Result<Box<RawValue>, RequestError> {
        if let Some(problem) = &self.entry.waits_for {
            return Err(self.unavailable(problem, false));
        }
        let process = request.process;
        if process.is_some_and(|process| !self.has_process(&request.principal, process)) {
            return Err(no_such_task());
        }
        let limits = &self.entry.limits;
        let deadline = deadline.min(Instant::now() + limits.call_timeout_max);
        let is_list = LISTS.contains(&request.method.as_str());
        if let Some(authorizer) = self.principals_own(&request).await? {
            let asker = request.asker.take();
            let owned = Owned { asker, authorizer: Some(authorizer), is_list, process };
            return self.request_on_own(request, owned, deadline).await;
        }
        if matches!(limits.start, Start::PerUser(_)) {
            let owned = Owned { asker: request.asker.take(), authorizer: None, is_list, process };
            return self.request_on_own(request, owned, deadline).await;
        }
        if let Some(asker) = request.asker.take_if(|_| limits.own_connections > 0)
            && !self.connected(deadline).await?.is_modern()
        {
            let owned = Owned { asker: Some(asker), authorizer: None, is_list, process };
            return self.request_on_own(request, owned, deadline).await;
        }
        let turn = self.turns.take(&request.principal, deadline).await;
        let _turn = turn.map_err(|Busy| RequestError::Busy { retry_after: RETRY_AFTER })?;
        let connection = self.connected(deadline).await?;
        if process.is_some_and(|process| !connection.is_to(process)) {
            return Err(no_such_task());
        }
        let attempt = self.attempt()?;
        let outgoing = Outgoing {
            method: request.method,
            params: request.params,
            progress: request.progress,
            principal: Some(request.principal),
            asking: None,
            idle: limits.call_timeout,
            deadline,
            span: McpSpan::untraced(),
        };
        tell_sent(request.sent.as_deref(), &connection);
        let outcome = self.call(&connection, attempt, outgoing).await;
        outcome.map_err(|error| self.refusal(error))
    }

    fn attempt(&self) -> Result<Attempt<'_>, RequestError> {
        self.attempt_by(&self.circuit)
    }

    /// Lets a call through a circuit: the one that all calls of the server share, or a principal's.
    pub(super) fn attempt_by<'c>(
        &'c self,
        circuit: &'c Circuit,
    ) -> Result<Attempt<'c>, RequestError> {
        let attempt = circuit.attempt();
        attempt.ok_or_else(|| self.unavailable("its last calls failed one after another", false))
    }

    /// Sends a call of a host on a connection.
    pub(super) async fn call(
        &self,
        connection: &Connection,
        attempt: Attempt<'_>,
        mut outgoing: Outgoing,
    ) -> Result<Box<RawValue>, CallError> {
        self.trace(connection, &mut outgoing);
        let span = outgoing.span.clone();
        let outcome = connection.call(outgoing).await;
        traced::record(&span, &outcome);
        match &outcome {
            Ok(_) | Err(CallError::Server(_) | CallError::TooLarge(_)) => attempt.answered(),
            Err(CallError::Lost { .. }) => attempt.failed(),
            Err(CallError::Login | CallError::Timeout(_) | CallError::Scopes(_)) => {}
        }
        outcome
    }

    /// Returns the error of a call with the server's one credential. One that is not good any more leads to a login.
    pub(super) fn refusal(&self, error: CallError) -> RequestError {
        if matches!(error, CallError::Login) {
            self.login.notify_one();
        }
        match error {
            CallError::Server(error) => {
                RequestError::Server { code: error.code, message: error.message, data: error.data }
            }
            CallError::TooLarge(limit) => RequestError::TooLarge { limit },
            CallError::Timeout(after) => RequestError::Timeout { after },
            CallError::Login => RequestError::Unavailable {
                state: ServerState::NeedsLogin,
                problem: self.login_problem(),
                may_have_run: false,
            },
            CallError::Lost { problem, may_have_run } => self.unavailable(&problem, may_have_run),
            CallError::Scopes(message) => {
                RequestError::Server { code: FORBIDDEN, message, data: None }
            }
        }
    }

    pub(super) fn unavailable(&self, problem: &str, may_have_run: bool) -> RequestError {
        let state = self.live.lock().state;
        RequestError::Unavailable { state, problem: problem.to_owned(), may_have_run }
    }

    /// Waits for a connection while the server starts, for the time of a call without progress. A pause is ended, once.
    async fn connected(&self, deadline: Instant) -> Result<Arc<Connection>, RequestError> {
        let deadline = deadline.min(Instant::now() + self.entry.limits.call_timeout);
        let mut moves = self.moves.subscribe();
        loop {
            moves.mark_unchanged();
            if let Some(connection) = self.connection_or_refusal()? {
                return Ok(connection);
            }
            match tokio::time::timeout_at(deadline, moves.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(self.unavailable("it was ended", false)),
                Err(_) => return Err(self.unavailable("it is still starting", false)),
            }
        }
    }

    /// Returns the connection; `None` while there will be one soon.
    fn connection_or_refusal(&self) -> Result<Option<Arc<Connection>>, RequestError> {
        let mut live = self.live.lock();
        let connection = live.connection.as_ref().filter(|connection| !connection.has_ended());
        if let Some(connection) = connection {
            return Ok(Some(Arc::clone(connection)));
        }
        match live.state {
            // A connection that has just ended is noticed at once.
            ServerState::Starting | ServerState::Ready => Ok(None),
            ServerState::Idle => {
                self.hurry.notify_one();
                Ok(None)
            }
            ServerState::Waiting if !live.was_hurried => {
                live.was_hurried = true;
                self.hurry.notify_one();
                Ok(None)
            }
            state => Err(RequestError::Unavailable {
                state,
                problem: live
                    .problem
                    .as_ref()
                    .map_or_else(|| "it was ended".to_owned(), |problem| problem.told.clone()),
                may_have_run: false,
            }),
        }
    }

    fn move_to(&self, state: ServerState, change: impl FnOnce(&mut Live)) {
        {
            let mut live = self.live.lock();
            change(&mut live);
            live.state = state;
            live.since = SystemTime::now();
        }
        self.moves.send_modify(|moves| *moves += 1);
        self.surroundings.changed();
    }

    /// Keeps the server running until it is stopped.
    async fn run(self: Arc<Self>) {
        let tuning = self.surroundings.tuning;
        let pauses = self.entry.limits.pauses;
        let mut pause = pauses.first;
        if self.entry.waits_for.is_some() {
            self.ending().await;
            self.move_to(ServerState::Stopped, |_live| {});
            return;
        }
        loop {
            let end = match self.open().await {
                Ok(connection) => {
                    let ready = Instant::now();
                    let end = Box::pin(self.serve(&connection)).await;
                    self.live.lock().connection = None;
                    connection.shut_down(tuning.leave * 4).await;
                    if ready.elapsed() >= pauses.healthy_after {
                        pause = pauses.first;
                    }
                    end
                }
                Err(end) => end,
            };
            match end {
                End::Stop => break,
                End::Restart => continue,
                End::Idle => {
                    if !self.rests(Some(Duration::MAX)).await {
                        break;
                    }
                }
                End::Login => {
                    let problem = Some(self.login_problem().into());
                    self.move_to(ServerState::NeedsLogin, |live| live.problem = problem);
                    if !self.rests(None).await {
                        break;
                    }
                }
                End::Lost(problem) => {
                    self.move_to(ServerState::Waiting, |live| live.problem = Some(problem));
                    if !self.rests(Some(jittered(pause))).await {
                        break;
                    }
                    pause = (pause * 2).min(pauses.last);
                }
            }
        }
        self.move_to(ServerState::Stopped, |live| live.connection = None);
    }

    /// Waits for the end of a pause. Returns whether the server is to be started.
    async fn rests(&self, pause: Option<Duration>) -> bool {
        let paused = async {
            match pause {
                Some(pause) => tokio::select! {
                    () = tokio::time::sleep(pause) => {},
                    () = self.hurry.notified() => {},
                },
                None => match &self.authorizer {
                    Some(authorizer) => authorizer.until_changed().await,
                    None => std::future::pending().await,
                },
            }
        };
        tokio::select! {
            biased;
            () = self.ending() => false,
            () = self.restart.notified() => true,
            () = paused => true,
        }
    }

    /// Waits until the server is to end.
    async fn ending(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {},
            () = self.left(&self.turns, || self.tasks_until()) => {},
        }
    }

    /// Waits until the server is to end at once.
    pub(super) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Waits until the server is to end once its calls have, and those of these turns have, with the tasks that they began.
    pub(super) async fn left(&self, turns: &Turns, tasks_until: impl Fn() -> Option<Instant>) {
        self.leave.cancelled().await;
        let Some(leaving) = self.leaving.get() else { return };
        let begun_until = || tasks_until().filter(|_| leaving.keeps_tasks);
        // A call that still waits for a turn has its deadline.
        let _late = tokio::time::timeout_at(leaving.until, turns.idle(begun_until)).await;
    }

    /// Connects to the server and lists its tools.
    async fn open(&self) -> Result<Arc<Connection>, End> {
        self.move_to(ServerState::Starting, |live| live.starts += 1);
        let tuning = self.surroundings.tuning;
        let turn = self.unless_ended(self.spawn_turn()).await?;
        // The time of a start is its own: waiting for a turn takes none of it.
        let began = Instant::now();
        let until = began + self.entry.limits.start_timeout;
        let connecting = self.connect(ClientCapabilities::default(), None, None);
        let connecting = Box::pin(start_in(turn, tuning.spawn, connecting));
        let connection = self.before_end(until, connecting).await?;
        let connection = Arc::new(connection.map_err(|error| self.end_of(error))?);
        let listed = self.before_end(until, Box::pin(self.list_all(&connection))).await;
        let (listing, lists) =
            match listed.and_then(|listed| listed.map_err(|error| self.end_of(error))) {
                Ok(listed) => listed,
                Err(end) => {
                    connection.shut_down(tuning.leave * 4).await;
                    return Err(end);
                }
            };
        self.circuit.reset();
        let is_put_off = self.is_put_off();
        let state = if is_put_off { ServerState::Idle } else { ServerState::Ready };
        self.move_to(state, |live| {
            live.protocol = Some(listing.identity.protocol.clone());
            live.transport = connection.transport();
            live.problem = None;
            live.started_in = Some(began.elapsed());
            live.was_hurried = false;
            live.connection = (!is_put_off).then(|| Arc::clone(&connection));
            live.lists = lists;
            live.take(listing);
        });
        if is_put_off {
            connection.shut_down(tuning.leave * 4).await;
            return Err(End::Idle);
        }
        Ok(connection)
    }

    /// Returns what follows from the failure of a start.
    fn end_of(&self, error: UpstreamError) -> End {
        let is_process = matches!(self.entry.upstream, Upstream::Process(_));
        match error {
            UpstreamError::Handshake { asks_for_login: true, .. } | UpstreamError::Login { .. } => {
                End::Login
            }
            UpstreamError::Handshake { said: ref none, .. } if is_process && none.is_empty() => {
                let name = &self.entry.name;
                let problem =
                    format!("{error}; `toolgate gateway logs {name}` shows what it writes");
                End::Lost(problem.into())
            }
            error => End::Lost(Problem::from(&error)),
        }
    }

    /// Returns whether the server ends now that its tools are listed, and is started by the first call, or the first of each
    /// principal.
    fn is_put_off(&self) -> bool {
        match self.entry.limits.start {
            Start::Eager => false,
            Start::Lazy => {
                let was_ready = self.live.lock().protocol.is_some();
                !was_ready && self.turns.running() == 0
            }
            Start::PerUser(_) => true,
        }
    }

    /// Returns what a part of the start returns, unless the server is to end, to start anew, or has had its time.
    async fn before_end<T>(&self, until: Instant, part: impl Future<Output = T>) -> Result<T, End> {
        let done = self.unless_ended(tokio::time::timeout_at(until, part)).await?;
        done.map_err(|_late| {
            let seconds = self.entry.limits.start_timeout.as_secs_f64();
            let said = self.stderr.said();
            End::Lost(format!("it did not start within {seconds} s{said}").into())
        })
    }

    /// Returns what a part of the start returns, unless the server is to end, or to start anew.
    async fn unless_ended<T>(&self, part: impl Future<Output = T>) -> Result<T, End> {
        tokio::select! {
            biased;
            () = self.ending() => Err(End::Stop),
            () = self.restart.notified() => Err(End::Restart),
            done = part => Ok(done),
        }
    }

    /// Connects to the server, with a principal's own credential if there is one, and declares what it may ask. Its era is the one
    /// that is remembered; if that is wrong, it is asked for each. `owner` is whose the connection is, if it is not shared.
    pub(super) async fn connect(
        &self,
        capabilities: ClientCapabilities,
        own: Option<Arc<Authorizer>>,
        owner: Option<Arc<ConnectionOwner>>,
    ) -> Result<Connection, UpstreamError> {
        let mut recalled = self.surroundings.eras.recall(&self.entry.upstream);
        let told = Told { owner, ..self.told.clone() };
        let opened =
            self.connect_by(recalled.era(), capabilities.clone(), own.clone(), told.clone()).await;
        let opened = match opened {
            Err(UpstreamError::Handshake { asks_for_login: false, .. })
                if recalled.era().is_some() =>
            {
                recalled.forget();
                self.connect_by(None, capabilities, own, told).await
            }
            opened => opened,
        };
        match &opened {
            Ok(connection) => {
                let era = if connection.is_modern() { Era::Modern } else { Era::Older };
                recalled.confirm(era, &connection.identity());
            }
            // It was not let in so far.
            Err(UpstreamError::Handshake { asks_for_login: true, .. }) => recalled.keep(),
            Err(_) => {}
        }
        opened
    }

    async fn connect_by(
        &self,
        era: Option<Era>,
        capabilities: ClientCapabilities,
        own: Option<Arc<Authorizer>>,
        told: Told,
    ) -> Result<Connection, UpstreamError> {
        let limits = ConnectionLimits {
            handshake: self.entry.limits.start_timeout,
            process: ProcessLimits {
                result_bytes_max: self.entry.limits.result_bytes_max,
                leave: self.surroundings.tuning.leave,
            },
            relisten: self.surroundings.tuning.relisten,
        };
        let stderr = match &told.owner {
            Some(owner) => self.stderr.of_principal(&owner.principal),
            None => self.stderr.clone(),
        };
        let client = client(capabilities);
        let authorizer = own.or_else(|| self.authorizer.clone());
        let upstream = homes::upstream_of(&self.entry, told.owner.as_deref())?;
        Connection::open_within(&upstream, client, limits, stderr, told, authorizer, era).await
    }

    /// Returns what is to be done where a login is missing.
    fn login_problem(&self) -> String {
        let Some(authorizer) = &self.authorizer else {
            return "it asks for a login (HTTP 401): see `auth` of its entry".to_owned();
        };
        let unreadable = authorizer.unreadable();
        let of_stored =
            unreadable.map(|problem| format!(" (of the one that is stored: {problem})"));
        let name = &self.entry.name;
        format!(
            "it asks for a login: toolgate gateway login {name}{}",
            of_stored.unwrap_or_default()
        )
    }

    /// Lists the tools of a server that starts, and what else is kept of one that is put off.
    async fn list_all(
        &self,
        connection: &Connection,
    ) -> Result<(Arc<Listing>, KeptLists), UpstreamError> {
        let listing = self.list(connection).await?;
        let lists = if self.is_put_off() {
            put_off::lists(connection, &self.entry.name).await
        } else {
            KeptLists::new()
        };
        Ok((listing, lists))
    }

    async fn list(&self, connection: &Connection) -> Result<Arc<Listing>, UpstreamError> {
        let capabilities = connection.capabilities();
        // A server without tools may have resources or prompts.
        let has_tools = capabilities.get("tools").is_some();
        let mut tools = Vec::new();
        if has_tools {
            let list = connection.list_tools().await?;
            self.live.lock().ttl = list.ttl;
            tools = list.tools;
        }
        // Elsewhere no headers are sent.
        let has_headers = connection.is_modern() && connection.transport() == "http";
        let findings = if has_headers { left_out(&mut tools) } else { Vec::new() };
        Ok(Arc::new(Listing {
            server: self.entry.name.clone(),
            identity: connection.identity(),
            instructions: connection.instructions(),
            capabilities,
            tools,
            findings,
        }))
    }

    /// Follows a connection until it ends.
    async fn serve(&self, connection: &Connection) -> End {
        tokio::select! {
            biased;
            () = self.ending() => End::Stop,
            () = self.restart.notified() => End::Restart,
            () = self.login.notified() => End::Login,
            () = connection.until_ended() => {
                End::Lost(format!("it closed the connection{}", self.stderr.said()).into())
            }
            problem = self.probe(connection) => End::Lost(problem.into()),
            () = self.follow(connection) => End::Restart,
            () = self.follow_resources(connection) => End::Restart,
        }
    }

    /// Keeps the listing in step with the server.
    async fn follow(&self, connection: &Connection) {
        let tuning = self.surroundings.tuning;
        let mut changes = connection.tool_changes();
        loop {
            let poll = poll(self.live.lock().ttl, tuning.poll);
            let told = tokio::time::timeout(jittered(poll), changes.changed()).await;
            // Errors are told by the next call, or by the probe.
            if let Ok(listing) = self.list(connection).await {
                let mut live = self.live.lock();
                let is_changed = live.take(listing);
                drop(live);
                if is_changed {
                    self.surroundings.changed();
                }
                if is_changed || told.is_ok() {
                    self.told.changed(Change::Tools);
                }
            }
            tokio::time::sleep(tuning.list_gap).await;
        }
    }

    /// Asks a silent server whether it is there, also while calls wait, and returns the problem when it is not.
    async fn probe(&self, connection: &Connection) -> String {
        let silence = self.surroundings.tuning.silence;
        let method = if connection.is_modern() { "server/discover" } else { "ping" };
        loop {
            let heard = connection.heard();
            tokio::time::sleep_until(heard + silence).await;
            if connection.heard() > heard {
                continue;
            }
            let time = self.probe_time();
            let outgoing = Outgoing {
                method: method.to_owned(),
                params: Map::new(),
                progress: None,
                principal: None,
                asking: None,
                idle: time,
                deadline: Instant::now() + time,
                span: McpSpan::untraced(),
            };
            match connection.call(outgoing).await {
                Ok(_) | Err(CallError::Server(_)) => {}
                // What it says of its calls shows that it is there.
                Err(CallError::Timeout(_)) if connection.heard() > heard => {}
                Err(error) => return format!("it does not answer {method}: {error}"),
            }
        }
    }

    /// Returns the time that a server has to answer whether it is there. One that runs a call may answer nothing else meanwhile:
    /// it has the time of a call, so that each call that was sent before the question has had its own.
    fn probe_time(&self) -> Duration {
        let probe = self.surroundings.tuning.probe;
        let is_asked = self.turns.running() > 0;
        if is_asked { probe.max(self.entry.limits.call_timeout) } else { probe }
    }
}

impl Live {
    /// Takes a new listing, and returns whether it differs. An empty one after tools counts when it comes again.
    fn take(&mut self, listing: Arc<Listing>) -> bool {
        let kept = self.listing.as_ref();
        let had_tools = kept.is_some_and(|kept| !kept.tools.is_empty());
        let is_first_empty = listing.tools.is_empty() && had_tools && !self.was_emptied;
        self.was_emptied = is_first_empty;
        let is_changed = !is_first_empty && !kept.is_some_and(|kept| kept.is_same(&listing));
        if is_changed {
            self.listing = Some(listing);
        }
        is_changed
    }
}

impl Listing {
    fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.tools.iter().zip(&other.tools);
        self.tools.len() == other.tools.len()
            && pairs.all(|(tool, other)| tool.get() == other.get())
            && self.identity == other.identity
            && self.instructions == other.instructions
            && self.capabilities == other.capabilities
    }
}

/// Tells that a request is sent now.
pub(super) fn tell_sent(sent: Option<&Sent>, connection: &Connection) {
    if let Some(sent) = sent {
        sent.tell(connection.process());
    }
}

/// Returns the error for a task whose process is not there. A process that was started since may have another of the same ID.
pub(super) fn no_such_task() -> RequestError {
    let message = "there is no such task here any more: the process that ran it has ended";
    RequestError::Server { code: INVALID_PARAMS, message: message.to_owned(), data: None }
}

/// Takes out the tools whose `x-mcp-header` breaks the rule, and returns what is wrong with them.
fn left_out(tools: &mut Vec<Box<RawValue>>) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Listed {
        #[serde(default)]
        name: String,
        #[serde(default, rename = "inputSchema")]
        schema: serde_json::Value,
    }
    let mut findings = Vec::new();
    tools.retain(|raw| {
        // Most tools have none; a name may be written with escapes. What is no tool is for the catalog to refuse.
        let may_have = raw.get().contains("x-mcp-header") || raw.get().contains("\\u");
        let Some(Ok(listed)) = may_have.then(|| serde_json::from_str::<Listed>(raw.get())) else {
            return true;
        };
        let checked = HeaderParameters::of(&listed.schema);
        findings
            .extend(checked.as_ref().err().map(|problem| format!("{}: {problem}", listed.name)));
        checked.is_ok()
    });
    findings
}

/// Returns the source of a server's tokens.
fn authorizer(entry: &Entry, surroundings: &Surroundings) -> Option<Arc<Authorizer>> {
    let Upstream::Http(endpoint) = &entry.upstream else { return None };
    let store = surroundings.credentials.as_ref();
    // Without a client for HTTP the start fails as well, and says why.
    Authorizer::new(endpoint, &entry.name, store).ok().flatten()
}

/// Returns the time after which tools are listed though no change was told: as the server says, within bounds, or the usual
/// one.
fn poll(ttl: Option<Duration>, usual: Duration) -> Duration {
    ttl.map_or(usual, |ttl| ttl.clamp(TTL_MIN, TTL_MAX))
}

fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.9 + 0.2 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_kept_as_long_as_its_server_says_within_bounds() {
        let usual = Duration::from_secs(300);
        let seconds = |ttl: Option<u64>| poll(ttl.map(Duration::from_secs), usual).as_secs();
        let polls = [None, Some(0), Some(90), Some(86_400)].map(seconds);
        assert_eq!(polls, [300, 30, 90, 3_600]);
    }
}
