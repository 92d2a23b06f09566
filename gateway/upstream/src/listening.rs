//! Subscriptions to what servers of 2026-07-28 tell. One that ends is opened again while the connection lasts.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, Subscription};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::connection::{Change, Told};

/// Time for a server to take a subscription.
const TAKEN: Duration = Duration::from_secs(30);

/// Longest pause before a subscription is opened again.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Time of a subscription after which pauses begin anew.
const HEALTHY: Duration = Duration::from_secs(60);

/// Subscription of one connection.
pub(crate) struct Listener {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) filter: SubscriptionFilter,
    pub(crate) told: Told,
    /// First pause before it is opened again. Each is twice as long as the one before.
    pub(crate) pause: Duration,
}

/// Task that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listener {
    /// Opens the subscription, and keeps it until the returned task is dropped.
    ///
    /// # Errors
    /// The problem, if the server does not take it.
    pub(crate) async fn open(self) -> Result<AbortOnDrop, String> {
        let opened = self.listen().await.map_err(|error| error.to_string())?;
        Ok(AbortOnDrop(tokio::spawn(self.keep(Some(opened)))))
    }

    /// Opens the subscription in a task that keeps it until it is dropped.
    pub(crate) fn open_later(self) -> AbortOnDrop {
        AbortOnDrop(tokio::spawn(self.keep(None)))
    }

    /// Hears what the server tells. Returns once the connection has ended, or the server refuses the subscription.
    async fn keep(self, mut opened: Option<Subscription>) {
        let mut pause = self.pause;
        let mut was_open = opened.is_some();
        loop {
            let subscription = match opened.take() {
                Some(subscription) => Ok(subscription),
                None => self.listen().await,
            };
            match subscription {
                Ok(subscription) => {
                    if was_open {
                        self.missed();
                    }
                    let began = Instant::now();
                    self.hear(subscription).await;
                    was_open = true;
                    if began.elapsed() >= HEALTHY {
                        pause = self.pause;
                    }
                }
                Err(ServiceError::McpError(_)) => return,
                Err(_) => {}
            }
            if self.peer.is_transport_closed() {
                return;
            }
            tokio::time::sleep(pause.mul_f64(0.9 + 0.2 * fastrand::f64())).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn listen(&self) -> Result<Subscription, ServiceError> {
        let listening = tokio::time::timeout(TAKEN, self.peer.listen(self.filter.clone())).await;
        listening.unwrap_or(Err(ServiceError::Timeout { timeout: TAKEN }))
    }

    /// Hands on what the server tells until the subscription ends.
    async fn hear(&self, mut subscription: Subscription) {
        while let Ok(Some(notification)) = subscription.next().await {
            match notification {
                ServerNotification::ToolListChangedNotification(_) => self.told.tools_changed(),
                ServerNotification::PromptListChangedNotification(_) => {
                    self.told.changed(Change::Prompts);
                }
                ServerNotification::ResourceListChangedNotification(_) => {
                    self.told.changed(Change::Resources);
                }
                ServerNotification::ResourceUpdatedNotification(updated) => {
                    self.told.resource_changed(&updated.params.uri);
                }
                _ => {}
            }
        }
    }

    /// Tells of all that may have changed while no subscription was open.
    fn missed(&self) {
        let Self { filter, told, .. } = self;
        if filter.tools_list_changed == Some(true) {
            told.tools_changed();
        }
        if filter.prompts_list_changed == Some(true) {
            told.changed(Change::Prompts);
        }
        if filter.resources_list_changed == Some(true) {
            told.changed(Change::Resources);
        }
        for uri in filter.resource_subscriptions.iter().flatten() {
            told.resource_changed(uri);
        }
    }
}
