//! Calls that become tasks. A task whose ID comes after its host has left is cancelled.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use toolgate_telemetry::in_trace;
use toolgate_upstream::{Request, Sent};

use super::{CANCEL, of_id};
use crate::gateway::Gateway;
use crate::host::{Failure, Host, parsed};
use crate::live::NOTES_MAX;
use crate::passing;
use crate::raw::RawObject;

/// Time for a server to give a task up that nobody waits for.
const CANCELLED: Duration = Duration::from_secs(10);

/// Answer to a call that was to become a task.
pub(super) struct Started {
    pub(super) result: RawObject,
    /// `None` if it became none.
    pub(super) task: Option<StartedTask>,
    /// Process that it was sent to; `None` for a URL.
    pub(super) process: Option<u64>,
}

/// Task that a server started.
pub(super) struct StartedTask {
    /// ID that the server gave it.
    pub(super) id: String,
    pub(super) state: RawObject,
    pub(super) unheeded: Unheeded,
}

/// Task that an answer stands for.
pub(super) struct Begun {
    /// ID that the server gave it.
    pub(super) id: String,
    pub(super) state: RawObject,
}

/// Sends a call that becomes a task, or may. Once it is sent, it goes on if its host leaves before the server has told the task's
/// ID: by that the task is cancelled then. Without an ID in this time the call itself is.
pub(super) async fn start(
    host: &Host<'_>,
    server: &str,
    params: Map<String, Value>,
    id_awaited: Duration,
    task_in: fn(&RawObject) -> Option<Begun>,
) -> Result<Started, Failure> {
    let mut request = host.plain("tools/call", params);
    let mut cancel = host.plain(CANCEL, Map::new());
    let (telling, notes) = mpsc::channel(NOTES_MAX);
    let hearer = host.hearer(server);
    request.progress = hearer.is_some().then_some(telling);
    let sent = Arc::new(Sent::default());
    request.sent = Some(Arc::clone(&sent));
    let (mut answering, answer) = oneshot::channel();
    let gateway = host.gateway.clone();
    let to = server.to_owned();
    tokio::spawn(in_trace(async move {
        let deadline = Instant::now() + gateway.call_time_max();
        let sending = gateway.fleet().request(&to, request, deadline);
        // Dropped, the request is cancelled.
        let is_sent = || sent.is_sent();
        let outcome = await_answer(sending, answering.closed(), is_sent, id_awaited).await;
        let Some(outcome) = outcome else { return };
        let process = sent.process();
        cancel.process = process;
        let started = parsed(outcome).map(|result| {
            let task = task_in(&result);
            let task = task.map(|begun| started(&gateway, &to, cancel, begun));
            Started { result, task, process }
        });
        // Where nobody takes the answer, its task is dropped, and so cancelled.
        let _left = answering.send(started);
    }));
    let answer = async { answer.await.unwrap_or(Err(Failure::Lost)) };
    match hearer {
        Some(hearer) => passing::tell_until(&hearer, notes, answer).await,
        None => answer.await,
    }
}

/// Returns the answer to a request; `None` if its host leaves before it is sent, or too long before it is answered.
async fn await_answer<T>(
    sending: impl Future<Output = T>,
    left: impl Future<Output = ()>,
    is_sent: impl Fn() -> bool,
    longest: Duration,
) -> Option<T> {
    let mut sending = pin!(sending);
    tokio::select! {
        biased;
        answer = &mut sending => return Some(answer),
        () = left => {}
    }
    if !is_sent() {
        return None;
    }
    timeout(longest, sending).await.ok()
}

/// Returns a task that a call has started. `cancel` is a request that cancels it, but for its ID.
fn started(gateway: &Gateway, server: &str, mut cancel: Request, begun: Begun) -> StartedTask {
    let Begun { id, state } = begun;
    cancel.params = of_id(&id);
    let gateway = gateway.clone();
    let unheeded = Unheeded { gateway, server: server.to_owned(), request: Some(cancel) };
    StartedTask { id, state, unheeded }
}

/// Task that nobody looks after but the gateway. Dropped, it is cancelled: its host has left.
pub(super) struct Unheeded {
    gateway: Gateway,
    server: String,
    /// Request that cancels it; `None` once it has ended, or somebody looks after it.
    request: Option<Request>,
}

impl Unheeded {
    /// Says that it has ended, or that somebody looks after it.
    pub(super) fn is_heeded(&mut self) {
        self.request = None;
    }
}

impl Drop for Unheeded {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let fleet = self.gateway.fleet().clone();
        let server = std::mem::take(&mut self.server);
        runtime.spawn(async move {
            // It may have ended meanwhile.
            let _ended = fleet.request(&server, request, Instant::now() + CANCELLED).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const LONGEST: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_host_has_left_waits_for_an_id_a_while() {
        let after = |time: Duration, is_sent: bool| async move {
            let sending = async {
                sleep(time).await;
                "an ID"
            };
            await_answer(sending, std::future::ready(()), || is_sent, LONGEST).await
        };
        let before = LONGEST - Duration::from_secs(1);
        assert_eq!(after(before, true).await, Some("an ID"));
        assert_eq!(after(before, false).await, None, "nothing runs");
        let long = LONGEST + Duration::from_secs(1);
        assert_eq!(after(long, true).await, None);
        let host = std::future::pending();
        let stays = await_answer(sleep(long), host, || true, LONGEST).await;
        assert_eq!(stays, Some(()), "its host waits as long as a call may take");
    }
}
