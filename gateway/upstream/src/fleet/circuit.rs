//! Circuit of one server: after failures of the transport in a row nothing is tried for a while, and then one call.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Failures of the transport in a row that open the circuit.
const FAILURES_MAX: u32 = 5;

/// Circuit of a server.
#[derive(Debug)]
pub(super) struct Circuit {
    state: Mutex<State>,
    pause: Duration,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
    is_trying: bool,
}

/// Call through the circuit. Dropped without a word about the outcome, it leaves the circuit as it was.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    circuit: &'a Circuit,
    is_trial: bool,
}

impl Circuit {
    /// Makes a closed circuit that stays open for `pause` once it opens.
    pub(super) fn new(pause: Duration) -> Self {
        Self { state: Mutex::default(), pause }
    }

    /// Lets a call through; `None` while the circuit is open or its one trial runs.
    pub(super) fn attempt(&self) -> Option<Attempt<'_>> {
        let mut state = self.state.lock();
        let Some(until) = state.open_until else {
            return Some(Attempt { circuit: self, is_trial: false });
        };
        if state.is_trying || Instant::now() < until {
            return None;
        }
        state.is_trying = true;
        Some(Attempt { circuit: self, is_trial: true })
    }

    /// Returns true from the failure that opened it until a call is answered.
    pub(super) fn is_open(&self) -> bool {
        self.state.lock().open_until.is_some()
    }

    /// Closes the circuit.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.open_until = None;
    }
}

impl Attempt<'_> {
    /// Says that the server answered.
    pub(super) fn answered(self) {
        self.circuit.reset();
    }

    /// Says that the transport failed.
    pub(super) fn failed(self) {
        let mut state = self.circuit.state.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES_MAX {
            state.open_until = Some(Instant::now() + self.circuit.pause);
        }
        drop(state);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_trial {
            self.circuit.state.lock().is_trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_five_failures_and_one_call_closes_it() {
        let circuit = Circuit::new(Duration::from_millis(10));
        for _ in 0..4 {
            circuit.attempt().expect("an attempt").failed();
        }
        circuit.attempt().expect("an attempt").answered();
        for _ in 0..5 {
            circuit.attempt().expect("an attempt").failed();
        }
        assert!(circuit.attempt().is_none() && circuit.is_open());
        tokio::time::advance(Duration::from_millis(10)).await;
        let trial = circuit.attempt().expect("an attempt");
        assert!(circuit.is_open());
        assert!(circuit.attempt().is_none());
        drop(trial);
        circuit.attempt().expect("an attempt").failed();
        assert!(circuit.attempt().is_none());
        tokio::time::advance(Duration::from_millis(10)).await;
        circuit.attempt().expect("an attempt").answered();
        assert!(!circuit.is_open());
        assert!(circuit.attempt().is_some() && circuit.attempt().is_some());
    }
}
