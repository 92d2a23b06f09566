//! Changes of a server's lists and resources, told to the hosts that follow them.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::mpsc;
use toolgate_upstream::Change;

/// Longest time after which a session that ended is no longer followed for.
const CLOSED_SEEN: Duration = Duration::from_secs(60);

/// Tells a subscription of changes until it ends: of lists that it asked for, where the face has one server, and of resources.
pub(crate) async fn subscription(
    subscription: &SubscriptionContext,
    mut told: Option<broadcast::Receiver<Change>>,
    mut updates: mpsc::Receiver<String>,
) {
    let sink = subscription.sink();
    loop {
        let change = tokio::select! {
            () = subscription.cancelled() => return,
            Some(uri) = updates.recv() => {
                // A refusal says that this subscription did not ask for the resource.
                let _refusal = sink.notify_resource_updated(uri).await;
                continue;
            }
            change = next(&mut told) => change,
        };
        // A refusal says that this subscription did not ask for the list.
        let _refusal = match change {
            Ok(Change::Tools) => sink.notify_tool_list_changed().await,
            Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
            Ok(Change::Resources) => sink.notify_resource_list_changed().await,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
    }
}

async fn next(told: &mut Option<broadcast::Receiver<Change>>) -> Result<Change, RecvError> {
    match told {
        Some(told) => told.recv().await,
        None => std::future::pending().await,
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
pub(crate) async fn session(peer: Peer<RoleServer>, mut told: broadcast::Receiver<Change>) {
    loop {
        let change = tokio::time::timeout(CLOSED_SEEN, told.recv()).await;
        if peer.is_transport_closed() {
            return;
        }
        let sent = match change {
            Ok(Ok(Change::Tools)) => peer.notify_tool_list_changed().await,
            Ok(Ok(Change::Prompts)) => peer.notify_prompt_list_changed().await,
            Ok(Ok(Change::Resources)) => peer.notify_resource_list_changed().await,
            Ok(Err(RecvError::Lagged(_))) | Err(_) => Ok(()),
            Ok(Err(RecvError::Closed)) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}
