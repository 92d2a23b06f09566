//! Order in which requests begin. Only a few begin at a time, so that the runtime's own queue is short and connections
//! are read promptly. The others wait here, in one queue for each connection. Connections take turns. A connection that
//! had nothing waiting comes before those that keep a queue, so that it does not wait for them. This is flow queueing
//! as in FQ-CoDel (Hoeiland-Joergensen et al., RFC 8290, 4.1 and 4.2), with one request instead of a quantum of bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Turns of a process.
#[derive(Clone)]
pub(super) struct Turns {
    queue: Arc<Mutex<Queue>>,
}

/// Turn of a request; passes to the next request when it is dropped.
pub(super) struct Turn {
    /// `None` once it was given back.
    turns: Option<Turns>,
}

/// Turn, or a place in the queue for one.
pub(super) enum Ticket {
    Turn(Turn),
    Waits(oneshot::Receiver<Turn>),
}

struct Queue {
    /// Unused turns; while there are some, no request waits.
    free: usize,
    /// Waiting requests by connection, in order of arrival. Each connection is in one of the two lists below.
    connections: HashMap<u64, VecDeque<Waiting>>,
    /// Connections that had nothing waiting before.
    new: VecDeque<u64>,
    old: VecDeque<u64>,
}

struct Waiting {
    since: Instant,
    told: oneshot::Sender<Turn>,
}

impl Turns {
    /// Creates turns for `at_a_time` requests at once.
    pub(super) fn new(at_a_time: usize) -> Self {
        let queue = Queue {
            free: at_a_time,
            connections: HashMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
        };
        Self { queue: Arc::new(Mutex::new(queue)) }
    }

    /// Returns the time since which the connection's first request waits; `None` when none waits.
    pub(super) fn first_of(&self, connection: u64) -> Option<Instant> {
        let queue = self.queue();
        let waiting = queue.connections.get(&connection)?;
        waiting.front().map(|first| first.since)
    }

    /// Takes a turn for a request of the connection, or a place in its queue.
    pub(super) fn take(&self, connection: u64, now: Instant) -> Ticket {
        let mut queue = self.queue();
        if queue.free > 0 {
            queue.free -= 1;
            return Ticket::Turn(Turn { turns: Some(self.clone()) });
        }
        let (told, turn) = oneshot::channel();
        queue.push(connection, Waiting { since: now, told });
        Ticket::Waits(turn)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds the lock.
        self.queue.lock()
    }
}

impl Ticket {
    /// Waits for the turn.
    pub(super) async fn turn(self) -> Option<Turn> {
        match self {
            Self::Turn(turn) => Some(turn),
            // The sender sends the turn, or is dropped together with the queue.
            Self::Waits(turn) => turn.await.ok(),
        }
    }
}

impl Queue {
    fn push(&mut self, connection: u64, waiting: Waiting) {
        let queue = self.connections.entry(connection).or_insert_with(|| {
            self.new.push_back(connection);
            VecDeque::new()
        });
        if queue.len() == queue.capacity() {
            // Otherwise a client that sends and cancels requests would fill the memory.
            queue.retain(Waiting::is_wanted);
            queue.reserve(queue.len() + 1);
        }
        queue.push_back(waiting);
    }

    /// Removes the next request whose turn it is.
    fn pop(&mut self) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let connection = self.new.pop_front().or_else(|| self.old.pop_front())?;
            let next = self.connections.get_mut(&connection).and_then(first_wanted);
            // A new connection joins the old ones even with an empty queue. Otherwise it would come first again at
            // once.
            if next.is_some() || is_new {
                self.old.push_back(connection);
            } else {
                self.connections.remove(&connection);
            }
            if next.is_some() {
                return next;
            }
        }
    }
}

impl Waiting {
    fn is_wanted(&self) -> bool {
        !self.told.is_closed()
    }
}

/// Removes the first request whose caller still waits.
fn first_wanted(queue: &mut VecDeque<Waiting>) -> Option<Waiting> {
    while let Some(next) = queue.pop_front() {
        if next.is_wanted() {
            return Some(next);
        }
    }
    None
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(turns) = self.turns.take() else { return };
        let mut turn = Self { turns: Some(turns.clone()) };
        loop {
            let mut queue = turns.queue();
            let Some(next) = queue.pop() else {
                queue.free += 1;
                turn.turns = None;
                return;
            };
            drop(queue);
            match next.told.send(turn) {
                Ok(()) => return,
                // The caller went away just now.
                Err(unwanted) => turn = unwanted,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues one request for each entry of `connections`, and returns the order of their turns.
    async fn order(turns: &Turns, connections: &[u64]) -> Vec<u64> {
        let Ticket::Turn(turn) = turns.take(0, Instant::now()) else { panic!("all are free") };
        let tickets: Vec<_> =
            connections.iter().map(|of| turns.take(*of, Instant::now())).collect();
        let (told, mut came) = tokio::sync::mpsc::unbounded_channel();
        for (connection, ticket) in connections.iter().copied().zip(tickets) {
            let told = told.clone();
            tokio::spawn(async move {
                let turn = ticket.turn().await.expect("a turn");
                told.send(connection).expect("it is read");
                drop(turn);
            });
        }
        drop((turn, told));
        let mut order = Vec::new();
        while let Some(connection) = came.recv().await {
            order.push(connection);
        }
        order
    }

    #[tokio::test]
    async fn connections_take_turns() {
        let turns = Turns::new(1);
        let order = order(&turns, &[1, 1, 1, 1, 2, 2, 3]).await;
        assert_eq!(order, [1, 2, 3, 1, 2, 1, 1]);
        assert_eq!(turns.queue().free, 1);
        assert!(turns.queue().connections.is_empty(), "nothing is kept of them");
    }

    #[tokio::test]
    async fn who_had_nothing_waiting_comes_first_once() {
        let turns = Turns::new(1);
        let take = |connection| turns.take(connection, Instant::now());
        let first = take(1).turn().await.expect("a turn");
        let mut greedy = [take(1), take(1), take(1)].into_iter();
        drop(first);
        let second = greedy.next().expect("a ticket").turn().await.expect("its turn");
        let quiet = take(2);
        drop(second);
        let third = quiet.turn().await.expect("before what waits for longer");
        let again = take(2);
        drop(third);
        let fourth =
            greedy.next().expect("a ticket").turn().await.expect("one who waits for a turn");
        drop(fourth);
        drop(again.turn().await.expect("its turn"));
    }

    #[tokio::test]
    async fn who_has_gone_takes_no_turn() {
        let turns = Turns::new(2);
        let take = || turns.take(1, Instant::now());
        let held = [take(), take()];
        let gone = take();
        let kept = take();
        let told = take();
        drop(gone);
        drop(held);
        let kept = kept.turn().await.expect("a turn");
        // This request gets its turn, but its caller leaves before it notices.
        drop(told);
        drop(kept);
        assert_eq!(turns.queue().free, 2);
    }

    #[test]
    fn requests_that_were_taken_back_are_not_kept() {
        let turns = Turns::new(1);
        let held = turns.take(1, Instant::now());
        let waiting: Vec<_> = (0..20).map(|_| turns.take(1, Instant::now())).collect();
        for _ in 0..10_000 {
            drop(turns.take(1, Instant::now()));
        }
        let kept = turns.queue().connections[&1].len();
        assert!(kept <= 100, "{kept}");
        drop((held, waiting));
    }

    #[test]
    fn the_first_of_a_queue_is_known() {
        let turns = Turns::new(1);
        let begun = Instant::now();
        let later = begun + std::time::Duration::from_secs(1);
        let held = turns.take(1, begun);
        assert_eq!(turns.first_of(1), None);
        let waiting = [turns.take(1, begun), turns.take(1, later)];
        assert_eq!((turns.first_of(1), turns.first_of(2)), (Some(begun), None));
        drop((held, waiting));
    }
}
