//! Changes of lists and resources, told to the hosts that follow them.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::changing::{ChangedLists, FaceChanges};

/// Longest time after which a session that ended is no longer followed for.
const CLOSED_SEEN: Duration = Duration::from_secs(60);

/// Shortest time between changes of lists that a host is told: those that come meanwhile are told together.
const TOLD_GAP: Duration = Duration::from_secs(1);

/// Changes of lists that wait to be told.
struct Untold {
    changed: ChangedLists,
    due: Instant,
}

impl Untold {
    fn new() -> Self {
        Self { changed: ChangedLists::default(), due: Instant::now() }
    }

    /// Waits until there is something to tell, and it is time.
    async fn next(&mut self, changes: &mut FaceChanges) -> ChangedLists {
        loop {
            tokio::select! {
                changed = changes.next() => self.changed |= changed,
                () = sleep_until(self.due), if self.changed.any() => {
                    self.due = Instant::now() + TOLD_GAP;
                    return std::mem::take(&mut self.changed);
                }
            }
        }
    }
}

/// Tells a subscription of changes until it ends: of lists that it asked for, and of resources.
pub(crate) async fn subscription(
    subscription: &SubscriptionContext,
    mut changes: FaceChanges,
    mut updates: mpsc::Receiver<String>,
) {
    let sink = subscription.sink();
    let mut untold = Untold::new();
    loop {
        let changed = tokio::select! {
            () = subscription.cancelled() => return,
            Some(uri) = updates.recv() => {
                // A refusal says that this subscription did not ask for the resource.
                let _refusal = sink.notify_resource_updated(uri).await;
                continue;
            }
            changed = untold.next(&mut changes) => changed,
        };
        // A refusal says that this subscription did not ask for the list.
        if changed.tools {
            let _refusal = sink.notify_tool_list_changed().await;
        }
        if changed.prompts {
            let _refusal = sink.notify_prompt_list_changed().await;
        }
        if changed.resources {
            let _refusal = sink.notify_resource_list_changed().await;
        }
    }
}

/// Tells a session of a revision before 2026-07-28 which of its resources changed, until it ends.
pub(crate) async fn resources(peer: Peer<RoleServer>, mut updates: mpsc::Receiver<String>) {
    while let Some(uri) = updates.recv().await {
        let update = ResourceUpdatedNotificationParam::new(uri);
        if peer.notify_resource_updated(update).await.is_err() {
            return;
        }
    }
}

/// Tells a session of a revision before 2026-07-28 of changes until it ends.
pub(crate) async fn session(peer: Peer<RoleServer>, mut changes: FaceChanges) {
    let mut untold = Untold::new();
    loop {
        let changed = tokio::select! {
            changed = untold.next(&mut changes) => changed,
            () = sleep(CLOSED_SEEN) => ChangedLists::default(),
        };
        if peer.is_transport_closed() {
            return;
        }
        let mut sent = Ok(());
        if changed.tools {
            sent = sent.and(peer.notify_tool_list_changed().await);
        }
        if changed.prompts {
            sent = sent.and(peer.notify_prompt_list_changed().await);
        }
        if changed.resources {
            sent = sent.and(peer.notify_resource_list_changed().await);
        }
        if sent.is_err() {
            return;
        }
    }
}
