//! Phase of the worker: one value that health, readiness and every call read.

use std::sync::OnceLock;

use tokio::sync::{Notify, watch};

use toolgate_encoder::EncoderHandle;

/// Phase in the life of a worker. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The model is being loaded or warmed up.
    Starting,
    /// Calls are answered.
    Serving,
    /// Shutdown has begun: calls in progress may end, new ones are refused.
    Draining,
    /// The device can't be trusted: no call is answered, not even those in progress.
    Broken,
}

impl Phase {
    /// Returns true if the process is about to end.
    pub(super) fn is_last(self) -> bool {
        self >= Self::Draining
    }
}

/// Phase and encoder, shared by everything in the process.
#[derive(Debug)]
pub(super) struct Lifecycle {
    phase: watch::Sender<Phase>,
    encoder: OnceLock<EncoderHandle>,
    /// Signal that the device failed a call, so that the canary runs at once.
    pub(super) suspicion: Notify,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Starting),
            encoder: OnceLock::new(),
            suspicion: Notify::new(),
        }
    }
}

impl Lifecycle {
    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Moves on to `phase`; does nothing if the worker is past it.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let forward = *now < phase;
            *now = phase.max(*now);
            forward
        });
    }

    /// Starts to serve with this encoder.
    pub(super) fn serve_with(&self, encoder: EncoderHandle) {
        self.encoder.get_or_init(|| encoder);
        self.enter(Phase::Serving);
    }

    /// Returns the encoder, once there is a warm one.
    pub(super) fn encoder(&self) -> Option<&EncoderHandle> {
        self.encoder.get()
    }

    /// Waits until `phase` or a later one is entered.
    pub(super) async fn reached(&self, phase: Phase) {
        let mut watch = self.watch();
        // The sender lives as long as `self`, so the wait can't fail.
        let _ = watch.wait_for(|now| *now >= phase).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_never_goes_back() {
        let lifecycle = Lifecycle::default();
        assert_eq!(lifecycle.phase(), Phase::Starting);
        for (entered, want) in [
            (Phase::Draining, Phase::Draining),
            (Phase::Serving, Phase::Draining),
            (Phase::Broken, Phase::Broken),
            (Phase::Draining, Phase::Broken),
        ] {
            lifecycle.enter(entered);
            assert_eq!(lifecycle.phase(), want);
        }
        lifecycle.reached(Phase::Serving).await;
    }
}
