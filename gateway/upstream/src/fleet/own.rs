//! Connections of hosts' own. A server of a revision before 2026-07-28 learns once, in the handshake, what it may ask, and a
//! process does not say which call it asks for. So each host that can be asked has a connection that declares what this host
//! does; a process runs one call of it at a time, and a URL as many as on the shared connection. Once these wait for answers of
//! people, the host's next call has another connection. A principal whose credential is its own has a connection of its own as
//! well, and so has each principal of a server that is started for each.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::model::ClientCapabilities;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_telemetry::McpSpan;

use super::circuit::Circuit;
use super::server::{RETRY_AFTER, Server, no_such_task, tell_sent};
use super::turns::{Busy, Turn, Turns};
use super::{Limits, Request, RequestError, Start};
use crate::connection::{CallError, Connection, ConnectionOwner, Outgoing};
use crate::credentials::Authorizer;
use crate::question::{Asker, Asking};
use crate::target::Upstream;

mod credentials;
mod hosts;
mod life;
mod principals;

use hosts::{Unanswered, last_used};
use principals::Bounds;

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

/// Part of a request that makes its connection its own, beside a server that is started for each principal.
pub(super) struct Owned {
    /// Host that may be asked.
    pub(super) asker: Option<Asker>,
    /// Source of the principal's own tokens, if it has such.
    pub(super) authorizer: Option<Arc<Authorizer>>,
    /// True for a list, which is to say what the calls of the principal work with.
    pub(super) is_list: bool,
    /// Process that runs the task that the request is about, if it is one's.
    pub(super) process: Option<u64>,
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

/// Use of a host's connection by a call.
struct Using(Arc<Own>);

impl OwnConnections {
    /// Makes room for connections within the bounds.
    pub(super) fn of(limits: &Limits) -> Self {
        let bounds = Bounds::of(limits);
        let is_counted = matches!(limits.start, Start::PerUser(_));
        let places = is_counted.then(|| Arc::new(Semaphore::new(bounds.in_all)));
        Self { open: Mutex::default(), bounds, places }
    }

    /// Returns whether one of a principal's runs a task.
    pub(super) fn have_task(&self, principal: &str, id: &str) -> bool {
        let open = self.open.lock();
        open.values().any(|own| own.owner.principal == principal && own.has_task(id))
    }

    /// Returns whether one of a principal's is to this process, which runs.
    pub(super) fn have_process(&self, principal: &str, process: u64) -> bool {
        let open = self.open.lock();
        open.values().any(|own| own.owner.principal == principal && own.is_to(process))
    }

    /// Returns whether there are any.
    pub(super) fn any(&self) -> bool {
        !self.open.lock().is_empty()
    }

    /// Returns the number of calls that run on them.
    pub(super) fn calls(&self) -> usize {
        self.open.lock().values().map(|own| own.usage.lock().calls).sum()
    }

    /// Returns the number of tasks that they run.
    pub(super) fn tasks(&self) -> usize {
        self.open.lock().values().map(|own| own.tasks()).sum()
    }

    /// Ends all of them.
    pub(super) fn end(&self) {
        for (_, own) in self.open.lock().drain() {
            own.ended.cancel();
        }
    }
}

impl Own {
    /// Returns whether nobody uses it: no call runs, and no task.
    fn is_idle(&self) -> bool {
        self.usage.lock().calls == 0 && !self.runs_tasks()
    }

    /// Returns whether its process runs a task behind the answer of the call that began it.
    fn runs_tasks(&self) -> bool {
        self.opened.lock().upgrade().is_some_and(|connection| connection.runs_tasks())
    }

    /// Returns the time until which its tasks run; `None` if it runs none.
    fn tasks_until(&self) -> Option<Instant> {
        self.opened.lock().upgrade()?.tasks_until()
    }

    /// Returns the number of tasks that it runs.
    fn tasks(&self) -> usize {
        self.opened.lock().upgrade().map_or(0, |connection| connection.tasks())
    }

    /// Returns whether it is to this process, which runs.
    fn is_to(&self, process: u64) -> bool {
        self.opened.lock().upgrade().is_some_and(|connection| connection.is_to(process))
    }

    /// Returns whether it runs a task of this ID.
    fn has_task(&self, id: &str) -> bool {
        self.opened.lock().upgrade().is_some_and(|connection| connection.has_task(id))
    }

    /// Ends it once its calls have. It must be open to no more of them.
    fn end_after_calls(&self) {
        let mut usage = self.usage.lock();
        usage.is_leaving = true;
        if usage.calls == 0 {
            self.ended.cancel();
        }
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
        if owned.process.is_some_and(|process| !connection.is_to(process)) {
            return Err(no_such_task());
        }
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
        tell_sent(request.sent.as_deref(), &connection);
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
        let Owned { asker, authorizer, is_list, process } = owned;
        let host = asker.as_ref().map(|asker| &*asker.host);
        let capabilities = asker.as_ref().map(|asker| asker.capabilities.clone());
        // The same source of tokens is the same principal with the same token, as long as it is held here.
        let source = authorizer.as_ref().map(|source| Arc::as_ptr(source) as usize);
        // JSON, so that no name can look like another's.
        let host = serde_json::json!([principal, host, capabilities, source]).to_string();
        let limits = &self.entry.limits;
        let mut connections = self.own.open.lock();
        if let Some(process) = process {
            let its = |own: &&Arc<Own>| own.owner.principal == principal && own.is_to(*process);
            if let Some(own) = connections.values().find(its) {
                return Some(Using::of(own));
            }
        }
        if *is_list
            && asker.is_none()
            && let Some(used) = last_used(&connections, principal, authorizer.as_ref())
        {
            return Some(Using::of(used));
        }
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
}
