//! Connections of hosts' own. A server of a revision before 2026-07-28 learns once, in the handshake, what it may ask, and a
//! process does not say which call it asks for. So each host that can be asked has a connection that declares what this host
//! does; a process runs one call of it at a time, and a URL as many as on the shared connection. Once these wait for answers of
//! people, the host's next call has another connection. A principal whose credential is its own has a connection of its own as
//! well, and so has each principal of a server that is started for each.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::ClientCapabilities;
use serde_json::value::RawValue;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_telemetry::McpSpan;

use super::circuit::Circuit;
use super::server::{RETRY_AFTER, Server, tell_sent};
use super::spawning::start_in;
use super::turns::{Busy, Turn, Turns};
use super::{Limits, PerUser, Request, RequestError, Start};
use crate::connection::{CallError, Connection, ConnectionOwner, Outgoing};
use crate::credentials::Authorizer;
use crate::error::UpstreamError;
use crate::process::tenant_of;
use crate::question::{Asker, Asking};
use crate::target::Upstream;

/// Silence after which a host's own connection is closed.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Most connections of one principal, and of all, as multiples of [`super::Limits::own_connections`].
const OF_PRINCIPAL: usize = 2;
const OF_ALL: usize = 8;

/// Host, and the number of one of its connections.
type Key = (String, usize);

/// Connections of hosts' own to one server.
#[derive(Debug)]
pub(super) struct OwnConnections {
    open: Mutex<HashMap<Key, Arc<Own>>>,
    bounds: Bounds,
    /// Places of processes, where each principal has its own; one that is ending keeps its place.
    places: Option<Arc<Semaphore>>,
}

/// Most connections at a time.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Without those whose calls all wait for answers.
    running: usize,
    of_principal: usize,
    in_all: usize,
    /// Silence after which one is closed.
    idle: Duration,
}

/// Part of a request that makes its connection its own, beside a server that is started for each principal.
pub(super) struct Owned {
    /// Host that may be asked.
    pub(super) asker: Option<Asker>,
    /// Source of the principal's own tokens, if it has such.
    pub(super) authorizer: Option<Arc<Authorizer>>,
}

/// Connection of one host, or of one principal.
#[derive(Debug)]
struct Own {
    /// Principal, and the host that may be asked on it, if one may.
    owner: Arc<ConnectionOwner>,
    authorizer: Option<Arc<Authorizer>>,
    capabilities: ClientCapabilities,
    turns: Turns,
    /// Counts failures of this connection alone; `None` where those of all connections count together.
    circuit: Option<Circuit>,
    /// Place of its process, if such are counted.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    /// True for a process that asks: it does not say which call it asks for.
    runs_one: bool,
    /// Calls at a time.
    concurrency: usize,
    /// Number of calls that wait for answers.
    waiting: watch::Sender<usize>,
    /// Opened by the first call, and again after it was lost.
    connection: Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>,
    /// The same for whoever tells it something: who holds the lock above may keep a call from ending the connection.
    opened: Mutex<Weak<Connection>>,
    /// True while the server is to be told of roots, and nobody has begun to.
    has_new_roots: AtomicBool,
    /// Held by whoever tells it of roots.
    telling: tokio::sync::Mutex<()>,
    usage: Mutex<Usage>,
    ended: CancellationToken,
}

#[derive(Debug)]
struct Usage {
    calls: usize,
    last: Instant,
    /// True once it takes no more calls, and ends with the last.
    is_leaving: bool,
}

/// Numbers of connections of tenants, and of their principals.
#[derive(Default)]
struct Shares<'c> {
    tenants: HashMap<&'c str, usize>,
    principals: HashMap<&'c str, usize>,
}

/// Use of a host's connection by a call.
struct Using(Arc<Own>);

/// Call of a process that has no answer yet. If it never has one, the process is not used again: a question that comes late
/// would pass for one of the next call.
struct Unanswered<'a> {
    server: &'a Server,
    /// `None` once it has an answer, or where a process runs several calls.
    own: Option<&'a Arc<Own>>,
}

/// Place of a host's connection, held while one is opened or ended.
type Held = OwnedMutexGuard<Option<Arc<Connection>>>;

impl Bounds {
    fn of(limits: &Limits) -> Self {
        match limits.start {
            Start::PerUser(PerUser { processes, of_principal, idle, .. }) => {
                Self { running: processes, of_principal, in_all: processes, idle }
            }
            Start::Eager | Start::Lazy => Self {
                running: limits.own_connections,
                of_principal: limits.own_connections * OF_PRINCIPAL,
                in_all: limits.own_connections * OF_ALL,
                idle: KEPT,
            },
        }
    }
}

impl OwnConnections {
    /// Makes room for connections within the bounds.
    pub(super) fn of(limits: &Limits) -> Self {
        let bounds = Bounds::of(limits);
        let is_counted = matches!(limits.start, Start::PerUser(_));
        let places = is_counted.then(|| Arc::new(Semaphore::new(bounds.in_all)));
        Self { open: Mutex::default(), bounds, places }
    }

    /// Waits for the place of a process, if such are counted.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(self.places.as_ref()?).acquire_owned().await.ok()
    }

    /// Ends all of them.
    pub(super) fn end(&self) {
        for (_, own) in self.open.lock().drain() {
            own.ended.cancel();
        }
    }

    /// Ends those that take their tokens from here.
    pub(super) fn end_of(&self, authorizer: &Arc<Authorizer>) {
        self.open.lock().retain(|_, own| {
            let is_its =
                own.authorizer.as_ref().is_some_and(|source| Arc::ptr_eq(source, authorizer));
            if is_its {
                own.ended.cancel();
            }
            !is_its
        });
    }

    /// Makes room for one more of a principal. Returns false if all are in use.
    fn make_room(&self, connections: &mut HashMap<Key, Arc<Own>>, principal: &str) -> bool {
        let bounds = self.bounds;
        let shares = Shares::of(connections);
        let running = connections.values().filter(|own| !own.is_waiting()).count();
        let has_many = shares.of_principal(principal) >= bounds.of_principal;
        if !has_many && running < bounds.running && connections.len() < bounds.in_all {
            return true;
        }
        let idle = connections
            .iter()
            .filter(|(_, own)| own.is_idle() && (!has_many || own.owner.principal == principal));
        let leaving = shares.first(idle).or_else(|| {
            // Without a place of its own, one more would run until the other has ended.
            if has_many || self.places.is_none() {
                return None;
            }
            // What is taken from a tenant leaves it no fewer than the other has then.
            let enough = shares.of_tenant(principal) + 1;
            let larger = || {
                connections
                    .iter()
                    .filter(|(_, own)| shares.of_tenant(&own.owner.principal) > enough)
            };
            // A task gives way last: it is lost, but nobody can hold all places with tasks.
            let without_tasks = shares.first(larger().filter(|(_, own)| !own.runs_tasks()));
            without_tasks.or_else(|| shares.first(larger()))
        });
        let leaving = leaving.and_then(|key| connections.remove(&key));
        if let Some(own) = &leaving {
            own.end_after_calls();
        }
        leaving.is_some()
    }
}

impl<'c> Shares<'c> {
    fn of(connections: &'c HashMap<Key, Arc<Own>>) -> Self {
        let mut shares = Self::default();
        for own in connections.values() {
            let principal = &*own.owner.principal;
            *shares.principals.entry(principal).or_default() += 1;
            *shares.tenants.entry(tenant_of(principal)).or_default() += 1;
        }
        shares
    }

    fn of_principal(&self, principal: &str) -> usize {
        self.principals.get(principal).copied().unwrap_or_default()
    }

    /// Returns the share of a principal's tenant.
    fn of_tenant(&self, principal: &str) -> usize {
        self.tenants.get(tenant_of(principal)).copied().unwrap_or_default()
    }

    /// Returns which of some connections gives way first: of the tenant that has most, and there of the principal who has most, the
    /// one that was used least lately.
    fn first<'a>(&self, some: impl Iterator<Item = (&'a Key, &'a Arc<Own>)>) -> Option<Key> {
        let first = some.min_by_key(|(_, own)| {
            let principal = &*own.owner.principal;
            let shares = (self.of_tenant(principal), self.of_principal(principal));
            (Reverse(shares), own.usage.lock().last)
        });
        first.map(|(key, _)| key.clone())
    }
}

impl Own {
    /// Returns whether all calls that it may run wait for answers.
    fn is_waiting(&self) -> bool {
        *self.waiting.borrow() >= self.concurrency
    }

    /// Returns whether nobody uses it: no call runs, and no task.
    fn is_idle(&self) -> bool {
        self.usage.lock().calls == 0 && !self.runs_tasks()
    }

    /// Returns whether its process runs a task behind the answer of the call that began it.
    fn runs_tasks(&self) -> bool {
        self.opened.lock().upgrade().is_some_and(|connection| connection.runs_tasks())
    }

    /// Ends it once its calls have. It must be open to no more of them.
    fn end_after_calls(&self) {
        let mut usage = self.usage.lock();
        usage.is_leaving = true;
        if usage.calls == 0 {
            self.ended.cancel();
        }
    }

    fn tells_of_roots(&self) -> bool {
        self.capabilities.roots.as_ref().is_some_and(|roots| roots.list_changed == Some(true))
    }

    /// Tells the server once of all changes of roots until now.
    async fn tell_of_roots(&self) {
        let _turn = self.telling.lock().await;
        self.has_new_roots.store(false, Ordering::Release);
        // One that is being opened has not asked yet.
        let connection = self.opened.lock().upgrade();
        if let Some(connection) = connection {
            connection.roots_changed().await;
        }
    }

    /// Waits until all calls that it may run wait for answers.
    async fn until_waiting(&self) {
        let mut waiting = self.waiting.subscribe();
        // The sender lives as long as this does.
        let _waiting = waiting.wait_for(|waiting| *waiting >= self.concurrency).await;
    }
}

impl Using {
    fn of(own: &Arc<Own>) -> Self {
        own.usage.lock().calls += 1;
        Self(Arc::clone(own))
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut usage = self.0.usage.lock();
        usage.calls -= 1;
        usage.last = Instant::now();
        if usage.is_leaving && usage.calls == 0 {
            self.0.ended.cancel();
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Some(own) = self.own else { return };
        // Nobody else has it: a process runs one call at a time. Whoever holds the place ends it already.
        if let Ok(held) = Arc::clone(&own.connection).try_lock_owned() {
            self.server.end_held(held);
        }
    }
}

impl Server {
    /// Sends a request whose host may be asked, or whose credential is its principal's own, on a connection of its own.
    pub(super) async fn request_on_own(
        self: &Arc<Self>,
        request: Request,
        owned: Owned,
        deadline: Instant,
    ) -> Result<Box<RawValue>, RequestError> {
        let turn = self.turn_on_own(&request.principal, &owned, deadline).await;
        let (using, _turn) =
            turn.map_err(|Busy| RequestError::Busy { retry_after: RETRY_AFTER })?;
        let circuit = using.0.circuit.as_ref().unwrap_or(&self.circuit);
        let attempt = self.attempt_by(circuit)?;
        let connection = match self.own_connection(&using.0, deadline).await {
            Ok(connection) => connection,
            // The server is there, or has not been asked.
            Err(refusal @ (RequestError::Credential { .. } | RequestError::Busy { .. })) => {
                return Err(refusal);
            }
            Err(error) => {
                attempt.failed();
                return Err(error);
            }
        };
        let outgoing = Outgoing {
            method: request.method,
            params: request.params,
            progress: request.progress,
            principal: Some(request.principal),
            asking: owned.asker.map(|asker| Asking {
                questions: asker.questions,
                waiting: using.0.waiting.clone(),
            }),
            idle: self.entry.limits.call_timeout,
            deadline,
            span: McpSpan::untraced(),
        };
        let own = using.0.runs_one.then_some(&using.0);
        let mut unanswered = Unanswered { server: self, own };
        tell_sent(request.sent.as_deref());
        let since = Instant::now();
        let outcome = self.call(&connection, attempt, outgoing).await;
        match &outcome {
            Ok(_) | Err(CallError::Server(_)) => unanswered.own = None,
            Err(CallError::Timeout(_)) => self.end_silent(&using.0, &connection, since),
            Err(_) => {}
        }
        outcome.map_err(|error| match &owned.authorizer {
            Some(_) => self.refusal_of_own(error),
            None => self.refusal(error),
        })
    }

    /// Tells the server on the connections of a host that its roots have changed, if it was told on them that the host tells so.
    pub(super) fn roots_changed(&self, principal: &str, host: &str) {
        let is_concerned = |own: &&Arc<Own>| {
            let ConnectionOwner { principal: its, host: asked } = &*own.owner;
            its == principal && asked.as_deref() == Some(host) && own.tells_of_roots()
        };
        let concerned: Vec<Arc<Own>> =
            self.own.open.lock().values().filter(is_concerned).cloned().collect();
        for own in concerned {
            if own.has_new_roots.swap(true, Ordering::AcqRel) {
                continue;
            }
            self.surroundings.tasks.spawn(async move { own.tell_of_roots().await });
        }
    }

    /// Waits for a turn on a connection of a host. A connection whose calls begin to wait for answers meanwhile is left for
    /// another.
    async fn turn_on_own(
        self: &Arc<Self>,
        principal: &str,
        owned: &Owned,
        deadline: Instant,
    ) -> Result<(Using, Turn), Busy> {
        loop {
            let using = self.own(principal, owned).ok_or(Busy)?;
            let turn = tokio::select! {
                biased;
                turn = using.0.turns.take(principal, deadline) => Some(turn?),
                () = using.0.until_waiting() => None,
            };
            if let Some(turn) = turn {
                return Ok((using, turn));
            }
        }
    }

    /// Returns a connection of a host whose calls do not all wait for answers; `None` if there are as many as may be, and all
    /// are in use.
    fn own(self: &Arc<Self>, principal: &str, owned: &Owned) -> Option<Using> {
        let Owned { asker, authorizer } = owned;
        let host = asker.as_ref().map(|asker| &*asker.host);
        let capabilities = asker.as_ref().map(|asker| asker.capabilities.clone());
        // The same source of tokens is the same principal with the same token, as long as it is held here.
        let source = authorizer.as_ref().map(|source| Arc::as_ptr(source) as usize);
        // JSON, so that no name can look like another's.
        let host = serde_json::json!([principal, host, capabilities, source]).to_string();
        let limits = &self.entry.limits;
        let mut connections = self.own.open.lock();
        let mut key = (host, 0);
        while let Some(own) = connections.get(&key) {
            if !own.is_waiting() {
                return Some(Using::of(own));
            }
            key.1 += 1;
        }
        if !self.own.make_room(&mut connections, principal) {
            return None;
        }
        let runs_one = asker.is_some() && matches!(self.entry.upstream, Upstream::Process(_));
        let concurrency = if runs_one { 1 } else { limits.concurrency };
        let is_for_each = matches!(limits.start, Start::PerUser(_));
        let own = Arc::new(Own {
            owner: Arc::new(ConnectionOwner {
                principal: principal.to_owned(),
                host: asker.as_ref().map(|asker| asker.host.clone()),
            }),
            authorizer: authorizer.clone(),
            circuit: is_for_each.then(|| Circuit::new(self.surroundings.tuning.circuit)),
            place: Mutex::default(),
            runs_one,
            concurrency,
            waiting: watch::Sender::new(0),
            capabilities: serde_json::from_value(capabilities.unwrap_or_default())
                .unwrap_or_default(),
            turns: Turns::new(concurrency, limits.queue),
            connection: Arc::default(),
            opened: Mutex::default(),
            has_new_roots: AtomicBool::new(false),
            telling: tokio::sync::Mutex::default(),
            usage: Mutex::new(Usage { calls: 0, last: Instant::now(), is_leaving: false }),
            ended: CancellationToken::new(),
        });
        let using = Using::of(&own);
        connections.insert(key.clone(), Arc::clone(&own));
        drop(connections);
        let server = Arc::clone(self);
        self.surroundings.tasks.spawn(async move { server.keep_own(key, own).await });
        Some(using)
    }

    /// Ends a process that said nothing for the whole time of a call, as nobody asks it whether it is there. No other starts in its
    /// place before it has ended. `since` is when the call was sent.
    fn end_silent(&self, own: &Arc<Own>, silent: &Arc<Connection>, since: Instant) {
        let is_process = matches!(self.entry.upstream, Upstream::Process(_));
        let had_its_time = since.elapsed() >= self.entry.limits.call_timeout;
        if !is_process || !had_its_time || silent.heard() >= since {
            return;
        }
        // Whoever holds it opens another, or has just found this one and ends it when it is silent again.
        let Ok(held) = Arc::clone(&own.connection).try_lock_owned() else { return };
        if held.as_ref().is_some_and(|open| Arc::ptr_eq(open, silent)) {
            self.end_held(held);
        }
    }

    /// Ends a connection. No other is opened in its place before its process has ended.
    fn end_held(&self, mut held: Held) {
        let Some(ending) = held.take() else { return };
        let is_process = matches!(self.entry.upstream, Upstream::Process(_));
        // What is not waited for ends when it is dropped. Outside of the runtime nothing can be.
        if !is_process || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let time = self.surroundings.tuning.leave * 4;
        self.surroundings.tasks.spawn(async move {
            ending.shut_down(time).await;
            drop(held);
        });
    }

    /// Returns the open connection of a host, or else its place, once the process of the one before has ended.
    async fn open_or_held(&self, own: &Own) -> Result<Arc<Connection>, Held> {
        loop {
            let held = Arc::clone(&own.connection).lock_owned().await;
            match &*held {
                None => return Err(held),
                Some(open) if !open.has_ended() => return Ok(Arc::clone(open)),
                // What has closed its output may still run.
                Some(_) => self.end_held(held),
            }
        }
    }

    /// Returns the open connection of a host, which it opens if need be.
    async fn own_connection(
        &self,
        own: &Own,
        deadline: Instant,
    ) -> Result<Arc<Connection>, RequestError> {
        let opening = async {
            let mut held = match self.open_or_held(own).await {
                Ok(open) => return Ok(open),
                Err(held) => held,
            };
            let opened = Arc::new(self.open_own(own).await?);
            *own.opened.lock() = Arc::downgrade(&opened);
            *held = Some(Arc::clone(&opened));
            Ok(opened)
        };
        let failed = |problem: &str| Err(self.unavailable(problem, false));
        tokio::select! {
            biased;
            () = own.ended.cancelled() => failed("it was ended"),
            () = self.stopped() => failed("it was ended"),
            opened = Box::pin(opening) => opened,
            () = tokio::time::sleep_until(deadline) => failed("it did not start in time"),
        }
    }

    /// Opens a connection of a host.
    async fn open_own(&self, own: &Own) -> Result<Connection, RequestError> {
        if own.place.lock().is_none() {
            let longest = self.entry.limits.call_timeout;
            let place = tokio::time::timeout(longest, self.own.place()).await;
            let place = place.map_err(|_late| RequestError::Busy { retry_after: RETRY_AFTER })?;
            *own.place.lock() = place;
        }
        let turn = self.spawn_turn().await;
        let owner = Some(Arc::clone(&own.owner));
        let opened = self.connect(own.capabilities.clone(), own.authorizer.clone(), owner);
        let opened = start_in(turn, self.surroundings.tuning.spawn, opened).await;
        opened.map_err(|error| match &own.authorizer {
            Some(_) => self.refusal_to_connect(&error),
            None => {
                if matches!(error, UpstreamError::Home { .. }) {
                    let ConnectionOwner { principal, .. } = &*own.owner;
                    let server = &self.entry.name;
                    tracing::warn!(server, principal, %error, "a caller's process can't start");
                }
                self.unavailable(&error.told(), false)
            }
        })
    }

    /// Keeps a host's connection until it is silent for long, or the server ends.
    async fn keep_own(&self, key: Key, own: Arc<Own>) {
        loop {
            let until = own.usage.lock().last + self.own.bounds.idle;
            tokio::select! {
                biased;
                () = self.stopped() => break,
                () = own.ended.cancelled() => break,
                () = self.left(&own.turns) => break,
                () = tokio::time::sleep_until(until) => {}
            }
            if self.forget_silent(&key, &own, until) {
                break;
            }
        }
        self.forget(&key, &own);
        let connection = own.connection.lock().await.take();
        if let Some(connection) = connection {
            connection.shut_down(self.surroundings.tuning.leave * 4).await;
        }
        own.place.lock().take();
    }

    /// Forgets a host's connection that neither a call nor a task has used since; returns whether it did.
    fn forget_silent(&self, key: &Key, own: &Arc<Own>, until: Instant) -> bool {
        let mut connections = self.own.open.lock();
        let is_idle = own.is_idle();
        let mut usage = own.usage.lock();
        let is_silent = is_idle && usage.last + self.own.bounds.idle <= until;
        if is_silent && connections.get(key).is_some_and(|kept| Arc::ptr_eq(kept, own)) {
            connections.remove(key);
        }
        if !is_idle {
            usage.last = usage.last.max(until);
        }
        is_silent
    }

    fn forget(&self, key: &Key, own: &Arc<Own>) {
        let mut connections = self.own.open.lock();
        if connections.get(key).is_some_and(|kept| Arc::ptr_eq(kept, own)) {
            connections.remove(key);
        }
        own.ended.cancel();
    }
}
