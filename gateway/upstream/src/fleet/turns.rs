//! Turns at one server: so many calls at a time, and a queue that serves principals one after another.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Turns at a server.
#[derive(Debug, Clone)]
pub(super) struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    concurrency: usize,
    queue: usize,
    state: Mutex<State>,
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// Those who wait, by principal. The first principal is next.
    waiting: VecDeque<Line>,
}

#[derive(Debug)]
struct Line {
    principal: String,
    waiters: VecDeque<oneshot::Sender<Turn>>,
}

/// Right to call now. The next in line gets it when it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Option<Turns>);

/// Refusal: the queue is full, or the deadline passed in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Busy;

impl Turns {
    /// Makes turns for `concurrency` calls at a time, and `queue` that wait.
    pub(super) fn new(concurrency: usize, queue: usize) -> Self {
        let concurrency = concurrency.max(1);
        Self(Arc::new(Shared { concurrency, queue, state: Mutex::default(), idle: Notify::new() }))
    }

    /// Waits for a turn until the deadline.
    ///
    /// # Errors
    /// [`Busy`] if the queue is full, or the turn does not come in time.
    pub(super) async fn take(&self, principal: &str, deadline: Instant) -> Result<Turn, Busy> {
        let waiting = {
            let mut state = self.0.state.lock();
            if state.running < self.0.concurrency {
                state.running += 1;
                return Ok(Turn(Some(self.clone())));
            }
            if state.waiting() >= self.0.queue {
                state.forget_those_who_left();
            }
            if state.waiting() >= self.0.queue {
                return Err(Busy);
            }
            state.wait(principal)
        };
        match tokio::time::timeout_at(deadline, waiting).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(Busy),
        }
    }

    /// Returns the number of calls that run.
    pub(super) fn running(&self) -> usize {
        self.0.state.lock().running
    }

    /// Waits until no call runs, and nothing that calls began. `begun_until` says how long that runs, unless a call ends it.
    pub(super) async fn idle(&self, begun_until: impl Fn() -> Option<Instant>) {
        loop {
            let idle = self.0.idle.notified();
            if self.running() > 0 {
                idle.await;
                continue;
            }
            let Some(until) = begun_until() else { return };
            let _over = tokio::time::timeout_at(until, idle).await;
        }
    }

    /// Gives a turn to the next in line.
    fn pass_on(&self) {
        let mut turn = Turn(Some(self.clone()));
        loop {
            let next = {
                let mut state = self.0.state.lock();
                let next = state.next();
                if next.is_none() {
                    state.running -= 1;
                }
                next
            };
            let Some(next) = next else {
                turn.0 = None;
                self.0.idle.notify_waiters();
                return;
            };
            match next.send(turn) {
                Ok(()) => return,
                Err(unsent) => turn = unsent,
            }
        }
    }
}

impl State {
    fn waiting(&self) -> usize {
        self.waiting.iter().map(|line| line.waiters.len()).sum()
    }

    fn forget_those_who_left(&mut self) {
        for line in &mut self.waiting {
            line.waiters.retain(|waiter| !waiter.is_closed());
        }
        self.waiting.retain(|line| !line.waiters.is_empty());
    }

    fn wait(&mut self, principal: &str) -> oneshot::Receiver<Turn> {
        let (sender, receiver) = oneshot::channel();
        match self.waiting.iter_mut().find(|line| line.principal == principal) {
            Some(line) => line.waiters.push_back(sender),
            None => self.waiting.push_back(Line {
                principal: principal.to_owned(),
                waiters: VecDeque::from([sender]),
            }),
        }
        receiver
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let mut line = self.waiting.pop_front()?;
        let next = line.waiters.pop_front();
        if !line.waiters.is_empty() {
            self.waiting.push_back(line);
        }
        next
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn principals_take_turns() {
        let turns = Turns::new(1, 8);
        let first = turns.take("a", soon()).await.expect("a turn");
        let mut waiting: Vec<_> = ["a", "a", "a", "b"]
            .into_iter()
            .map(|who| Some((who, Box::pin(turns.take(who, soon())))))
            .collect();
        for (_, taking) in waiting.iter_mut().flatten() {
            assert!(taking.as_mut().now_or_never().is_none());
        }
        let mut order = Vec::new();
        let mut held = Some(first);
        while held.take().is_some() {
            for place in &mut waiting {
                let Some((who, taking)) = place else { continue };
                if let Some(turn) = taking.as_mut().now_or_never() {
                    order.push(*who);
                    held = Some(turn.expect("a turn"));
                    *place = None;
                    break;
                }
            }
        }
        assert_eq!(order, ["a", "b", "a", "a"]);
        assert_eq!(turns.running(), 0);
    }

    #[tokio::test]
    async fn a_full_queue_is_busy_and_those_who_leave_make_room() {
        let turns = Turns::new(1, 1);
        let held = turns.take("a", soon()).await.expect("a turn");
        let mut waiting = Box::pin(turns.take("b", soon()));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(turns.take("c", soon()).await.expect_err("an error"), Busy);
        drop(waiting);
        let mut waiting = Box::pin(turns.take("c", soon()));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        drop(waiting.await.expect("a turn"));
        turns.idle(|| None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_holds_in_the_queue() {
        let turns = Turns::new(1, 8);
        let held = turns.take("a", soon()).await.expect("a turn");
        let deadline = Instant::now() + Duration::from_millis(5);
        assert_eq!(turns.take("b", deadline).await.expect_err("an error"), Busy);
        drop(held);
        assert!(turns.take("b", soon()).await.is_ok());
    }
}
