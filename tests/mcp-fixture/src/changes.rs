//! Changes of lists, told to everyone who listens.

use parking_lot::Mutex;
use rmcp::service::SubscriptionContext;
use tokio::sync::broadcast;

/// Changes that may wait for a listener that is slow.
const WAITING: usize = 16;

/// A list that changed, or a resource.
#[derive(Clone)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resource(String),
}

/// One connection's end of the changes. Whoever triggers one and whoever listens may be different connections.
pub(crate) struct Changes {
    sender: broadcast::Sender<Change>,
    /// Of subscriptions that were accepted and not yet acknowledged: a change in between is not lost.
    accepted: Mutex<Vec<broadcast::Receiver<Change>>>,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self::of(broadcast::channel(WAITING).0)
    }

    /// The end of another connection to the same server.
    pub(crate) fn for_connection(&self) -> Self {
        Self::of(self.sender.clone())
    }

    pub(crate) fn announce(&self, change: Change) {
        // Nobody may be listening.
        let _ = self.sender.send(change);
    }

    /// Begins to collect for a subscription that is about to be acknowledged.
    pub(crate) fn accept(&self) {
        self.accepted.lock().push(self.sender.subscribe());
    }

    /// Passes changes on until the subscription ends. Its filter is the library's work.
    pub(crate) async fn follow(&self, subscription: &SubscriptionContext) {
        let accepted = self.accepted.lock().pop();
        let mut receiver = accepted.unwrap_or_else(|| self.sender.subscribe());
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return,
                change = receiver.recv() => change,
            };
            let sink = subscription.sink();
            // A refusal means that this subscription did not ask for the list.
            let _ = match change {
                Ok(Change::Tools) => sink.notify_tool_list_changed().await,
                Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
                Ok(Change::Resource(uri)) => sink.notify_resource_updated(uri).await,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
        }
    }

    fn of(sender: broadcast::Sender<Change>) -> Self {
        Self { sender, accepted: Mutex::default() }
    }
}
